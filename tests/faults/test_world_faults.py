"""One rank's error, exit or death ends all ranks, soon and with a code that is not 0.

The ways that a rank can end are in ``program.py`` (a user's script without any guard)
and ``guarded.py`` (a command).
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from launching import needs_mpi, run, run_ranks

HERE = Path(__file__).parent
PROGRAM = [sys.executable, str(HERE / "program.py")]
GUARDED = [sys.executable, str(HERE / "guarded.py")]
LIMIT = 60.0  # with the start; ranks that are not ended go on for 120 s

# what, code of mpiexec (None: any but 0), what stderr says once
SCRIPT_CASES = [
    ("raise", 1, "ValueError: a rank failed"),
    ("input-error", 2, "distbfs: rank 1: file x: line 3 is not a pair of ids"),
    ("memory", 3, "distbfs: rank 1: there is not enough memory"),
    ("no-room", 3, "distbfs: rank 1: Unable to allocate"),
    ("interrupt", 130, "distbfs: rank 1: interrupted"),
    ("thread", 1, "IndexError"),
    ("inside", 2, "distbfs: rank 1: reduction 'or' does not take"),
    ("exit-3", None, "distbfs: rank 1 ended while other ranks still worked"),
    ("exit-0", None, "distbfs: rank 1 ended while other ranks still worked"),
    ("system-exit", None, "no more"),
    ("abort", 5, ""),
    ("kill", None, ""),
    ("os-exit", None, ""),
]


@pytest.mark.thorough
@needs_mpi
@pytest.mark.parametrize(("what", "code", "text"), SCRIPT_CASES)
def test_one_rank_of_a_script_ends_all(what: str, code: int | None, text: str) -> None:
    grace = [] if what == "exit-0" else ["1"]
    done = run_ranks(2, [*PROGRAM, what, "1", *grace])
    assert done.seconds < LIMIT
    assert done.returncode != 0
    if code is not None:
        assert done.returncode == code
    assert not text or done.stderr.count(text) == 1


@pytest.mark.thorough
@needs_mpi
@pytest.mark.parametrize("what", ["raise", "kill"])
def test_rank_0_of_four_ends_all(what: str) -> None:
    done = run_ranks(4, [*PROGRAM, what, "0"])
    assert done.seconds < LIMIT
    assert done.returncode != 0


@pytest.mark.thorough
@needs_mpi
@pytest.mark.parametrize("what", ["all-raise", "all-raise-late", "all-exit-2"])
def test_what_all_ranks_do_is_said_once(what: str) -> None:
    done = run_ranks(4, [*PROGRAM, what, "0"])
    assert done.seconds < LIMIT
    assert done.returncode == 2
    expected = "" if what == "all-exit-2" else "distbfs: rank 0: seen by every rank\n"
    assert done.said == expected


@needs_mpi
def test_exit_code_of_one_rank_counts_at_the_end() -> None:
    done = run_ranks(2, [*PROGRAM, "end-exit-3", "1"])
    assert done.seconds < LIMIT
    assert done.returncode == 3


@needs_mpi
def test_clean_end() -> None:
    done = run_ranks(2, [*PROGRAM, "end", "0"])
    assert done.returncode == 0
    assert done.stderr == ""


@pytest.mark.thorough
@needs_mpi
def test_ranks_end_at_different_times_after_finish() -> None:
    done = run_ranks(2, [*PROGRAM, "end-late", "0", "1"])
    assert done.returncode == 0, done.stderr
    assert "wrote the results" in done.stdout


@pytest.mark.thorough
@needs_mpi
@pytest.mark.parametrize(
    ("what", "code", "error"),
    [
        ("validation", 1, "distbfs: rank 1: level 3 is wrong\n"),
        ("before-start", 2, "distbfs: rank 1: threads is -1; allowed: 0 to 4096\n"),
        ("all-before-start", 2, "distbfs: rank 0: threads is -1; allowed: 0 to 4096\n"),
        ("exit-text", 1, "no more\n"),
        ("all-return-1", 1, ""),
        ("good", 0, ""),
    ],
)
def test_command_under_guard(what: str, code: int, error: str) -> None:
    done = run_ranks(2, [*GUARDED, what, "1"])
    assert done.seconds < LIMIT
    assert done.returncode == code
    assert done.said == error
    if what == "good":
        assert done.stdout == "results of 2\n"


@pytest.mark.thorough
@needs_mpi
@pytest.mark.parametrize(
    ("what", "text"), [("bug", "KeyError: 'bug'"), ("exit-0", "still worked")]
)
def test_mistakes_under_guard(what: str, text: str) -> None:
    done = run_ranks(4, [*GUARDED, what, "2"])
    assert done.seconds < LIMIT
    assert done.returncode == 1
    assert done.stderr.count(text) == 1


@pytest.mark.parametrize(
    ("what", "code", "error"),
    [
        ("validation", 1, "distbfs: level 3 is wrong\n"),
        ("before-start", 2, "distbfs: threads is -1; allowed: 0 to 4096\n"),
        ("exit-0", 0, ""),
        ("exit-text", 1, "no more\n"),
        ("none", 0, ""),
    ],
)
def test_command_without_launcher(what: str, code: int, error: str) -> None:
    done = run([*GUARDED, what, "0"])
    assert (done.returncode, done.stderr) == (code, error)


@pytest.mark.thorough
@needs_mpi
def test_a_device_that_fails_while_others_wait_for_its_tuples() -> None:
    if shutil.which("g++") is None:
        pytest.skip("no C++ compiler")
    done = run_ranks(2, [sys.executable, str(HERE / "building.py")], timeout=240)
    assert done.returncode == 2
    assert done.said == "distbfs: rank 1: edges: the file was cut short\n"
    assert done.stdout == ""
