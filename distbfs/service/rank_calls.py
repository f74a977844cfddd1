"""Collective work of a service's ranks, which follow the calls of rank 0.

A call is a JSON object sent to every rank: ``{"do": "search", "source": 3, "asked":
[...]}`` searches from a source or a set, and then runs the step of each request (a list
of a name and its arguments); ``{"do": "batch", "asked": [[source, targets], ...]}``
searches from many sources at once; ``{"do": "look"}`` checks whether any rank got a
signal; ``{"do": "end"}`` is the last.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from typing import Any

import numpy as np

from distbfs.errors import SearchStopped, ValidationError
from distbfs.multisearch.started import Started
from distbfs.ranks.signals import StopFlag
from distbfs.search.result import Result
from distbfs.search.result_paths import count_back
from distbfs.search.session import Session
from distbfs.search.vertices import gather_on_first
from distbfs.service.shared_traversal import batch_searcher
from distbfs.timing import Trace, kept
from distbfs.types import Array, Stop

Step = Sequence[Any]
Searched = tuple[float, list[Any]]  # seconds, and the value of each request's step
OFTEN = 256  # vertices of a path between two looks at the deadline


class ServiceRank:
    """One rank of a service; rank 0 calls ``start``, ``look`` and ``end``.

    flag: flag that is set when a signal asks this rank to stop
    batches: searcher from many sources at once, None if not supported
    """

    def __init__(
        self, session: Session, flag: StopFlag, trace: Trace | None = None
    ) -> None:
        self.session = session
        self.flag = flag
        self._trace = trace
        self.batches = batch_searcher(session)

    def follow(self) -> None:
        """Follow rank 0's calls until its end call (ranks above 0)."""
        world = self.session.world
        while True:
            with kept(self._trace, "wait"):
                call = world.broadcast(None, patient=True)
            if call["do"] == "end":
                return
            if call["do"] == "look":
                self.flag.agreed(world)
                continue
            with suppress(SearchStopped, ValidationError):
                self._run(call, lambda: False)  # rank 0 decides when it is stopped

    @property
    def ahead(self) -> bool:
        """Whether searches from many sources continue after ``start`` returns."""
        return self.batches is not None and self.batches.ahead

    def start(self, call: dict[str, Any], stop: Stop) -> Started[list[Any]]:
        """Begin the search of a call (rank 0).

        Unless ``ahead``, all ranks search when the result is asked for. ``stop`` is
        called between levels, between steps and within long steps; if it returns True,
        SearchStopped is raised.
        """
        if self.batches is None or not self.ahead or call["do"] != "batch":
            return Started(
                lambda: self._run(self._on_all_ranks(call), stop), lambda: False
            )
        return self.batches.start(call["asked"], stop)

    def _on_all_ranks(self, call: dict[str, Any]) -> dict[str, Any]:
        """Send a call to all ranks and return it; a single rank sends nothing."""
        world = self.session.world
        if world.size == 1:
            return call
        everywhere: dict[str, Any] = world.broadcast(call, patient=True)
        return everywhere

    def look(self) -> bool:
        """Return whether any rank was asked to stop (rank 0)."""
        self.session.world.broadcast({"do": "look"}, patient=True)
        return self.flag.agreed(self.session.world)

    def end(self) -> None:
        """Release the other ranks (rank 0)."""
        self.session.world.broadcast({"do": "end"}, patient=True)

    def _run(self, call: dict[str, Any], stop: Stop) -> Searched:
        """Run the search of a call."""
        if self.batches is not None and call["do"] == "batch":
            return self.batches.levels(call["asked"], stop)
        return self.search(call["source"], call["asked"], stop)

    def search(
        self, source: int | tuple[int, ...], asked: Sequence[Step], stop: Stop
    ) -> Searched:
        """Search from a source or a set; then run the step of each request."""
        answer: Searched | None = None
        targets = [step[1] for step in asked if step[0] == "at"]
        if self.batches and isinstance(source, int) and len(targets) == len(asked):
            answer = self.batches.by_lookups(source, targets)
        if answer := answer or self._between(source, asked, stop):
            return answer
        parents = any(x[0] == "path" or (x[0] == "result" and x[2]) for x in asked)
        result = self.session.search(source, parents=parents, stop=stop)
        return result.seconds, [self._value(result, stop, *step) for step in asked]

    def _value(self, result: Result, stop: Stop, name: str, *arguments: Any) -> Any:
        """Return the value of a step after a search."""
        self._go_on(stop)
        with kept(self._trace, name):
            return getattr(self, f"_{name}")(result, stop, *arguments)

    @staticmethod
    def _at(result: Result, _: Stop, targets: Sequence[int]) -> list[int]:
        """Return the levels of targets."""
        levels: list[int] = result.at(np.array(targets, dtype=np.int64))[0].tolist()
        return levels

    def _between(
        self, source: int | tuple[int, ...], steps: Sequence[Step], stop: Stop
    ) -> Searched | None:
        """Answer a step with one target by a search from both ends; None for others."""
        if len(steps) != 1 or not self.session.both_ends:
            return None
        name, target, *longest = steps[0]
        # mutant: len(target) == 1 -> False : test_one_target_is_searched_from_both_ends
        if name != "path" and not (name == "at" and len(target) == 1):
            return None
        began = time.perf_counter()
        with kept(self._trace, name):
            end = int(target if name == "path" else target[0])
            path = self.session.path(source, end, stop=stop)
        seconds, distance = time.perf_counter() - began, len(path or ()) - 1
        if name == "at":
            return seconds, [[distance]]
        return seconds, [(distance, path if distance < longest[0] else None)]

    def _go_on(self, stop: Stop) -> None:
        """Raise SearchStopped on all ranks if one is to stop (collective)."""
        asked, world = stop(), self.session.world
        if world.size > 1:
            asked = bool(world.allreduce(np.array([asked], dtype=np.int64), "max")[0])
        if asked:
            raise SearchStopped("the answer was not finished")

    def _path(
        self, result: Result, stop: Stop, target: int, longest: int
    ) -> tuple[int, list[int] | None]:
        """Return (level of the target, the vertices from the source to it or None).

        The vertices are None if the target is unreached, or if the path has more than
        ``longest`` vertices.
        """
        distance = int(result.at(np.array([target]))[0][0])
        if not 0 <= distance < longest:
            return distance, None
        steps = count(1)

        def ask() -> None:
            if next(steps) % OFTEN == 0:
                self._go_on(stop)

        return distance, result._walk_back(target, ask)[::-1]

    def _all_paths(
        self, result: Result, _: Stop, target: int, most: int
    ) -> tuple[int, int, list[list[int]] | None]:
        """Return (level of a target, number of shortest paths, their edges (u, v)).

        The number is 0 and there are no edges if the target is unreached, or if there
        are more than ``most`` edges.
        """
        distance = int(result.at(np.array([target]))[0][0])
        if distance < 0:
            return distance, 0, None
        pairs = result.predecessors_to(target)
        if len(pairs) > most:
            return distance, 0, None
        return distance, count_back(pairs, target), pairs.tolist()

    def _result(
        self, result: Result, stop: Stop, whole: object, parents: object
    ) -> tuple[float, list[int], int, Array | None, Array | None]:
        """Return (seconds, vertices of each level, traversed tuples, level, parent).

        whole, parents: whether to return level and parent of all vertices, on rank 0;
        they are None otherwise
        """
        level = parent = None
        counts: list[int] = result.level_counts().tolist()
        self._go_on(stop)
        nedge = result.nedge
        if whole:
            self._go_on(stop)
            level, parent = result.to_numpy()
            world = self.session.world
            parent = gather_on_first(world, parent) if parents else None
            level = gather_on_first(world, level)
        return result.seconds, counts, nedge, level, parent
