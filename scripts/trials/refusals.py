"""Bad input and extremes: one line and exit code 2, or a right answer, no traceback."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import distbfs
from distbfs.errors import DistbfsError
from trials.checker import Truth, Wrong, check_search, equal
from trials.files import written
from trials.shapes import draw_graph
from trials.stores import make_store
from trials.trial import Done, Trial

HUGE = (1 << 31, 1 << 32, 1 << 62, (1 << 63) - 1, 1 << 63, 1 << 64, 10**30)


def run(trial: Trial) -> None:
    """Try one kind of bad input."""
    kind = trial.choose(*KINDS)
    trial.note(kind.__name__)
    kind(trial)


def refused(done: Done, where: str) -> None:
    """Raise Wrong unless a command was refused in one line."""
    line = (done.err.splitlines() or [""])[-1]
    if done.code != 2 or "Traceback" in done.err or not line.startswith("distbfs: "):
        raise Wrong("refusal", f"{where}: code {done.code}, {done.err[-300:]}")


def refuses(trial: Trial, call: Callable[[], Any], where: str) -> None:
    """Raise Wrong unless a call raises an error of the package."""
    trial.note(where)
    trial.searches += 1
    try:
        answer = call()
    except DistbfsError:
        return
    raise Wrong("refusal", f"{where}: gave {answer!r:.200}")


def run_command(trial: Trial, *words: Any) -> Done:
    """Run a command here, at times in a process of its own."""
    trial.searches += 1
    return trial.apart(*words) if trial.chance(0.04) else trial.run(*words)


def bad_lines(trial: Trial) -> None:
    """Convert an edge list with one line that cannot be."""
    truth = draw_graph(trial, least=2, most=200)
    lines = [f"{u} {v}" for u, v in truth.pairs.tolist()]
    bad = trial.choose(
        *(
            "-1 0",
            "0 -3",
            "1",
            "a b",
            "0 1x",
            "0.5 1",
            "0x1 2",
            "1e3 2",
            "1,,2",
            "nan 1",
        ),
        *(f"{1 << 63} 0", f"0 {1 << 64}", f"{10**25} 1", "1;2", "+1 2", "\x00 1"),
    )
    if bad == "1;2" and not lines:
        return  # an edge, after all
    at = trial.below(len(lines) + 1)
    if bad == "a b":  # names columns where it is the first line
        at = max(at, 1)
    path = trial.write("g.txt", "\n".join([*lines[:at], bad, *lines[at:], ""]).encode())
    refused(run_command(trial, "convert", path, "-o", trial.folder / "s"), repr(bad))
    if (trial.folder / "s").exists():
        raise Wrong("refusal", f"{bad!r} left a store behind")


def too_few_vertices(trial: Trial) -> None:
    """Give ids that are not among the vertices, or below the first."""
    truth = draw_graph(trial, least=2, most=300)
    if not len(truth.pairs):
        return
    most = int(truth.pairs.max())
    data = "".join(f"{u} {v}\n" for u, v in truth.pairs.tolist()).encode()
    words = ["convert", trial.write("g.el", data), "-o", trial.folder / "s"]
    if most:
        refused(run_command(trial, *words, "-n", most), f"id {most} of {most}")
    if not truth.pairs.min():
        refused(run_command(trial, *words, "--one-based"), "id 0, one-based")
    ends = truth.pairs[:, 0], truth.pairs[:, 1]
    make = distbfs.Graph.from_edges
    refuses(trial, lambda: make(*ends, n=most), "n = the largest id")
    refuses(trial, lambda: make(ends[0] - most - 1, ends[1]), "ids below 0")
    refuses(trial, lambda: make(ends[0] + 0.5, ends[1]), "ids that are not integers")
    refuses(trial, lambda: make(ends[0], np.append(ends[1], 0)), "other lengths")
    refuses(trial, lambda: make(truth.pairs, truth.pairs), "two dimensions")


def damaged(trial: Trial) -> None:
    """Convert a file with bytes cut off or changed: read or refused."""
    truth = draw_graph(trial, least=1, most=300)
    made = written(trial, truth)
    data = bytearray(made.data)
    if trial.chance(0.5):
        del data[trial.below(len(data)) :]
    for _ in range(trial.below(4)):
        if data:
            data[trial.below(len(data))] = trial.below(256)
    path = trial.write(f"g{made.suffix}", bytes(data))
    store = trial.folder / "s"
    done = run_command(trial, "convert", path, "-o", store, *made.options)
    if done.code:
        refused(done, "a damaged file")
        return
    equal("exit", trial.run("verify", store).code, 0, "the store of a damaged file")


def damaged_store(trial: Trial) -> None:
    """Search a store with a changed byte: refused, or searched rightly."""
    made, store, _ = make_store(trial, most=300)
    files = sorted(store.glob("*.h5"))
    path = trial.choose(*files)
    data = bytearray(path.read_bytes())
    at = trial.below(len(data))
    data[at] ^= 1 << trial.below(8)
    path.write_bytes(bytes(data))
    trial.note(f"byte {at} of {path.name}")
    source = 0 if made.names is None else made.names[0]
    out = trial.folder / "l.h5"
    done = run_command(trial, "bfs", store, f"--source={source}", "-o", out, "--json")
    if done.code:
        refused(done, f"byte {at} of {path.name}")
        return
    equal("count", done.values["searches"][0]["nedge"], made.truth.nedge(0), "nedge")


def bad_sources(trial: Trial) -> None:
    """Name sources that are no vertices, by commands."""
    made, store, _ = make_store(trial, most=300)
    n = made.truth.n
    bad = trial.choose(-1, n, *HUGE, "a b", "", "0x0", "1.0", "--", "nobody", "٣")
    if made.names is not None and str(bad) in map(str, made.names):
        return
    refused(run_command(trial, "bfs", store, f"--source={bad}"), f"source {bad!r}")
    path = trial.write("sources", f"# c\n{bad}\n".encode())
    if bad != "":
        refused(
            run_command(trial, "bfs", store, "--sources", path), f"in a file {bad!r}"
        )
        words = ("multisearch", "apsp", store, "--sources", path)
        refused(run_command(trial, *words), f"multisearch from {bad!r}")


def bad_options(trial: Trial) -> None:
    """Give options outside of what is allowed."""
    made, store, parts = make_store(trial, most=300)
    name = 0 if made.names is None else made.names[0]
    bad = trial.choose(
        *(["--engine", "none"], ["--method", "none"], ["--threads", "-1"]),
        *(["--method", "push", "--direction", "pull"], ["--direction", "both"]),
        *(["--dd-factors", "-1", "0"], ["--dn-factors", "x", "1"], ["--exchange", "x"]),
        *(["--engine", "reference", "--method", "fast"], ["--trust-mpi"]),
        *(["--mask-reduce", "x"], ["--threads", "5000"], ["--knobs", "k9=1"]),
    )
    done = run_command(trial, "bfs", store, f"--source={name}", *bad)
    refused(done, f"{bad} on {parts} parts")
    words = ["partition", store, "-o", trial.folder / "t"]
    bad = trial.choose(["--parts", 0], ["--threshold", -1], ["--memory", 0])
    refused(run_command(trial, *words, *bad), f"{bad}")


def wrong_files(trial: Trial) -> None:
    """Name things that are no stores and no files, and files that are there already."""
    empty = trial.write("empty.txt", b"")
    text = trial.write("x.h5", b"no store")
    there = trial.write("there.el", b"mine")
    _, store, _ = make_store(trial, most=60)
    for words in (
        ("convert", empty, "-o", trial.folder / "a"),
        ("convert", trial.folder, "-o", trial.folder / "a"),
        ("convert", trial.folder / "none.el", "-o", trial.folder / "a"),
        ("convert", text, "-o", trial.folder / "a"),
        ("bfs", text, "--source=0"),
        ("info", trial.folder),
        ("verify", trial.folder / "none"),
        ("export", store, "-o", there),
        ("export", store, "-o", trial.folder / "x.unknown"),
        ("export", store, "-o", trial.folder / "none" / "x.el"),
        ("bfs", store),
        ("partition", store, "-o", store),
    ):
        if trial.chance(0.5):
            refused(run_command(trial, *words), words[0])
    equal("refusal", there.read_bytes(), b"mine", "a file that was there")


def bad_vertices(trial: Trial) -> None:
    """Give vertices, limits and options that are none, by Python."""
    truth = draw_graph(trial, most=60)
    ends = truth.pairs[:, 0], truth.pairs[:, 1]
    graph = distbfs.Graph.from_edges(*ends, n=truth.n, directed=truth.directed)
    bad = (-1, truth.n, 0.5, "0", None, True, 1 << 63, -(1 << 63), float("nan"), ())
    for vertex in bad:
        refuses(trial, lambda v=vertex: distbfs.bfs(graph, v), f"source {vertex!r}")
    if not truth.n:
        return
    for options in (
        *({"depth_limit": -1}, {"targets": [truth.n]}, {"targets": [-1]}),
        *({"engine": "x"}, {"engine": "openmp", "method": "x"}, {"direction": "x"}),
        *({"threads": -1}, {"engine": "openmp", "method": "push", "direction": "pull"}),
    ):
        refuses(trial, lambda o=options: distbfs.bfs(graph, 0, **o), f"{options}")
    many = distbfs.reachable, distbfs.path_lengths, distbfs.closeness
    refuses(trial, lambda: many[0](graph, [(0, truth.n)]), "reachable")
    refuses(trial, lambda: many[1](graph, [-1]), "path_lengths")
    refuses(trial, lambda: many[2](graph, [truth.n]), "closeness")


def extreme_limits(trial: Trial) -> None:
    """Give limits far above every level: a right answer, or an error of the package."""
    truth = draw_graph(trial, least=1, most=100)
    ends = truth.pairs[:, 0], truth.pairs[:, 1]
    graph = distbfs.Graph.from_edges(*ends, n=truth.n, directed=truth.directed)
    limit, source = trial.choose(*HUGE), trial.below(truth.n)
    trial.note(f"limit {limit} from {source}")
    engine = trial.choose("auto", "openmp", "reference")
    try:
        result = distbfs.bfs(graph, source, engine, depth_limit=limit)
        check_search(truth, source, *result.to_numpy(), limit=limit)
        trial.searches += 1
    except DistbfsError:
        if limit < 1 << 63:
            raise
    hops = trial.choose((1 << 31) - 1, 1 << 31, 1 << 32, 1 << 62, 1 << 63)
    trial.note(f"hops {hops}")
    sizes = np.bincount(truth.levels(source)[truth.levels(source) >= 0])
    with little_memory():
        within = distbfs.within_hops(graph, [source], hops)
    equal("count", within.tolist(), [np.cumsum(sizes).tolist()], f"hops {hops}")


@contextmanager
def little_memory() -> Iterator[None]:
    """Let this process have little more memory than it has."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + (2 << 30), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def bad_matrices(trial: Trial) -> None:
    """Take SciPy matrices that are not square, or whose indices are outside."""
    truth = draw_graph(trial, least=2, most=60)
    u, v = truth.pairs.T
    directed = trial.chance(0.5)
    make = distbfs.Graph.from_scipy
    wide = sp.coo_array((np.ones(len(u)), (u, v)), shape=(truth.n, truth.n + 1))
    refuses(trial, lambda: make(wide, directed=directed), "not square")
    if not len(u):
        return
    rows = sp.coo_array((np.ones(len(u)), (u, v)), shape=(truth.n, truth.n)).tocsr()
    at = trial.below(len(rows.indices))
    rows.indices[at] = trial.choose(truth.n, truth.n + 1000, -1, 1 << 30)
    refuses(trial, lambda: make(rows, directed=directed), f"column {rows.indices[at]}")


