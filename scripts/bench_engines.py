"""Measure all engines of one device on every family, every first search validated.

Tells bfs4k over xbfs push-only, whether bfs4k is ahead of layer and frontier, what
--engine auto takes and how far that is from the best, and the repeats that bfs4k finds
and misses on a Kronecker graph of scale 20; shares are of frontier vertices.

    python scripts/bench_engines.py --graphs kron20 road22 --seconds 5
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import engine_runs
import figures
from engine_runs import Make, scaled

from distbfs.device import cuda
from distbfs.engines.cuda.papers.bfs4k.knobs import degrees_of
from distbfs.engines.cuda.papers.bfs4k.search import Bfs4kSearch
from distbfs.errors import ValidationError
from distbfs.generate.forest_fire import ForestFire
from distbfs.generate.geometric import Geometric
from distbfs.generate.kronecker import Kronecker
from distbfs.generate.rmat import RmatB, RmatER, RmatG
from distbfs.generate.road import Road
from distbfs.generate.small_world import SmallWorld
from distbfs.generate.triangulation import Triangulation
from distbfs.generate.uniform import Uniform
from distbfs.partition.share import Share
from distbfs.report.tables import print_table

GRAPHS: dict[str, Make] = {
    "kron16": scaled(Kronecker, 16, 16),
    "kron20": scaled(Kronecker, 20, 16),
    "kron22": scaled(Kronecker, 22, 16),
    "rmat-er": scaled(RmatER, 21, 16),
    "rmat-g": scaled(RmatG, 21, 16),
    "rmat-b": scaled(RmatB, 21, 16),
    "uniform22": lambda less: Uniform.of_size((1 << 22) // less, degree=32),
    "road22": lambda less: Road((1 << 22) // less),
    "geometric": lambda less: Geometric((1 << 20) // less, 12.0),
    "triangulation": lambda less: Triangulation((1 << 20) // less),
    "small-world": lambda less: SmallWorld((1 << 21) // less, 20, 0.3),
    "forest-fire": lambda less: ForestFire((1 << 16) // less, 0.35, 0.32),
}
PUSH = "xbfs/fast/push"
BFS4K, PUSHED = "bfs4k/auto", "bfs4k/auto/push"
CLAIM, HASH = "bfs4k/claim", "bfs4k/hash"
OTHERS = ("layer/hybrid", "layer/push", "frontier/hybrid", "frontier/push")
WAYS = (
    *("xbfs/fast", PUSH, "xbfs-paper", BFS4K, PUSHED),
    *(f"{CLAIM}/push", f"{HASH}/push", *OTHERS, "auto"),
)
BEST = ("xbfs/fast", "xbfs-paper", BFS4K, *OTHERS)  # compared with auto
RATIO, NEAR, MISSED = 1.5, 1.05, 0.005


def repeats(graph: Share, numbers: list[int]) -> dict[str, Any]:
    """Count repeats over all roots, by both methods, and their shares."""
    counts = {}
    for name, claim in ((CLAIM, True), (HASH, False)):
        search = Bfs4kSearch(graph, claim=claim)
        sums: Counter[str] = Counter()
        for number in numbers:
            for record in search.search(number, records=True).records:
                found = {"frontier": record.frontier, "found": record.found}
                sums.update({**record.extra, **found})
        roots = len(numbers)
        in_queue = sums["frontier"] - sums["found"] - roots
        counts[name] = {
            **sums,
            "in_frontier": in_queue,
            "in_frontier_share": in_queue / sums["frontier"],
            "missed_by_table_share": sums["repeats_missed"] / sums["frontier"],
        }
    return counts


def measure(name: str, source: Any, args: Any) -> dict[str, Any]:
    """Return the row of one graph."""
    graph = figures.built(source)
    roots, _ = figures.roots_of(graph, args.roots, args.seed)
    searches, missing = engine_runs.searches_of(graph, args.ways)
    figures_of = engine_runs.run(searches, roots, args.seconds, source)
    del searches
    row = engine_runs.about(graph, name) | {"engines": figures_of, "missing": missing}
    row["degrees"] = degrees_of(graph).as_dict()
    row["knobs"] = Bfs4kSearch(graph).knobs.as_dict()
    numbers = figures.numbers_of(graph, roots)
    row["repeats"] = repeats(graph, numbers) if "kron20" in name else None
    row["reach"] = reach(figures_of, row["repeats"])
    return row


def reach(figures_of: dict[str, Any], counted: dict[str, Any] | None) -> dict[str, Any]:
    """Return the requested ratios, of engines that ran."""

    def seconds(name: str) -> float | None:
        return figures_of[name]["median_seconds"] if name in figures_of else None

    mine, push, auto = seconds(BFS4K), seconds(PUSH), seconds("auto")
    pushed = seconds(PUSHED)
    ratios: dict[str, Any] = {}
    if pushed and push:
        ratios["bfs4k_over_push"] = pushed / push
    others = [x for x in map(seconds, OTHERS) if x]
    if mine and others:
        ratios["best_other_over_bfs4k"] = min(others) / mine
    every = {name: seconds(name) for name in BEST if seconds(name)}
    if auto and every:
        best = min(every, key=lambda name: every[name] or 0.0)
        ratios["best"] = best
        ratios["auto_over_best"] = auto / (every[best] or 1.0)
    if counted:  # method claim queues none by design
        ratios["repeats_in_frontier"] = counted[HASH]["in_frontier_share"]
    return ratios


def verdict(rows: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Return the graphs that miss each goal."""

    def over(key: str, limit: float) -> list[str]:
        return [r["graph"] for r in rows if r["reach"].get(key, 0.0) > limit]

    behind = [
        r["graph"] for r in rows if r["reach"].get("best_other_over_bfs4k", 2.0) < 1
    ]
    return {
        "bfs4k above 1.5 x push-only": over("bfs4k_over_push", RATIO),
        "bfs4k behind layer or frontier": behind,
        "auto above 1.05 x best": over("auto_over_best", NEAR),
        "repeats in the frontier of hash above 0.5 %": over(
            "repeats_in_frontier", MISSED
        ),
    }


