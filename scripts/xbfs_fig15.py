"""Figure 15 of the XBFS paper: edge checks of synchronous and asynchronous pulls.

Means over all roots, of pulled levels alone and of whole searches.
Source: Gaihre, Wu, Yao, Liu: XBFS, HPDC 2019, Section 6.3.
"""

from __future__ import annotations

from typing import Any

import figures

from distbfs.engines.cuda.papers.xbfs.search import PaperSearch
from distbfs.graph.device_graph import DeviceGraph

WAYS = {"synchronous": False, "asynchronous": True}


def measure(graph: DeviceGraph, numbers: list[int]) -> dict[str, Any]:
    pulled: dict[str, float] = {}
    total: dict[str, float] = {}
    for name, chosen in WAYS.items():
        search = PaperSearch(graph, asynchronous=chosen, parents=False)
        logs = [search.search(number, records=True).records for number in numbers]
        checks = [(r["direction"] == "pull", r["checks"]) for log in logs for r in log]
        total[name] = sum(count for _, count in checks) / len(numbers)
        pulled[name] = sum(count for pull, count in checks if pull) / len(numbers)
    before = pulled["synchronous"]
    fewer = 1 - pulled["asynchronous"] / before if before else 0.0
    return {"pull_checks": pulled, "all_checks": total, "reduction": fewer}


def main() -> None:
    args = figures.arguments(__doc__, stores=True).parse_args()
    rows = figures.over_graphs(args, measure)

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        names = [
            f"{row['graph']}\n{-100 * row['reduction']:.0f} %".replace("-0 %", "0 %")
            for row in rows
        ]
        series = {
            name: [x / 1e6 for x in figures.column(rows, "pull_checks", name)]
            for name in WAYS
        }
        figures.bars(axes, names, series, "edge checks of pulls, millions")
        axes.set_yscale("log")

    figures.save(args.out, "xbfs_fig15", {"rows": rows}, draw)


if __name__ == "__main__":
    figures.main(main)
