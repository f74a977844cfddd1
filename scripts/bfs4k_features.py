"""Figures 12 to 14 of BFS-4K: repeats over levels, their detection, and each feature.

Figure 12: sizes of the frontiers with and without the hash table, by virtual warps of 1
and 4 and by edge-discover.  Figure 13: repeats found, missed and conflicts with a table
a warp (as Merrill, Garland, Grimshaw 2012) and a table a block.  Figure 14: times as
the features are added one after the other.  All by method hash, whose queues hold what
the table missed.
Source: Busato, Bombieri: BFS-4K, IEEE TPDS 2015, Sections 6 and 7.
"""

from __future__ import annotations

from typing import Any

import engine_runs
import figures
from engine_runs import BFS4K_GRAPHS

from distbfs.device import cuda
from distbfs.engines.cuda.papers.bfs4k.knobs import auto_knobs, degrees_of
from distbfs.engines.cuda.papers.bfs4k.search import COUNTS, Bfs4kSearch
from distbfs.graph.device_graph import DeviceGraph
from distbfs.options import Knobs
from distbfs.report.tables import print_table

USUAL = ("as-skitter", "kron_g500-logn20")
WITHOUT = 1  # log2 of the entries of a table that finds next to nothing
FIG12 = {
    "VirtualWarp1": (Knobs(k1=1, k4=0, k5=0, k6=1024), False),
    "VirtualWarp4": (Knobs(k1=4, k4=0, k5=0, k6=1024), False),
    "EdgeDiscover": (Knobs(k4=1, k5=0, k6=1024), False),
    "VirtualWarp1+Hash64": (Knobs(k1=1, k4=0, k5=0, k6=1024), True),
    "VirtualWarp4+Hash64": (Knobs(k1=4, k4=0, k5=0, k6=1024), True),
    "EdgeDiscover+Hash64": (Knobs(k4=1, k5=0, k6=1024), True),
}
FIG13 = {"a warp": 32, "128 threads": 128, "a block": 1024}


def made_search(graph: DeviceGraph, knobs: Knobs, *, table: bool = True) -> Bfs4kSearch:
    """Return a search by method hash, without its table where that is asked for."""
    search = Bfs4kSearch(graph, knobs=knobs, claim=False, parents=False)
    if not table:
        search.params.table = search.params.table_alone = WITHOUT
    return search


def features(graph: DeviceGraph) -> dict[str, Bfs4kSearch]:
    """Return searches with one feature more each, by its name."""
    auto = auto_knobs(degrees_of(graph))
    plain = {"k1": 4, "k2": 0, "k4": 0, "k5": 0, "k7": 32, "ext": False}
    steps: dict[str, tuple[dict[str, Any], bool]] = {
        "virtual warps": ({}, False),
        "+ edge-discover": ({"k4": auto.k4 or 1, "ext": True}, False),
        "+ second queue": ({"k2": auto.k2 or 0.15, "k3": auto.k3}, False),
        "+ one block": ({"k5": 1}, False),
        "+ coalesced writes": ({"k7": auto.k7}, False),
        "+ hash tables": ({}, True),
        "automatic knobs": (auto.as_dict(), True),
    }
    searches, knobs = {}, plain
    for name, (more, table) in steps.items():
        knobs = knobs | more
        searches[name] = made_search(graph, Knobs(**knobs), table=table)
    return searches


def measure(name: str, source: Any, args: Any) -> dict[str, Any]:
    """Return what the figures show of one graph."""
    graph = figures.built(source)
    roots, _ = figures.roots_of(graph, args.roots, args.seed)
    numbers = figures.numbers_of(graph, roots)
    fig12 = {
        way: [
            record.frontier
            for record in made_search(graph, knobs, table=table)
            .search(numbers[0], records=True)
            .records
        ]
        for way, (knobs, table) in FIG12.items()
    }
    fig13 = {}
    for way, threads in FIG13.items():
        search = made_search(graph, Knobs(k1=4, k4=0, k5=0, k6=threads))
        sums = dict.fromkeys(COUNTS, 0)
        for number in numbers:
            for record in search.search(number, records=True).records:
                for count in COUNTS:
                    sums[count] += record.extra[count]
        fig13[way] = sums
    ways: dict[str, Any] = dict(features(graph))
    ways |= {
        f"Figure 13, {way}": made_search(graph, Knobs(k1=4, k4=0, k5=0, k6=threads))
        for way, threads in FIG13.items()
    }
    figures_of = engine_runs.run(ways, numbers, args.seconds)
    baselines, _ = engine_runs.searches_of(graph, ("harish", "edge-parallel"))
    figures_of |= engine_runs.run(baselines, roots, args.seconds / 4)
    seconds = {way: one["median_seconds"] for way, one in figures_of.items()}
    return engine_runs.about(graph, name) | {
        "fig12": fig12,
        "fig13": fig13,
        "seconds": seconds,
    }


def main() -> None:
    parser = engine_runs.arguments(__doc__, BFS4K_GRAPHS, roots=3)
    parser.set_defaults(graphs=list(USUAL))
    args = engine_runs.parsed(parser)
    rows: list[dict[str, Any]] = []

    def draw(figure: Any) -> None:
        figure.set_size_inches(12, 3.5 * len(rows))
        panels = figure.subplots(len(rows), 2, squeeze=False)
        for (left, right), row in zip(panels, rows, strict=True):
            for way, sizes in row["fig12"].items():
                left.semilogy([max(x, 1) for x in sizes], "o-", label=way, ms=3)
            left.set_xlabel(f"level, {row['graph']}")
            left.set_ylabel("frontier, with repeats")
            left.legend(fontsize=7)
            shown = {k: v for k, v in row["seconds"].items() if "Figure" not in k}
            right.barh(list(shown), [1e3 * x for x in shown.values()])
            right.set_xlabel("ms")
            right.set_xscale("log")

    for name, source in engine_runs.made(BFS4K_GRAPHS, args):
        rows.append(measure(name, source, args))
        cuda.release()
        figures.save(args.out, "bfs4k_features", {"rows": rows}, draw)
    for row in rows:
        print(row["graph"])
        print_table(
            ("tables", "found", "missed", "conflicts"),
            [[way, *counts.values()] for way, counts in row["fig13"].items()],
        )
        print_table(
            ("features", "ms"), [[k, x * 1e3] for k, x in row["seconds"].items()]
        )


if __name__ == "__main__":
    figures.main(main)
