"""Data exchange between the devices of a validation, of one rank or several.

Devices of a rank read each other's memory. Ranks exchange states, parents and marks by
``DeviceCopies`` where there are some, all else by MPI through the host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from distbfs.device import cuda
from distbfs.device.arrays import brought_here, host_array
from distbfs.exchange.device_copies import Copy
from distbfs.exchange.router import swap
from distbfs.types import Array
from distbfs.validation.cuda_device import CheckingDevice
from distbfs.validation.states import SPREAD

if TYPE_CHECKING:
    from distbfs.exchange.device_copies import DeviceCopies
    from distbfs.types import World

Value = TypeVar("Value")


def wait(_: CheckingDevice) -> None:
    """Wait for the pending work of the current device."""
    cuda.cupy().cuda.get_current_stream().synchronize()


class Devices:
    """All devices of a validation; those of this rank run concurrently.

    own: of this rank; counts: number on each rank
    seats: device of each part, uint32 [parts]
    copies: between devices of different ranks, on all ranks or on none
    """

    def __init__(
        self,
        world: World,
        own: Sequence[CheckingDevice],
        counts: Sequence[int],
        seats: Array,
        copies: DeviceCopies | None = None,
    ) -> None:
        self.world, self.own, self.total = world, own, sum(counts)
        self.seats, self._copies = seats, copies
        ends = np.cumsum(counts).tolist()
        self._of_rank = [range(b - k, b) for k, b in zip(counts, ends, strict=True)]
        self._ranks = np.repeat(range(world.size), counts)  # of each device
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
        return self.most_of(work)[0]

    def most_of(self, *works: Callable[[CheckingDevice], int]) -> list[int]:
        """Return the maximum of each function over all devices (collective)."""
        most = [max(self.each(work), default=-1) for work in works]
        values = np.array(most, dtype=np.int64)
        every: list[int] = self.world.allreduce(values, "max").tolist()
        return every

    @property
    def reachable(self) -> bool:
        """Whether the memory of all devices is copied without passing the host."""
        return self.world.size == 1 or self._copies is not None

    def spread(self, words: int) -> None:
        """Copy ``words`` words of each part's states to all devices (collective)."""
        for parts in self._in_turn(self._ranks[self.seats], self.world.size):
            for start in range(0, words, SPREAD):
                self._spread_piece(parts, slice(start, start + SPREAD))
        self._to_other_ranks([4 * words] * len(self.seats), lambda x: x.states)

    def spread_parents(self, nbytes: Sequence[int]) -> None:
        """Copy parents to the devices of other ranks (collective).

        nbytes: of each part, the same on all devices
        """
        self._to_other_ranks(nbytes, lambda x: x.parents)

    def _to_other_ranks(
        self, nbytes: Sequence[int], arrays_of: Callable[[CheckingDevice], Any]
    ) -> None:
        """Copy an array of each part to the same place of other ranks' devices.

        arrays_of: the arrays of a device, by part
        """
        if self._copies is None:
            return
        arrays = {device.own: arrays_of(device) for device in self.own}
        copies = []
        for part, source in enumerate(self.seats.tolist()):
            values = arrays[source][part] if source in arrays else None
            targets = self._of_others(source)
            into = {x: arrays[x][part] for x in targets if x in arrays}
            copies.append(Copy(source, targets, nbytes[part], values, into))
        self._move(copies)

    def _of_others(self, device: int) -> list[int]:
        """Return the devices of other ranks than that of a device."""
        others: list[int] = np.flatnonzero(self._ranks != self._ranks[device]).tolist()
        return others

    def _move(self, copies: Sequence[Copy]) -> None:
        """Carry out copies, after the pending work of the devices (collective)."""
        if self._copies is not None:
            self.each(wait)
            self._copies.move(copies)

    def gather_marks(self, words: int) -> None:
        """Add to the states of own parts the marks of all other devices (collective).

        words: of the states of a part; all devices have the same but for the marks
        """

        def take(device: CheckingDevice) -> None:
            others = [x.states for x in self.own if x is not device]
            own = [x.index for x in device.seat.shards]
            for start in range(0, words, SPREAD):
                piece = slice(start, start + SPREAD)
                for part, states in product(own, others):
                    marked = device.states[part][piece]
                    # mutant: |= -> &= : test_planted_faults
                    marked |= brought_here(states[part][piece])

        self.each(wait)
        self.each(take)
        if self._copies is None:
            return
        length = min(words, SPREAD)
        steps = max(SPREAD // max(words, 1), 1)  # devices that a device asks at once
        spaces = self.each(
            lambda _: cuda.cupy().empty((min(steps, self.total - 1), length), np.uint32)
        )
        for parts in self._in_turn(self.seats, self.total):
            for start in range(0, words, SPREAD):
                piece = slice(start, min(start + SPREAD, words))
                # mutant: self.total -> 2 : test_pieces_of_states
                for first in range(1, self.total, steps):
                    last = min(first + steps, self.total)
                    self._gather_piece(parts, piece, range(first, last), spaces)

    def _gather_piece(
        self,
        parts: Sequence[int],
        piece: slice,
        steps: Sequence[int],
        spaces: Sequence[Any],
    ) -> None:
        """Add the marks of a piece from the devices ``steps`` places before each.

        parts: of each device, -1: none; spaces: memory of those of this rank
        """
        own = {device.own: device for device in self.own}
        rows = dict(zip(own, spaces, strict=True))
        length = piece.stop - piece.start
        copies = []
        for target, part in enumerate(parts):
            for row, step in enumerate(steps):
                source = (target - step) % self.total
                if part < 0 or self._ranks[source] == self._ranks[target]:
                    continue
                values = own[source].states[part][piece] if source in own else None
                into = {target: rows[target][row][:length]} if target in own else {}
                copies.append(Copy(source, [target], 4 * length, values, into))
        self._move(copies)

        def take(device: CheckingDevice) -> None:
            for copy in copies:
                if device.own in copy.into:
                    marked = device.states[parts[device.own]][piece]
                    # mutant: |= -> &= : test_ranks_that_copy
                    marked |= copy.into[device.own]

        self.each(take)

    def _in_turn(self, holders: Array, count: int) -> Iterator[list[int]]:
        """Yield a part of each of ``count`` holders, -1 for those without more.

        holders: device or rank of each part
        """
        parts = [np.flatnonzero(holders == x) for x in range(count)]
        for turn in range(max(map(len, parts), default=0)):
            yield [int(some[turn]) if turn < len(some) else -1 for some in parts]

    def _spread_piece(self, parts: Sequence[int], piece: slice) -> None:
        """Copy a piece of a part of each rank to this rank's devices (collective)."""
        world, here = self.world, parts[self.world.rank]
        holder = [x for x in self.own if here >= 0 and x.own == self.seats[here]]
        states = [x.states[here][piece] for x in holder]
        of_part = {here: states[0]} if states else {}
        if not self.reachable:
            gathered = world.allgather(self._joined(states, np.dtype(np.uint32)))
            of_part = {**dict(zip(parts, gathered, strict=True)), **of_part}

        def take(device: CheckingDevice) -> None:
            for part, some in of_part.items():
                if part >= 0 and self.seats[part] != device.own:
                    device.states[part][piece] = brought_here(some)
            wait(device)

        self.each(take)

    def exchange(
        self, sent: Sequence[Sequence[Any]], kind: np.dtype[Any]
    ) -> list[list[Any]]:
        """Exchange arrays between all devices; see ``swap`` (collective)."""
        return swap(self.world, sent, self._of_rank, kind)

    def _joined(self, arrays: Sequence[Any], kind: np.dtype[Any]) -> Array:
        """Concatenate arrays of this rank's devices in host memory."""
        return np.concatenate([np.zeros(0, kind), *(host_array(x) for x in arrays)])
