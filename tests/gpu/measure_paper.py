"""Times of each strategy of the published XBFS on a Kronecker graph; prints a table.

Usage: measure_paper.py SCALE [ROOTS]; below scale 12 one short search of each kind,
for compute-sanitizer.
"""

import sys
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from device_graphs import HostGraph, hubs  # noqa: E402
from graphs import kronecker  # noqa: E402

from distbfs.device import cuda  # noqa: E402
from distbfs.engines.cuda.papers.xbfs import search as paper  # noqa: E402
from distbfs.engines.cuda.papers.xbfs.search import PaperSearch  # noqa: E402
from distbfs.generate.kronecker import Kronecker  # noqa: E402

AXES: list[dict[str, object]] = [
    *({"frontier": name} for name in paper.FRONTIERS),
    *({"balance": name} for name in paper.BALANCES),
    {"asynchronous": False},
    *({"balance": name, "asynchronous": False} for name in paper.BALANCES),
    {"direction": "push"},
    {"direction": "push", "frontier": "scan-free"},
    {"direction": "push", "frontier": "single-scan"},
    {"direction": "pull"},
    {"parents": False},
]


def short(scale):
    """One search of each strategy, few blocks, with and without counters."""
    paper.MAX_BLOCKS = 1
    for host in (HostGraph(kronecker(scale)), HostGraph(hubs(2, 2100))):
        for options in AXES:
            search = PaperSearch(host.graph, **options)
            for records in (False, True):
                host.check(1, search.search(1, records=records))
    print("searches right")


def table(scale, count):
    from distbfs.build.cuda.graph import build  # noqa: PLC0415

    graph = build(Kronecker(scale, 16, 1))
    roots = np.random.default_rng(3).integers(0, graph.active, count).tolist()
    searches = [(o, PaperSearch(graph, **o)) for o in AXES]
    seconds = {k: [] for k in range(len(searches))}
    reached = None
    for root in [roots[0], *roots]:
        for k, (_, search) in enumerate(searches):
            found = search.search(root)
            seconds[k].append(found.seconds)
            told = int((found.level >= 0).sum()), found.levels
            reached = told if k == 0 else reached
            assert told == reached, (root, told, reached)
    print(f"scale {scale}: {graph.active} numbers, {graph.m} edges, {count} roots")
    for k, (options, _) in enumerate(searches):
        times = np.array(seconds[k][1:]) * 1e3
        words = " ".join(f"{a}={b}" for a, b in options.items())
        print(f"{np.median(times):9.3f} ms  (min {times.min():.3f})  {words}")
    for options in ({}, {"asynchronous": False}):
        found = PaperSearch(graph, **options).search(roots[0], records=True)
        print(options)
        for r in found.records:
            print(" ", *(f"{key}={value}" for key, value in vars(r).items()))
    print("blocks:", searches[0][1].grid / cuda.multiprocessors())


if __name__ == "__main__":
    scale = int(sys.argv[1])
    if scale < 12:
        short(scale)
    else:
        table(scale, int(sys.argv[2]) if len(sys.argv) > 2 else 24)
