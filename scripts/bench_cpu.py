"""Measure searches, construction and long thin graphs on this machine's processor.

Variants alternate in one run; medians are printed.  Runs alone or, with --ranks,
starts the benchmark command under mpiexec.  With --busy, searches take turns with the
same searches while another process keeps one core busy, and the ratio of the total
times is printed: 2,000 searches of a small graph, then those of each scale.

    python scripts/bench_cpu.py --scales 20 22 --methods fast hybrid push
    python scripts/bench_cpu.py --busy --scales 16 20
"""

from __future__ import annotations

import argparse
import contextlib
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

import figures
import numpy as np

from distbfs.benchmark.roots import choose_roots
from distbfs.generate.formula import Path
from distbfs.generate.kronecker import Kronecker
from distbfs.options import SearchOptions
from distbfs.ranks.world import SoloWorld
from distbfs.report.tables import print_table
from distbfs.validation.host import validate

SMALL = 10  # scale of the graph whose searches are mostly overhead


def searches(args: argparse.Namespace) -> None:
    rows = []
    for scale in args.scales:
        source = Kronecker(scale, threads=args.threads)
        ways = {
            method: SearchOptions(method=method, threads=args.threads)
            for method in args.methods
        }
        sessions = figures.host_sessions(source, ways)
        first = sessions[args.methods[0]]
        built = first.held.generation_seconds + first.held.construction_seconds
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"scale {scale}: generated and built in {built:.1f} s, peak {peak:.1f} GiB"
        )
        roots = choose_roots(source.n, args.roots, 1, first.connected).tolist()
        seconds: dict[str, list[list[float]]] = {name: [] for name in sessions}
        for _ in range(args.repeats):
            for name, session in sessions.items():
                seconds[name].append([session.search(r).seconds for r in roots])
        for name, session in sessions.items():
            result = session.search(roots[0])
            check = validate(SoloWorld(), source, roots[0], *result.to_numpy())
            if not check.valid:
                sys.exit(f"{name}: {check.errors}")
            median = np.median(np.array(seconds[name]), axis=0)
            edges = result.nedge
            rows.append(
                (
                    scale,
                    name,
                    statistics.median(median) * 1e3,
                    edges / float(np.mean(median)) / 1e9,
                )
            )
    print_table(("scale", "method", "median ms", "GTEPS (harmonic mean)"), rows)


def usual_way(args: argparse.Namespace) -> dict[str, SearchOptions]:
    """Return the default options of a search."""
    return {"": SearchOptions(threads=args.threads)}


@contextlib.contextmanager
def busy_core() -> Iterator[None]:
    """Keep one core busy during the ``with`` block."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        time.sleep(0.2)
        yield
    finally:
        process.kill()
        process.wait()


def busy(args: argparse.Namespace) -> None:
    """Print the slowdown of searches while one core is busy."""
    rows = []
    for scale, count in [(SMALL, 2000), *((scale, 0) for scale in args.scales)]:
        source = Kronecker(scale, threads=args.threads)
        [session] = figures.host_sessions(source, usual_way(args)).values()
        roots = choose_roots(source.n, args.roots, 1, session.connected).tolist()
        roots = (roots * -(-count // len(roots)))[:count] if count else roots
        totals: dict[str, list[float]] = {"quiet": [], "busy": []}
        for _ in range(args.repeats):
            for name, around in (
                ("quiet", contextlib.nullcontext()),
                ("busy", busy_core()),
            ):
                with around:
                    session.search(roots[0])
                    began = time.perf_counter()
                    for root in roots:
                        session.search(root)
                    totals[name].append(time.perf_counter() - began)
        quiet, loaded = (statistics.median(totals[name]) for name in totals)
        each = 1e3 / len(roots)
        rows.append((scale, len(roots), quiet * each, loaded * each, loaded / quiet))
    titles = ("scale", "searches", "quiet ms", "busy ms", "busy / quiet")
    print_table(titles, rows)


def long_path(args: argparse.Namespace) -> None:
    [session] = figures.host_sessions(Path(args.path), usual_way(args)).values()
    times = [session.search(args.path // 3).seconds for _ in range(args.repeats)]
    print(f"path of {args.path} vertices: {statistics.median(times):.3f} s a search")


def ranks(args: argparse.Namespace) -> None:
    values = []
    for _ in range(args.repeats):
        command = ["mpiexec", "-n", str(args.ranks), sys.executable, "-m", "distbfs"]
        command += ["graph500", "--scale", str(args.scales[0]), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        values.append(json.loads(done.stdout)["harmonic_mean_TEPS"] / 1e9)
    shown = ", ".join(f"{value:.2f}" for value in values)
    print(f"graph500 --scale {args.scales[0]} on {args.ranks} ranks: {shown} GTEPS")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scales", type=int, nargs="+", default=[20])
    parser.add_argument("--methods", nargs="+", default=["fast", "hybrid", "push"])
    parser.add_argument("--roots", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--path", type=int, default=10**6)
    parser.add_argument("--ranks", type=int, default=0)
    parser.add_argument("--busy", action="store_true")
    args = parser.parse_args()
    if args.busy:
        busy(args)
        return
    if args.ranks:
        ranks(args)
        return
    searches(args)
    long_path(args)


if __name__ == "__main__":
    main()