def table(rows: list[dict[str, Any]], ways: list[str]) -> None:
    names = ("graph", "levels", *(f"{way} ms" for way in ways))
    lines = []
    for row in rows:
        figures_of = row["engines"]
        depth = max(x["levels"] for x in figures_of.values())
        times = [
            figures_of[way]["median_seconds"] * 1e3
            if way in figures_of
            else float("nan")
            for way in ways
        ]
        near = row["reach"]
        lines.append(
            [
                *(row["graph"], depth, *times),
                near.get("bfs4k_over_push", float("nan")),
                near.get("auto_over_best", float("nan")),
            ]
        )
    print_table((*names, "bfs4k / push", "auto / best"), lines)


def main() -> None:
    parser = engine_runs.arguments(__doc__, GRAPHS)
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS))
    args = engine_runs.parsed(parser)
    rows: list[dict[str, Any]] = []
    failure: ValidationError | None = None
    for name, source in engine_runs.made(GRAPHS, args):
        try:
            rows.append(measure(name, source, args))
        except ValidationError as error:
            failure = failure or error
            print(f"{name}: {error}", file=sys.stderr)
            continue
        cuda.release()
        print(f"{name}: {rows[-1]['reach']}", flush=True)
        values = {"rows": rows, "missed": verdict(rows)}
        figures.save(args.out, "bench_engines", values)
    if rows:
        table(rows, args.ways)
        for goal, graphs in verdict(rows).items():
            print(f"{goal}: {', '.join(graphs) or 'none'}")
    if failure is not None:
        raise failure


if __name__ == "__main__":
    figures.main(main)
