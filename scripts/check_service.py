"""Check a service as a whole: mixed queries of several clients, and what it costs.

Generates a Kronecker graph, starts ``distbfs serve`` on ranks, asks from clients in
processes of their own, and compares every answer with SciPy's.  Prints a table of what
was measured and its limit, ends with 1 where a limit is missed.

    python scripts/check_service.py                         # scale 18, 2 ranks, 10^4
    python scripts/check_service.py --scale 10 --queries 200
    python scripts/check_service.py --load-only --load-queries 100000

The load comes from many clients at once, each with one query of ``distances`` open, to
a service of one rank, or of all with --load-store graph: as fast as it answers, then at
--rate, when a query is measured from the time that it is due.  All answers are
compared.  From scale 20 on there is only the load, and its answers are compared with
engine ``openmp``'s.

Ratios hold on a machine with nothing else to do.  Needs psutil and SciPy (extra
``test``).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import select
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import msgspec
import numpy as np
import psutil
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order

import distbfs
from distbfs.generate.kronecker import Kronecker
from distbfs.report.tables import print_table

DISTBFS = [sys.executable, "-m", "distbfs"]
MIX = ("distances", "path", "bfs", "set", "levels")
SHARES = (0.65, 0.2, 0.1, 0.03, 0.02)
LARGE = 20  # scale from which SciPy would take too long


class Known(Protocol):
    """Levels from a few sources, by source."""

    n: int
    sources: list[int]
    levels: dict[int, np.ndarray]


class Reference:
    """The graph in SciPy, and levels from a few sources."""

    def __init__(self, scale: int, sources: int, seed: int) -> None:
        made = Kronecker(scale)
        u, v = made.tuples_at(np.arange(made.tuples))
        both = np.concatenate([u, v]), np.concatenate([v, u])
        ones = np.ones(len(both[0]), dtype=np.int8)
        self.n = made.n
        matrix = sp.coo_matrix((ones, both), shape=(made.n, made.n)).tocsr()
        self.offsets, self.columns = matrix.indptr, matrix.indices
        rng = np.random.default_rng(seed)
        self.sources = rng.integers(0, made.n, sources).tolist()
        self.levels = {s: self._levels(matrix, s) for s in set(self.sources)}

    @staticmethod
    def _levels(matrix: Any, source: int) -> np.ndarray:
        order, before = breadth_first_order(matrix, source, directed=True)
        level = np.full(matrix.shape[0], -1, dtype=np.int32)
        level[source] = 0
        for vertex in order[1:]:
            level[vertex] = level[before[vertex]] + 1
        return level

    def linked(self, a: int, b: int) -> bool:
        """Return whether an edge of the graph joins two vertices."""
        return bool(np.isin(b, self.columns[self.offsets[a] : self.offsets[a + 1]]))


def wrong(reference: Reference, op: str, client: Any, rng: np.random.Generator) -> str:
    """Send one request; return what is wrong with the answer, "" if nothing."""
    source = int(rng.choice(reference.sources))
    level = reference.levels[source]
    targets = rng.integers(0, reference.n, int(rng.integers(1, 20))).tolist()
    counts = np.bincount(level[level >= 0]).tolist()
    if op == "distances":
        good = client.distances(source, targets) == level[targets].tolist()
    elif op == "bfs":
        good = client.bfs(source, result="summary")["levels"] == counts
    elif op == "set":
        more = rng.choice(reference.sources, 3).tolist()
        levels = np.array([reference.levels[s] for s in more])
        wanted = int((levels >= 0).any(axis=0).sum())
        good = client.bfs(more, result="summary")["reached"] == wanted
    elif op == "levels":
        good = bool(np.array_equal(client.bfs(source)["level"], level))
    else:
        way = client.path(source, targets[0])
        good = (way is None) == (level[targets[0]] < 0)
        if way is not None and good:
            good = (way[0], way[-1], len(way) - 1) == (
                source,
                targets[0],
                level[targets[0]],
            ) and all(reference.linked(a, b) for a, b in pairwise(way))
    return "" if good else f"{op} from {source}"


def ask_many(
    reference: Reference, path: str, queries: int, seed: int, results: Any
) -> None:
    """Act as one client; report the errors and the number of answers."""
    rng = np.random.default_rng(seed)
    faults, answered = [], 0
    try:
        with distbfs.connect(path) as client:
            for _ in range(queries):
                fault = wrong(reference, str(rng.choice(MIX, p=SHARES)), client, rng)
                answered += 1
                if fault:
                    faults.append(fault)
    except Exception as error:  # noqa: BLE001
        faults.append(f"{type(error).__name__}: {error}")
    results.put((answered, faults))


class Searched:
    """The levels that engine ``openmp`` finds in a store, from a few sources."""

    def __init__(self, store: Path, sources: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        with distbfs.open(store, engine="openmp") as session:
            self.n = session.n
            self.sources = rng.integers(0, self.n, sources).tolist()
            self.levels = {
                s: session.search(s).level.astype(np.int16) for s in set(self.sources)
            }


class Load:
    """Clients of a socket in one process, each with one query open at a time."""

    def __init__(self, reference: Known, path: Path, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.path, self.requests, self.answers = path, [], []
        for _ in range(1 << 13):
            source = int(rng.choice(reference.sources))
            targets = rng.integers(0, reference.n, int(rng.integers(1, 20)))
            asked = {"op": "distances", "source": source, "targets": targets.tolist()}
            self.requests.append(json.dumps(asked).encode() + b"\n")
            levels = reference.levels[source][targets].tolist()
            self.answers.append({"id": None, "ok": True, "distances": levels})

    def run(
        self, clients: int, queries: int, rate: float = 0.0
    ) -> tuple[list[float], float, int]:
        """Return (rising seconds of all queries, seconds of all, wrong answers).

        rate: queries a second, each due at its time and measured from it, also where
        every client still waits; 0: each client asks again when it has an answer
        """
        taken, wrong, sent = [], 0, 0
        poll, talks, idle = select.epoll(), {}, []
        for _ in range(clients):
            talk = socket.socket(socket.AF_UNIX)
            talk.connect(str(self.path))
            poll.register(talk.fileno(), select.EPOLLIN)
            idle.append(talk)
        began = time.perf_counter()
        while len(taken) < queries:
            wait = None
            while idle and sent < queries:
                now = time.perf_counter()
                since = began + sent / rate if rate else now
                if since > now:
                    wait = since - now
                    break
                talk = idle.pop()
                talk.sendall(self.requests[sent % len(self.requests)])
                talks[talk.fileno()] = [talk, sent, since, b""]
                sent += 1
            select.select([poll], [], [], wait)  # epoll's own wait has milliseconds
            for handle, _ in poll.poll(0):
                talk, number, since, rest = talks[handle]
                if not (data := talk.recv(1 << 16)):
                    raise ConnectionError("the service has ended")
                if not data.endswith(b"\n"):
                    talks[handle][3] = rest + data
                    continue
                taken.append(time.perf_counter() - since)
                answer = msgspec.json.decode(rest + data)
                wrong += answer != self.answers[number % len(self.answers)]
                idle.append(talk)
        for talk in idle:
            talk.close()
        return sorted(taken), time.perf_counter() - began, wrong


def load_rows(args: argparse.Namespace, reference: Known, folder: Path) -> Any:
    """Return the rows of many clients at once, of a service of one rank or all."""
    process = started(args, folder, args.load_store)
    service = ranks_of(process)[0]
    load = Load(reference, folder / "s", args.seed)
    load.run(args.load_clients, args.load_queries // 10)
    alone, _, _ = load.run(1, 2000)
    before, cpu = sum(service.cpu_times()[:2]), time.process_time()
    taken, seconds, wrong = load.run(args.load_clients, args.load_queries)
    cpu = (time.process_time() - cpu) / len(taken)
    own = (sum(service.cpu_times()[:2]) - before) / len(taken)
    paced, _, more = load.run(args.load_clients, args.load_queries, args.rate)
    with distbfs.connect(folder / "s") as client:
        client.shutdown()
    process.wait(timeout=60)
    one, p50, p99 = (at(alone, 0.5), at(taken, 0.5), at(taken, 0.99))
    rate, many, late = len(taken) / seconds, args.load_clients, at(paced, 0.99)
    wrong += more
    return [
        (f"queries a second, {many} clients", rate, args.rate, rate >= args.rate),
        ("of their answers wrong", wrong, 0, not wrong),
        ("p50 of one client, ms", one * 1e3, "", True),
        ("p99 of one client, ms", at(alone, 0.99) * 1e3, "", True),
        (f"p50 of {many} clients, ms", p50 * 1e3, "", True),
        (f"p99 of {many} clients, ms", p99 * 1e3, "", True),
        (f"p50 at {args.rate:g} a second, ms", at(paced, 0.5) * 1e3, "", True),
        (f"p99 at {args.rate:g} a second, ms", late * 1e3, "", True),
        ("that p99 over the p50 of one client", late / one, 20, late / one <= 20),
        ("CPU time of the service a query, µs", own * 1e6, "", True),
        ("CPU time of the clients a query, µs", cpu * 1e6, "", True),
    ]


def at(rising: list[float], share: float) -> float:
    """Return the value below which a share of rising values lies."""
    return rising[round((len(rising) - 1) * share)]


def started(
    args: argparse.Namespace, folder: Path, store: str = "graph"
) -> subprocess.Popen[str]:
    """Start the service, of one rank on "whole", and wait until it is ready."""
    many = store == "graph" and args.ranks > 1
    ranks = ["mpiexec", "-n", str(args.ranks)] if many else []
    command = [*ranks, *DISTBFS, "serve", str(folder / store), "--socket"]
    command += [str(folder / "s")]
    log = (folder / "log").open("a")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    assert process.stdout is not None
    if process.stdout.readline() != "ready\n":
        sys.exit((folder / "log").read_text())
    return process


def ranks_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """Return the processes of the ranks."""
    below = psutil.Process(process.pid).children(recursive=True)
    pythons = [
        one for one in below if "serve" in one.cmdline() and "-m" in one.cmdline()
    ]
    pythons = [one for one in pythons if "mpiexec" not in one.cmdline()[0]]
    return pythons or [psutil.Process(process.pid)]


@contextmanager
def clients(args: argparse.Namespace, reference: Reference, folder: Path) -> Any:
    """Run all clients; yield their results at the end."""
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    each = args.queries // args.clients
    running = [
        context.Process(
            target=ask_many,
            args=(reference, str(folder / "s"), each, args.seed + k, results),
        )
        for k in range(args.clients)
    ]
    for one in running:
        one.start()
    yield running
    counts = [results.get() for _ in running]
    for one in running:
        one.join()
    args.answered = sum(answered for answered, _ in counts)
    args.faults = [fault for _, faults in counts for fault in faults]


def resident(processes: list[psutil.Process]) -> int:
    """Return the resident bytes of processes."""
    return sum(one.memory_info().rss for one in processes)


def pairs(reference: Reference, client: Any, count: int) -> float:
    """Return the median seconds of distances for one pair."""
    taken = []
    for k in range(count):
        source = reference.sources[k % len(reference.sources)]
        began = time.perf_counter()
        client.distances(source, [k % reference.n])
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def bare(args: argparse.Namespace, reference: Reference, folder: Path) -> float:
    """Return the median seconds of the same searches by ``distbfs bfs``."""
    file = folder / "sources"
    file.write_text("\n".join(map(str, reference.sources)))
    ranks = ["mpiexec", "-n", str(args.ranks)] if args.ranks > 1 else []
    command = [*ranks, *DISTBFS, "bfs", str(folder / "graph"), "--sources", str(file)]
    command += ["--no-parents", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    searches = json.loads(done.stdout)["searches"]
    return statistics.median(one["seconds"] for one in searches)


def first_answers(client: Any, processes: list[psutil.Process]) -> tuple[float, float]:
    """Return (CPU share of the busiest idle rank, median seconds to wake up)."""
    before = [sum(one.cpu_times()[:2]) for one in processes]
    time.sleep(3)
    after = [sum(one.cpu_times()[:2]) for one in processes]
    taken = []
    for k in range(5):
        time.sleep(0.5)
        began = time.perf_counter()
        client.distances(k, [k])
        taken.append(time.perf_counter() - began)
    share = max(b - a for a, b in zip(before, after, strict=True)) / 3
    return share, statistics.median(taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=int, default=18)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--sources", type=int, default=256)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--load-clients", type=int, default=64)
    parser.add_argument("--load-queries", type=int, default=20_000)
    stores = ("whole", "graph")  # of one rank, and of --ranks
    parser.add_argument("--load-store", choices=stores, default=stores[0])
    parser.add_argument("--load-only", action="store_true", help="Leave out the rest.")
    parser.add_argument("--rate", type=float, default=3000, help="Wanted a second.")
    parser.add_argument("--json", type=Path, help="File for the figures.")
    args = parser.parse_args()
    load_only = args.load_only or args.scale >= LARGE
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for store, parts in {"whole": 1, "graph": args.ranks}.items():
            if load_only and store != args.load_store:
                continue
            command = [*DISTBFS, "generate", "kronecker", "--scale", str(args.scale)]
            command += ["--parts", str(parts), "-o", str(folder / store)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        if args.scale >= LARGE:
            known = Searched(folder / args.load_store, args.sources, args.seed)
            rows = load_rows(args, known, folder)
        else:
            reference = Reference(args.scale, args.sources, args.seed)
            rows = [] if load_only else measure(args, reference, folder)
            rows += load_rows(args, reference, folder)
    print_table(("what", "measured", "limit", "good"), rows)
    if args.json:
        names = ("what", "measured", "limit", "good")
        records = [dict(zip(names, row, strict=True)) for row in rows]
        args.json.write_text(json.dumps({**vars(args), "json": None, "rows": records}))
    sys.exit(0 if all(row[3] for row in rows) else 1)


def measure(args: argparse.Namespace, reference: Reference, folder: Path) -> list[Any]:
    """Return the measured rows: (what, value, limit, whether it is met)."""
    began = time.perf_counter()
    process = started(args, folder)
    load = time.perf_counter() - began
    processes = ranks_of(process)
    with distbfs.connect(folder / "s") as client:
        pairs(reference, client, 200)
        one, alone = [], []
        for _ in range(3):
            alone.append(bare(args, reference, folder))
            one.append(pairs(reference, client, 500))
        share, first = first_answers(client, processes)
    memory = 0
    with clients(args, reference, folder) as running:
        done = 0
        while done < args.queries / 5 and any(one.is_alive() for one in running):
            time.sleep(0.2)
            with distbfs.connect(folder / "s") as client:
                done = client.stats()["searches"] - 1700
        memory = resident(processes)
    after = resident(processes)
    for rank in processes:
        rank.send_signal(signal.SIGKILL)
    process.wait()
    began = time.perf_counter()
    again = started(args, folder)
    restart = time.perf_counter() - began
    with distbfs.connect(folder / "s") as client:
        served = client.health()["state"] == "ready"
        client.shutdown()
    code = again.wait(timeout=60)
    for fault in args.faults[:10]:
        print("wrong:", fault)
    asked = args.queries // args.clients * args.clients
    ratio = statistics.median(one) / statistics.median(alone)
    growth = after / memory - 1
    return [
        ("queries answered", args.answered, asked, args.answered == asked),
        ("answers wrong", len(args.faults), 0, not args.faults),
        ("p50 of distances, ms", statistics.median(one) * 1e3, "", True),
        ("bare search, levels only, ms", statistics.median(alone) * 1e3, "", True),
        ("p50 over the bare search", ratio, 1.3, ratio <= 1.3),
        ("growth of memory", growth, 0.01, growth < 0.01),
        ("idle rank, share of a core", share, 0.05, share < 0.05),
        ("first answer after a pause, ms", first * 1e3, 10, first < 0.01),
        ("first load, s", load, "", True),
        ("restart after kill -9, s", restart, load * 1.2, restart < load * 1.2),
        ("serves again and ends", code, 0, served and code == 0),
    ]


if __name__ == "__main__":
    main()
