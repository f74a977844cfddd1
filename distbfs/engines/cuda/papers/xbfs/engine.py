"""Engine ``xbfs-paper``: XBFS as published, with all its strategies (paper.cu).

Source: Gaihre, Wu, Yao, Liu: XBFS: eXploring Runtime Optimizations for Breadth-First
Search on GPUs, HPDC 2019.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from distbfs.device.array_table import ArrayTable
from distbfs.engines.base import WHOLE, DeviceResult, LevelRecord, Until
from distbfs.engines.cuda.common.graph_engine import GraphEngine
from distbfs.engines.cuda.papers.xbfs.search import (
    ALLOWED,
    DIRECTIONS,
    PaperSearch,
    array_table,
)
from distbfs.errors import UsageError
from distbfs.graph.device_graph import DeviceGraph
from distbfs.options import BALANCES, FRONTIERS, SearchOptions, check_choice
from distbfs.types import Stop

COUNTED = ("found_early", "repeats", "handed_out", "donations")  # in records
# Default balance of pulls: Figure 14 of the paper, measured on an H200
# (scripts/papers/run.py xbfs --figure 14). Where rows are long, one thread per vertex
# is fastest; else warps that take vertices by turns and share out the last row.
LONG_ROWS = 32  # neighbours on average


def default_balance(m: int, active: int) -> str:
    """Return the default balance of pulls.

    m: number of stored edges; active: number of vertices that have edges
    """
    return "static" if m >= LONG_ROWS * active else "donation"


@dataclass(frozen=True)
class PaperOptions:
    """Strategies (Gaihre et al. 2019).

    frontier: how queues are formed, one of ``FRONTIERS`` (Section 4.1)
    balance: how pulls distribute their work, "auto" or one of ``BALANCES`` (Section
    5.1)
    asynchronous: pulls also use vertices found in the same level (Section 5.2)
    """

    frontier: str = "auto"
    balance: str = "auto"
    asynchronous: bool = True

    def __post_init__(self) -> None:
        check_choice("balance", self.balance, ("auto", *BALANCES))
        check_choice("frontier", self.frontier, FRONTIERS)


class XbfsPaperEngine(GraphEngine):
    """Its only method is paper, whose strategies are options."""

    name = "xbfs-paper"
    methods = ("paper",)
    directions = DIRECTIONS
    takes = ("stepwise", "internal_ids")
    own = PaperOptions

    def check(self) -> None:
        """Raise UsageError for option values that the engine does not support."""
        super().check()
        frontier, direction = self.own_options.frontier, self.options.direction
        allowed = ALLOWED[direction]
        if frontier not in allowed:
            raise UsageError(
                f"frontier is '{frontier}' with direction '{direction}'; allowed: "
                f"{', '.join(allowed)}"
            )

    def by_number(self, graph: DeviceGraph) -> PaperByNumber:
        """Prepare searches by vertex number."""
        return PaperByNumber(graph, self.options, self.own_options)

    def table(self, graph: DeviceGraph) -> ArrayTable:
        """Return the arrays of searches by number."""
        return array_table(graph, parents=self.options.parents)

    def describe(self) -> dict[str, Any]:
        """Return the engine's hardware and settings, for reports."""
        return {**super().describe(), "strategies": asdict(self.own_options)}


class PaperByNumber:
    """A ``PaperSearch`` as a ``NumberSearch``."""

    def __init__(
        self, graph: DeviceGraph, options: SearchOptions, own: PaperOptions
    ) -> None:
        self._search = PaperSearch(
            graph,
            frontier=own.frontier,
            balance=default_balance(graph.m, graph.active)
            if own.balance == "auto"
            else own.balance,
            asynchronous=own.asynchronous,
            direction=options.direction,
            parents=options.parents,
            stepwise=options.stepwise,
        )

    def search(
        self,
        number: int,
        *,
        records: bool = False,
        until: Until = WHOLE,
        stop: Stop | None = None,
    ) -> DeviceResult:
        """Search from a vertex number; see ``PaperSearch.search``."""
        result = self._search.search(number, records, until, stop)
        log = [
            LevelRecord(
                r["direction"],
                r["frontier"],
                r["checks"],
                r["found"] + r["found_early"],
                r["seconds"],
                {name: r[name] for name in COUNTED},
            )
            for r in result.records
        ]
        level, parent = result.level, result.parent
        return DeviceResult(level, parent, result.levels, result.seconds, 1, log)
