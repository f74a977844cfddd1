"""Figure 10 of the XBFS paper: vertices of the next level that a pull finds early.

The first asynchronous pull of a search also visits vertices of the level after it;
their share of that level, over all roots.
Source: Gaihre, Wu, Yao, Liu: XBFS, HPDC 2019, Section 5.2.
"""

from __future__ import annotations

from typing import Any

import figures

from distbfs.engines.cuda.papers.xbfs.search import PaperSearch
from distbfs.graph.device_graph import DeviceGraph


def measure(graph: DeviceGraph, numbers: list[int]) -> dict[str, Any]:
    search = PaperSearch(graph, parents=False)
    early = all_of_them = pulls = 0
    for number in numbers:
        log = search.search(number, records=True).records
        first = next((k for k, r in enumerate(log) if r["direction"] == "pull"), None)
        if first is None:
            continue
        pulls += 1
        later = log[first + 1]["found"] if first + 1 < len(log) else 0
        early += log[first]["found_early"]
        all_of_them += log[first]["found_early"] + later
    return {
        "searches_with_a_pull": pulls,
        "early": early,
        "next_level": all_of_them,
        "share": early / all_of_them if all_of_them else 0.0,
    }


def main() -> None:
    args = figures.arguments(__doc__, stores=True).parse_args()
    rows = figures.over_graphs(args, measure)

    def draw(figure: Any) -> None:
        shares = [100 * share for share in figures.column(rows, "share")]
        series = {"found by the first pull": shares}
        label = "% of the next level"
        names = figures.column(rows, "graph")
        figures.bars(figure.subplots(), names, series, label)

    figures.save(args.out, "xbfs_fig10", {"rows": rows}, draw)


if __name__ == "__main__":
    figures.main(main)
