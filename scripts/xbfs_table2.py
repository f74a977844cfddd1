"""Table 2 of the XBFS paper: run times on graphs of the sizes of its Table 1.

The graphs are stand-ins of the same numbers of vertices and edges (figures.STAND_INS),
or stores that are named; the paper's times are of its own graphs on a Quadro P6000 and
stand there for orientation alone.  XBFS gives levels only; beside it, all results in
input ids by engines xbfs-paper and xbfs.
Source: Gaihre, Wu, Yao, Liu: XBFS, HPDC 2019, Tables 1 and 2.
"""

from __future__ import annotations

import statistics
from typing import Any

import figures

from distbfs.engines.cuda.papers.xbfs.engine import XbfsPaperEngine
from distbfs.engines.cuda.papers.xbfs.search import PaperSearch
from distbfs.engines.cuda.xbfs.engine import XbfsEngine
from distbfs.graph.device_graph import DeviceGraph
from distbfs.options import SearchOptions
from distbfs.report.tables import print_table

PUBLISHED_MS = {
    "DB": 7.9,
    "DP": 5.3,
    "EW": 19.6,
    "FR": 102.8,
    "LJ": 6.9,
    "OR": 2.83,
    "TR": 28.1,
    "US": 10.2,
    "WK": 21.4,
    "WL": 23.6,
}
ROUNDS = 3
LEVELS = "paper, levels"
ENGINES: dict[str, Any] = {"paper": XbfsPaperEngine, "fast": XbfsEngine}


def measure(graph: DeviceGraph, numbers: list[int]) -> dict[str, Any]:
    levels = PaperSearch(graph, parents=False)
    searches = {
        name: kind(SearchOptions(engine=kind.name)).on_graph(graph)
        for name, kind in ENGINES.items()
    }
    roots = [int(graph.vertices[number]) for number in numbers]
    times: dict[str, list[float]] = {name: [] for name in (LEVELS, *searches)}
    depth = 0
    for number, root in zip([numbers[0], *numbers], [roots[0], *roots], strict=True):
        taken: dict[str, list[float]] = {name: [] for name in times}
        for _ in range(ROUNDS):
            taken[LEVELS].append(levels.search(number).seconds)
            for name, search in searches.items():
                result = search.search(root)
                taken[name].append(result.seconds)
                depth = max(depth, result.levels)
        for name, seconds in taken.items():
            times[name].append(min(seconds))
    median = {name: statistics.median(x[1:]) for name, x in times.items()}
    return {"seconds": median, "levels": depth}


def main() -> None:
    args = figures.arguments(__doc__, stores=True).parse_args()
    rows = figures.over_graphs(args, measure)
    figures.save(args.out, "xbfs_table2", {"published_ms": PUBLISHED_MS, "rows": rows})
    names = (LEVELS, *ENGINES)
    lines = [
        (
            row["graph"],
            row["active"],
            row["m"],
            row["levels"],
            *(row["seconds"][name] * 1e3 for name in names),
            str(PUBLISHED_MS.get(row["graph"], "-")),
        )
        for row in rows
    ]
    heads = ("graph", "vertices", "directed edges", "levels")
    print_table((*heads, *(f"{x} ms" for x in names), "published ms (P6000)"), lines)


if __name__ == "__main__":
    figures.main(main)
