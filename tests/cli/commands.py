"""Run commands in this process and in others, alone and on ranks; check results."""

import contextlib
import io
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
import psutil
import pytest
from graphs import levels_by
from held_ranks import run_held
from launching import clean_environment, end_tree, find_mpiexec, run, run_ranks
from warm import Command

from distbfs.cli import main
from distbfs.ranks.world import run_guarded

DISTBFS = Command()  # in a process of its own, forked from one that has all modules
FRESH = [sys.executable, "-m", "distbfs"]  # where it matters how it starts
INJECTED = Path(__file__).resolve().parents[1] / "faults" / "injected"
SECONDS = 60


@dataclass
class Result:
    """How a command ended: exit code, and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def values(self):
        """What ``--json`` printed."""
        assert self.code == 0, self.err
        return json.loads(self.out)

    @property
    def refusal(self):
        """The only line of a command that was refused."""
        assert self.code == 2, (self.code, self.err)
        assert self.out == ""
        assert self.err.count("\n") == 1, self.err
        assert self.err.startswith("distbfs: ")
        return self.err.strip()


def here(*arguments):
    """Run a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    words = [str(word) for word in arguments]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run_guarded(None, lambda: main.run(words))
    return Result(code, out.getvalue(), err.getvalue())


def alone(*arguments, **env):
    """Run a command in a process of its own."""
    done = run([*DISTBFS, *map(str, arguments)], SECONDS, environment(**env))
    return Result(done.returncode, done.stdout, done.stderr)


def on(ranks, *arguments, **env):
    """Run a command under mpiexec; on one rank in this process.

    With variables of the environment the ranks start for this command alone.
    """
    if ranks == 1 and not env:
        return here(*arguments)
    words = [str(word) for word in arguments]
    if env:
        done = run_ranks(ranks, [*DISTBFS, *words], SECONDS, environment(**env))
    else:
        done = run_held(ranks, words, environment())
    return Result(done.returncode, done.stdout, done.said)


def environment(**more):
    """Return environment variables that every command gets."""
    return {"OMP_NUM_THREADS": "1", **more}


def injected(log, **faults):
    """Return environment variables that make searches slow or faulty."""
    path = [str(INJECTED), clean_environment()["PYTHONPATH"]]
    names = {f"INJECT_{name.upper()}": str(value) for name, value in faults.items()}
    return environment(PYTHONPATH=os.pathsep.join(path), INJECT_LOG=str(log), **names)


def begin(ranks, argv, env):
    """Start a command, which is to be stopped; ranks are no forks.

    A launcher ends the processes that it has started, in an order of its own.
    """
    launcher = [str(find_mpiexec()), "-n", str(ranks)] if ranks > 1 else []
    if launcher and argv[:1] == [*DISTBFS]:
        argv = [*FRESH, *argv[1:]]
    return subprocess.Popen(
        [*launcher, *argv],
        env=clean_environment(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process, seconds=60, ranks=()):
    """Wait for the end of a command, at most some seconds.

    ranks: processes below it that must end, too, though it may end before they do
    """
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        end_tree(process)
        pytest.fail(f"still running: {process.communicate()}")
    assert not psutil.wait_procs(ranks, 30)[1]
    return Result(process.returncode, out, err)


def wait_until(condition, process, seconds=120):
    """Wait until a condition holds while a process runs."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end or process.poll() is not None:
            end_tree(process)
            pytest.fail(f"not reached: {process.communicate()}")
        time.sleep(0.02)


def ranks_below(process):
    """Return the processes of the ranks below mpiexec, by rank."""
    rows = {}
    for child in psutil.Process(process.pid).children(recursive=True):
        with contextlib.suppress(psutil.Error):
            rank = child.environ().get("PMI_RANK")
            rank = rank or child.environ().get("OMPI_COMM_WORLD_RANK")
            if rank is not None:
                rows[int(rank)] = child
    return rows


def searches_begun(log, rank=0):
    """Return how many searches a rank with an injected log has begun."""
    path = Path(f"{log}.{rank}")
    return path.read_text().count("search") if path.exists() else 0


def files_in(folder):
    """Return the names of all files and folders below a folder, hidden ones too."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def results_of(path):
    """Return sources, levels and parents (None without) of a result file."""
    with h5py.File(path) as file:
        both = (file[x][:] if x in file else None for x in ("level", "parent"))
        return file["sources"][:], *both


def rows_done(path):
    """Return how many searches a partial result file holds; -1 where there is none."""
    try:
        with h5py.File(path, "r", locking=False) as file:
            return int(file["done"][:].sum())
    except (OSError, KeyError):
        return -1


def check_search(tuples, root, level, parent):
    """Compare one search with SciPy; parents make a tree over edges of the graph."""
    assert np.array_equal(level, tuples.distances(root))
    if parent is None:
        return
    assert parent[root] == root
    assert np.array_equal(parent >= 0, level >= 0)
    child = np.flatnonzero(level > 0)
    assert np.array_equal(level[parent[child]], level[child] - 1)
    edges = tuples.edges @ [tuples.n, 1]
    assert np.all(np.isin(parent[child] * tuples.n + child, edges))


def check_results(tuples, path, sources, *, levels=True, parents=True):
    """Check all searches of a result file, in input ids."""
    result, level, parent = results_of(path)
    assert (level is None, parent is None) == (not levels, not parents)
    assert (result.tolist(), result.dtype) == (list(sources), np.int64)
    if parents:
        assert parent.dtype == np.int64
        assert parent.shape == (len(result), tuples.n)
    if not levels:
        level = np.stack([levels_by(row) for row in parent])
    assert level.dtype == np.int32
    assert level.shape == (len(result), tuples.n)
    for row, root in enumerate(result.tolist()):
        check_search(tuples, root, level[row], parent[row] if parents else None)


def nedge(tuples, root):
    """Return the input tuples with an end in the component of a vertex."""
    reached = tuples.distances(root) >= 0
    return int((reached[tuples.u] | reached[tuples.v]).sum())


def write_edge_list(path, tuples):
    """Write tuples as an edge list with comments and a column to be ignored."""
    lines = ["# an edge list", "% made by a test"]
    pairs = zip(tuples.u.tolist(), tuples.v.tolist(), strict=True)
    lines += [f"{u}\t{v} 0.5" for u, v in pairs]
    lines.insert(len(lines) // 2, "# in the middle")
    path.write_text("\n".join(lines) + "\n")
    return path


def write_matrix_market(path, tuples, symmetry="general"):
    """Write tuples as Matrix Market; symmetric files hold the lower triangle."""
    u, v = tuples.u, tuples.v
    if symmetry == "symmetric":
        u, v = np.maximum(u, v), np.minimum(u, v)
    lines = [f"%%MatrixMarket matrix coordinate pattern {symmetry}", "% a comment"]
    lines.append(f"{tuples.n} {tuples.n} {tuples.tuples}")
    lines += [
        f"{a} {b}" for a, b in zip((u + 1).tolist(), (v + 1).tolist(), strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path
