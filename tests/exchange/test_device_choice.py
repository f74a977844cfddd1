"""Which device each rank takes, with devices that are only told of."""

import threading
from types import SimpleNamespace

import pytest
from worlds import on_ranks

from distbfs.device import cuda
from distbfs.errors import LaunchError
from distbfs.exchange.device_choice import take_devices


@pytest.fixture
def host(monkeypatch):
    """Hosts with ``count`` visible devices; what each rank has made current."""
    state = SimpleNamespace(count=4, current=threading.local(), name=threading.local())

    def use(index):
        state.current.index = index

    device = SimpleNamespace(
        cuda=SimpleNamespace(
            runtime=SimpleNamespace(getDeviceCount=lambda: state.count),
            Device=lambda index: SimpleNamespace(use=lambda: use(index)),
        )
    )
    monkeypatch.setattr(cuda, "cupy", lambda: device)
    monkeypatch.setattr(
        cuda, "uuids", lambda: [f"GPU-{state.name.host}-{state.current.index}"]
    )
    return state


def taken(host, hosts, *, share=False):
    def work(world):
        world.hosts = hosts
        host.name.host = hosts[world.rank]
        return take_devices(world, share=share)

    return on_ranks(len(hosts), work)


def test_by_the_place_on_the_host(host):
    assert taken(host, ["a", "a", "a", "a"]) == [[0], [1], [2], [3]]
    assert taken(host, ["a", "b", "a", "b", "b"]) == [[0, 1], [0], [2, 3], [1], [2]]
    assert taken(host, ["a"]) == [[0, 1, 2, 3]]


def test_more_ranks_than_devices(host):
    host.count = 2
    with pytest.raises(
        LaunchError, match=r"ranks 0 and 2 use the same device, GPU-a-0"
    ):
        taken(host, ["a", "a", "a"])
    assert taken(host, ["a", "a", "a"], share=True) == [[0], [1], [0]]


def test_one_visible_device_each(host, monkeypatch):
    """As where a launcher shows each rank a device of its own."""
    host.count = 1
    names = threading.local()
    monkeypatch.setattr(cuda, "uuids", lambda: [f"GPU-{names.rank}"])

    def work(world):
        world.hosts, names.rank = ["a"] * 3, world.rank
        return take_devices(world, share=False)

    assert on_ranks(3, work) == [[0], [0], [0]]
