"""Searches of parts by several ranks and devices, and ranks that are lost in them."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "faults"))

from launching import needs_mpi, run_ranks

from distbfs.device import cuda

RANKS = [sys.executable, str(Path(__file__).with_name("searching_ranks.py"))]
LIMIT = 10.0


def devices():
    return cuda.cupy().cuda.runtime.getDeviceCount()


def need_devices(count):
    if devices() < count:
        pytest.skip(f"needs {count} devices, here are {devices()}")


def test_one_process_with_all_devices():
    done = run_ranks(1, [*RANKS, "check", "auto"], timeout=280)
    assert done.returncode == 0, done.stderr
    assert "auto is right" in done.stdout


@pytest.mark.parametrize("exchange", ["auto", "resident"])
def test_one_process_with_a_part_on_every_device(exchange):
    need_devices(2)
    done = run_ranks(1, [*RANKS, "brief", exchange], timeout=280)
    assert done.returncode == 0, done.stderr
    assert f"{exchange} is right" in done.stdout


@needs_mpi
@pytest.mark.parametrize("exchange", ["auto", "nccl", "host", "resident"])
def test_levels_and_parents(exchange):
    ranks = min(devices(), 4) if exchange != "host" else 2
    if exchange != "host":
        need_devices(2)
    done = run_ranks(ranks, [*RANKS, "check", exchange], timeout=290)
    assert done.returncode == 0, done.stderr
    assert f"{exchange} is right" in done.stdout


@needs_mpi
@pytest.mark.parametrize("exchange", ["nccl", "host", "resident"])
def test_a_killed_rank_ends_all(exchange):
    need_devices(1 if exchange == "host" else 2)
    done = run_ranks(2, [*RANKS, "kill", exchange], timeout=60)
    assert "searching" in done.stdout
    assert done.returncode != 0
    assert done.seconds < LIMIT + 20  # the ranks start, build and search for a second


@needs_mpi
def test_a_full_device_ends_all():
    need_devices(2)
    done = run_ranks(2, [*RANKS, "memory", "nccl"], timeout=60)
    assert done.returncode == 3, done.stderr
    assert "rank 1" in done.stderr
    assert done.seconds < LIMIT + 20
