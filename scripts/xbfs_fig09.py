"""Figure 9 of the XBFS paper: degree of pulled vertices against their real work.

The work of a pulled vertex is the edge checks until a parent is found; means over all
vertices of a power of two of degrees, over all levels and roots.
Source: Gaihre, Wu, Yao, Liu: XBFS, HPDC 2019, Section 5.1.
"""

from __future__ import annotations

from typing import Any

import figures
import numpy as np

from distbfs.engines.cuda.papers.xbfs.search import PaperSearch
from distbfs.graph.device_graph import DeviceGraph


def measure(graph: DeviceGraph, numbers: list[int]) -> dict[str, Any]:
    search = PaperSearch(graph, asynchronous=False, parents=False)
    total = np.zeros((32, 2), dtype=np.int64)
    for number in numbers:
        work = search.search(number, records=True).work
        if work is not None:
            total += work
    there = np.flatnonzero(total[:, 0])
    return {
        "degree": (1 << there).tolist(),
        "vertices": total[there, 0].tolist(),
        "checks": total[there, 1].tolist(),
        "mean_checks": (total[there, 1] / total[there, 0]).tolist(),
    }


def main() -> None:
    args = figures.arguments(__doc__, stores=True).parse_args()
    rows = figures.over_graphs(args, measure)

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for row in rows:
            axes.plot(row["degree"], row["mean_checks"], "o-", label=row["graph"])
        widest = max((max(row["degree"], default=1) for row in rows), default=1)
        axes.plot([1, widest], [1, widest], "k:", label="work = degree")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        axes.set_xlabel("degree of a pulled vertex (2^k and more)")
        axes.set_ylabel("mean edge checks")
        axes.legend(fontsize=7, ncols=2)

    figures.save(args.out, "xbfs_fig09", {"rows": rows}, draw)


if __name__ == "__main__":
    figures.main(main)
