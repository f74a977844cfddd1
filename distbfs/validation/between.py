"""Data exchange between the devices of a validation, on one rank or several.

Devices of a rank read each other's memory. Ranks exchange states, parents and marks by
``DeviceCopies`` if these are available, and all other data by MPI through the host.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from distbfs.device import cuda
from distbfs.device.arrays import brought_here, host_array
from distbfs.exchange.device_copies import Copy
from distbfs.exchange.router import swap
from distbfs.validation.cuda_device import NOT_HERE, CheckingDevice, Inputs
from distbfs.validation.states import SPREAD, StateLayout

if TYPE_CHECKING:
    from distbfs.exchange.device_copies import DeviceCopies
    from distbfs.types import World

Value = TypeVar("Value")
Pair: TypeAlias = tuple[int, int]


def wait(_: CheckingDevice) -> None:
    """Wait until the current device has finished its work."""
    cuda.cupy().cuda.get_current_stream().synchronize()


class Devices:
    """All devices of a validation; those of this rank run concurrently.

    own: the devices of this rank; counts: number of devices on each rank
    copies: copies between devices of different ranks, passed on all ranks or on none
    """

    def __init__(
        self,
        world: World,
        own: Sequence[CheckingDevice],
        counts: Sequence[int],
        known: Inputs,
        copies: DeviceCopies | None = None,
    ) -> None:
        self.world, self.own, self.total = world, own, sum(counts)
        self.known, self.seats, self._copies = known, known.seats, copies
        ends = np.cumsum(counts).tolist()
        self._of_rank = [range(b - k, b) for k, b in zip(counts, ends, strict=True)]
        self._ranks = np.repeat(range(world.size), counts)  # of each device
        self._pool = ThreadPoolExecutor(max(len(own), 1))

    def close(self) -> None:
        """End the devices' threads and their iteration over pieces."""
        self._pool.shutdown()
        for device in self.own:
            device.close()

    def each(
        self, work: Callable[..., Value], *arguments: Sequence[Any]
    ) -> list[Value]:
        """Call work(device) with each device of this rank current; return the results.

        arguments: further arguments of ``work``, each a sequence of one per device
        """

        def run(device: CheckingDevice, *more: Any) -> Value:
            with device.seat.on(), cuda.memory_of("validation"):
                if len(self.own) > 1:
                    cuda.use_current()
                return work(device, *more)

        if len(self.own) < 2:
            return list(map(run, self.own, *arguments))
        return list(self._pool.map(run, self.own, *arguments))

    def most_of(self, *works: Callable[[CheckingDevice], int]) -> list[int]:
        """Return the maximum of each function over all devices (collective)."""
        most = [max(self.each(work), default=NOT_HERE) for work in works]
        values = np.array(most, dtype=np.int64)
        every: list[int] = self.world.allreduce(values, "max").tolist()
        return every

    @property
    def reachable(self) -> bool:
        """Whether all devices can exchange data without passing it through the host."""
        return self.world.size == 1 or self._copies is not None

    def spread(self, form: StateLayout) -> None:
        """Copy the states of each part to all devices (collective)."""
        words = form.words(self.known.local_count(0))
        ranks = self._ranks[self.seats]
        parts = [np.flatnonzero(ranks == x).tolist() for x in range(self.world.size)]
        in_turn: tuple[int, ...]
        for in_turn in zip_longest(*parts, fillvalue=-1):
            for start in range(0, words, SPREAD):
                self._spread_piece(in_turn, slice(start, start + SPREAD))
        self._to_other_ranks([4 * words] * len(self.seats), lambda x: x.states)

    def spread_parents(self, form: StateLayout) -> None:
        """Copy parents to the devices of other ranks (collective)."""
        # mutant: local_count(x) for -> local_count(x) - 1 for : test_ranks_that_copy
        counts = [self.known.local_count(x) for x in range(self.known.parts)]
        sizes = [form.copied * count for count in counts]
        self._to_other_ranks(sizes, lambda x: x.parents)

    def _to_other_ranks(
        self, nbytes: Sequence[int], arrays_of: Callable[[CheckingDevice], Any]
    ) -> None:
        """Copy an array of each part to the same place on other ranks' devices.

        arrays_of: function that returns the arrays of a device, by part
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
        """Return the devices that belong to other ranks than a device does."""
        others: list[int] = np.flatnonzero(self._ranks != self._ranks[device]).tolist()
        return others

    def _move(self, copies: Sequence[Copy]) -> None:
        """Carry out copies, after the pending work of the devices (collective)."""
        if self._copies is not None:
            self.each(wait)
            self._copies.move(copies)

    def gather_marks(self, form: StateLayout) -> None:
        """Add the marks of all other devices to the states of own parts (collective).

        The states of a part differ between devices only in the marks.
        """
        words = form.words(self.known.local_count(0))
        seats, ranks, total = self.seats.tolist(), self._ranks.tolist(), self.total
        most = max(Counter(seats).values())  # parts of a device
        size = min(SPREAD // most, words)
        steps = max(SPREAD // (most * max(words, 1)), 1)  # devices asked at once
        self.each(wait)
        # mutant: total -> 2 : test_pieces_of_states
        for first in range(1, total, steps):
            pairs = [
                (part, (seat - step) % total)
                for part, seat in enumerate(seats)
                for step in range(first, min(first + steps, total))
            ]
            near = [(x, other) for x, other in pairs if ranks[other] == ranks[seats[x]]]
            far = [(x, other) for x, other in pairs if ranks[other] != ranks[seats[x]]]
            for start in range(0, words, size):
                self._gather_piece(near, far, slice(start, min(start + size, words)))

    def _gather_piece(
        self, near: Sequence[Pair], far: Sequence[Pair], piece: slice
    ) -> None:
        """Add the marks of a piece, given pairs (part, device) of one and two ranks."""
        own = {device.own: device for device in self.own}
        came = {(x, y): own[y].states[x][piece] for x, y in near if y in own}
        copies, nbytes = [], 4 * (piece.stop - piece.start)
        for part, other in far:
            target, into = int(self.seats[part]), {}
            values = own[other].states[part][piece] if other in own else None
            if target in own:
                with own[target].seat.on():
                    into[target] = cuda.cupy().empty(nbytes // 4, np.uint32)
                came[part, other] = into[target]
            copies.append(Copy(other, [target], nbytes, values, into))
        self._move(copies)

        def take(device: CheckingDevice) -> None:
            for (part, _), some in came.items():
                if self.seats[part] == device.own:
                    marked = device.states[part][piece]
                    # mutant: |= -> &= : test_planted_faults
                    marked |= brought_here(some)

        self.each(take)

    def _spread_piece(self, parts: Sequence[int], piece: slice) -> None:
        """Copy a piece of a part of each rank to this rank's devices (collective)."""
        world, here = self.world, parts[self.world.rank]
        holder = [x for x in self.own if here >= 0 and x.own == self.seats[here]]
        of_part = {here: holder[0].states[here][piece]} if holder else {}
        if not self.reachable:
            sent = host_array(of_part.get(here, np.zeros(0, np.uint32)))
            of_part = dict(zip(parts, world.allgather(sent), strict=True)) | of_part

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
