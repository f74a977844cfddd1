"""Time the construction of a Kronecker graph on the host, beside one gather.

The gather is NumPy's ``x[index]`` of 2^25 random numbers at 2^25 random places, on one
thread: the memory's rate without this package. Figures are medians of the repeats.

    python scripts/bench_build.py --scale 20 --threads 2
"""

from __future__ import annotations

import argparse
import json
import statistics
import time

import numpy as np

from distbfs.build.host.parts import construct
from distbfs.device import cc
from distbfs.generate.kronecker import Kronecker
from distbfs.options import BuildOptions
from distbfs.ranks.world import SoloWorld

GATHERED = 1 << 25


def gather_seconds() -> float:
    """Return the seconds of one gather."""
    rng = np.random.default_rng(1)
    x = rng.integers(0, 1 << 62, GATHERED)
    index = rng.integers(0, GATHERED, GATHERED)
    begin = time.perf_counter()
    x[index]
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--scale", type=int, default=20, help="2^scale vertices [20]")
    parser.add_argument("--parts", type=int, default=1, help="of the graph [1]")
    parser.add_argument("--threads", type=int, default=0, help="0: all cores [0]")
    parser.add_argument("--repeats", type=int, default=5, help="of everything [5]")
    args = parser.parse_args()
    threads = cc.thread_count(args.threads)
    source = Kronecker(args.scale, threads=threads)
    options = BuildOptions(threads=threads)
    built, gathers = [], []
    for _ in range(args.repeats):
        gathers.append(gather_seconds())
        built.append(
            construct(source, SoloWorld(), args.parts, options, lambda _: None)
        )
    gather = statistics.median(gathers)
    construction = statistics.median(x.construction_seconds for x in built)
    figures = {
        "scale": args.scale,
        "parts": args.parts,
        "threads": threads,
        "generation_seconds": statistics.median(x.generation_seconds for x in built),
        "construction_seconds": construction,
        "gather_seconds": gather,
        "ratio": construction / gather,
    }
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
