"""Figure 14 of the XBFS paper: ways to balance the work of pulls.

Speed-ups over static balancing, with adaptive frontier queues and synchronous pulls as
in the paper; ``donation``, which it describes, is measured too.
Source: Gaihre, Wu, Yao, Liu: XBFS, HPDC 2019, Sections 5.1 and 6.3.
"""

from __future__ import annotations

from typing import Any

import figures

from distbfs.engines.cuda.papers.xbfs.search import BALANCES, PaperSearch
from distbfs.graph.device_graph import DeviceGraph


def measure(graph: DeviceGraph, numbers: list[int]) -> dict[str, Any]:
    searches = {
        name: PaperSearch(graph, balance=name, asynchronous=False, parents=False)
        for name in BALANCES
    }
    seconds = figures.paper_seconds(searches, numbers)
    first = seconds[BALANCES[0]]
    return {
        "seconds": seconds,
        "speedup": {name: first / x for name, x in seconds.items()},
    }


def main() -> None:
    args = figures.arguments(__doc__, stores=True).parse_args()
    rows = figures.over_graphs(args, measure)

    def draw(figure: Any) -> None:
        names = figures.column(rows, "graph")
        series = {x: figures.column(rows, "speedup", x) for x in BALANCES}
        label = "speed-up over static balancing"
        figures.bars(figure.subplots(), names, series, label)

    figures.save(args.out, "xbfs_fig14", {"rows": rows}, draw)


if __name__ == "__main__":
    figures.main(main)
