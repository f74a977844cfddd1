"""SIGTERM and SIGUSR1 end a run after the search in progress; a second one at once."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest
import warm
from launching import (
    clean_environment,
    end_tree,
    find_mpiexec,
    is_open_mpi,
    needs_mpi,
)

STOPPING = Path(__file__).parent / "stopping.py"
SAME_REQUEST = 1.2


def start(ranks: int, name: Path, *more: str) -> subprocess.Popen[str]:
    """Start the program and wait until every rank is ready."""
    launcher = [str(find_mpiexec()), "-n", str(ranks)] if ranks > 1 else []
    process = subprocess.Popen(
        [*launcher, str(warm.folder() / "python"), str(STOPPING), str(name), *more],
        env=clean_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + 60
    while not all(Path(f"{name}.{rank}").exists() for rank in range(ranks)):
        if time.monotonic() > end or process.poll() is not None:
            end_tree(process)
            pytest.fail(f"did not start: {process.communicate()}")
        time.sleep(0.02)
    time.sleep(0.2)
    return process


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Wait for the end, at most 60 s."""
    try:
        out, err = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        end_tree(process)
        pytest.fail(f"still running: {process.communicate()}")
    return process.returncode, out, err


def ranks_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """Return the Python processes below mpiexec."""
    below = psutil.Process(process.pid).children(recursive=True)
    return [child for child in below if "stopping.py" in " ".join(child.cmdline())]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
@pytest.mark.parametrize("ranks", [1, pytest.param(2, marks=needs_mpi)])
def test_signal_to_the_launcher(
    tmp_path: Path, ranks: int, number: signal.Signals
) -> None:
    if ranks > 1 and number == signal.SIGTERM and is_open_mpi():
        pytest.skip("mpirun of Open MPI ends the ranks itself when it gets SIGTERM")
    process = start(ranks, tmp_path / "ready")
    process.send_signal(number)
    assert finish(process) == (0, "stopped after a search\n", "")


@needs_mpi
def test_signal_to_one_rank_stops_all(tmp_path: Path) -> None:
    process = start(2, tmp_path / "ready")
    ranks_of(process)[-1].send_signal(signal.SIGUSR1)
    assert finish(process) == (0, "stopped after a search\n", "")


def test_two_signals_of_one_request(tmp_path: Path) -> None:
    process = start(1, tmp_path / "ready")
    # together, or it may have ended when the second one is sent
    for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGUSR1, signal.SIGCONT):
        process.send_signal(number)
    assert finish(process)[0] == 0


@pytest.mark.thorough
@pytest.mark.parametrize("ranks", [1, pytest.param(2, marks=needs_mpi)])
def test_second_signal_ends_at_once(tmp_path: Path, ranks: int) -> None:
    process = start(ranks, tmp_path / "ready", "stuck")
    process.send_signal(signal.SIGUSR1)
    time.sleep(SAME_REQUEST)
    start_seconds = time.monotonic()
    process.send_signal(signal.SIGUSR1)
    code, out, _ = finish(process)
    assert time.monotonic() - start_seconds < 40  # it would sleep for 120 s
    assert code != 0
    assert "stopped" not in out


@pytest.mark.thorough
@needs_mpi
def test_signal_in_a_blocked_call(tmp_path: Path) -> None:
    process = start(2, tmp_path / "ready", "stuck")
    process.send_signal(signal.SIGUSR1)
    time.sleep(SAME_REQUEST)
    last = ranks_of(process)[-1]  # waits in MPI
    last.send_signal(signal.SIGTERM)
    assert finish(process)[0] != 0
