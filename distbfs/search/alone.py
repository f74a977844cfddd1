"""A graph that the first rank's device searches alone, while the other ranks wait.

Below ALONE_BELOW vertices a meeting of several devices costs more than they save: one
search has eight or nine of 3.5 us each.  So the graph is on one device, and what a
session returns goes from the first rank to all.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from distbfs.options import SearchOptions
from distbfs.partition.layout import Layout
from distbfs.search.device_session import DeviceSession
from distbfs.search.session import Outcome, check_roots
from distbfs.timing import Trace
from distbfs.types import Array, Ids, Stop, World, slice_bounds

ALONE_BELOW = 1 << 24  # vertices


class AloneSession:
    """The session of the first rank for all; see ``session.AnySession``.

    first: of this rank, None but on rank 0.  An outcome has arrays on rank 0 alone.
    """

    def __init__(
        self, world: World, options: SearchOptions, n: int, first: DeviceSession | None
    ) -> None:
        self.world, self.options, self.first = world, options, first
        self.layout = Layout(n, 1)
        told = self._told(lambda s: [s.describe(), s.notes(), s.mode, s.extent])
        self._describe, self._notes, self._mode, self._extent = told

    def _told(self, ask: Callable[[DeviceSession], Any]) -> Any:
        """Return on all ranks what the first one answers, JSON values (collective)."""
        answer = None if self.first is None else ask(self.first)
        return self.world.broadcast(answer)

    @property
    def mode(self) -> str:
        """How searches run."""
        return str(self._mode)

    @property
    def extent(self) -> int:
        """Rows of all blocks together."""
        return int(self._extent)

    def describe(self) -> dict[str, Any]:
        """Return what searches run on, for reports."""
        return {**self._describe, "exchange": "none: one device searches alone"}

    def notes(self) -> dict[str, str]:
        """Return what the text of a report adds."""
        return dict(self._notes)

    def check(self, roots: Ids) -> None:
        """Raise UsageError for what is no vertex."""
        check_roots(roots, self.layout.n)

    def search(
        self,
        root: int,
        *,
        records: bool = False,
        parents: bool = True,
        stop: Stop | None = None,
    ) -> Outcome:
        """Search from an input id; the arrays are on rank 0."""
        self.check(np.array([root]))
        found: list[Outcome] = []

        def run(session: DeviceSession) -> list[Any]:
            one = session.search(root, records=records, parents=parents, stop=stop)
            found.append(one)
            return [one.levels, one.seconds, one.records, one.phases]

        began = time.perf_counter()
        levels, seconds, log, phases = self._told(run)
        wall = time.perf_counter() - began
        if found:
            found[0].wall = wall
            return found[0]
        return Outcome(root, [], [], levels, seconds, log, phases, wall=wall)

    def watch(self, trace: Trace) -> None:
        """Keep the phases of searches in a trace from now on (local)."""
        if self.first is not None:
            self.first.watch(trace)

    def at(self, outcome: Outcome, ids: Ids) -> tuple[Array, Array | None]:
        """Return level and parent of input ids."""

        def ask(session: DeviceSession) -> list[Any]:
            level, parent = session.at(outcome, ids)
            return [level.tolist(), None if parent is None else parent.tolist()]

        level, parent = self._told(ask)
        above = None if parent is None else np.array(parent, dtype=np.int64)
        return np.array(level, dtype=np.int32), above

    def level_counts(self, outcome: Outcome) -> Ids:
        """Return how many vertices each level has."""
        told = self._told(lambda session: session.level_counts(outcome).tolist())
        return np.array(told, dtype=np.int64)

    def keep(self, outcome: Outcome) -> Outcome:
        """Return a search whose results outlast the next one."""
        return outcome if self.first is None else self.first.keep(outcome)

    def room(self, most: int) -> int:
        """Return the bytes that kept results may take."""
        return int(self._told(lambda session: int(session.room(most))))

    def block(self, outcome: Outcome) -> tuple[Array, Array | None]:
        """Return this rank's block of the results on the host."""
        level: Array = np.zeros(0, np.int32)
        parent: Array | None = None
        if self.first is not None:
            level, parent = self.first.block(outcome)
        some = parent is not None
        parents = bool(self.world.broadcast(some))
        level = self._dealt(level)
        if not parents:
            return level, None
        none: Array = np.zeros(0, np.int64)
        return level, self._dealt(none if parent is None else parent)

    def _dealt(self, values: Array) -> Array:
        """Return this rank's slice of the first rank's values."""
        size = self.world.size
        cuts = [slice_bounds(self.extent, size, rank) for rank in range(size)]
        return self.world.alltoall([values[a:b] for a, b in cuts])[0]

    def vertices(self) -> Ids | None:
        """Return the input ids of the rows of blocks, None where rows are input ids."""
        mine: Array = np.zeros(0, np.int64)
        found = None if self.first is None else self.first.vertices()
        if not self.world.broadcast(found is not None):
            return None
        every = self.world.allgather(mine if found is None else found)
        return every[0]

    def reached(self, outcome: Outcome) -> tuple[int, int]:
        """Return (vertices reached, largest level)."""
        count, most = self._told(lambda session: list(session.reached(outcome)))
        return int(count), int(most)

    def traversed(self, outcome: Outcome) -> int:
        """Return the input tuples with an end in the reached component."""
        return int(self._told(lambda session: session.traversed(outcome)))

    def connected(self, ids: Ids) -> Array:
        """Return which input ids have a neighbour besides themselves, bool [k]."""
        told = self._told(lambda session: session.connected(ids).tolist())
        return np.array(told, dtype=np.bool_)

    def close(self) -> None:
        """Free what searches hold."""
        if self.first is not None:
            self.first.close()
