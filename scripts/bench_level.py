"""Measure the host time of a level in which next to nothing happens.

    python scripts/bench_level.py
    OMP_NUM_THREADS=1 mpiexec -n 2 python scripts/bench_level.py

A path graph in two domains of engine openmp is searched from its end: each level finds
one vertex of the other domain, or, with --threshold 1, one delegate.  Prints the
microseconds a level, minimum and median over the searches.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time

from distbfs.exchange.world import run_guarded, start
from distbfs.generate.shapes import Path
from distbfs.options import BuildOptions, SearchOptions
from distbfs.partition.construct import construct
from distbfs.partition.layout import Placement
from distbfs.registry import ENGINES, lookup
from distbfs.search.runners.between import BetweenDomains
from distbfs.search.session import make_exchange

DOMAINS = 2


def main() -> int:
    """Measure and print on the first rank."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--vertices", type=int, default=2000)
    parser.add_argument("--searches", type=int, default=50)
    parser.add_argument("--threshold", type=int, default=1 << 30)
    args = parser.parse_args()
    world = start()
    options = SearchOptions(threads=1, parents=False)
    engine = lookup(ENGINES, "engine", "openmp")(options)
    placement = Placement(DOMAINS, world.size)
    parts = []
    build = BuildOptions(threshold=args.threshold)
    construct(Path(args.vertices), world, DOMAINS, build, parts.append)
    searches = [engine.domain(part, placement) for part in parts]
    delegates = parts[0].delegate_count
    exchange = make_exchange(world, placement, delegates, options)
    runner = BetweenDomains(world, searches, exchange, options)
    spent = []
    for _ in range(args.searches):
        world.barrier()
        began = time.perf_counter()
        levels = runner.search(0).levels
        spent.append(1e6 * (time.perf_counter() - began) / levels)
    if world.rank == 0:
        middle = statistics.median(spent)
        print(f"{levels} levels: {min(spent):.1f} us a level, median {middle:.1f}")
    exchange.close()
    return 0


if __name__ == "__main__":
    sys.exit(run_guarded(None, main))
