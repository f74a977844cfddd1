"""Table 1 of CS406: engine openmp, push and hybrid, over threads; no device needed.

Time, speed-up over one thread and parallel efficiency, as Figures 2 to 4.  The graphs
are stand-ins of the paper's sizes, which take gigabytes and minutes; --small is quick.
Source: Sevilmis, Sivri, Aydin: CS406 project, 2019, Section 6.1.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any

import engine_runs
import figures
from engine_runs import CS406_GRAPHS

from distbfs.benchmark.roots import choose_roots
from distbfs.errors import DistbfsError
from distbfs.options import SearchOptions
from distbfs.report.provenance import provenance
from distbfs.report.tables import print_table
from distbfs.types import TupleSource

METHODS = ("push", "hybrid")


def measure(
    source: TupleSource,
    threads: Sequence[int],
    roots: Sequence[int] | None,
    seconds: float,
    count: int = 3,
    seed: int = 1,
) -> dict[str, dict[str, list[float]]]:
    """Return the times of each method and number of threads, which take turns."""
    ways = {
        (method, many): SearchOptions("openmp", method, threads=many)
        for method in METHODS
        for many in threads
    }
    sessions = figures.host_sessions(source, ways)
    first = next(iter(sessions.values()))
    drawn = choose_roots(source.n, count, seed, first.connected).tolist()
    chosen = list(roots) if roots else drawn
    taken: dict[str, dict[str, list[float]]] = {method: {} for method in METHODS}
    began, rounds = time.perf_counter(), 0
    while not rounds or time.perf_counter() - began < seconds:
        for root in chosen:
            for (method, many), session in sessions.items():
                spent = session.search(root).seconds
                warm = rounds or root != chosen[0] or len(chosen) == 1
                if warm:
                    taken[method].setdefault(str(many), []).append(spent)
        rounds += 1
    return taken


def main() -> None:
    parser = engine_runs.arguments(__doc__, CS406_GRAPHS, roots=3)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    args = engine_runs.parsed(parser)
    rows, lines = [], []
    for name, source in engine_runs.made(CS406_GRAPHS, args):
        times = measure(source, args.threads, None, args.seconds, args.roots, args.seed)
        row: dict[str, Any] = {"graph": name, "source": source.describe()}
        for method in METHODS:
            medians = {int(k): statistics.median(x) for k, x in times[method].items()}
            first = min(medians)
            by_count = {}
            for many, median in medians.items():
                gain = medians[first] / median
                by_count[str(many)] = {
                    "median_seconds": median,
                    "speedup": gain,
                    "efficiency": gain * first / many,
                    "searches": len(times[method][str(many)]),
                }
                cells = (median * 1e3, gain, gain * first / many)
                lines.append([name, method, many, *cells])
            row[method] = by_count
        rows.append(row)
        args.out.mkdir(parents=True, exist_ok=True)
        values = provenance(sys.argv, device=False) | {"rows": rows}
        path = args.out / "cs406_table1.json"
        path.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
        print(f"wrote {path}", flush=True)
    heads = ("graph", "method", "threads", "ms", "speed-up", "efficiency")
    print_table(heads, lines)


if __name__ == "__main__":
    try:
        main()
    except DistbfsError as error:
        print(f"cs406_table1.py: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
