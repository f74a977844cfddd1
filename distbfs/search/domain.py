"""Searches that run on the devices from the root to the result, without the host.

The host launches one kernel for each device and search, and reads its result.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.device import cuda
from distbfs.device.gate import Gate
from distbfs.engines.base import Query
from distbfs.engines.cuda.xbfs.domain import MemberSearch
from distbfs.engines.cuda.xbfs.share_search import level_records
from distbfs.engines.cuda.xbfs.shared import connect_devices
from distbfs.errors import DistbfsError, SearchStopped
from distbfs.search.runners.base import (
    Found,
    Runner,
    check_not_stopped,
    made_later,
    records_of,
)
from distbfs.timing import Stopwatch

if TYPE_CHECKING:
    from distbfs.build.cuda.seen import SeenEdges
    from distbfs.exchange.peer_memory import PeerGroup
    from distbfs.types import Root, World

PATIENCE_SECONDS = 8


class DomainDriver(Runner):
    """Searches by the devices of all ranks, which map each other's memory.

    Creating it is collective, too.
    """

    def __init__(
        self, world: World, parts: Sequence[MemberSearch], group: PeerGroup
    ) -> None:
        self._world, self._parts, self._group = world, parts, group
        self._gate = Gate(world)
        self._searches = 0
        connect_devices(world, group, [part.shared for part in parts])
        for one in parts:
            with cuda.cupy().cuda.Device(one.device):
                one.connect()
                one.prepare()
                cuda.cupy().cuda.Device().synchronize()
        self._bare_known = False
        world.barrier()

    def _count_bare(self) -> None:
        """Tell all devices how many vertices no visible edge enters (collective)."""
        self._bare_known = True
        if not self._parts[0].graph.directed:
            return
        own = sum(part.arrays.params.bare_count for part in self._parts)
        every = int(self._world.allreduce(np.array([own]))[0])
        for part in self._parts:
            part.own.bare_count = every

    def answer(self, root: Root, query: Query) -> Found:
        """Search from a vertex id; see ``MemberSearch.results``.

        Raises SearchStopped on all ranks if ``stop`` returns True on one of them while
        levels are left, UsageError if a target is not a vertex, DistbfsError on all
        ranks if a device did not answer.
        """
        check_not_stopped(self._world, query.stop)
        clock = Stopwatch(self.trace)
        if not self._bare_known:
            self._count_bare()
        if query.records:
            self._on_each(lambda part: part.prepare(records=True))
            self._world.barrier()
        first = self._parts[0]  # one device that gets the request passes it to all

        def ready(part: MemberSearch) -> None:
            part.ready(root, query if part is first else query._replace(stop=None))

        self._on_each(ready)
        with clock("search"):
            self._start()
            ends = self._on_each(lambda part: part.wait())
        end = self._world.allreduce(np.array(ends).max(axis=0), "max")
        if end[2]:
            raise DistbfsError(
                f"a device waited {PATIENCE_SECONDS} s for the device of part "
                f"{int(end[2]) - 1}, which did not answer; this session cannot search "
                "any more"
            )
        self._searches += 1
        if end[3]:
            raise SearchStopped(f"the search was stopped at level {int(end[3]) - 1}")
        results = partial(self._results, self._searches, parents=query.parents)
        arrays = made_later(len(self._parts), results)
        result = Found(*arrays, int(end[1]), float(end[0]))
        if query.records:
            shown = self._world, self._parts, result.level, result.levels
            result.records = records_of(level_records(*shown))
        result.phases = clock.seconds
        return result

    def see(self, views: Sequence[SeenEdges | None]) -> None:
        """Restrict later searches to some edges of this rank's parts; None: to all."""
        self._bare_known = False
        for one, view in zip(self._parts, views, strict=True):
            with cuda.cupy().cuda.Device(one.device):
                one.see(view)

    def _results(self, search: int, *, parents: bool) -> tuple[list[Any], list[Any]]:
        """Return the levels and parents of this rank's parts."""
        if search != self._searches:
            raise DistbfsError("results are lost once the next search begins")
        levels, above = zip(*self._on_each(lambda part: part.results()), strict=True)
        return list(levels), list(above) if parents else [None] * len(above)

    def _start(self) -> None:
        """Start all devices at the same time."""

        def launch(part: MemberSearch) -> None:
            self._gate.hold()
            part.start()

        try:
            self._on_each(launch)
        except BaseException:
            self._gate.release()
            raise
        self._gate.open()

    def _on_each(self, work: Any) -> list[Any]:
        out = []
        for part in self._parts:
            with cuda.cupy().cuda.Device(part.device), cuda.memory_of("a search"):
                out.append(work(part))
        return out

    def close(self) -> None:
        """Free the devices' shared memory, and unused memory (collective)."""
        self._group.close()
        cuda.release()
