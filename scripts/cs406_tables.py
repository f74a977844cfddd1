"""Tables 2 and 3 of CS406: engines layer and frontier, push-only and hybrid.

Speed-ups refer to one thread of engine openmp by the same method, as in the paper; the
graphs are stand-ins of its sizes (engine_runs.CS406_GRAPHS).  Table 1, CPUs alone, is
``cs406_table1.py``.
Source: Sevilmis, Sivri, Aydin: CS406 project, 2019, Section 6.2.
"""

from __future__ import annotations

import statistics
from typing import Any

import cs406_table1
import engine_runs
import figures
from engine_runs import CS406_GRAPHS

from distbfs.device import cuda
from distbfs.report.tables import print_table

# GTX TITAN X, seconds: layer push, layer hybrid, frontier push, frontier hybrid
PUBLISHED = {
    "coPapers": (0.055, 0.0036, 0.0096, 0.0044),
    "rmat-er": (0.1671, 0.0267, 0.2947, 0.11),
    "rmat-b": (0.1738, 0.1596, 0.2268, 0.0748),
    "europe": (10.7791, 10.7351, 0.5278, 0.5873),
    "wiki": (0.0322, 0.0231, 0.0332, 0.0199),
}
WAYS = ("layer/push", "layer/hybrid", "frontier/push", "frontier/hybrid")


def measure(name: str, source: Any, args: Any) -> dict[str, Any]:
    """Return the row of one graph."""
    graph = figures.built(source)
    roots, _ = figures.roots_of(graph, args.roots, args.seed)
    searches, missing = engine_runs.searches_of(graph, WAYS)
    figures_of = engine_runs.run(searches, roots, args.seconds, source)
    row = engine_runs.about(graph, name) | {"engines": figures_of, "missing": missing}
    row["levels"] = max(one["levels"] for one in figures_of.values())
    if args.cpu:
        serial = cs406_table1.measure(source, [1], roots, args.seconds)
        one_thread = {
            method: statistics.median(times["1"]) for method, times in serial.items()
        }
        row["serial_seconds"] = one_thread
        row["speedup"] = {
            way: one_thread[way.partition("/")[2]] / one["median_seconds"]
            for way, one in figures_of.items()
        }
    return row


def main() -> None:
    parser = engine_runs.arguments(__doc__, CS406_GRAPHS, roots=3)
    parser.add_argument("--cpu", action="store_true", help="speed-ups too (slow)")
    args = engine_runs.parsed(parser)
    rows: list[dict[str, Any]] = []

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        names = figures.column(rows, "graph")
        series = {
            way: [1e3 * row["engines"][way]["median_seconds"] for row in rows]
            for way in WAYS
        }
        figures.bars(axes, names, series, "ms")
        axes.set_yscale("log")

    for name, source in engine_runs.made(CS406_GRAPHS, args):
        rows.append(measure(name, source, args))
        cuda.release()
        print(f"{name}: {rows[-1]['levels']} levels", flush=True)
        values = {"published_seconds": PUBLISHED, "rows": rows}
        figures.save(args.out, "cs406_tables", values, draw)
    lines = [
        [
            *(row["graph"], row["active"], row["m"], row["levels"]),
            *(row["engines"][way]["median_seconds"] * 1e3 for way in WAYS),
            *(f"{1e3 * x:.4g}" for x in PUBLISHED[row["graph"]]),
        ]
        for row in rows
    ]
    heads = ("graph", "vertices", "directed edges", "levels")
    published = tuple(f"published {way} ms" for way in WAYS)
    print_table((*heads, *(f"{way} ms" for way in WAYS), *published), lines)


if __name__ == "__main__":
    figures.main(main)
