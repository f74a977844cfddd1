"""The level loop of a search over parts: the only one on the host.

Source: Pan, Pearce, Owens 2018, Sections IV and V (Figs. 3 and 4).  Nothing here knows
what an engine runs on or how many ranks there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from distbfs.engines.base import PartState, Work
from distbfs.errors import SearchStopped
from distbfs.exchange.base import Exchange
from distbfs.options import SearchOptions
from distbfs.partition.layout import Layout
from distbfs.search.direction import DirectionPolicy
from distbfs.search.parents import Finder, ParentCost
from distbfs.timing import Stopwatch, Trace
from distbfs.types import Array, Ids, Stop, World


@dataclass(frozen=True)
class LevelReport:
    """One level; counts are sums over all ranks, bytes and seconds are this rank's."""

    level: int
    directions: dict[str, str]
    normals: int
    delegates: int
    checks: dict[str, int]
    bytes_sent: dict[str, int]
    seconds: dict[str, float]

    def as_dict(self) -> dict[str, Any]:
        """Return the record as JSON values."""
        return dict(vars(self))


@dataclass
class PartsResult:
    """Levels and parents on the parts of one rank, valid until the next search.

    level[i]: int32 [local count] of the i-th part by local id; parent[i]: int32 or
    int64, vertex ids, or None when not asked for
    """

    level: list[Array]
    parent: list[Array | None]
    levels: int
    records: list[LevelReport] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    parent_cost: ParentCost = field(default_factory=ParentCost)


def delegate_finder(delegates: Ids) -> Callable[[int], int | None]:
    """Return what tells the delegate number of a vertex, None for a normal one.

    delegates: [d] global ids
    """
    order = np.argsort(delegates)

    def find(vertex: int) -> int | None:
        place = int(np.searchsorted(delegates, vertex, sorter=order))
        if place < len(order) and delegates[order[place]] == vertex:
            return int(order[place])
        return None

    return find


class Driver:
    """Runs searches over the parts of this rank together with the other ranks.

    trace: keeps the phases of every level where one is set
    """

    trace: Trace | None = None

    def __init__(
        self,
        world: World,
        searches: Sequence[PartState],
        exchange: Exchange,
        options: SearchOptions,
        parents: Finder,
    ) -> None:
        self._world = world
        self._searches = searches
        self._exchange = exchange
        self._options = options
        part = searches[0].part
        self._layout: Layout = part.layout
        self._policy = DirectionPolicy(options)
        self._parents = parents
        self._delegate_of = delegate_finder(part.delegates)

    def search(
        self,
        root: int,
        *,
        records: bool = False,
        parents: bool = True,
        stop: Stop | None = None,
    ) -> PartsResult:
        """Search from a vertex id (collective).

        parents: False leaves them out of this search
        stop: on all ranks or on none, asked before each level; where one says yes,
        all ranks raise SearchStopped
        """
        clock = Stopwatch(self.trace)
        parents = parents and self._options.parents
        log: list[LevelReport] = []
        with clock("start"):
            self._start(root, counting=records)
        levels = 0
        while True:
            self._world.doing = f"level {levels}"
            before = dict(clock.seconds)
            sent = self._traffic()
            with clock("previsit"):
                counts = np.zeros(Work.SIZE + 1, dtype=np.int64)
                for search in self._searches:
                    counts[:-1] += search.previsit().to_array()
                counts[-1] = stop is not None and stop()
            with clock("counts"):
                total = self._world.allreduce(counts)
                work = Work.from_array(total)
            if total[-1]:
                self._world.doing = ""
                raise SearchStopped(f"the search was stopped at level {levels}")
            if not work.normals + work.delegates:
                break
            levels += 1
            directions = self._policy.choose(work)
            checks = self._level(work, directions, clock)
            if records:
                looked = self._world.allreduce(checks)
                log.append(
                    LevelReport(
                        levels,
                        {"nn": "push", **directions},
                        work.normals,
                        work.delegates,
                        dict(
                            zip(("nn", "nd", "dd", "dn"), looked.tolist(), strict=True)
                        ),
                        {k: v - sent[k] for k, v in self._traffic().items()},
                        {k: v - before.get(k, 0) for k, v in clock.seconds.items()},
                    )
                )
        self._world.doing = "parents"
        cost = ParentCost()
        if parents:
            with clock("parents"):
                cost = self._parents.complete()
        with clock("result"):
            results = [search.result() for search in self._searches]
        self._world.doing = ""
        return PartsResult(
            [level for level, _ in results],
            [parent if parents else None for _, parent in results],
            levels,
            log,
            clock.seconds,
            cost,
        )

    def _traffic(self) -> dict[str, int]:
        traffic = self._exchange.traffic
        return {"masks": traffic.mask_bytes, "normals": traffic.normal_bytes}

    def _start(self, root: int, *, counting: bool) -> None:
        """Tell every part where the search begins; all ranks find it alike."""
        self._policy.start()
        delegate = self._delegate_of(root)
        part, local = self._layout.part_of(root), self._layout.local_of(root)
        for search in self._searches:
            here = delegate is None and search.part.index == part
            number = search.part.number_of(local) if here else None
            search.start(number, delegate, counting=counting)

    def _level(self, work: Work, directions: dict[str, Any], clock: Stopwatch) -> Ids:
        """Run one level; returns edge checks of nn, nd, dd and dn on this rank.

        work: of all ranks, so that all know alike when there is nothing to exchange.

        Vertices leave as soon as nn is done, masks as soon as dd and nd are; dn, which
        stays on its part, runs while both are under way.  dd goes before nd, so that a
        pull of nd has fewer delegates left to look for.
        """
        checks = np.zeros(4, dtype=np.int64)
        exchange, searches = self._exchange, self._searches
        finds_delegates = bool(work.dd[0] or work.nd[0])
        for search in searches:
            search.launch(directions)
        with clock("visit_nn"):
            checks[0] = sum(s.visit_nn() for s in searches)
        if work.nn:
            with clock("send_normals"):
                exchange.start_normals([s.bins() for s in searches])
        with clock("visit_dd_nd"):
            checks[2] = sum(s.visit_dd(directions["dd"]) for s in searches)
            checks[1] = sum(s.visit_nd(directions["nd"]) for s in searches)
        if finds_delegates:
            with clock("start_masks"):
                exchange.start_masks([s.new_mask() for s in searches])
        with clock("visit_dn"):
            checks[3] = sum(s.visit_dn(directions["dn"]) for s in searches)
        mask = None
        if finds_delegates:
            with clock("finish_masks"):
                mask = exchange.finish_masks()
        arrived: list[list[tuple[int, Array]]] = [[] for _ in searches]
        if work.nn:
            with clock("finish_normals"):
                arrived = exchange.finish_normals()
        with clock("end_level"):
            for search, messages in zip(searches, arrived, strict=True):
                for rank, numbers in messages:
                    search.take_normals(rank, numbers)
                search.take_mask(search.new_mask() if mask is None else mask)
                search.end_level()
        return checks
