"""The exchange through NCCL, for arrays in device memory.

Source: Pan, Pearce, Owens 2018, Section V. NCCL has no OR. Short masks are gathered
from all ranks and OR-ed on each device. If masks are long or ranks are many, every rank
receives one slice from all ranks, ORs it and sends it to all, so that a mask is sent
twice instead of ranks - 1 times (``sliced``). For vertices, ranks that have items for
each other exchange counts by MPI on the host; then grouped sends and receives move
items from the bins to their final place. Everything runs on the communicator's stream,
in call order, from the first device of each rank; data of other devices are copied
there first. Levels on streams (nccl_streams.py) use all devices.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.device import cuda, programs
from distbfs.exchange.base import Exchange
from distbfs.exchange.nccl_link import link_of, need_nccl
from distbfs.exchange.nccl_streams import NcclStreams

if TYPE_CHECKING:
    from collections.abc import Sequence

    from distbfs.exchange.partners import Pair
    from distbfs.options import ExchangeOptions
    from distbfs.partition.layout import Placement
    from distbfs.types import Array, Words, World

REDUCE = Path(__file__).with_name("reduce.cu")
BLOCK = 256
MOST_BLOCKS = 1024
SLICE_BYTES = 4 << 20  # bytes sent during the start of a further NCCL call, about 20 us


def sliced(words: int, ranks: int) -> bool:
    """Return whether masks of ``words`` words are reduced by slices.

    A gather receives ranks - 1 masks, slicing only 2 (ranks - 1) / ranks of a mask, but
    with one more call, so it pays if it saves more than SLICE_BYTES.
    """
    return 8 * words * (ranks - 1) * (ranks - 2) > SLICE_BYTES * ranks


class NcclExchange(Exchange):
    """Serves any number of ranks; see ``base.Exchange``. Creating it is collective."""

    name = "nccl"
    streamed = needs_devices = True

    def __init__(
        self,
        world: World,
        placement: Placement,
        delegates: int,
        options: ExchangeOptions,
        *,
        on_device: bool = True,
    ) -> None:
        super().__init__(world, placement, delegates, options, on_device=on_device)
        self._made: Any = None  # see ``_link``
        cp = self.xp
        self._words = words = (delegates + 63) // 64
        self._sliced = sliced(words, world.size)
        self._slice = -(-words // world.size) if self._sliced else words
        whole = self._slice * world.size
        with cuda.memory_of("masks of all ranks"):
            self._gathered: Any = cp.empty(whole, np.uint64)
            length = whole if self._sliced else words
            self._results = [cp.empty(length, np.uint64) for _ in range(2)]
        self._or_rows = programs.Module(REDUCE).kernel("or_rows")
        self._mask_given, self._masks_done, self._normals_done = (
            cp.cuda.Event(disable_timing=True) for _ in range(3)
        )
        self._mask: Any = None  # of this rank, until the reduction between ranks ends
        self._waits = False  # the reduction has not started
        self._under_way: list[Any] = []  # arrays that NCCL reads and writes
        self._received: list[dict[int, Array]] = []

    def check(self, world: World, options: ExchangeOptions) -> None:  # noqa: ARG002
        """Raise LaunchError unless each rank has a device of its own, and NCCL."""
        need_nccl(world, name=self.name)

    def streams(self, devices: Sequence[int]) -> NcclStreams:
        """Return the object that moves arrays between devices on streams (collective).

        devices: one for each part of this rank
        """
        link = link_of(self._world, devices)
        return NcclStreams(link, self._placement, self.traffic)

    @property
    def _link(self) -> Any:
        """The communicator of the ranks' first devices (collective on first use)."""
        if self._made is None:
            self._made = link_of(self._world)
        return self._made

    @property
    def _end(self) -> Any:
        """The end of this rank's first device."""
        return self._link.ends[0]

    def _start_masks_between(self, masks: Sequence[Words]) -> None:
        """Reduce the masks of this rank; start IR between ranks."""
        self._mask = masks[0] if len(masks) == 1 else self._reduce_own(masks)
        self._mask_given.record(self.xp.cuda.get_current_stream())
        self._waits = True
        self.traffic.count(self._mask.nbytes, "masks")
        if self._options.mask_reduce == "nonblocking":
            self._reduce()

    def _finish_masks_between(self) -> Words:
        """Return the OR over all ranks.

        The blocking reduction runs here, after the sends of normal vertices have
        started.
        """
        self._reduce()
        self._link.wait(self._masks_done)
        self._mask = None
        return self._results[0][: self._words]

    def _start_normals_between(self, leaving: Sequence[tuple[Pair, Array]]) -> None:
        """Send counts to other ranks and start to send items."""
        counts = self._partners.sizes(leaving, self._placement.per_rank)
        space = self._arrivals(sum(int(row.sum()) for row in counts.values()))
        self._received, start = [{} for _ in self._homes], 0
        receives: list[tuple[int, Array]] = []  # as that rank sends them
        for rank, sizes in counts.items():
            for index, row in enumerate(sizes.tolist()):
                begin = start
                for count in filter(None, row):
                    receives.append((rank, space[start : start + count]))
                    start += count
                if start > begin:
                    self._received[index][rank] = space[begin:start]
        self._under_way = [leaving, space]
        self._link.follow()
        end = self._end
        with self._link.group():
            for pair, array in leaving:
                end.send(array, pair.rank)
                self.traffic.count(array.nbytes, part=pair.here)
            for rank, place in receives:
                end.receive(place, rank)
        self._normals_done.record(end.stream)

    def _finish_normals_between(self) -> list[dict[int, Array]]:
        """Return each part's items from other ranks, by rank."""
        self._link.wait(self._normals_done)
        received, self._received, self._under_way = self._received, [], []
        return [
            {rank: self._bring(index, array) for rank, array in of_part.items()}
            for index, of_part in enumerate(received)
        ]

    def close(self) -> None:
        """Free the buffers without waiting, so that an error is not held up.

        Operations that have started and not finished keep their memory.
        """
        if self._mask is not None or self._under_way:
            held = (self._mask, self._under_way, self._gathered, *self._results)
            if self._made is not None:
                self._made.hold(held, self._partners)
        elif not self._alone:
            self._partners.free()
        self._mask, self._under_way, self._received = None, [], []
        self._waits = False
        self._gathered, self._results = None, []
        super().close()

    def _reduce(self) -> None:
        """Start the reduction between ranks unless it has started."""
        if not self._waits:
            return
        self._waits = False
        self._results.reverse()
        end = self._end
        end.stream.wait_event(self._mask_given)
        if self._words and self._sliced:
            self._reduce_slices(self._results[0])
        elif self._words:
            with self._link.group():
                end.gather(self._mask, self._gathered)
            self._combine(self._words, self._words, self._results[0])
        self._masks_done.record(end.stream)

    def _reduce_slices(self, result: Any) -> None:
        """OR this rank's slice of all masks and send it to all."""
        step, me, words, end = self._slice, self._world.rank, self._words, self._end
        bounds = [min(rank * step, words) for rank in range(self._world.size + 1)]
        length = bounds[me + 1] - bounds[me]
        with self._link.group():
            for rank in range(self._world.size):
                piece = self._mask[bounds[rank] : bounds[rank + 1]]
                if rank != me and piece.size:
                    end.send(piece, rank)
                if rank != me and length:
                    place = self._gathered[rank * step : rank * step + length]
                    end.receive(place, rank)
        place = result[me * step : (me + 1) * step]
        if length:
            with end.stream:
                own = self._mask[bounds[me] : bounds[me + 1]]
                self._gathered[me * step : me * step + length] = own
            self._combine(step, length, place)
        with self._link.group():
            end.gather(place, result)

    def _combine(self, stride: int, words: int, out: Any) -> None:
        """OR the gathered rows."""
        grid = min(-(-words // BLOCK), MOST_BLOCKS)
        numbers = (np.uint64(x) for x in (self._world.size, stride, words))
        with self._end.stream:
            self._or_rows(grid, BLOCK, self._gathered, *numbers, out)
