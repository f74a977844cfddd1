"""Ranks that were started with different commands end at once, and say in what."""

import re
import shutil

import numpy as np
import pytest
from commands import DISTBFS, Result, environment, here, results_of
from launching import find_mpiexec, needs_mpi, run

pytestmark = needs_mpi
LIMIT = 60.0


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """A folder of two graphs of one shape, A and B, and of copies of the first."""
    folder = tmp_path_factory.mktemp("stores")
    for name, seed in (("A", 1), ("B", 2)):
        words = ("--scale", 8, "--parts", 2, "--seed", seed, "-o", folder / name)
        assert here("generate", "kronecker", *words).code == 0
    shutil.copytree(folder / "A", folder / "copy")
    (folder / "sources").write_text("0\n1\n")
    (folder / "other").write_text("2\n")
    return folder


def together(folder, *command_lines):
    """Run command lines, one on each rank of one mpiexec; words in {} are files."""
    argv = [str(find_mpiexec())]
    for line in command_lines:
        words = re.sub(r"{(.*?)}", rf"{folder}/\1", line).split()
        argv += [*([":"] if len(argv) > 1 else []), "-n", "1", *DISTBFS, *words]
    done = run(argv, 120, environment())
    assert done.seconds < LIMIT
    return Result(done.returncode, done.stdout, done.said)


UNLIKE = {
    "stores": ("bfs {A} -s 0", "bfs {B} -s 0", "the manifest of GRAPH"),
    "sources": ("bfs {A} -s 0", "bfs {A} -s 1", '--source is ["1"], on rank 0 ["0"]'),
    "files": (
        "bfs {A} --sources {sources}",
        "bfs {A} --sources {other}",
        "--sources is",
    ),
    "parents": ("bfs {A} -s 0", "bfs {A} -s 0 --no-parents", "--no-parents is true"),
    "levels": ("bfs {A} -s 0", "bfs {A} -s 0 --no-levels", "--no-levels is true"),
    "threads": ("bfs {A} -s 0 --threads 1", "bfs {A} -s 0", "--threads is 0"),
    "engine": (
        "bfs {A} -s 0 --engine openmp",
        "bfs {A} -s 0 --engine reference",
        '--engine is "reference", on rank 0 "openmp"',
    ),
    "masks": (
        "bfs {A} -s 0",
        "bfs {A} -s 0 --mask-reduce nonblocking",
        "--mask-reduce is",
    ),
    "seed": ("graph500 --scale 6", "graph500 --scale 6 --seed 2", "--seed is 2"),
    "target": (
        "generate path -n 9 -o {x}",
        "generate path -n 9 -o {y}",
        "--output is",
    ),
    "commands": ("bfs {A} -s 0", "info {A}", 'the command is "distbfs info"'),
    "no-ranks": (
        "bfs {A} -s 0",
        "plot trace {x} -o {y}.png",
        'the command is "distbfs plot trace"',
    ),
    "help": ("bfs {A} -s 0", "--version", 'the command is "distbfs --version"'),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", UNLIKE)
def test_ranks_with_unlike_commands(stores, name):
    *lines, text = UNLIKE[name]
    done = together(stores, *lines)
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert done.err.startswith(
        "distbfs: rank 0: all ranks must run the same command: rank 1: "
    )
    assert text in done.err
    assert not (stores / "x").exists()


@pytest.mark.thorough
@pytest.mark.parametrize("line", ["bfs {A} --source", "bfs {none} -s 0"])
def test_a_rank_that_cannot_begin_says_why(stores, line):
    done = together(stores, "bfs {A} -s 0", line)
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert (
        "'--source' requires" in done.err
        or "there is no such file or folder" in done.err
    )


def test_hosts_may_see_a_store_at_different_places(stores):
    line = "bfs {%s} --sources {sources} -o {out.h5} --force"
    done = together(stores, line % "A", line % "copy")
    assert done.code == 0, done.err
    whole = stores / "alone.h5"
    words = ("--sources", stores / "sources", "-o", whole)
    assert here("bfs", stores / "A", *words).code == 0
    expected = results_of(whole)
    assert all(map(np.array_equal, results_of(stores / "out.h5"), expected))


def test_what_needs_no_ranks_runs_on_several(stores):
    done = together(stores, "--version", "--version")
    assert (done.code, done.err) == (0, "")
