"""Copies between devices of different ranks, with a stand-in for NCCL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import device_stand_in
import numpy as np
import pytest

from distbfs.device import cuda
from distbfs.errors import DeviceMissing
from distbfs.exchange import nccl_link
from distbfs.exchange.nccl_link import LEAST_FREE, Copy, link_between

if TYPE_CHECKING:
    from distbfs.ranks.world import Ranks

MOVES = 12


def install(world: Ranks, monkeypatch: pytest.MonkeyPatch, uuid: int = -1) -> Any:
    """Lend each rank a device of its own, or the one of that number."""
    comm = world.comm.Dup() if world.size > 1 else None
    uuid = world.rank if uuid < 0 else uuid
    cp = device_stand_in.install(monkeypatch, comm, uuid)
    monkeypatch.setattr(cuda, "free_bytes", lambda: LEAST_FREE)
    monkeypatch.setattr(cuda, "release", lambda: None)
    return cp


def planned(random: np.random.Generator, each: int, ranks: int) -> list[Any]:
    """Return (source, targets, values) of some copies, the same on all ranks."""
    of_rank = np.repeat(range(ranks), each)
    copies = []
    for _ in range(random.integers(0, 9)):
        source = int(random.integers(len(of_rank)))
        others = np.flatnonzero(of_rank != of_rank[source])
        targets = others[random.random(len(others)) < 0.6].tolist()
        dtype = random.choice([np.uint32, np.int64])
        size = random.choice([0, 1, 63, 64, 65, 300, 1000])
        copies.append(
            (source, targets, random.integers(0, 1 << 31, size).astype(dtype))
        )
    return copies


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("each", [1, 2])
def test_what_arrives(world: Ranks, monkeypatch: pytest.MonkeyPatch, each: int) -> None:
    """Many moves, to one device or several, in their order."""
    cp = install(world, monkeypatch)
    link = nccl_link.link_of(world, range(each))
    own = range(each * world.rank, each * (world.rank + 1))
    random = np.random.default_rng(5)  # the same on all ranks
    for _ in range(MOVES):
        moved, wanted = [], []
        for source, targets, values in planned(random, each, world.size):
            array = cp.asarray(values) if source in own else None
            into = {x: cp.empty(values.size, values.dtype) for x in targets if x in own}
            wanted += [(space, values) for space in into.values()]
            moved.append(Copy(source, targets, array, into))
        cp.cuda.get_current_stream().synchronize()
        link.copy(moved)
        for space, values in wanted:
            np.testing.assert_array_equal(space.values, values)  # nothing is late


def chosen(world: Ranks, devices: tuple[int, ...] = (0,)) -> str:
    """Return the kind of communicator that all ranks choose."""
    names = [type(link_between(world, devices)).__name__] * world.size
    for rank in range(world.size):
        assert world.broadcast(names[rank], rank) == names[rank]
    return names[0]


def test_the_choice(world: Ranks, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is one between several ranks, all of which have NCCL and devices."""
    install(world, monkeypatch)
    several = world.size > 1
    assert chosen(world) == ("Link" if several else "NoneType")
    assert chosen(world, (0,) * (world.rank == 0)) == "NoneType"
    load = nccl_link.load_nccl

    def missing() -> Any:
        if world.rank == world.size - 1:
            raise DeviceMissing("no NCCL")
        return load()

    monkeypatch.setattr(nccl_link, "load_nccl", missing)
    assert chosen(world) == "NoneType"


@pytest.mark.mpi(min_size=2)
def test_one_rank_short_of_memory_is_enough(
    world: Ranks, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(world, monkeypatch)
    if world.rank == 1:
        monkeypatch.setattr(cuda, "free_bytes", lambda: LEAST_FREE - 1)
    assert chosen(world) == "NoneType"


@pytest.mark.mpi(min_size=2)
def test_shared_devices(world: Ranks, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two ranks have the same one, which NCCL refuses."""
    install(world, monkeypatch, uuid=max(world.rank, 1))
    assert chosen(world) == "NoneType"
