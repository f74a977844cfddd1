"""Copies between devices of different ranks that do not pass through host memory.

Each device has a mailbox, which is memory that all ranks map (``peer_memory``): the
source writes to its mailbox, and its targets read it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from distbfs.device import cuda
from distbfs.errors import ResourceError
from distbfs.exchange.peer_memory import (
    DEFAULT_KIND,
    PeerGroup,
    on_device,
    peer_problem,
)
from distbfs.partition.layout import in_turn

if TYPE_CHECKING:
    from distbfs.types import World

HALF_BYTES = 64 << 20  # of a mailbox: one half is read while the other is written
FREE_SHARE = 64  # a mailbox takes one part of so many of the free memory at most
ALIGNED = 256  # bytes


@dataclass(frozen=True)
class Copy:
    """One array that devices of other ranks receive.

    Devices are numbered over all ranks, those of rank 0 first. ``source``, ``targets``
    and ``nbytes`` are the same on all ranks.

    values: contiguous device array of nbytes, None except on the source's rank
    into: arrays of the same size to fill, one for each target on this rank, by its
    number
    """

    source: int
    targets: Sequence[int]
    nbytes: int
    values: Any = None
    into: Mapping[int, Any] = field(default_factory=dict)


class Piece(NamedTuple):
    """Bytes ``start`` … ``start + nbytes - 1`` of a copy, placed in half a mailbox."""

    copy: Copy
    start: int
    nbytes: int
    place: int


def schedule(copies: Sequence[Copy], half: int) -> list[list[Piece]]:
    """Return the pieces of each round: as many as fit in half of each mailbox.

    half: bytes of half a mailbox, a multiple of ALIGNED
    """
    ends: Counter[int] = Counter()  # bytes of each source so far, over all rounds
    rounds: list[list[Piece]] = []
    for copy in copies:
        start = 0
        while start < copy.nbytes:
            turn, place = divmod(ends[copy.source], half)
            nbytes = min(copy.nbytes - start, half - place)
            rounds.extend([] for _ in range(turn + 1 - len(rounds)))
            rounds[turn].append(Piece(copy, start, nbytes, place))
            ends[copy.source] += aligned(nbytes)
            start += nbytes
    return rounds


def aligned(nbytes: int) -> int:
    """Round up to a multiple of ALIGNED."""
    return -(-nbytes // ALIGNED) * ALIGNED


class MailboxCopies:
    """Copies through mailboxes; methods and creation are collective.

    devices: the devices of this rank; counts: number of devices of each rank
    half: bytes of half a mailbox

    On all ranks, raises ResourceError if memory runs out, LaunchError if it cannot be
    mapped.
    """

    def __init__(
        self, world: World, devices: Sequence[int], counts: Sequence[int], half: int
    ) -> None:
        self._world, self._half = world, half
        starts = [0, *accumulate(counts)]
        self._own = dict(enumerate(devices, starts[world.rank]))
        turns = in_turn(counts)
        # where in the tables of a ``PeerGroup`` each device stands
        self._rows = {starts[rank] + k: row for row, (rank, k) in enumerate(turns)}
        self._group = PeerGroup(world, devices)
        try:
            self._memory, tables = self._group.share(
                [2 * half] * len(devices), "mailboxes"
            )
        except ResourceError:
            self._group.close()
            raise
        self._tables = dict(zip(self._own, tables, strict=True))
        self._streams = {}
        for number, device in self._own.items():
            with on_device(device):
                self._streams[number] = cuda.cupy().cuda.Stream(non_blocking=True)
        self._turn = 0  # of rounds; the halves take turns

    def move(self, copies: Sequence[Copy]) -> None:
        """Carry out copies, listed in the same order on all ranks.

        The kernels that write ``values`` must have ended. When ``move`` returns, all
        targets of this rank have their arrays, and values of this rank may be changed.
        """
        for pieces in schedule(copies, self._half):
            base, self._turn = self._turn % 2 * self._half, self._turn + 1
            for copy, start, nbytes, place in pieces:
                if (source := copy.source) in self._own:
                    to = self._mailbox(source, source) + base + place
                    self._copy(source, to, address(copy.values) + start, nbytes)
            # Those who wait in the next round have read what they were to read in this
            # one, so that the round after it may write there again.
            self._wait()
            self._world.barrier()
            for copy, start, nbytes, place in pieces:
                for target in self._own.keys() & set(copy.targets):
                    at = self._mailbox(copy.source, target) + base + place
                    to = address(copy.into[target]) + start
                    self._copy(target, to, at, nbytes)
        self._wait()

    def _mailbox(self, of: int, device: int) -> int:
        """Return a mailbox's address as a device of this rank sees it."""
        return int(self._tables[device][self._rows[of]])

    def _copy(self, device: int, to: int, at: int, nbytes: int) -> None:
        """Start a copy on a device's stream."""
        runtime, stream = cuda.cupy().cuda.runtime, self._streams[device]
        with on_device(self._own[device]):
            runtime.memcpyAsync(to, at, nbytes, DEFAULT_KIND, stream.ptr)

    def _wait(self) -> None:
        for number, device in self._own.items():
            with on_device(device):
                self._streams[number].synchronize()

    def close(self) -> None:
        """Free the mailboxes (collective)."""
        self._group.close()  # waits until others have read
        self._memory.clear()


def address(array: Any) -> int:
    """Return the address of a device array."""
    return int(array.data.ptr)


def copies_between(
    world: World, devices: Sequence[int], most: int
) -> MailboxCopies | None:
    """Return a way to copy between the devices of all ranks; None if there is none.

    Collective; all ranks get the same kind. There is none on a single rank, if ranks
    share devices, if devices cannot map each other's memory, or if memory runs out.

    devices: the devices of this rank, each once
    most: the largest number of bytes that a device may have to send
    """
    if world.size == 1 or peer_problem(world, devices):
        return None
    counts = [int(x[0]) for x in world.allgather(np.array([len(devices)]))]
    half = min(aligned(most), HALF_BYTES)
    half = int(world.allreduce(np.array([half]), "max")[0])
    short = False
    for device in devices:
        with on_device(device):
            short |= 2 * half * FREE_SHARE > cuda.free_bytes()
    if world.allreduce(np.array([int(short)]), "max")[0] or not half:
        return None
    try:
        return MailboxCopies(world, devices, counts, half)
    except ResourceError:  # on all ranks
        return None
