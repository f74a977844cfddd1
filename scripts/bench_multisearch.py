"""Measure many searches at once on CPUs beside searches one by one, and NetworkX.

Bit-parallel: the levels of all sources by one traversal, beside a search for each of
them by engine openmp (levels only), alternating in one run; levels must agree.
Betweenness: all sources here, some in NetworkX, whose time is scaled up to all.

    python scripts/bench_multisearch.py --scale 18 --sources 64 --edges 100000
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np

import distbfs
from distbfs.build.host.parts import construct
from distbfs.device import cc
from distbfs.engines.openmp.engine import OpenMPEngine
from distbfs.generate.kronecker import Kronecker
from distbfs.multisearch.apps.betweenness import dependencies, scaled
from distbfs.multisearch.base import RunOptions
from distbfs.multisearch.bits import width_for
from distbfs.multisearch.part_bits import PartBitSearches
from distbfs.multisearch.part_loop import Wanted
from distbfs.options import BuildOptions, SearchOptions
from distbfs.ranks.world import SoloWorld
from distbfs.report.tables import print_fields
from distbfs.store.whole import NO_DELEGATES

EDGES_A_NODE = 10
LEVELS = Wanted(levels=True, counts=False)
THEIRS = 10  # sources of NetworkX


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return (seconds, what the call returned)."""
    began = time.perf_counter()
    result = call()
    return time.perf_counter() - began, result


def measure_levels(scale: int, count: int, repeats: int) -> dict[str, Any]:
    """Return the medians of single searches and of one bit-parallel traversal."""
    made: list[Any] = []
    options = BuildOptions(threshold=NO_DELEGATES)
    construct(Kronecker(scale, 16, 1), SoloWorld(), 1, options, made.append)
    [part] = made
    picked = np.random.default_rng(1).choice(part.active, count, replace=False)
    sources = part.vertices[picked].astype(np.int64)
    threads = cc.thread_count()
    whole = OpenMPEngine(SearchOptions("openmp", parents=False)).whole(part)
    search = PartBitSearches(SoloWorld(), [part])
    search.allocate(width_for(count), threads)
    out = {kind: np.zeros((count, part.layout.n), kind) for kind in ("int8", "int32")}

    def one_by_one() -> list[Any]:
        return [whole.search(source).level for source in sources.tolist()]

    def at_once(kind: str) -> None:
        search.run(sources, LEVELS)
        search.put_levels(out[kind])

    calls = {
        "single": one_by_one,
        "bits_int8": lambda: at_once("int8"),
        "bits_int32": lambda: at_once("int32"),
        "traversal": lambda: search.run(sources, LEVELS),
    }
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats + 1):
        for name, call in calls.items():
            times[name].append(timed(call)[0])
    for k, source in enumerate(sources.tolist()):
        level = whole.search(source).level
        if not (level == out["int32"][k]).all():
            raise SystemExit(f"levels of source {source} differ")
    medians = {name: statistics.median(x[1:]) for name, x in times.items()}
    return {
        "scale": scale,
        "sources": count,
        "threads": threads,
        **{f"{name}_seconds": value for name, value in medians.items()},
        "speedup_int8": medians["single"] / medians["bits_int8"],
        "speedup_int32": medians["single"] / medians["bits_int32"],
    }


def measure_betweenness(edges: int) -> dict[str, Any]:
    """Return the time of exact betweenness beside that of NetworkX."""
    graph = nx.gnm_random_graph(max(edges // EDGES_A_NODE, 3), edges, seed=1)
    n = len(graph)
    part = distbfs.Graph.from_networkx(graph)._host_part
    every = np.arange(n)
    dependencies(part, every[:1], RunOptions())  # compiles
    ours, value = timed(lambda: dependencies(part, every, RunOptions()))
    some = min(THEIRS, n)
    theirs, _ = timed(lambda: nx.betweenness_centrality(graph, k=some, seed=1))
    mean = scaled(value, every, normalized=True, directed=False).mean()
    return {
        "edges": edges,
        "vertices": n,
        "mean": float(mean),
        "seconds": ours,
        "networkx_sources": some,
        "networkx_seconds_of_all": theirs * n / some,
        "speedup": theirs * n / some / ours,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=int, default=18)
    parser.add_argument("--sources", type=int, default=64)
    parser.add_argument("--edges", type=int, default=10**5)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    tables = {
        "levels": measure_levels(args.scale, args.sources, args.repeats),
        "betweenness": measure_betweenness(args.edges),
    }
    if args.json:
        print(json.dumps(tables, indent=1))
        return
    for values in tables.values():
        print_fields(values)


if __name__ == "__main__":
    main()
