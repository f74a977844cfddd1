"""What a rank that waits for NCCL sees of others that are gone."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "mpi"))

import device_stand_in

from distbfs.errors import DistbfsError, LaunchError
from distbfs.exchange import nccl_link as link
from distbfs.exchange.nccl_link import Link
from distbfs.ranks.processes import Process
from distbfs.ranks.world import SoloWorld

SLEEPER = [sys.executable, "-c", "import time; print(flush=True); time.sleep(200)"]


class Never:
    """An event that is not reached."""

    done = False


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Link:
    device_stand_in.install(monkeypatch)
    monkeypatch.setattr(link, "LOOK_SECONDS", 0.02)
    return link.link_of(SoloWorld())


def seen(pid: int) -> Process:
    return Process(1, f"{pid} {Process._look(str(pid))[1]}")


def test_processes() -> None:
    assert seen(os.getpid()).runs()
    assert Process(0, Process.myself()).runs()
    assert not Process(0, f"{os.getpid()} 12").runs()  # its number was given again
    assert not Process(0, "").runs()


def test_a_process_that_ends(made: Link) -> None:
    child = subprocess.Popen(SLEEPER, stdout=subprocess.PIPE)
    child.stdout.readline()
    made._others = [seen(child.pid)]
    made._look()
    assert made._others[0].runs()
    child.kill()
    begin = time.monotonic()
    with pytest.raises(DistbfsError, match="rank 1 ended in a level"):
        made.wait(Never())  # a zombie, as nobody has asked how it ended
    assert time.monotonic() - begin < 60
    assert made.broken
    child.wait()
    assert not made._others[0].runs()
    child.stdout.close()


def test_an_error_of_nccl(made: Link) -> None:
    made.ends[0].comm.failing = "NCCL_ERROR_SYSTEM_ERROR: remote"
    with pytest.raises(DistbfsError, match="NCCL failed between the ranks: NCCL_ERR"):
        made.wait(Never())
    assert made.broken


def test_a_connection_that_fails(made: Link, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise RuntimeError("NCCL_ERROR_INVALID_USAGE: invalid usage")

    nccl = link.load_nccl()
    monkeypatch.setattr(nccl, "NcclCommunicator", fail)
    with pytest.raises(
        LaunchError, match=r"does not connect 1 devices.*--exchange host"
    ):
        link.link_of(SoloWorld())
