"""Searches of parts by several ranks and devices, and ranks that are lost in them."""

import sys
from pathlib import Path

import pytest
from launching import needs_mpi, run_ranks

from distbfs.device import cuda
from distbfs.device.nvshmem import nvshmem
from distbfs.errors import DeviceMissing, LaunchError, RanksStuck

RANKS = [sys.executable, str(Path(__file__).with_name("searching_ranks.py"))]
LIMIT = 10.0
START = 200.0  # kernels may be compiled by all tests at once
SHARED = ("host", "first")  # what ranks that share one device have
WAITING = ("nccl", "domain", "pairs")  # devices wait for each other
WHY = {
    "domain": "devices map each other's memory",
    "first": "one device searches alone, as",
    "pairs": "exchange is for searches between domains",
}


def devices():
    return cuda.cupy().cuda.runtime.getDeviceCount()


def need_devices(count):
    if devices() < count:
        pytest.skip(f"needs {count} devices, here are {devices()}")


@pytest.mark.alone
def test_one_process_with_all_devices():
    done = run_ranks(1, [*RANKS, "check", "auto"], timeout=280)
    assert done.returncode == 0, done.stderr
    assert "auto is right" in done.stdout


def check_ways(ranks, what, ways):
    """Run ranks once for several ways; each says that it is right, and why it is so."""
    done = run_ranks(ranks, [*RANKS, what, *ways], timeout=290)
    assert done.returncode == 0, done.stderr
    for how in ways:
        assert f"{how} is right" in done.stdout
        if how in WHY and ranks > 1:
            assert WHY[how] in done.stdout


@pytest.mark.alone
def test_one_process_with_a_part_on_every_device():
    need_devices(2)
    check_ways(1, "brief", ["auto", "domain", "first", "pairs", "streams"])


@needs_mpi
@pytest.mark.slow
def test_levels_and_parents_of_ranks_that_may_share_a_device():
    """By the host, or by the device of rank 0."""
    check_ways(2, "check", SHARED)


@needs_mpi
@pytest.mark.alone
def test_levels_and_parents():
    """Two devices are one domain, also if domains of two are requested."""
    need_devices(2)
    check_ways(min(devices(), 4), "check", WAITING[: max(devices(), 2)])


@needs_mpi
@pytest.mark.unshared
@pytest.mark.slow
def test_levels_and_parents_by_nvshmem():
    """Which does not begin under MPS."""
    need_devices(2)
    check_ways(min(devices(), 4), "check", ["nvshmem"])


@needs_mpi
@pytest.mark.unshared
@pytest.mark.slow
@pytest.mark.parametrize("ranks", [3, 4])
def test_domains_of_two_devices_in_one_launch(ranks):
    """The last of three has one device. NVSHMEM wants a device for each rank."""
    need_devices(ranks)
    try:
        nvshmem()
    except DeviceMissing as error:
        pytest.skip(str(error))
    done = run_ranks(ranks, [*RANKS, "check", "launched"], timeout=290)
    assert done.returncode == 0, done.stderr
    assert "launched is right" in done.stdout
    assert "exchange nvshmem as requested" in done.stdout
    assert "levels by NCCL" not in done.stdout


@pytest.mark.alone
@pytest.mark.parametrize("ranks", [1, pytest.param(3, marks=needs_mpi)])
def test_domains_of_two_devices_and_one(ranks):
    """Of one process; and of ranks that are on two hosts by their names."""
    need_devices(3)
    done = run_ranks(ranks, [*RANKS, "check", "uneven"], timeout=290)
    assert done.returncode == 0, done.stderr
    assert "uneven is right" in done.stdout
    assert "1 domain of 2 devices and 1 of one device" in done.stdout


@needs_mpi
@pytest.mark.alone
def test_ranks_of_two_devices():
    need_devices(4)
    check_ways(2, "check", ["streams", "streamed pairs"])


@needs_mpi
@pytest.mark.alone
def test_auto():
    """Devices that map each other's memory have nvshmem, where it begins."""
    done = run_ranks(2, [*RANKS, "brief", "auto"], timeout=280)
    assert done.returncode == 0, done.stderr
    said = {line for line in done.stdout.splitlines() if line.startswith("random ")}
    exchanges = ("nccl", "nvshmem") if devices() > 1 else ("host",)
    assert said <= {f"random 1 auto {name}" for name in exchanges}
    assert said


@needs_mpi
@pytest.mark.alone
def test_a_domain_of_one_device_twice_is_refused():
    if devices() > 1:
        pytest.skip("the ranks have a device each")
    done = run_ranks(2, [*RANKS, "brief", "domain"], timeout=60)
    assert done.returncode == LaunchError.exit_code, done.stderr
    assert "domain is 2, but rank 0: several parts are on one device" in done.said


@needs_mpi
@pytest.mark.unshared
@pytest.mark.parametrize(
    "how",
    [
        "nccl",
        pytest.param("nvshmem", marks=pytest.mark.slow),
        "host",
        "domain",
        "first",
    ],
)
def test_a_killed_rank_ends_all(how):
    need_devices(1 if how in SHARED else 2)
    done = run_ranks(2, [*RANKS, "kill", how], timeout=START)
    assert "searching" in done.stdout
    assert done.returncode != 0
    assert done.seconds_after_loss < LIMIT + 10


@needs_mpi
@pytest.mark.unshared
@pytest.mark.parametrize(
    "how", ["nccl", pytest.param("nvshmem", marks=pytest.mark.slow), "host", "domain"]
)
def test_a_stalled_rank_ends_all(how):
    need_devices(1 if how in SHARED else 2)
    done = run_ranks(2, [*RANKS, "stall", how], timeout=START)
    assert "searching" in done.stdout
    assert done.returncode == RanksStuck.exit_code, done.stderr
    assert "rank 1 has given no sign of life" in done.stderr
    assert done.seconds_after_loss < LIMIT + 10


@needs_mpi
@pytest.mark.unshared
def test_a_full_device_ends_all():
    need_devices(2)
    done = run_ranks(2, [*RANKS, "memory", "nccl"], timeout=START)
    assert done.returncode == 3, done.stderr
    assert "rank 1" in done.stderr
    assert done.seconds_after_loss < LIMIT + 10