def rectangular(trial: Trial) -> None:
    """Convert a matrix that is not square, which is refused."""
    rows, columns = 1 + trial.below(30), 31 + trial.below(30)
    pairs = [(trial.below(rows), trial.below(columns)) for _ in range(20)]
    trial.draws(Truth(columns, pairs))
    lines = [f"{u + 1} {v + 1}" for u, v in pairs]
    head = f"%%MatrixMarket matrix coordinate pattern general\n{rows} {columns} 20\n"
    path = trial.write("g.mtx", (head + "\n".join(lines) + "\n").encode())
    done = run_command(trial, "convert", path, "-o", trial.folder / "s")
    if done.code != 2:
        raise Wrong("refusal", f"{rows} rows and {columns} columns: {done.code}")


def symmetric_files(trial: Trial) -> None:
    """Ask for a directed graph of a file that is symmetric."""
    truth = draw_graph(trial, least=1, most=200)
    other = written(trial, truth)
    symmetric = b" symmetric\n" in other.data[:80] or other.suffix in (
        ".graph",
        ".metis",
    )
    if symmetric:
        path = trial.write(f"h{other.suffix}", other.data)
        words = ["convert", path, "-o", trial.folder / "t", *other.options]
        refused(run_command(trial, *words, "--directed"), f"{other.suffix}, directed")


KINDS = (
    *(bad_lines, too_few_vertices, damaged, damaged, damaged_store, bad_sources),
    *(bad_options, wrong_files, bad_vertices, extreme_limits, bad_matrices),
    *(rectangular, symmetric_files),
)
