"""Measure what a stored graph, or one of arrays, costs before its first answer.

    python scripts/bench_store.py --scale 26 --parts 1 2 4
    python scripts/bench_store.py --scale 20 --devices 0
    python scripts/bench_store.py --scale 22 --parts 1 2 --devices 0 --ranks 2

For each number of parts a Kronecker store is made once.  Then, with files and kernels
warm, seconds from the start of the process: ``bfs`` to its end, ``serve`` to its first
answer; ``distances`` beside a search.  The store's levels of one root are compared with
those of the generated graph.  Last, a graph of arrays, from ``Graph.from_edges`` to its
first result, and later ``bfs``, wall beside device time.

With --ranks, ``bfs`` by one process and by so many ranks take turns, without the rest:
medians of seconds to the end of the command with one source, files warm, and of those
of searches from 30 sources.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import distbfs
from distbfs.generate.kronecker import Kronecker
from distbfs.report.provenance import provenance
from distbfs.report.tables import print_table

COMMAND = (sys.executable, "-c", "from distbfs.cli.main import entry; entry()")
ASKED = 200  # distances timed
SOURCES = range(3, 12_000, 400)  # of searches by ranks


def run(*words: object, launcher: Sequence[str] = ()) -> tuple[float, str]:
    """Run a command; return its seconds and its output."""
    began = time.perf_counter()
    command = [*launcher, *COMMAND, *map(str, words)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return time.perf_counter() - began, done.stdout


def serve(
    folder: Path, socket: Path, source: int, options: list[str]
) -> dict[str, Any]:
    """Return seconds to the first answer of a service, and of later ones."""
    began = time.perf_counter()
    with subprocess.Popen(
        [*COMMAND, "serve", str(folder), "--socket", str(socket), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as service:
        if service.stdout is None or "ready" not in service.stdout.readline():
            raise RuntimeError("the service did not begin")
        with distbfs.connect(socket) as client:
            first = client.distances(source, [source + 1])
            ready = time.perf_counter() - began
            spent = []
            for _ in range(ASKED):
                start = time.perf_counter()
                client.distances(source, [source + 1])
                spent.append(time.perf_counter() - start)
            client.shutdown()
        service.wait()
    middle = 1e6 * statistics.median(spent)
    return {"serve_seconds": ready, "p50_us": middle, "distance": first[0]}


def from_arrays(tuples: Kronecker, options: dict[str, Any]) -> dict[str, Any]:
    """Return seconds from arrays to the first result, and to later ones."""
    chunks = list(tuples.chunks(0, tuples.tuples))
    u, v = (np.concatenate([x[k] for x in chunks]) for k in (0, 1))
    source = int(u[np.flatnonzero(u != v)[0]])
    began = time.perf_counter()
    graph = distbfs.Graph.from_edges(u, v, n=tuples.n)
    made = time.perf_counter() - began
    engine = options.get("engine", "auto")
    result = distbfs.bfs(graph, source, engine=engine)
    first = time.perf_counter() - began
    wall, device = [], []
    for _ in range(20):
        start = time.perf_counter()
        result = distbfs.bfs(graph, source, engine=engine)
        wall.append(time.perf_counter() - start)
        device.append(result.seconds)
    return {
        "edges": tuples.tuples,
        "from_edges_seconds": made,
        "first_result_seconds": first,
        "second_wall_ms": 1e3 * statistics.median(wall),
        "second_device_ms": 1e3 * statistics.median(device),
        "level_sum": int(np.asarray(result.to_numpy()[0], dtype=np.int64).sum()),
    }


def words_of(options: dict[str, Any]) -> list[str]:
    """Return options as words of a command."""
    return [word for k, v in options.items() for word in (f"--{k}", str(v))]


def measure(
    folder: Path, scale: int, parts: int, repeat: int, options: dict[str, Any]
) -> dict[str, Any]:
    """Return the figures of a store, created if missing."""
    store = stored(folder, scale, parts, on_host=options.get("engine") == "openmp")
    option_words = words_of(options)
    row: dict[str, Any] = {"parts": parts}
    row["bytes"] = sum(x.stat().st_size for x in store.iterdir())
    with distbfs.open(Kronecker(scale), **options) as session:
        ids = np.arange(1000)
        source = int(ids[session.connected(ids)][0])
        wanted = session.search(source).level_counts().tolist()
    # the first run warms files and kernels
    words = ("bfs", store, "-s", source, "--json", *option_words)
    times = [run(*words)[0] for _ in range(repeat + 1)]
    row["bfs_seconds"] = min(times[1:])
    answers = [serve(store, folder / "s", source, option_words) for _ in range(repeat)]
    row |= min(answers, key=lambda x: float(x["serve_seconds"]))
    began = time.perf_counter()
    with distbfs.open(store, **options) as session:
        row["open_seconds"] = time.perf_counter() - began
        row["why"], row["phases"] = session.why, session.held.facts
        row["right"] = session.search(source).level_counts().tolist() == wanted
        targets, seconds, walls = np.array([source + 1]), [], []
        for _ in range(ASKED):
            start = time.perf_counter()
            result = session.search(source, parents=False)
            result.at(targets)
            walls.append(time.perf_counter() - start)
            seconds.append(result.seconds)
        row["search_us"] = 1e6 * statistics.median(seconds)
        row["wall_us"] = 1e6 * statistics.median(walls)
    return row


def stored(folder: Path, scale: int, parts: int, *, on_host: bool) -> Path:
    """Return a store, created if missing."""
    store = folder / f"kron{scale}-{parts}"
    if not store.is_dir():
        where = [] if on_host else ["--on-devices"]
        words = ("kronecker", "-s", scale, "--parts", parts, *where, "-o", store)
        run("generate", *words)
    return store


def by_ranks(
    store: Path, ranks: int, repeat: int, options: dict[str, Any]
) -> dict[str, Any]:
    """Return the figures of one process and of ranks, which take turns."""
    words: list[Any] = ["bfs", store, "--json", *words_of(options)]
    every = [word for source in SOURCES for word in ("-s", source)]
    ways = {"process": (), "ranks": ("mpiexec", "-n", str(ranks))}
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    searches: dict[str, list[float]] = {way: [] for way in ways}
    counted = set()
    for _ in range(repeat):
        for way, launcher in ways.items():
            _, text = run(*words, *every, launcher=launcher)
            told = json.loads(text)["searches"]
            counted.add(tuple((x["reached"], x["nedge"], x["depth"]) for x in told))
            searches[way] += [x["seconds"] for x in told if x["depth"] > 1]
            seconds[way].append(run(*words, *every[:2], launcher=launcher)[0])
    row: dict[str, Any] = {"store": store.name, "ranks": ranks}
    for what, times in (("bfs", seconds), ("search", searches)):
        one, several = (statistics.median(times[way]) for way in ways)
        row |= {f"{what}_process": one, f"{what}_ranks": several}
        row[f"{what}_ratio"] = several / one
    return {**row, "right": len(counted) == 1}


def main() -> int:
    """Measure, print, and write the result file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--scale", type=int, default=26)
    parser.add_argument("--parts", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--arrays", type=int, default=22, help="scale of the arrays")
    parser.add_argument("--devices", type=int, help="of the process; 0: threads")
    parser.add_argument("--ranks", type=int, help="beside one process, of bfs")
    parser.add_argument("--domain", type=int, help="devices of a domain of ranks")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="for stores, which stay there")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    options: dict[str, Any] = {"devices": args.devices} if args.devices else {}
    if args.devices == 0:
        options = {"engine": "openmp"}
    if args.domain:
        options = {"domain": args.domain}
    folder = args.folder or Path(tempfile.mkdtemp())
    rows = []
    values: dict[str, Any] = {"rows": rows}
    for parts in args.parts:
        if args.ranks:
            store = stored(folder, args.scale, parts, on_host=args.devices == 0)
            rows.append(by_ranks(store, args.ranks, args.repeat, options))
        else:
            rows.append(measure(folder, args.scale, parts, args.repeat, options))
        print(rows[-1], flush=True)
    if not args.ranks:
        values["arrays"] = from_arrays(Kronecker(args.arrays), options)
        names = ("parts", "bytes", "open_seconds", "bfs_seconds", "serve_seconds")
        names += ("p50_us", "wall_us", "search_us")
        print_table(names, [[f"{row[x]:.5g}" for x in names] for row in rows])
        print(values["arrays"])
    if args.json:
        values |= provenance(sys.argv, device=args.devices != 0)
        args.json.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
    return 0 if all(row["right"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
