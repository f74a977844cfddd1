"""Fetch real graphs, convert them, check their levels, measure beside other libraries.

    python scripts/real/run.py                       those below 10^7 edges
    python scripts/real/run.py copter2 gap-road --threads 1,2
    python scripts/real/run.py --engines xbfs,xbfs-paper,bfs4k     on a GPU
    python scripts/real/run.py --gap ~/gapbs/bfs     GAP, too, where it is built

Levels of all engines and libraries are compared by ``distbfs compare``; a difference
ends the run.  Each library takes turns with the engines in a run of its own, so that
none begins with caches that a third one has filled.  The table has its time over that
of the first engine in that run, medians of the same sources.  GAP finds parents alone
and repeats searches by itself, with warm caches: its time is over that of an engine
that does so, too.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import figures

from distbfs.benchmark.libraries.base import installed
from distbfs.errors import DistbfsError, InputError, UsageError
from distbfs.report.tables import print_table
from distbfs.store.hdf5 import open_store
from real.graphs import GRAPHS, edge_file

SLOW = ("networkx",)  # pure Python: the ratio says nothing


def distbfs(*words: str | Path) -> str:
    """Run a command; return its output, or end with its error."""
    command = [sys.executable, "-m", "distbfs", *map(str, words)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise DistbfsError(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout


def store_of(name: str, folder: Path) -> Path:
    """Return the store of a graph, which is made where it is not there."""
    store = folder / f"{name}.store"
    if not (store / "manifest.h5").exists():
        graph = GRAPHS[name]
        path = edge_file(name, graph, folder)
        distbfs("convert", path, "-o", store, "--parts", "1", *graph.options)
    return store


def gap_seconds(
    gap: Path, store: Path, sources: list[Any], repeats: int, threads: str
) -> float:
    """Return the median time of GAP's searches from ids, each verified by it."""
    graph = store.with_suffix(".sg")
    if not graph.exists():
        distbfs("export", store, "-o", graph)
    ids = open_store(store).load_ids()
    seconds = []
    for source in sources:
        vertex = source if ids is None else ids.find(str(source))
        done = subprocess.run(
            [gap, "-f", graph, "-r", str(vertex), "-n", str(repeats), "-v"],
            capture_output=True,
            text=True,
            check=True,
            env={"OMP_NUM_THREADS": threads},
        )
        lines = [line.split() for line in done.stdout.splitlines()]
        if ["Verification:", "FAIL"] in [words[:2] for words in lines]:
            raise DistbfsError(f"{graph}: GAP's own check of {source} failed")
        times = [float(x[2]) for x in lines if x[:2] == ["Trial", "Time:"]]
        seconds.append(statistics.median(times))
    return statistics.median(seconds)


def measure(name: str, args: argparse.Namespace) -> list[dict[str, Any]]:
    """Return a row for each number of threads."""
    store = store_of(name, args.folder)
    rows = []
    for threads in args.threads.split(","):
        words = ["compare", store, "--engines", args.engines, "--threads", threads]
        words += ["--sources", str(args.sources), "--repeats", str(args.repeats)]
        compared = json.loads(distbfs(*words, "--json"))
        calls = {x["engine"]: x["search"] for x in compared["engines"]}
        seconds = {x["engine"]: x["median_seconds"] for x in compared["engines"]}
        first = next(iter(seconds))
        over = {x: seconds[x] / seconds[first] for x in seconds if x != first}
        for peer in args.peers:
            pair = json.loads(distbfs(*words, "--peers", peer, "--json"))["engines"]
            ours, others = pair[0], pair[-1]
            seconds[peer], calls[peer] = others["median_seconds"], others["search"]
            seconds[f"{first}, {peer} in turns"] = ours["median_seconds"]
            over[peer] = others["median_seconds"] / ours["median_seconds"]
        if args.gap:
            sources = compared["sources"]
            gap = gap_seconds(args.gap, store, sources, args.repeats, threads)
            seconds["gap"], over["gap"] = gap, gap / seconds[first]
        rows.append(
            {
                "graph": name,
                "directed": GRAPHS[name].directed,
                "n": compared["graph"]["vertices"],
                "m": compared["graph"]["stored_edges"],
                "threads": int(threads),
                "median_seconds": seconds,
                "over": over,
                "calls": calls,
            }
        )
    return rows


def measured_or_why(
    name: str, args: argparse.Namespace
) -> tuple[list[dict[str, Any]], str]:
    """Return the rows of a graph, or why it could not be fetched."""
    try:
        return measure(name, args), ""
    except InputError as error:
        return [], str(error)


def show(rows: list[dict[str, Any]]) -> None:
    """Print the table, and the geometric means of its columns."""
    first, others = next(iter(rows[0]["median_seconds"])), list(rows[0]["over"])
    lines: list[tuple[Any, ...]] = [
        (
            row["graph"] + (", directed" if row["directed"] else ""),
            row["n"],
            row["m"],
            row["threads"],
            1e3 * row["median_seconds"][first],
            *row["over"].values(),
        )
        for row in rows
    ]
    means = [
        statistics.geometric_mean(x["over"][name] for x in rows) for name in others
    ]
    lines.append(("geometric mean", "", "", "", "", *means))
    titles = ("graph", "n", "m", "threads", f"{first} ms")
    print_table((*titles, *(f"{name} / {first}" for name in others)), lines)


def main() -> None:
    parser = figures.arguments(__doc__)
    names = f"of {', '.join(GRAPHS)}; default: all but the large ones"
    parser.add_argument("graphs", nargs="*", metavar="GRAPH", help=names)
    parser.add_argument("--folder", type=Path, default=Path("real-graphs"))
    parser.add_argument("--engines", default="openmp", help="as of distbfs compare")
    parser.add_argument("--peers", help="libraries, commas between; default: all")
    parser.add_argument("--threads", default="1", help="as 1,2")
    parser.add_argument("--repeats", type=int, default=3, help="searches a source")
    parser.add_argument("--gap", type=Path, help="GAP's program bfs")
    parser.add_argument("--name", default="real", help="of the result file")
    args = parser.parse_args()
    args.sources = 2 if args.small else args.roots
    chosen = args.graphs or [name for name, x in GRAPHS.items() if not x.large]
    for name in chosen:
        if name not in GRAPHS:
            raise UsageError(f"graph is '{name}'; allowed: {', '.join(GRAPHS)}")
    peers = args.peers.split(",") if args.peers is not None else installed()
    args.peers = [name for name in peers if name and name not in SLOW]
    args.folder.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    missing: list[str] = []
    for name in chosen:
        measured, why = measured_or_why(name, args)
        rows += measured
        missing += [f"{name}: not measured: {why}"] if why else []
    if rows:
        device = "cuda" in args.engines or "xbfs" in args.engines
        figures.write(args.out, args.name, {"rows": rows}, device=device)
        show(rows)
    print("\n".join(missing), file=sys.stderr)
    sys.exit(1 if missing and (args.graphs or not rows) else 0)


if __name__ == "__main__":
    figures.main(main, device=False)
