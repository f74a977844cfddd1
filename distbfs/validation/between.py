"""Data exchange between the devices of a validation, on one rank or several.

Devices of a rank read each other's memory. Ranks exchange states, parents and marks by
NCCL if they have it, and all other data by MPI through the host.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from distbfs.device import cuda
from distbfs.device.arrays import brought_here, host_array
from distbfs.exchange.nccl_link import Copy
from distbfs.exchange.router import swap
from distbfs.types import slice_bounds
from distbfs.validation.cuda_device import NOT_HERE, CheckingDevice, Inputs
from distbfs.validation.states import SPREAD, StateLayout

if TYPE_CHECKING:
    from distbfs.exchange.nccl_link import Link
    from distbfs.types import Ids, World
    from distbfs.validation.cuda_device import ValidationSeat
    from distbfs.validation.faults import Asked

Value = TypeVar("Value")


def wait(_: CheckingDevice) -> None:
    """Wait until the current device has finished its work."""
    cuda.cupy().cuda.get_current_stream().synchronize()


class Devices:
    """All devices of a validation; those of this rank run concurrently.

    For arguments see ``cuda.validate_on_devices``.
    """

    def __init__(
        self,
        world: World,
        seats: Sequence[ValidationSeat],
        n: int,
        parts: int,
        roots: Ids,
        asked: Asked,
        link: Link | None,
    ) -> None:
        self.world, self._link = world, link
        holds = [(k, x.index) for k, seat in enumerate(seats) for x in seat.shards]
        facts = np.array([len(seats), *chain.from_iterable(holds)], dtype=np.int64)
        of_rank = world.allgather(facts)
        counts = [int(x[0]) for x in of_rank]
        starts = [0, *accumulate(counts)]
        self._of_rank = [range(a, b) for a, b in pairwise(starts)]
        self._ranks = np.repeat(range(world.size), counts)  # of each device
        self.total = total = starts[-1]
        self.seats = np.zeros(parts, dtype=np.uint32)
        for start, x in zip(starts, of_rank, strict=False):
            self.seats[x[2::2]] = start + x[1::2]
        self.known = known = Inputs(n, parts, roots, asked, self.seats)
        self.own = [
            CheckingDevice(seat, k, slice_bounds(seat.tuples.tuples, total, k), known)
            for k, seat in zip(self._of_rank[world.rank], seats, strict=True)
        ]
        self._pool = ThreadPoolExecutor(max(len(seats), 1))

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

    def spread(self, form: StateLayout) -> None:
        """Copy the states of each part to all devices (collective)."""
        words = form.words(self.known.local_count(0))
        self._to_others(lambda x: x.states, [words] * self.known.parts)

    def spread_parents(self) -> None:
        """Copy the parents of each part to all devices (collective)."""
        # mutant: local_count(x) for -> local_count(x) - 1 for : test_ranks_that_copy
        counts = [self.known.local_count(x) for x in range(self.known.parts)]
        self._to_others(lambda x: x.by_part["parent"], counts)

    def _to_others(
        self,
        arrays_of: Callable[[CheckingDevice], Any],
        sizes: Sequence[int],
    ) -> None:
        """Copy an array of each part to the same place on all other devices.

        arrays_of: function that returns the arrays of a device, by part
        sizes: number of elements of each part
        """
        arrays = {device.own: arrays_of(device) for device in self.own}
        for start in range(0, max(sizes), SPREAD):
            copies = []
            for part, source in enumerate(self.seats.tolist()):
                piece = slice(start, min(start + SPREAD, sizes[part]))
                into = {x: some[part][piece] for x, some in arrays.items()}
                values = into.pop(source, None)
                targets = [x for x in range(self.total) if x != source]
                copies.append(Copy(source, targets, values, into))
            self._move(copies)

    def _move(self, copies: Sequence[Copy]) -> None:
        """Carry out copies, after the pending work of the devices (collective).

        Ranks without NCCL send the values through the host.
        """
        self.each(wait)
        ranks, arrived, far = self._ranks.tolist(), [], []
        for copy in copies:
            home, values = ranks[copy.source], copy.values
            targets = [x for x in copy.targets if ranks[x] != home]
            if targets and self._link is not None:
                far.append(replace(copy, targets=targets))
            elif targets:
                sent = np.zeros(0, np.uint8)
                if values is not None:
                    sent = host_array(values).view(np.uint8)
                every = self.world.allgather(sent)
                values = every[home] if values is None else values
            if values is not None:
                arrived.append((copy.into, values))

        def take(device: CheckingDevice) -> None:
            for into, values in arrived:
                if device.own in into:
                    room = into[device.own]
                    room[...] = brought_here(values).view(room.dtype)
            wait(device)

        self.each(take)
        if self._link is not None and far:
            self._link.copy(far)

    def gather_marks(self, form: StateLayout) -> None:
        """Add the marks of all other devices to the states of own parts (collective).

        The states of a part differ between devices only in the marks.
        """
        words = form.words(self.known.local_count(0))
        most = max(Counter(self.seats.tolist()).values())  # parts of a device
        size = max(SPREAD // most, 1)
        # mutant: self.total -> 2 : test_pieces_of_states
        for step in range(1, self.total):
            for start in range(0, words, size):
                self._gather_piece(step, slice(start, min(start + size, words)))

    def _gather_piece(self, step: int, piece: slice) -> None:
        """Add the marks of a piece of each part, from the device so many before."""
        own = {device.own: device for device in self.own}
        copies = []
        for part, target in enumerate(self.seats.tolist()):
            other, into = (target - step) % self.total, {}
            values = own[other].states[part][piece] if other in own else None
            if target in own:
                with own[target].seat.on():
                    shape = piece.stop - piece.start
                    into[target] = cuda.cupy().empty(shape, np.uint32)
            copies.append(Copy(other, [target], values, into))
        self._move(copies)

        def take(device: CheckingDevice) -> None:
            for part, copy in enumerate(copies):
                if device.own in copy.into:
                    marked = device.states[part][piece]
                    # mutant: |= -> &= : test_planted_faults
                    marked |= copy.into[device.own]

        self.each(take)

    def exchange(
        self, sent: Sequence[Sequence[Any]], kind: np.dtype[Any]
    ) -> list[list[Any]]:
        """Exchange arrays between all devices; see ``swap`` (collective)."""
        return swap(self.world, sent, self._of_rank, kind)
