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

from distbfs.exchange.world import run_guarded, start
from distbfs.generate.formula import Path
from distbfs.options import BuildOptions, SearchOptions
from distbfs.search.holding import Source
from distbfs.search.open import open_source

DOMAINS = 2


def main() -> int:
    """Measure and print on the first rank."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--vertices", type=int, default=2000)
    parser.add_argument("--searches", type=int, default=50)
    parser.add_argument("--threshold", type=int, default=1 << 30)
    args = parser.parse_args()
    world = start()
    path, build = Path(args.vertices), BuildOptions(threshold=args.threshold)
    source = Source(path.n, DOMAINS, tuples=path, build=build)
    session = open_source(world, source, SearchOptions(threads=1, parents=False))
    levels = args.vertices
    spent = [1e6 * session.search(0).seconds / levels for _ in range(args.searches)]
    if world.rank == 0:
        middle = statistics.median(spent)
        print(f"{levels} levels: {min(spent):.1f} us a level, median {middle:.1f}")
    session.close()
    return 0


if __name__ == "__main__":
    sys.exit(run_guarded(None, main))
