"""Copies between devices of different ranks, with a stand-in for CUDA IPC."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import device_stand_in
import numpy as np
import pytest

from distbfs.device import cuda
from distbfs.errors import ResourceError
from distbfs.exchange import device_copies as module
from distbfs.exchange import peer_memory as peers
from distbfs.exchange.device_copies import (
    ALIGNED,
    Copy,
    MailboxCopies,
    copies_between,
    schedule,
)

if TYPE_CHECKING:
    from distbfs.ranks.world import Ranks

MOVES = 12


def install(world: Ranks, monkeypatch: pytest.MonkeyPatch, uuid: int = -1) -> Any:
    """Lend each rank a device of its own, or the one of that number."""
    comm = world.comm.Dup() if world.size > 1 else None
    uuid = world.rank if uuid < 0 else uuid
    cp = device_stand_in.install(monkeypatch, comm, uuid)
    monkeypatch.setattr(cuda, "free_bytes", lambda: 1 << 30)
    return cp


def planned(random: np.random.Generator, counts: list[int]) -> list[tuple[Any, ...]]:
    """Return (source, targets, values) of some copies, the same on all ranks."""
    ranks = np.repeat(range(len(counts)), counts)
    copies = []
    for _ in range(random.integers(0, 9)):
        source = int(random.integers(len(ranks)))
        others = np.flatnonzero(ranks != ranks[source])
        targets = others[random.random(len(others)) < 0.6].tolist()
        dtype = random.choice([np.uint32, np.int64])
        size = random.choice([0, 1, 63, 64, 65, 300, 1000])
        copies.append(
            (source, targets, random.integers(0, 1 << 31, size).astype(dtype))
        )
    return copies


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("uneven", [False, True])
def test_what_arrives(
    world: Ranks, monkeypatch: pytest.MonkeyPatch, uneven: bool
) -> None:
    """Many moves, of arrays shorter and longer than a mailbox, to one or several."""
    cp = install(world, monkeypatch)
    counts = [1 + (uneven and rank % 2) for rank in range(world.size)]
    devices = list(range(counts[world.rank]))
    copies = MailboxCopies(world, devices, counts, 4 * ALIGNED)
    own = range(sum(counts[: world.rank]), sum(counts[: world.rank + 1]))
    random = np.random.default_rng(5)  # the same on all ranks
    for _ in range(MOVES):
        moved, wanted = [], []
        for source, targets, values in planned(random, counts):
            array = cp.asarray(values) if source in own else None
            into = {x: cp.empty(values.size, values.dtype) for x in targets if x in own}
            wanted += [(space, values) for space in into.values()]
            moved.append(Copy(source, targets, values.nbytes, array, into))
        cp.cuda.get_current_stream().synchronize()
        copies.move(moved)
        for space, values in wanted:
            np.testing.assert_array_equal(space.values, values)  # nothing is late
    copies.close()


def test_rounds() -> None:
    """All bytes once, in order; sources do not wait for each other's rounds."""
    copies = [Copy(k % 3, [3], n) for k, n in enumerate((5000, 0, 1, 700, 256, 4095))]
    rounds = schedule(copies, 1024)
    assert len(rounds) == 6  # 5000 bytes and 700
    for copy in copies:
        pieces = [x for some in rounds for x in some if x.copy is copy]
        ends = np.cumsum([0, *(x.nbytes for x in pieces)])
        assert [x.start for x in pieces] == ends[:-1].tolist()
        assert ends[-1] == copy.nbytes
    for pieces in rounds:
        for source in range(3):
            end = 0
            for piece in [x for x in pieces if x.copy.source == source]:
                assert piece.place >= end
                assert piece.place % ALIGNED == 0
                end = piece.place + piece.nbytes
            assert end <= 1024


def chosen(world: Ranks) -> str:
    """Return the kind of copies that all ranks choose."""
    copies = copies_between(world, [0], 1000)
    names = [type(copies).__name__] * world.size
    for rank in range(world.size):
        assert world.broadcast(names[rank], rank) == names[rank]
    if copies is not None:
        copies.close()
    return names[0]


def test_the_choice(world: Ranks, monkeypatch: pytest.MonkeyPatch) -> None:
    install(world, monkeypatch)
    several = world.size > 1
    assert chosen(world) == ("MailboxCopies" if several else "NoneType")
    far = "no peer access" if world.rank == world.size - 1 else ""
    monkeypatch.setattr(peers, "access_problem", lambda devices: far)
    assert chosen(world) == "NoneType"


@pytest.mark.mpi(min_size=2)
def test_one_rank_short_of_memory_is_enough(
    world: Ranks, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(module.PeerGroup):
        def share(self, sizes: list[int], what: str) -> None:
            raise ResourceError("no memory")  # on all ranks

    install(world, monkeypatch)
    if world.rank == 1:
        monkeypatch.setattr(cuda, "free_bytes", lambda: 2 * 1024 * 63)
    assert chosen(world) == "NoneType"
    monkeypatch.setattr(cuda, "free_bytes", lambda: 2 * 1024 * 64)
    assert chosen(world) == "MailboxCopies"
    monkeypatch.setattr(module, "PeerGroup", Full)
    assert chosen(world) == "NoneType"


@pytest.mark.mpi(min_size=2)
def test_shared_devices(world: Ranks, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two ranks have the same one: it has no two mailboxes."""
    install(world, monkeypatch, uuid=max(world.rank, 1))
    assert chosen(world) == "NoneType"
