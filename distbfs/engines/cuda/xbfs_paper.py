"""Engine ``xbfs-paper``: XBFS as published, each of its strategies (paper.cu).

Source: Gaihre, Wu, Yao, Liu: XBFS: eXploring Runtime Optimizations for Breadth-First
Search on GPUs, HPDC 2019.
"""

from __future__ import annotations

from typing import Any

from distbfs.engines.base import WHOLE, LevelRecord, Until
from distbfs.engines.cuda.paper import (
    ALLOWED,
    BALANCES,
    CHUNK,
    DIRECTIONS,
    FRONTIERS,
    PaperSearch,
)
from distbfs.engines.cuda.whole import GraphEngine, NumberResult
from distbfs.errors import UsageError
from distbfs.graph.device_graph import DeviceGraph
from distbfs.options import SearchOptions, check_choice

STRATEGIES = ("frontier", "balance", "asynchronous")
COUNTED = ("found_early", "repeats", "handed_out", "donations")  # in records
PULLS = "warp"  # how pulls share their work where nothing is asked for


class XbfsPaperEngine(GraphEngine):
    """Method: paper, whose strategies are options.

    ``--engine auto`` takes it for directed graphs.
    """

    name = "xbfs-paper"
    methods = ("paper",)
    directions = DIRECTIONS
    takes = (*STRATEGIES, "stepwise", "internal_ids")

    @classmethod
    def check(cls, options: SearchOptions) -> None:
        """Raise UsageError for values of options that the engine does not have."""
        super().check(options)
        check_choice("balance", options.balance, ("auto", *BALANCES))
        check_choice("frontier", options.frontier, FRONTIERS)
        allowed = ALLOWED[options.direction]
        if options.frontier not in allowed:
            raise UsageError(
                f"frontier is '{options.frontier}' with direction "
                f"'{options.direction}'; allowed: {', '.join(allowed)}"
            )

    def by_number(self, graph: DeviceGraph) -> PaperByNumber:
        """Prepare searches by vertex number."""
        return PaperByNumber(graph, self.options)

    def bytes_of(self, graph: DeviceGraph) -> int:
        """Return the bytes of device memory that searches by number take."""
        by_vertex = (4 + 4 * self.options.parents + 8) * graph.active
        return by_vertex + 16 * graph.m // CHUNK + (16 << 20)

    def describe(self) -> dict[str, Any]:
        """Return what the engine runs on, for reports."""
        strategies = {name: getattr(self.options, name) for name in STRATEGIES}
        return {**super().describe(), "strategies": strategies}


class PaperByNumber:
    """A ``PaperSearch`` as a ``NumberSearch``."""

    def __init__(self, graph: DeviceGraph, options: SearchOptions) -> None:
        self._search = PaperSearch(
            graph,
            frontier=options.frontier,
            balance=PULLS if options.balance == "auto" else options.balance,
            asynchronous=options.asynchronous,
            direction=options.direction,
            parents=options.parents,
            stepwise=options.stepwise,
        )

    def search(
        self, number: int, *, records: bool = False, until: Until = WHOLE
    ) -> NumberResult:
        """Search from a vertex number; targets of ``until`` are numbers."""
        found = self._search.search(number, records, until)
        log = [
            LevelRecord(
                r["direction"],
                r["frontier"],
                r["checks"],
                r["found"] + r["found_early"],
                r["seconds"],
                {name: r[name] for name in COUNTED},
            )
            for r in found.records
        ]
        level, parent = found.level, found.parent
        return NumberResult(level, parent, found.levels, found.seconds, log)
