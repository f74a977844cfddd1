"""Figure 13 of the XBFS paper: shares of time of the ways to make frontier queues.

Shares are those of searches with counters, by the device's clock.
Source: Gaihre, Wu, Yao, Liu: XBFS, HPDC 2019, Section 6.3.
"""

from __future__ import annotations

from typing import Any

import figures

from distbfs.engines.cuda.papers.xbfs.search import MODES, PaperSearch
from distbfs.graph.device_graph import DeviceGraph

TITLES = ("scan-free", "single-scan", "no-queue", "double-scan")


def measure(graph: DeviceGraph, numbers: list[int]) -> dict[str, Any]:
    search = PaperSearch(graph, parents=False)
    shares = figures.shares(search, numbers)
    return {"share": {mode: shares.get(mode, 0.0) for mode in MODES}}


def main() -> None:
    args = figures.arguments(__doc__, stores=True).parse_args()
    rows = figures.over_graphs(args, measure)

    def draw(figure: Any) -> None:
        names = figures.column(rows, "graph")
        series = {
            title: [100 * x for x in figures.column(rows, "share", mode)]
            for title, mode in zip(TITLES, MODES, strict=True)
        }
        figures.stacked(figure.subplots(), names, series, "% of the time")

    figures.save(args.out, "xbfs_fig13", {"rows": rows}, draw)


if __name__ == "__main__":
    figures.main(main)
