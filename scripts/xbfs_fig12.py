"""Figure 12 of the XBFS paper: shares of time of push and pull.

For the baseline, for adaptive frontier queues, and for all of XBFS (see xbfs_fig11.py).
Shares are those of searches with counters, by the device's clock; the times without
counters stand beside them in the JSON file.
Source: Gaihre, Wu, Yao, Liu: XBFS, HPDC 2019, Section 6.2.
"""

from __future__ import annotations

from typing import Any

import figures
from xbfs_fig11 import STEPS

from distbfs.engines.cuda.papers.xbfs.search import PaperSearch
from distbfs.graph.device_graph import DeviceGraph

SHOWN = ("baseline", "Ad", "Ad+WB+Async")


def measure(graph: DeviceGraph, numbers: list[int]) -> dict[str, Any]:
    searches = {
        name: PaperSearch(graph, parents=False, **STEPS[name]) for name in SHOWN
    }
    row: dict[str, Any] = {"seconds": figures.paper_seconds(searches, numbers)}
    row["pull_share"] = {
        name: figures.shares(search, numbers).get("pull", 0.0)
        for name, search in searches.items()
    }
    return row


def main() -> None:
    args = figures.arguments(__doc__, stores=True).parse_args()
    rows = figures.over_graphs(args, measure)

    def draw(figure: Any) -> None:
        names = figures.column(rows, "graph")
        figure.set_size_inches(10, 3.5)
        for axes, step in zip(
            figure.subplots(1, len(SHOWN), sharey=True), SHOWN, strict=True
        ):
            pull = [100 * x for x in figures.column(rows, "pull_share", step)]
            series = {"push": [100 - x for x in pull], "pull": pull}
            figures.stacked(axes, names, series, "% of the time")
            axes.set_xlabel(step)

    figures.save(args.out, "xbfs_fig12", {"rows": rows}, draw)


if __name__ == "__main__":
    figures.main(main)
