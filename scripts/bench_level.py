"""Measure the host time of a level in which next to nothing happens.

    python scripts/bench_level.py
    OMP_NUM_THREADS=1 mpiexec -n 2 python scripts/bench_level.py
    OMP_NUM_THREADS=1 python scripts/bench_level.py --worlds 64 1024 4096
    mpiexec -n 2 python scripts/bench_level.py --exchange nvshmem

A path graph in two domains of engine openmp is searched from its end: each level finds
one vertex of the other domain, or, with --threshold 1, one delegate.  Prints the
microseconds a level, minimum and median over the searches.

--exchange: on devices by engine xbfs, each a domain; the device's time, with parents
--road: a road-like graph of about so many vertices instead, from 6 vertices

--worlds: one rank against so many pretended ones instead (``simulated_world``): each
level sends a number to 4 of them, gets one from each, and finds a delegate.  Prints
medians of the microseconds a level, whole and by phase, and of what exchanges of device
arrays do with the same numbers on the host (``Partners.sizes``).
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from typing import Any

import numpy as np
from simulated_world import Simulated

from distbfs.exchange.bins import Bins
from distbfs.exchange.partners import Partners
from distbfs.generate.formula import Path
from distbfs.generate.road import Road
from distbfs.options import BuildOptions, SearchOptions
from distbfs.ranks.launcher import RankLaunch
from distbfs.ranks.mpi import load_mpi
from distbfs.ranks.world import run_guarded, start
from distbfs.report.tables import print_table
from distbfs.search.choose import Request
from distbfs.search.holding import Source
from distbfs.search.open import open_source

DOMAINS = 2
PHASES = ("work", "counts", "advance", "exchange", "accept")
REPEATS = 1000  # of a call timed by itself


def main() -> int:
    """Measure and print on the first rank."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--vertices", type=int, default=2000)
    parser.add_argument("--searches", type=int, default=50)
    parser.add_argument("--threshold", type=int, default=1 << 30)
    parser.add_argument("--worlds", type=int, nargs="+", metavar="RANKS")
    parser.add_argument("--exchange", choices=("host", "nccl", "nvshmem"))
    parser.add_argument("--road", type=int, metavar="VERTICES")
    args = parser.parse_args()
    if args.worlds:
        load_mpi(RankLaunch("MPI", 0, 1, exact=False))
        rows = [world_row(size, args.searches) for size in args.worlds]
        print_table(("ranks", "us a level", *PHASES, "sizes"), rows)
        return 0
    world = start()
    graph = Road(args.road) if args.road else Path(args.vertices)
    build = BuildOptions(threshold=args.threshold)
    source = Source(graph.n, DOMAINS, tuples=graph, build=build)
    options, request = SearchOptions(threads=1, parents=False), Request()
    if args.exchange:
        named = {"engine": "xbfs", "exchange": args.exchange}
        options, request = SearchOptions.named(**named), Request(domain=1)
    session = open_source(world, source, options, request)
    roots = (
        [graph.n // 7 * k for k in range(1, 7)] if args.road else [0] * args.searches
    )
    spent, deepest = [], 0
    for root in roots:
        found = session.search(root)
        levels = found.depth + 1
        spent.append(1e6 * found.seconds / levels)
        deepest = max(deepest, levels)
    if world.rank == 0:
        middle = statistics.median(spent)
        print(f"{deepest} levels: {min(spent):.1f} us a level, median {middle:.1f}")
    session.close()
    return 0


def world_row(size: int, searches: int) -> list[Any]:
    """Return the time of a level in a world of ``size`` ranks, microseconds."""
    simulated = Simulated(size)
    whole, by_phase = [], []
    for _ in range(searches):
        began = time.perf_counter()
        levels = simulated.runner.search(0, parents=False).levels
        whole.append((time.perf_counter() - began) / levels)
        records = simulated.runner.search(0, parents=False, records=True).records
        by_phase += [record["seconds"] for record in records]
    phases = [statistics.median(x.get(name, 0.0) for x in by_phase) for name in PHASES]
    seconds = [statistics.median(whole), *phases, sizes_seconds(simulated)]
    simulated.close()
    return [size, *(f"{1e6 * x:.1f}" for x in seconds)]


def sizes_seconds(simulated: Simulated) -> float:
    """Return the median time of one level of ``Partners.sizes``."""
    world, part = simulated.world, simulated.part
    partners = Partners(world)
    ends = np.zeros(world.size + 1, np.int64)
    ends[1 + (part.nn.columns[: part.nn.offsets[1]] >> np.uint64(32))] = 1
    np.cumsum(ends, out=ends)
    bins = [Bins(part.vertices.astype(np.uint64), lambda: (ends[:-1], ends[1:]))]
    seconds = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        leaving = simulated.exchange._deal(bins)
        partners.sizes(leaving, simulated.placement.per_rank)
        seconds.append(time.perf_counter() - began)
    partners.free()
    return statistics.median(seconds)


if __name__ == "__main__":
    sys.exit(run_guarded(None, main))
