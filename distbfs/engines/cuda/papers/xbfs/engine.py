"""Engine ``xbfs-paper``: XBFS as published, with all its strategies (paper.cu).

Source: Gaihre, Wu, Yao, Liu: XBFS: eXploring Runtime Optimizations for Breadth-First
Search on GPUs, HPDC 2019.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from distbfs.device.array_table import ArrayTable
from distbfs.engines.cuda.common.graph_engine import GraphEngine
from distbfs.engines.cuda.papers.xbfs.search import (
    DIRECTIONS,
    PaperSearch,
    array_table,
    check_frontier,
)
from distbfs.options import BALANCES, FRONTIERS, check_choice
from distbfs.partition.share import Share

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
    own = PaperOptions

    def check(self) -> None:
        """Raise UsageError for option values that the engine does not support."""
        super().check()
        check_frontier(self.own_options.frontier, self.options.direction)

    def by_number(self, graph: Share) -> PaperSearch:
        """Prepare searches by vertex number."""
        o, own = self.options, asdict(self.own_options)
        if own["balance"] == "auto":
            own["balance"] = default_balance(graph.m, graph.active)
        return PaperSearch(graph, **own, direction=o.direction, parents=o.parents)

    def table(self, graph: Share) -> ArrayTable:
        """Return the arrays of searches by number."""
        return array_table(graph, parents=self.options.parents)

    def describe(self) -> dict[str, Any]:
        """Return the engine's hardware and settings, for reports."""
        return {**super().describe(), "strategies": asdict(self.own_options)}
