"""Data exchange between the devices of a validation, of one rank or several.

Devices of a rank read each other's memory; ranks exchange data by MPI through the host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from distbfs.device import cuda
from distbfs.types import Array
from distbfs.validation.cuda_device import CheckingDevice, host_copy, near

if TYPE_CHECKING:
    from distbfs.types import World

SPREAD = 1 << 24  # words of a part sent to the others at a time

Value = TypeVar("Value")


class Devices:
    """All devices of a validation; those of this rank run concurrently.

    own: of this rank; counts: number on each rank
    """

    def __init__(
        self, world: World, own: Sequence[CheckingDevice], counts: Sequence[int]
    ) -> None:
        self.world, self.own, self.total = world, own, sum(counts)
        ends = np.cumsum(counts).tolist()
        self._of_rank = [range(b - k, b) for k, b in zip(counts, ends, strict=True)]
        self._pool = ThreadPoolExecutor(max(len(own), 1))

    def close(self) -> None:
        """End the threads of devices, and their iteration over pieces."""
        self._pool.shutdown()
        for device in self.own:
            device.close()

    def each(
        self, work: Callable[..., Value], *arguments: Sequence[Any]
    ) -> list[Value]:
        """Return work(device) of each device of this rank, called with it current.

        arguments: more for ``work``, one of each for each device
        """

        def run(device: CheckingDevice, *more: Any) -> Value:
            with device.seat.on(), cuda.memory_of("validation"):
                if len(self.own) > 1:
                    cuda.use_current()
                return work(device, *more)

        if len(self.own) < 2:
            return list(map(run, self.own, *arguments))
        return list(self._pool.map(run, self.own, *arguments))

    def most(self, work: Callable[[CheckingDevice], int]) -> int:
        """Return the maximum of work(device) over all devices (collective)."""
        values = np.array([max(self.each(work), default=-1)], dtype=np.int64)
        return int(self.world.allreduce(values, "max")[0])

    def seats(self, parts: int) -> Array:
        """Return the device of each part, uint32 [parts] (collective)."""
        mine = [(x.index, d.own) for d in self.own for x in d.seat.shards]
        pairs = np.array(mine, dtype=np.int64).reshape(-1)
        every = np.concatenate(self.world.allgather(pairs)).reshape(-1, 2)
        seats = np.zeros(parts, dtype=np.uint32)
        seats[every[:, 0]] = every[:, 1]
        return seats

    def spread(self, seats: Array, words: int) -> None:
        """Copy ``words`` words of each part's states to all devices (collective)."""
        for parts in self._in_turn(seats):
            for start in range(0, words, SPREAD):
                self._spread_piece(seats, parts, slice(start, start + SPREAD))

    def gather_marks(self, words: int) -> None:
        """Add to the states of own parts the marks of the rank's other devices.

        words: of the states of a part; all devices have the same but for the marks
        """

        def wait(_: CheckingDevice) -> None:
            cuda.cupy().cuda.get_current_stream().synchronize()

        def take(device: CheckingDevice) -> None:
            others = [x.states for x in self.own if x is not device]
            own = [x.index for x in device.seat.shards]
            for start in range(0, words, SPREAD):
                piece = slice(start, start + SPREAD)
                for part, states in product(own, others):
                    marked = device.states[part][piece]
                    marked |= near(states[part][piece])

        self.each(wait)
        self.each(take)

    def _in_turn(self, seats: Array) -> Iterator[list[int]]:
        """Yield a part of each rank, -1 for ranks without more."""
        ranks = np.repeat(range(self.world.size), [len(x) for x in self._of_rank])
        of_rank = [np.flatnonzero(ranks[seats] == r) for r in range(self.world.size)]
        for turn in range(max(map(len, of_rank))):
            yield [int(some[turn]) if turn < len(some) else -1 for some in of_rank]

    def _spread_piece(self, seats: Array, parts: Sequence[int], piece: slice) -> None:
        world, here = self.world, parts[self.world.rank]
        holder = [x for x in self.own if here >= 0 and x.own == seats[here]]
        states = [x.states[here][piece] for x in holder]
        of_part = {here: states[0]} if states else {}
        if world.size > 1:
            gathered = world.allgather(self._joined(states, np.dtype(np.uint32)))
            of_part = {**dict(zip(parts, gathered, strict=True)), **of_part}

        def take(device: CheckingDevice) -> None:
            for part, some in of_part.items():
                if part >= 0 and seats[part] != device.own:
                    device.states[part][piece] = near(some)
            cuda.cupy().cuda.get_current_stream().synchronize()

        self.each(take)

    def exchange(
        self, sent: Sequence[Sequence[Any]], kind: np.dtype[Any]
    ) -> list[list[Any]]:
        """Exchange arrays between all devices; return those received (collective).

        sent: from each device of this rank to each device, arrays [k] of dtype
        ``kind``; arrays of the same rank stay where they are, others arrive in host
        memory
        """
        world, mine = self.world, self._of_rank[self.world.rank]
        came: list[list[Any]] = [[None] * self.total for _ in mine]
        for source, some in zip(mine, sent, strict=True):
            for target, to in zip(came, mine, strict=True):
                target[source] = some[to]
        if world.size == 1:
            return came
        others = [() if there is mine else there for there in self._of_rank]
        leaving = [[some[to] for some in sent for to in there] for there in others]
        counts = [np.array([len(x) for x in some], dtype=np.int64) for some in leaving]
        counts = world.alltoall(counts)
        flat = world.alltoall([self._joined(some, kind) for some in leaving])
        for rank, sources in enumerate(others):
            ends = np.cumsum(counts[rank]).tolist()
            pieces = iter(np.split(flat[rank], ends[:-1]))
            for source in sources:
                for target in came:
                    target[source] = next(pieces)
        return came

    def _joined(self, arrays: Sequence[Any], kind: np.dtype[Any]) -> Array:
        """Concatenate arrays of this rank's devices in host memory."""
        return np.concatenate([np.zeros(0, kind), *(host_copy(x) for x in arrays)])
