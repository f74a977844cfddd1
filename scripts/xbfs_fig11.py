"""Figure 11 of the XBFS paper: what each of its contributions brings.

baseline: every push single-scan, every pull double-scan, static balancing, synchronous;
Ad: adaptive frontier queues; Ad+WB: and dynamic (warp) balancing; Ad+WB+Async: and
asynchronous pulls.  The paper's baseline is another program, Enterprise.
Source: Gaihre, Wu, Yao, Liu: XBFS, HPDC 2019, Section 6.2.
"""

from __future__ import annotations

from typing import Any

import figures

from distbfs.engines.cuda.papers.xbfs.search import PaperSearch
from distbfs.graph.device_graph import DeviceGraph

BASELINE = "baseline"
STEPS: dict[str, dict[str, Any]] = {
    BASELINE: {"frontier": "single-scan", "balance": "static", "asynchronous": False},
    "Ad": {"frontier": "auto", "balance": "static", "asynchronous": False},
    "Ad+WB": {"frontier": "auto", "balance": "warp", "asynchronous": False},
    "Ad+WB+Async": {"frontier": "auto", "balance": "warp", "asynchronous": True},
}


def measure(graph: DeviceGraph, numbers: list[int]) -> dict[str, Any]:
    searches = {
        name: PaperSearch(graph, parents=False, **chosen)
        for name, chosen in STEPS.items()
    }
    seconds = figures.paper_seconds(searches, numbers)
    return {
        "seconds": seconds,
        "speedup": {name: seconds[BASELINE] / x for name, x in seconds.items()},
    }


def main() -> None:
    args = figures.arguments(__doc__, stores=True).parse_args()
    rows = figures.over_graphs(args, measure)

    def draw(figure: Any) -> None:
        names = figures.column(rows, "graph")
        series = {step: figures.column(rows, "speedup", step) for step in STEPS}
        label = "speed-up over the baseline"
        figures.bars(figure.subplots(), names, series, label)

    figures.save(args.out, "xbfs_fig11", {"steps": STEPS, "rows": rows}, draw)


if __name__ == "__main__":
    figures.main(main)
