"""Table 2 and Figure 15 of BFS-4K: bfs4k beside the baselines, times and speed-ups.

The graphs are stand-ins of the sizes of its Table 1 (engine_runs.BFS4K_GRAPHS); the
paper's times are of its own graphs on a GeForce GTX 780, for orientation.  The static
virtual warp is the best of its sizes, as in the paper.
Source: Busato, Bombieri: BFS-4K, IEEE TPDS 2015, Section 7.
"""

from __future__ import annotations

from typing import Any

import engine_runs
import figures
from engine_runs import BFS4K_GRAPHS

from distbfs.device import cuda
from distbfs.report.tables import print_table

# Harish, edge parallelism, static virtual warp, BFS-4K, ms
PUBLISHED_MS = {
    "Amazon0505": (5.2, 7.2, 5.2, 1.5),
    "web-Google": (12.0, 9.2, 12.0, 1.6),
    "com-youtube": (57.0, 5.5, 19.0, 3.1),
    "as-skitter": (95.0, 24.0, 28.0, 6.5),
    "roadNet-CA": (120.7, 154.4, 120.7, 5.5),
    "soc-LiveJournal1": (91.0, 61.0, 52.0, 24.4),
    "Gen-SmallWorld": (33.0, 27.0, 24.0, 15.1),
    "europa.osm": (59620.0, 78422.0, 59620.0, 264.8),
    "hugehubbles-00020": (8123.0, 11922.0, 8123.0, 95.9),
    "nlpkt160": (351.0, 1486.0, 351.0, 39.2),
    "audikw1": (68.0, 185.0, 36.0, 11.1),
    "cage15": (95.0, 213.0, 95.0, 28.8),
    "kkt_power": (36.0, 24.5, 36.0, 8.5),
    "coPapersCiteseer": (21.2, 40.6, 11.4, 4.9),
    "kron_g500-logn20": (675.0, 47.4, 67.0, 34.4),
    "random.2Mv.128Me": (112.0, 73.0, 63.0, 52.0),
    "rmat.2Mv.128Me": (103.0, 62.0, 56.0, 43.4),
}
WARPS = tuple(f"virtual-warp/w{size}" for size in (1, 2, 4, 8, 16, 32))
ENGINES = ("harish", "edge-parallel", "virtual-warp", "bfs4k", "xbfs")
WAYS = ("harish", "edge-parallel", *WARPS, "bfs4k", "xbfs")


def measure(name: str, source: Any, args: Any) -> dict[str, Any]:
    """Return the row of one graph."""
    graph = figures.built(source)
    roots, _ = figures.roots_of(graph, args.roots, args.seed)
    searches, missing = engine_runs.searches_of(graph, WAYS)
    figures_of = engine_runs.run(searches, roots, args.seconds, source)
    seconds = {way: one["median_seconds"] for way, one in figures_of.items()}
    warp = min((x for x in WARPS if x in seconds), key=lambda x: seconds[x], default="")
    if warp:
        seconds["virtual-warp"] = seconds[warp]
    mine = seconds["bfs4k"]
    return engine_runs.about(graph, name) | {
        "levels": max(one["levels"] for one in figures_of.values()),
        "engines": figures_of,
        "missing": missing,
        "best_warp": warp,
        "seconds": {x: seconds[x] for x in ENGINES if x in seconds},
        "speedup": {x: seconds[x] / mine for x in ENGINES if x in seconds},
    }


def main() -> None:
    args = engine_runs.parsed(engine_runs.arguments(__doc__, BFS4K_GRAPHS, roots=3))
    rows: list[dict[str, Any]] = []

    def draw(figure: Any) -> None:
        figure.set_size_inches(12, 4)
        axes = figure.subplots()
        series = {
            x: [row["speedup"].get(x, 0.0) for row in rows]
            for x in ENGINES
            if x != "bfs4k"
        }
        names = figures.column(rows, "graph")
        figures.bars(axes, names, series, "speed-up of bfs4k over")
        axes.set_yscale("log")
        axes.tick_params("x", rotation=60)

    for name, source in engine_runs.made(BFS4K_GRAPHS, args):
        rows.append(measure(name, source, args))
        cuda.release()
        print(f"{name}: bfs4k {rows[-1]['seconds']['bfs4k'] * 1e3:.4g} ms", flush=True)
        values = {"published_ms": PUBLISHED_MS, "rows": rows}
        figures.save(args.out, "bfs4k_table2", values, draw)
    lines = [
        [
            *(row["graph"], row["active"], row["m"], row["levels"]),
            *(row["seconds"].get(x, float("nan")) * 1e3 for x in ENGINES),
            row["best_warp"].rpartition("/")[2],
            str(PUBLISHED_MS[row["graph"]][3]),
        ]
        for row in rows
    ]
    heads = ("graph", "vertices", "directed edges", "levels")
    names = (f"{x} ms" for x in ENGINES)
    print_table((*heads, *names, "warp", "published bfs4k ms (GTX 780)"), lines)


if __name__ == "__main__":
    figures.main(main)
