"""Shares of edge tuples: each device makes one and sends tuples where they are kept.

In each round, every device makes a chunk of its share and sorts it into boxes, one for
each device of all ranks: a tuple goes to the devices of the parts of its two ends, only
once if this is one device. Boxes go to devices of this rank by device copy, to other
ranks through host memory. A box larger than the receiver's memory for it goes in
several steps. If all tuples fit, they stay on the receivers, so that later passes send
nothing.

All devices of all ranks make a pass together: it begins when one of them needs it, and
the others take part, even when their own work is done (``Shares.finish``). The devices
of a rank, with one thread each, meet at a barrier; the last to arrive communicates with
the other ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Barrier
from typing import Any, NamedTuple

import numpy as np

from distbfs.build.cuda.kernels import BLOCK, FOLDER, KEYS_TILE, Kernels
from distbfs.build.cuda.ranges import RESERVE
from distbfs.device import cuda, programs
from distbfs.device.arrays import brought_here
from distbfs.generate.cuda import DeviceTuples, id_word
from distbfs.partition.layout import Placement
from distbfs.progress import Sum
from distbfs.timing import Stopwatch, clock
from distbfs.types import Array, DeviceArray, Ids, World, slice_bounds

CHUNK = 1 << 23  # tuples of a share at a time
BOXED = 2  # tuples in boxes, for each tuple of a chunk
ARRIVING = 3  # tuples that arrive at once, for each tuple of a chunk
LEAST = 1 << 10  # least tuples of a box in a step


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


class Boxes(NamedTuple):
    """The tuples of a chunk by receiving device.

    u, v: the tuples on the sending device; host: those for other ranks in host memory,
    at the same places; starts: where each box begins, int64 [devices + 1]
    """

    u: DeviceArray
    v: DeviceArray
    host: tuple[Array, Array] | None
    starts: Ids

    def piece(self, device: int, step: int, room: int) -> slice:
        """Return the slice of tuples for a device in a step."""
        low, end = self.starts[device : device + 2].tolist()
        return slice(min(low + step * room, end), min(low + (step + 1) * room, end))

    def counts(self, step: int, room: int) -> Ids:
        """Return the number of tuples for each device in a step, int64 [devices]."""
        return np.clip(np.diff(self.starts) - step * room, 0, room)

    def sent(self, devices: range, step: int, room: int) -> list[Array]:
        """Return all u, then all v, for devices of another rank in a step."""
        pieces = [slice(*self.starts[[devices.start, devices.stop]].tolist())]
        # mutant: step or (self.starts[1:] - self.starts[:-1] > room).any() -> step
        #   : test_a_device_to_which_more_comes_than_fits
        if step or (self.starts[1:] - self.starts[:-1] > room).any():
            pieces = [self.piece(device, step, room) for device in devices]
        return [ids[piece] for ids in self.host or () for piece in pieces]


class Arrived(NamedTuple):
    """Tuples received in a step: boxes from this rank, messages from the others."""

    steps: int
    boxes: list[Boxes]
    messages: list[Array]


class Dealer:
    """State shared by the devices of a rank while they send tuples.

    chunk: most tuples of a share in a round; room: most tuples of a box in a step;
    arriving: most tuples of all boxes in a step
    """

    def __init__(self, world: World, seats: Seats, tuples: int) -> None:
        self.world, self.seats, self.tuples = world, seats, tuples
        longest = -(-tuples // seats.devices)
        self.rounds = rounds_of(tuples, seats.devices)
        self.chunk = min(CHUNK, longest)
        self.room = max(-(-ARRIVING * self.chunk // seats.devices), LEAST)
        self.arriving = self.room * seats.devices
        self.own = range(*seats.bounds[world.rank : world.rank + 2].tolist())
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

    def pass_on(self, device: int, boxes: Boxes, step: int) -> Arrived:
        """Exchange one step of boxes; return the arrivals and the number of steps."""

        def send(every: list[Boxes]) -> Arrived:
            most = max(int(np.diff(boxes.starts).max()) for boxes in every)
            messages: list[Array] = []
            if self.world.size > 1:
                messages = self.world.alltoall(self._messages(every, most, step))
                most = max(int(message[0]) for message in messages)
            # mutant: -(-most // self.room) -> 1
            #   : test_a_device_to_which_more_comes_than_fits
            return Arrived(-(-most // self.room), list(every), messages)

        arrived: Arrived = self.meet(device, boxes, send)
        return arrived

    def _messages(self, every: list[Boxes], most: int, step: int) -> list[Array]:
        """Return the message to each rank, of the dtype of ids.

        A message holds ``most``; then counts [devices here, devices there]; then, for
        each device here, all u and all v, grouped by device there.
        """
        dtype = every[0].u.dtype
        counts = np.stack([boxes.counts(step, self.room) for boxes in every])
        out = []
        for rank in range(self.world.size):
            pieces = [np.array([most], dtype=dtype)]
            if rank != self.world.rank:
                there = range(*self.seats.bounds[rank : rank + 2].tolist())
                pieces.append(counts[:, there.start : there.stop].astype(dtype).ravel())
                for boxes in every:
                    pieces += boxes.sent(there, step, self.room)
            out.append(np.concatenate(pieces))
        return out

    def of_messages(
        self, device: int, messages: list[Array]
    ) -> Iterator[tuple[Array, Array]]:
        """Yield the (u, v) that other ranks sent to a device."""
        place, here = device - self.own.start, len(self.own)
        senders = np.diff(self.seats.bounds).tolist()
        for rank, message in enumerate(messages):
            if rank == self.world.rank:
                continue
            begin = 1 + senders[rank] * here
            counts = message[1:begin].astype(np.int64).reshape(-1, here)
            totals = counts.sum(axis=1)
            lows = begin + 2 * (np.cumsum(totals) - totals)
            lows += counts[:, :place].sum(axis=1)
            lines = np.stack([lows, counts[:, place], totals], axis=1)
            for low, count, total in lines.tolist():
                at = slice(low, low + count)
                yield message[at], message[at.start + total : at.stop + total]


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
        size = (1 + BOXED) * dealer.chunk + max(keep, dealer.arriving)
        pair = 2 * np.dtype(tuples.dtype).itemsize
        cuda.require(pair * size + RESERVE // 4, "a share of the edge tuples")
        self._kernels = Kernels(
            watch, programs.Module(FOLDER / "shares.cu", ID=id_word(tuples.n))
        )
        self._seats = cp.asarray(dealer.seats.parts)
        self._made = self._pairs(dealer.chunk)
        self._boxed = self._pairs(BOXED * dealer.chunk)
        self._room = self._pairs(max(keep, dealer.arriving))
        self._pinned: list[Array] = []
        if dealer.world.size > 1:
            sizes = (BOXED * dealer.chunk, dealer.arriving)
            self._pinned = [
                cuda.pinned_empty(x, tuples.dtype) for x in sizes for _ in "uv"
            ]

    def _pairs(self, count: int) -> list[DeviceArray]:
        return [cuda.cupy().empty(count, self._tuples.dtype) for _ in "uv"]

    def __iter__(self) -> Iterator[tuple[DeviceArray, DeviceArray]]:
        if self._complete:
            for start in range(0, self._held or 0, self._dealer.arriving):
                at = slice(start, min(start + self._dealer.arriving, self._held or 0))
                yield self._room[0][at], self._room[1][at]
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
                boxes = self._boxes(stop - start)
            self._done(stop - start)
            step, steps = 0, 1
            while step < steps:
                with self._exchange():
                    arrived = dealer.pass_on(self._own, boxes, step)
                    at = slice(0, 0)
                    if wanted or self._held is not None:
                        at = self._take(arrived, step)
                if wanted and at.stop > at.start:
                    yield self._room[0][at], self._room[1][at]
                step, steps = step + 1, arrived.steps
        if not self._settled:
            with self._exchange():
                self._settle()

    def _boxes(self, count: int) -> Boxes:
        """Sort ``count`` generated tuples into boxes."""
        cp, seats = cuda.cupy(), self._dealer.seats
        sizes = cp.zeros(seats.devices, np.uint32)
        parts, devices = np.uint32(len(seats.parts)), np.uint32(seats.devices)
        self._kernels.launch(
            "count_boxes",
            count,
            BLOCK,
            np.uint64(count),
            *self._made,
            parts,
            self._seats,
            devices,
            sizes,
        )
        ends = self._kernels.scan(sizes)
        starts = ends.get().astype(np.int64)
        self._kernels.launch(
            "fill_boxes",
            count,
            KEYS_TILE,
            np.uint64(count),
            *self._made,
            parts,
            self._seats,
            devices,
            ends,
            *self._boxed,
        )
        host = None
        if self._pinned:
            host = (self._pinned[0], self._pinned[1])
            own = self._dealer.own
            for low, end in ((0, own.start), (own.stop, seats.devices)):
                out = slice(*starts[[low, end]].tolist())
                if out.stop > out.start:
                    for there, here in zip(host, self._boxed, strict=True):
                        here[out].get(out=there[out])
        u, v = self._boxed
        return Boxes(u, v, host, starts)

    def _take(self, arrived: Arrived, step: int) -> slice:
        """Copy the arrived tuples of a step to this device; return their slice."""
        own, dealer = self._own, self._dealer
        pieces = [boxes.piece(own, step, dealer.room) for boxes in arrived.boxes]
        near = sum(piece.stop - piece.start for piece in pieces)
        sent = list(dealer.of_messages(own, arrived.messages))
        far = sum(len(u) for u, _ in sent)
        if self._held is not None and self._held + near + far > len(self._room[0]):
            self._held = None
        at = first = self._held or 0
        for boxes, piece in zip(arrived.boxes, pieces, strict=True):
            end = at + piece.stop - piece.start
            if end > at:
                for room, ids in zip(self._room, boxes[:2], strict=True):
                    room[at:end] = brought_here(ids[piece])
            at = end
        if far:
            for k, room in enumerate(self._room):
                joined = self._pinned[2 + k][:far]
                np.concatenate([pair[k] for pair in sent], out=joined)
                room[at : at + far].set(joined)
        if self._held is not None:
            self._held += near + far
        return slice(first, at + far)

    def _settle(self) -> None:
        """Keep the tuples of the first pass if every device has room for them."""
        self._settled = True
        # mutant: not self._dealer.any(self._own, self._held is None) -> False
        #   : test_tuples_that_fit_are_sent_once
        self._complete = not self._dealer.any(self._own, self._held is None)
        if self._complete:
            self._made, self._boxed, self._pinned = [], [], []
            return
        self._held = None
        self._done.more(self._planned * (self._high - self._low))
        self._room = []
        self._room = self._pairs(self._dealer.arriving)

    def expect(self, passes: int) -> None:
        """Announce ``passes`` more passes."""
        self._planned += passes
        if self._settled and not self._complete:
            self._done.more(passes * (self._high - self._low))

    def drop(self) -> None:
        """Free the memory; no pass may follow."""
        self._made, self._boxed, self._room, self._pinned = [], [], [], []
