"""Shares of edge tuples: each device makes one and sends tuples where they are kept.

In each round, every device makes a chunk of its share and sorts it into boxes, one for
each device of all ranks: a tuple goes to the devices of the parts of its two ends, only
once if this is one device. Boxes go to devices of this rank by device copy, to other
ranks through host memory. If more arrives than the receiver has memory for, it is read
in several steps. If all tuples fit, they stay on the receivers, so that later passes
send nothing.

All devices of all ranks make a pass together: it begins when one of them needs it, and
the others take part, even when their own work is done (``Shares.finish``). The devices
of a rank, with one thread each, meet at a barrier; the last to arrive communicates with
the other ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from threading import Barrier
from typing import Any, TypeAlias

import numpy as np

from distbfs.build.cuda.kernels import FOLDER, KEYS_TILE, Kernels
from distbfs.build.cuda.ranges import RESERVE
from distbfs.device import cuda, programs
from distbfs.device.arrays import brought_here
from distbfs.exchange.router import swap
from distbfs.generate.cuda import DeviceTuples, id_word
from distbfs.partition.layout import Placement
from distbfs.progress import Sum
from distbfs.timing import Stopwatch, clock
from distbfs.types import DeviceArray, Ids, World, slice_bounds

Boxes: TypeAlias = tuple[list[DeviceArray], list[DeviceArray]]

CHUNK = 1 << 23  # tuples of a share at a time
BOXED = 2  # tuples in boxes, for each tuple of a chunk
ARRIVING = 3  # tuples that are read at once, for each tuple of a chunk


class Seats:
    """The device of each part; device indices run over all ranks, rank after rank.

    parts: device of each part, uint32 [parts]; bounds: first device of each rank, int64
    [ranks + 1]
    """

    def __init__(
        self, world: World, placement: Placement, groups: Sequence[Sequence[int]]
    ) -> None:
        """Gather the devices of all ranks (collective).

        groups: for each device of this rank, the indices of its parts in ``parts_of``
        """
        own = np.empty(sum(map(len, groups)), dtype=np.int64)
        for device, places in enumerate(groups):
            own[places] = device
        every = world.allgather(own)
        counts = [int(x.max(initial=-1)) + 1 for x in every]
        self.bounds: Ids = np.concatenate([[0], np.cumsum(counts)])
        self.parts = np.zeros(placement.parts, dtype=np.uint32)
        for rank, devices in enumerate(every):
            self.parts[placement.parts_of(rank)] = self.bounds[rank] + devices

    @property
    def devices(self) -> int:
        """Number of devices of all ranks."""
        return int(self.bounds[-1])


def rounds_of(tuples: int, devices: int) -> int:
    """Return the number of rounds that shares are sent in."""
    return -(-tuples // (devices * CHUNK))


class Dealer:
    """State shared by the devices of a rank while they send tuples.

    chunk: most tuples of a share in a round; own: the devices of this rank
    """

    def __init__(self, world: World, seats: Seats, tuples: int) -> None:
        self.world, self.seats, self.tuples = world, seats, tuples
        longest = -(-tuples // seats.devices)
        self.rounds = rounds_of(tuples, seats.devices)
        self.chunk = min(CHUNK, longest)
        self._on_ranks = [range(*ends) for ends in pairwise(seats.bounds.tolist())]
        self.own = self._on_ranks[world.rank]
        self._values: list[Any] = [None] * len(self.own)
        self._work: Callable[[list[Any]], Any] = list
        self._result: Any = None
        self._barrier = Barrier(len(self.own), self._together)

    def _together(self) -> None:
        self._result = self._work(self._values)

    def meet(
        self, device: int, value: Any = None, work: Callable[[list[Any]], Any] = list
    ) -> Any:
        """Wait for this rank's devices; return ``work(their values)``, called by one.

        Raises BrokenBarrierError if another device failed.
        """
        self._values[device - self.own.start], self._work = value, work
        self._barrier.wait()
        return self._result

    def give_up(self) -> None:
        """Make all devices of this rank fail after one of them failed."""
        self._barrier.abort()

    def any(self, device: int, value: bool) -> bool:
        """Return whether the value of any device of any rank is True."""

        def ask(values: list[Any]) -> bool:
            own = np.array([any(values)], dtype=np.int64)
            return bool(self.world.allreduce(own, "max")[0])

        return bool(self.meet(device, value, ask))

    def exchange(self, device: int, boxes: Boxes) -> list[tuple[Any, Any]]:
        """Send boxes to all devices of all ranks; return the (u, v) for this one.

        boxes: all u, then all v for each device; what arrives lies on other devices of
        this rank, or in host memory
        """

        def send(every: list[Boxes]) -> list[list[list[Any]]]:
            kind = every[0][0][0].dtype
            return [
                swap(self.world, ids, self._on_ranks, kind)
                for ids in zip(*every, strict=True)
            ]

        arrived = self.meet(device, boxes, send)
        u, v = (ids[device - self.own.start] for ids in arrived)
        return list(zip(u, v, strict=True))


@dataclass(frozen=True)
class DealerSeat:
    """One of the devices that send each other tuples.

    own: index of the device over all ranks; parts: number of its parts
    """

    dealer: Dealer
    own: int
    parts: int


class Shares:
    """All tuples with an end in the parts of one device (``chunks.Passes``).

    keep: most tuples that may stay here, 0 if memory could be short
    done: called with the number of tuples made here
    """

    def __init__(
        self,
        tuples: DeviceTuples,
        seat: DealerSeat,
        keep: int,
        watch: Stopwatch,
        done: Sum,
    ) -> None:
        cp, dealer = cuda.cupy(), seat.dealer
        self._tuples, self._dealer, self._own = tuples, dealer, seat.own
        self._watch, self._done = watch, done
        devices = dealer.seats.devices
        self._low, self._high = slice_bounds(tuples.tuples, devices, seat.own)
        done.more(self._high - self._low)
        self._planned, self._settled, self._complete = 1, False, False
        self._held: int | None = 0 if keep else None
        self._least = ARRIVING * dealer.chunk
        size = (1 + BOXED) * dealer.chunk + max(keep, self._least)
        pair = 2 * np.dtype(tuples.dtype).itemsize
        cuda.require(pair * size + RESERVE // 4, "a share of the edge tuples")
        self._kernels = Kernels(
            watch, programs.Module(FOLDER / "shares.cu", ID=id_word(tuples.n))
        )
        self._seats = cp.asarray(dealer.seats.parts)
        self._made = self._pairs(dealer.chunk)
        self._boxed = self._pairs(BOXED * dealer.chunk)
        self._room = self._pairs(max(keep, self._least))

    def _pairs(self, count: int) -> list[DeviceArray]:
        return [cuda.cupy().empty(count, self._tuples.dtype) for _ in "uv"]

    def __iter__(self) -> Iterator[tuple[DeviceArray, DeviceArray]]:
        if self._complete:
            held = self._held or 0
            for start in range(0, held, self._least):
                yield self._piece(slice(start, min(start + self._least, held)))
            return
        self._planned -= 1
        with self._exchange():
            self._dealer.any(self._own, True)
        yield from self._pass(wanted=True)

    def finish(self) -> None:
        """Take part in passes until no device of any rank wants another."""
        while not self._complete and self._dealer.any(self._own, False):
            if self._settled:
                self._done.more(self._high - self._low)
            with self._kernels.phase("generation"):
                for _ in self._pass(wanted=False):
                    pass

    @contextmanager
    def _exchange(self) -> Iterator[None]:
        """Count the time of a ``with`` block as exchange instead of generation."""
        stream = cuda.cupy().cuda.get_current_stream()
        stream.synchronize()
        began = clock()
        yield
        stream.synchronize()
        spent = clock() - began
        self._watch.add("exchange", spent)
        self._watch.add("generation", -spent)

    def _pass(self, *, wanted: bool) -> Iterator[tuple[DeviceArray, DeviceArray]]:
        dealer, low, high = self._dealer, self._low, self._high
        for k in range(dealer.rounds):
            start = min(low + k * dealer.chunk, high)
            stop = min(start + dealer.chunk, high)
            if stop > start:
                self._tuples.fill(start, stop, *self._made)
            with self._exchange():
                if k:
                    dealer.meet(self._own)  # no device reads the boxes any more
                arrived = dealer.exchange(self._own, self._boxes(stop - start))
            self._done(stop - start)
            if wanted or self._held is not None:
                for at in self._take(arrived):
                    if wanted:
                        yield self._piece(at)
        if not self._settled:
            with self._exchange():
                self._settle()

    def _boxes(self, count: int) -> Boxes:
        """Sort ``count`` generated tuples into boxes."""
        cp, seats = cuda.cupy(), self._dealer.seats
        sizes = cp.zeros(seats.devices, np.uint32)
        parts, devices = np.uint32(len(seats.parts)), np.uint32(seats.devices)
        self._kernels.over(
            "count_boxes",
            count,
            *self._made,
            parts,
            self._seats,
            devices,
            sizes,
        )
        ends = self._kernels.scan(sizes)
        starts = ends.get().tolist()
        self._kernels.over(
            "fill_boxes",
            count,
            *self._made,
            parts,
            self._seats,
            devices,
            ends,
            *self._boxed,
            per_block=KEYS_TILE,
        )
        u, v = ([ids[a:b] for a, b in pairwise(starts)] for ids in self._boxed)
        return u, v

    def _take(self, arrived: Sequence[tuple[Any, Any]]) -> Iterator[slice]:
        """Copy the arrived tuples to this device; yield the slices they are in."""
        size = len(self._room[0])
        if (self._held or 0) + sum(len(u) for u, _ in arrived) > size:
            self._held = None
        at = first = self._held or 0
        for pair in arrived:
            done = 0
            while done < len(pair[0]):
                if at == size:
                    yield slice(first, at)
                    at = first = 0
                count = min(len(pair[0]) - done, size - at)
                with self._exchange():
                    for room, ids in zip(self._room, pair, strict=True):
                        room[at : at + count] = brought_here(ids[done : done + count])
                at, done = at + count, done + count
        if self._held is not None:
            self._held = at
        if at > first:
            yield slice(first, at)

    def _piece(self, at: slice) -> tuple[DeviceArray, DeviceArray]:
        u, v = self._room
        return u[at], v[at]

    def _settle(self) -> None:
        """Keep the tuples of the first pass if every device has room for them."""
        self._settled = True
        # mutant: not self._dealer.any(self._own, self._held is None) -> False
        #   : test_tuples_that_fit_are_sent_once
        self._complete = not self._dealer.any(self._own, self._held is None)
        if self._complete:
            self._made, self._boxed = [], []
            return
        self._held = None
        self._done.more(self._planned * (self._high - self._low))
        self._room = []
        self._room = self._pairs(self._least)

    def expect(self, passes: int) -> None:
        """Announce ``passes`` more passes."""
        self._planned += passes
        if self._settled and not self._complete:
            self._done.more(passes * (self._high - self._low))

    def drop(self) -> None:
        """Free the memory; no pass may follow."""
        self._made, self._boxed, self._room = [], [], []
