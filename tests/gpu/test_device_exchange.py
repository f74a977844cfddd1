"""Exchanges of device arrays: in this process, and between ranks under mpiexec."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).resolve().parent))

from exchange_ranks import check
from launching import is_open_mpi, needs_mpi, run_ranks

from distbfs.device import cuda, programs
from distbfs.errors import LaunchError
from distbfs.exchange import nccl
from distbfs.ranks.world import SoloWorld
from distbfs.search.domains import choose_exchange

RANKS = [sys.executable, str(Path(__file__).with_name("exchange_ranks.py"))]
LIMIT = 10.0


def devices():
    return cuda.cupy().cuda.runtime.getDeviceCount()


def need_devices(count):
    if devices() < count:
        pytest.skip(f"needs {count} devices, here are {devices()}")


def ranks_of_all():
    """How many ranks have a device of their own; at least 2."""
    need_devices(2)
    return min(devices(), 4)


@pytest.mark.parametrize("per_rank", [1, 3])
@pytest.mark.parametrize("name", ["host", "nccl"])
def test_one_process(name, per_rank):
    check(SoloWorld(), f"{name}-device", per_rank)


def test_nccl_slices_with_one_rank(monkeypatch):
    monkeypatch.setattr(nccl, "sliced", lambda words, ranks: True)
    check(SoloWorld(), "nccl-device", 2)


@pytest.mark.parametrize(("count", "words"), [(1, 1), (2, 300), (7, 100_003)])
def test_or_of_rows(count, words):
    cp = cuda.cupy()
    stride = words + 5
    generator = np.random.default_rng(words)
    rows = generator.integers(0, 1 << 63, (count, stride), np.uint64)
    out = cp.zeros(words + 1, np.uint64)
    numbers = (np.uint64(x) for x in (count, stride, words))
    programs.Module(nccl.REDUCE).kernel("or_rows")(
        3, 256, cp.asarray(rows), *numbers, out
    )
    np.testing.assert_array_equal(out.get()[:words], np.bitwise_or.reduce(rows)[:words])
    assert out.get()[words] == 0


def test_auto_in_one_process():
    assert choose_exchange(SoloWorld(), "auto", [0]) == ("host", "one rank")


@needs_mpi
def test_host_with_two_ranks_on_one_device_or_more():
    done = run_ranks(2, [*RANKS, "check", "host-device"], timeout=200)
    assert done.returncode == 0, done.stderr
    assert "host-device is right" in done.stdout


@pytest.mark.alone
@needs_mpi
def test_nccl_between_devices():
    ranks = ranks_of_all()
    done = run_ranks(ranks, [*RANKS, "check", "nccl-device"], timeout=280)
    assert done.returncode == 0, done.stderr
    assert "nccl-device is right" in done.stdout


@pytest.mark.alone
@needs_mpi
def test_cuda_aware_works_or_is_refused():
    done = run_ranks(2, [*RANKS, "same", "cuda_aware-device"], timeout=60)
    if done.returncode == 0:
        done = run_ranks(2, [*RANKS, "check", "cuda_aware-device"], timeout=200)
        assert done.returncode == 0, done.stderr
    else:
        assert done.returncode == LaunchError.exit_code
        assert "does not report that it takes device pointers" in done.stderr
        assert "--exchange host" in done.stderr


@needs_mpi
def test_nccl_refuses_a_device_that_two_ranks_share():
    done = run_ranks(2, [*RANKS, "same", "nccl-device"], timeout=60)
    assert done.returncode == LaunchError.exit_code, done.stderr
    for line in done.said.splitlines():  # of the rank that is first, or of both
        assert "ranks 0 and 1 use the same device" in line


@needs_mpi
def test_auto_between_ranks():
    done = run_ranks(2, [*RANKS, "choose"], timeout=60)
    assert done.returncode == 0, done.stderr
    wanted = "nccl: exchange nccl: no two ranks share a device"
    if devices() < 2:
        wanted = "host: exchange host: ranks 0 and 1 use the same device"
    assert done.stdout.startswith(wanted)


@pytest.mark.unshared
@needs_mpi
@pytest.mark.parametrize("what", ["kill", "raise"])
@pytest.mark.parametrize("kind", ["nccl-device", "host-device"])
def test_a_lost_rank_ends_all(kind, what):
    if kind == "nccl-device":
        need_devices(2)
    done = run_ranks(2, [*RANKS, what, kind], timeout=60)
    assert done.returncode != 0
    assert done.seconds_after_loss < LIMIT + 10
    if what == "raise":
        assert done.returncode == 2
        assert "distbfs: rank 1: this rank fails" in done.stderr


@pytest.mark.unshared
@needs_mpi
def test_nccl_itself_sees_that_a_rank_is_gone():
    """Also where the launcher ends nobody."""
    need_devices(2)
    if is_open_mpi():
        pytest.skip("mpirun of Open MPI always ends the other ranks")
    alone = ["-disable-auto-cleanup", *RANKS, "kill", "nccl-device"]
    done = run_ranks(2, alone, timeout=60)
    assert done.seconds_after_loss < LIMIT + 10
    assert "rank 1 ended in a level" in done.stderr
