"""Shares the graphs of tests/gpu, and lends a CPU as the device."""

import sys
from importlib import import_module
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "gpu"))
sys.path.append(str(Path(__file__).parent))

from cuda_modules import every_module
from emulated_device import EmulatedDevice, Kernels, compiler
from thread_peers import ThreadPeers

from distbfs.engines.cuda.common import graph_engine, host_loop
from distbfs.generate import cuda as device_tuples
from distbfs.registry import EXCHANGES
from distbfs.search import choose as choosing
from distbfs.search import device_opening, domain_group

for name in every_module():  # or what is imported late keeps names that tests replace
    import_module(name)


@pytest.fixture(scope="session")
def kernels():
    """Compiled kernels, of full blocks or not, kept for the session."""
    if compiler() is None:
        pytest.skip("no C++ compiler")
    return {full: Kernels(small=not full) for full in (False, True)}


@pytest.fixture(params=[32, 64], ids=["ids of 32 bits", "ids of 64 bits"])
def id_bits(request, monkeypatch):
    """Bits of ids on devices, also of graphs that are small."""
    if request.param == 64:
        monkeypatch.setattr(device_tuples, "NARROW", 1)
    return request.param


def full_blocks(item):
    """Return whether a mark ``full_blocks`` is for this case, whose values it names."""
    values = item.callspec.params.items() if hasattr(item, "callspec") else {}.items()
    marks = item.iter_markers("full_blocks")
    return any(mark.kwargs.items() <= values for mark in marks)


@pytest.fixture
def device(kernels, monkeypatch, request):
    """Put the emulator in the place of CUDA; its fields say what the device has."""
    found = EmulatedDevice(kernels[full_blocks(request.node)])
    found.install(monkeypatch)
    # blocks that do not meet: the CPU switches to each of their threads, and one on
    # each of two multiprocessors sees as much
    for module in (graph_engine, host_loop):
        monkeypatch.setattr(module, "BLOCKS", 1)
    yield found
    found.check("the end")


@pytest.fixture
def peers(device, monkeypatch):
    """Devices of many searches whose ranks are threads."""
    monkeypatch.setattr(domain_group, "PeerGroup", ThreadPeers)


@pytest.fixture
def ranks(device, peers, monkeypatch):
    """Return a function that makes a rank one of a host with so many devices.

    Its exchange is a stand-in, the class that is named.
    """

    def problem(world, _):
        return "other hosts" if len(set(world.hosts)) > 1 else ""

    def taken(world, **_):
        return [0] * world.counts[world.rank]

    monkeypatch.setattr(choosing, "take_devices", taken)
    monkeypatch.setattr("distbfs.exchange.peer_memory.peer_problem", problem)
    monkeypatch.setattr(
        "distbfs.exchange.nccl_link.nccl_problem", lambda *_: "no NCCL here"
    )
    monkeypatch.setattr(device_opening, "PeerGroup", ThreadPeers)
    monkeypatch.setattr(domain_group, "PeerGroup", ThreadPeers)

    def on_host(world, names, counts, kind):
        exchange = f"{kind.__module__}:{kind.__name__}"
        monkeypatch.setitem(EXCHANGES, "host", exchange)
        world.hosts, world.counts = list(names), counts
        device.one_rank, device.of_rank.devices = max(counts) > 1, counts[world.rank]
        return world

    return on_host
