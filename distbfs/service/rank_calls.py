"""Collective work of a service's ranks: follow the calls of rank 0.

A call is a JSON object sent to every rank: ``{"do": "search", "source": s, "parents":
p, "steps": [...]}`` searches once and then runs steps, each a list of a name and its
arguments; ``{"do": "together", "sources": [...], "asked": [[source, targets], ...]}``
searches from many sources at once; ``{"do": "look"}`` checks whether any rank got a
signal; ``{"do": "end"}`` is the last.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from distbfs.errors import SearchStopped, ValidationError
from distbfs.multisearch.started import Started
from distbfs.ranks.signals import StopFlag
from distbfs.search.result import Result
from distbfs.search.result_paths import count_back
from distbfs.search.session import Session
from distbfs.search.vertices import gather_on_first
from distbfs.service.shared_traversal import Levels, together
from distbfs.timing import Trace, kept
from distbfs.types import Array, Stop

Step = Sequence[Any]
OFTEN = 256  # vertices of a path between two looks at the deadline


class ServiceRank:
    """One rank of a service; rank 0 calls ``search``, ``look`` and ``end``.

    flag: whether this rank was asked to stop
    together: searches from many sources at once, None if not supported
    """

    def __init__(
        self, session: Session, flag: StopFlag, trace: Trace | None = None
    ) -> None:
        self.session = session
        self.flag = flag
        self._trace = trace
        self.together = together(session)
        self._steps: dict[str, Callable[..., Any]] = {
            "at": lambda result, ids: result.at(ids)[0].tolist(),
            "path": self._path,
            "all_paths": self._all_paths,
            "counts": lambda result: result.level_counts().tolist(),
            "traversed": lambda result: result.nedge,
            "block": self._block,
        }

    def follow(self) -> None:
        """Follow rank 0's calls until its end call (ranks above 0)."""
        world = self.session.world
        while True:
            with kept(self._trace, "wait"):
                call = world.patient_broadcast(None)
            if call["do"] == "end":
                return
            if call["do"] == "look":
                self.flag.agreed(world)
                continue
            run = self._at_once if call["do"] == "together" else self._run
            with suppress(SearchStopped, ValidationError):
                run(call, lambda: False)  # rank 0 decides when a search is stopped

    def search(
        self,
        source: int | tuple[int, ...],
        steps: Sequence[Step],
        *,
        parents: bool,
        stop: Stop,
    ) -> tuple[float, list[Any]]:
        """Search on all ranks (rank 0); return (seconds, result of each step).

        stop: called between levels and between steps, and within long ones;
        SearchStopped when it returns True
        """
        call = {"do": "search", "source": source, "parents": parents, "steps": steps}
        return self._run(self._on_all_ranks(call), stop)

    @property
    def ahead(self) -> bool:
        """Whether ``start_together`` returns while searches go on."""
        return self.together is not None and self.together.ahead

    def near(
        self, source: int, asked: Sequence[Sequence[int]]
    ) -> tuple[float, Levels] | None:
        """Return levels from one source by edge lookups; see ``Together.near``."""
        return None if self.together is None else self.together.near(source, asked)

    def start_together(
        self, sources: Sequence[int], asked: Sequence[Sequence[Any]], stop: Stop
    ) -> Started[Levels]:
        """Begin to search from many sources at once; see ``Together.start``.

        Unless ``ahead``, all ranks search at its end.
        """
        if self.together is not None and self.together.ahead:
            return self.together.start(sources, asked, stop)
        call = {"do": "together", "sources": sources, "asked": asked}
        return Started(lambda: self._at_once(self._on_all_ranks(call), stop))

    def _on_all_ranks(self, call: dict[str, Any]) -> dict[str, Any]:
        """Send a call to all ranks and return it; a single rank sends nothing."""
        world = self.session.world
        if world.size == 1:
            return call
        everywhere: dict[str, Any] = world.patient_broadcast(call)
        return everywhere

    def look(self) -> bool:
        """Return whether any rank was asked to stop (rank 0)."""
        self.session.world.patient_broadcast({"do": "look"})
        return self.flag.agreed(self.session.world)

    def end(self) -> None:
        """Release the other ranks (rank 0)."""
        self.session.world.patient_broadcast({"do": "end"})

    def _at_once(self, call: dict[str, Any], stop: Stop) -> tuple[float, Levels]:
        if self.together is None:
            raise ValueError("requests for many sources cannot be batched here")
        return self.together.levels(call["sources"], call["asked"], stop)

    def _run(self, call: dict[str, Any], stop: Stop) -> tuple[float, list[Any]]:
        steps: list[Any] = [
            ["at", np.array(step[1], dtype=np.int64)] if step[0] == "at" else step
            for step in call["steps"]
        ]
        if (answer := self._between(call["source"], steps, stop)) is not None:
            return answer
        wanted = next((step[1] for step in steps if step[0] == "at"), None)
        result = self.session.search(
            call["source"], parents=call["parents"], stop=stop, wanted=wanted
        )
        values = []
        for name, *arguments in steps:
            self._go_on(stop)
            more = [stop] if name == "path" else []
            with kept(self._trace, name):
                values.append(self._steps[name](result, *arguments, *more))
        return result.seconds, values

    def _between(
        self, source: int | tuple[int, ...], steps: Sequence[Step], stop: Stop
    ) -> tuple[float, list[Any]] | None:
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
        self, result: Result, target: int, longest: int, stop: Stop
    ) -> tuple[int, list[int] | None]:
        """Return (level of the target, the vertices from the source to it or None).

        None if unreached, or for a path of more than ``longest`` vertices.
        """
        distance = int(result.at(np.array([target]))[0][0])
        if not 0 <= distance < longest:
            return distance, None
        steps = 0

        def ask() -> None:
            nonlocal steps
            steps += 1
            if steps % OFTEN == 0:
                self._go_on(stop)

        return distance, result._walk_back(target, ask)[::-1]

    def _all_paths(
        self, result: Result, target: int, most: int
    ) -> tuple[int, int, list[list[int]] | None]:
        """Return (level of a target, number of shortest paths, their edges (u, v)).

        No edges, and 0, if unreached, or for more than ``most`` of them.
        """
        distance = int(result.at(np.array([target]))[0][0])
        if distance < 0:
            return distance, 0, None
        pairs = result.predecessors_to(target)
        if len(pairs) > most:
            return distance, 0, None
        return distance, count_back(pairs, target), pairs.tolist()

    def _block(self, result: Result) -> tuple[Array | None, Array | None]:
        """Return level and parent of all vertices, on rank 0."""
        level, parent = result.to_numpy()
        world = self.session.world
        return gather_on_first(world, level), gather_on_first(world, parent)
