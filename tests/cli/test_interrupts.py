"""Ctrl-C gives 130 and one line from the start on; SIGTERM waits for no search."""

import re
import signal
import sys
import time

import pytest
from commands import (
    DISTBFS,
    FRESH,
    begin,
    environment,
    files_in,
    finish,
    here,
    injected,
    ranks_below,
    searches_begun,
    wait_until,
)
from launching import is_open_mpi, needs_mpi

SCRIPT = [sys.executable, "-c", "from distbfs.entry import entry; entry()"]
LEVELS = 70_000


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A store in two parts whose search takes many levels."""
    store = tmp_path_factory.mktemp("path") / "store"
    words = ("--vertices", LEVELS, "--parts", 2, "-o", store)
    assert here("generate", "path", *words).code == 0
    return store


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("ranks", "command", "module"),
    [
        (1, FRESH, "distbfs.errors"),
        (1, FRESH, "numpy"),
        (1, SCRIPT, "click"),
        (1, SCRIPT, "distbfs.cli.main"),
        pytest.param(2, FRESH, "numpy", marks=needs_mpi),
    ],
)
def test_ctrl_c_while_modules_are_imported(ranks, command, module):
    env = environment(PYTHONPROFILEIMPORTTIME="1")  # which writes to stderr
    process = begin(ranks, [*command, "doctor"], env)
    missing = ranks
    for line in process.stderr:
        missing -= line.rpartition("|")[2].strip() == module
        if not missing:
            break
    process.send_signal(signal.SIGINT)
    done = finish(process)
    said = [x for x in done.err.splitlines() if not x.startswith("import time:")]
    assert (done.code, said) == (130, ["distbfs: interrupted"])


LATE = """
import os, signal, sys, time
if os.environ.get("PMI_RANK", os.environ.get("OMPI_COMM_WORLD_RANK")) == "0":
    os.execv(sys.argv[1], sys.argv[1:])
signal.signal(signal.SIGINT, lambda *_: os._exit(130))
time.sleep(60)
"""


@pytest.mark.thorough
@needs_mpi
def test_ctrl_c_while_mpi_waits_for_a_rank_that_has_not_begun():
    """Also then threads run that hear of it."""
    if is_open_mpi():
        pytest.skip("mpirun of Open MPI ends the ranks itself")
    process = begin(2, [sys.executable, "-c", LATE, *FRESH, "doctor"], environment())

    def waits():
        first = ranks_below(process).get(0)
        return first and any("libmpi" in x.path for x in first.memory_maps())

    wait_until(waits, process)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    done = finish(process, 10)
    assert done.code == 130
    assert done.err.strip() == "distbfs: interrupted"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("command", "number", "ranks"),
    [
        ("bfs {} -s 0", signal.SIGTERM, 1),
        pytest.param("bfs {} -s 0", signal.SIGTERM, 2, marks=needs_mpi),
        pytest.param("bfs {} -s 0", signal.SIGINT, 2, marks=needs_mpi),
        ("graph500 --graph {}", signal.SIGTERM, 1),
        ("graph500 --graph {}", signal.SIGINT, 1),
    ],
)
def test_a_search_ends_between_two_levels(tmp_path, path, command, number, ranks):
    if ranks > 1 and is_open_mpi():
        pytest.skip("mpirun of Open MPI ends the ranks itself")
    log = tmp_path / "log"
    words = command.format(path).split()
    process = begin(ranks, [*DISTBFS, *words, "-q"], injected(log))
    wait_until(lambda: all(searches_begun(log, x) for x in range(ranks)), process)
    process.send_signal(number)
    done = finish(process)
    assert done.err.count("\n") == 1, done.err
    if number == signal.SIGINT:
        assert done.code == 130
        assert done.err.endswith(": interrupted\n")
    else:
        assert done.code == 0
        assert "stopped on request after 0 of" in done.err


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("number", "code", "word"),
    [(signal.SIGTERM, 0, "stopped"), (signal.SIGINT, 130, "interrupted")],
)
def test_many_searches_say_what_is_lost(path, number, code, word):
    words = ["multisearch", "closeness", str(path), "--batch", "1"]
    process = begin(1, [*DISTBFS, *words], environment())
    while "about" not in process.stderr.readline():  # some searches are done
        assert process.poll() is None
    process.send_signal(number)
    done = finish(process)
    assert done.code == code, done.err
    reached = rf" after \d+ of {LEVELS} sources"
    if number == signal.SIGINT:  # or between two batches
        reached = f"({reached})?"
    said = rf"distbfs: {word}{reached}; what was done is lost\n"
    assert re.fullmatch(said, done.err.splitlines(keepends=True)[-1])
    assert "Traceback" not in done.err


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("where", "line"),
    [
        ("distbfs.search.opening:hold_host_parts", "bfs {store} -s 0"),
        ("distbfs.store.tuples:StoreTuples.edges", "export {store} -o {out}/graph.el"),
    ],
)
def test_ctrl_c_ends_a_call_that_does_not_come_back(tmp_path, path, where, line):
    out, log = tmp_path / "out", tmp_path / "log"
    out.mkdir()
    argv = [*DISTBFS, *line.format(store=path, out=out).split()]
    process = begin(1, argv, injected(log, stuck=where))
    wait_until((tmp_path / "log.0").exists, process)
    process.send_signal(signal.SIGINT)
    done = finish(process)
    assert (done.code, done.err) == (130, "distbfs: interrupted\n")
    assert files_in(out) == []
