"""The exchange through host memory and MPI.

Source: Pan, Pearce, Owens 2018, Section V.  Delegates: an OR on the rank, then
MPI_Allreduce (BR) or MPI_Iallreduce (IR) between ranks.  Normal vertices: MPI_Isend
and MPI_Irecv between the parts; with *local all2all* (L) the parts of a rank first
pass their bins to the device that the destination has on its own rank, so that
messages run only between equal devices, p²/p_gpu pairs instead of p²; with
*uniquify* (U) each message holds a vertex once.

The receiver does not know the lengths.  A bin travels in messages of exactly
``chunk_elements`` elements and a shorter last one, maybe empty; messages of a pair do
not overtake each other, so a matched probe for each tells where the bin ends.

Arrays of a device cross pinned memory (``staging``): one copy to the host and one back
for all numbers of a level, and the same for the masks.  MPI gets no device pointer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from distbfs.errors import UsageError
from distbfs.exchange.base import Traffic
from distbfs.exchange.local_phase import LocalPhase
from distbfs.exchange.mpi import MpiWorld, pieces
from distbfs.exchange.staging import HostSlot, PinnedSlot

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from distbfs.options import ExchangeOptions
    from distbfs.partition.layout import Placement
    from distbfs.types import Array, Words, World


class Pair(NamedTuple):
    """A part here and a part on another rank that send to each other."""

    rank: int
    here: int
    there: int


class HostExchange:
    """Serves any number of ranks; see ``base.Exchange``.  Making one is collective.

    Arrays that are returned stay as they are until the level after the next one.
    ``traffic.mask_bytes`` counts each mask once, as given to MPI.
    """

    name = "host"
    streamed = needs_devices = False

    def __init__(
        self,
        world: World,
        placement: Placement,
        delegates: int,
        options: ExchangeOptions,
        *,
        item: npt.DTypeLike = np.uint32,
        on_device: bool = False,
    ) -> None:
        self.on_device = on_device
        self.traffic = Traffic()
        self._local = LocalPhase(world, placement, delegates, item, on_device)
        self._rank = world.rank
        self._placement = placement
        self._options = options
        self._pairs = list(self._pairs_of(world.rank))
        self._level = 0
        self._own: list[list[Array]] = []
        self._mask: Words = np.empty(0, dtype=np.uint64)
        self._mask_waits = False
        self._mask_requests: list[Any] = []
        self._leaving: list[Pair] = []
        self._sends: list[Any] = []
        self._sent: list[Array] = []
        self._world: MpiWorld | None = None
        if world.size > 1:
            if not isinstance(world, MpiWorld):
                raise UsageError(
                    f"exchange '{self.name}' needs MPI between {world.size} ranks, "
                    f"not a {type(world).__name__}"
                )
            from mpi4py import MPI  # noqa: PLC0415

            self._mpi: Any = MPI
            self._world = world
            self._comm: Any = world.comm.Dup()
            self._masks, self._sender, self._receiver = self._slots()
            wide = self._local.item.itemsize == 8
            self._item_type = MPI.UINT64_T if wide else MPI.UINT32_T

    def start_masks(self, masks: Sequence[Words]) -> None:
        """Reduce the masks of this rank, begin to between ranks (IR); collective."""
        self._mask = self._local.reduce_masks(masks)
        if self._world is None:
            return
        self.traffic.mask_bytes += self._mask.nbytes
        self._masks.begin([self._mask])
        self._mask_waits = self._options.mask_reduce == "nonblocking"
        self._progress()

    def finish_masks(self) -> Words:
        """Return the OR over all parts of all ranks; collective.

        The blocking reduction runs here, when normal vertices are on their way.
        """
        if self._world is None:
            return self._mask
        self._progress()
        wire = self._masks.wires()[0]
        self._start_reduction()
        self._post()  # before this rank waits for others
        if self._options.mask_reduce == "nonblocking":
            with self._world.waits("exchange of masks"):
                self._mpi.Request.Waitall(self._mask_requests)
            self._mask_requests = []
        else:
            self._reduce(self._world, wire, self._mpi.BOR)
        return self._masks.back()

    def start_normals(self, bins: Sequence[Sequence[Array]]) -> None:
        """Post the sends to other ranks, as soon as the host has them; collective."""
        self._level ^= 1
        self._own = self._local.local_bins(bins)
        messages = []
        for pair in self._pairs:
            part = pair.rank + pair.there * self._placement.ranks
            if self._options.local_all2all:
                arrays = [own[part] for own in bins]
            else:
                arrays = [bins[pair.here][part]]
            messages.append(self._local.packed(arrays, self._options.uniquify))
        if self._world is not None:
            self._sender.begin(messages)
            self._leaving = self._pairs
            self._progress()

    def finish_normals(self) -> list[list[tuple[int, Array]]]:
        """Return for each part what arrived: (source rank, numbers); collective.

        Numbers of one source rank are in the order of its devices.
        """
        own, self._own = self._own, []
        self._local.next_level()
        received: list[dict[int, Array]] = [{} for _ in own]
        if self._world is not None:
            self._post()
            self._progress()
            received = self._receive(self._world)
        for index, arrays in enumerate(own):
            received[index][self._rank] = self._local.collect(index, arrays)
        return [
            [(rank, found[rank]) for rank in sorted(found) if found[rank].size]
            for found in received
        ]

    def max_delegates(self, values: Sequence[Array]) -> Array:
        """Return the maximum over all parts of all ranks, a new array; collective."""
        result = self._local.reduce_max(values)
        if self._world is None:
            return result
        self._masks.begin([result])
        self._reduce(self._world, self._masks.wires()[0], self._mpi.MAX)
        return self._masks.back()

    def close(self) -> None:
        """Free buffers and communicator; never waits, so that errors get through.

        What was started and not finished stays alive until the program ends.
        """
        if self._world is not None:
            slots = (self._masks, self._sender, self._receiver)
            if self._sends or self._leaving or self._mask_requests or self._mask_waits:
                held = (self._sends, self._sent, self._mask_requests, self._mask, slots)
                self._world.hold(held)
            else:
                self._comm.Free()
                for slot in slots:
                    slot.free()
            self._world = None
        self._leaving, self._mask_waits = [], False
        self._sends, self._sent, self._mask_requests = [], [], []
        self._local.free()

    def _slots(self) -> tuple[HostSlot, HostSlot, HostSlot]:
        """Return what takes masks, leaving and arriving numbers to MPI and back."""
        if not self.on_device:
            return HostSlot(), HostSlot(), HostSlot()
        # masks shall not wait behind numbers
        streams = [self._local.xp.cuda.Stream(non_blocking=True) for _ in range(2)]
        masks, normals = streams
        return PinnedSlot(masks), PinnedSlot(normals), PinnedSlot(normals)

    def _pairs_of(self, rank: int) -> Iterator[Pair]:
        """Yield the pairs of a rank, nearest higher rank first to spread the load."""
        ranks, devices = self._placement.ranks, range(self._placement.per_rank)
        for step in range(1, ranks):
            for here in devices:
                for there in devices:
                    if here == there or not self._options.local_all2all:
                        yield Pair((rank + step) % ranks, here, there)

    def _reduce(self, world: MpiWorld, wire: Array, operation: Any) -> None:
        """Reduce an array between ranks, in place."""
        for piece in pieces(wire.size, self._options.chunk_elements):
            with world.waits("exchange of masks"):
                self._comm.Allreduce(self._mpi.IN_PLACE, wire[piece], operation)

    def _start_reduction(self) -> None:
        """Start the nonblocking reduction of the masks unless it runs already."""
        if not self._mask_waits:
            return
        self._mask_waits = False
        wire, mpi = self._masks.wires()[0], self._mpi
        self._mask_requests = [
            self._comm.Iallreduce(mpi.IN_PLACE, wire[piece], mpi.BOR)
            for piece in pieces(wire.size, self._options.chunk_elements)
        ]

    def _tag(self, source: int, destination: int) -> int:
        """Return the tag of a pair of devices; neighbouring levels differ."""
        devices = self._placement.per_rank
        return (self._level * devices + source) * devices + destination

    def _post(self) -> None:
        """Start the sends of this level unless they are under way already."""
        pairs, self._leaving = self._leaving, []
        if pairs:
            for pair, array in zip(pairs, self._sender.wires(), strict=True):
                self._send(array, pair)

    def _send(self, array: Array, pair: Pair) -> None:
        chunk, tag = self._options.chunk_elements, self._tag(pair.here, pair.there)
        for start in range(0, array.size + 1, chunk):
            piece = array[start : start + chunk]
            self._sends.append(self._comm.Isend(piece, pair.rank, tag))
            self.traffic.messages += 1
        self._sent.append(array)
        self.traffic.normals_sent += array.size
        self.traffic.normal_bytes += array.nbytes

    def _probe(self, world: MpiWorld, pair: Pair) -> list[tuple[Any, int]]:
        """Wait for the messages of a pair; return (message, elements) of each."""
        chunk, tag = self._options.chunk_elements, self._tag(pair.there, pair.here)
        status = self._mpi.Status()
        found: list[tuple[Any, int]] = []
        while not found or found[-1][1] == chunk:
            with world.waits(f"exchange with rank {pair.rank}"):
                message = self._comm.Mprobe(pair.rank, tag, status)
            found.append((message, status.Get_count(self._item_type)))
        return found

    def _receive(self, world: MpiWorld) -> list[dict[int, Array]]:
        """Return for each part what other ranks sent, by rank; wait for the sends."""
        pairs = sorted(self._pairs, key=lambda pair: (pair.here, pair.rank, pair.there))
        messages: list[tuple[Any, int]] = []
        counts: dict[tuple[int, int], int] = {}
        for pair in pairs:
            found = self._probe(world, pair)
            messages.extend(found)
            place = pair.here, pair.rank
            counts[place] = counts.get(place, 0) + sum(count for _, count in found)
        self._receiver.space(self._local.arrivals(sum(counts.values())))
        (wire,) = self._receiver.wires()
        requests, start = [], 0
        for message, count in messages:
            requests.append(message.Irecv(wire[start : start + count]))
            start += count
        with world.waits("exchange of vertices"):
            self._mpi.Request.Waitall(requests + self._sends)
        self._sends, self._sent = [], []
        whole = self._receiver.back()
        received: list[dict[int, Array]] = [{} for _ in self._local.parts]
        start = 0
        for (index, rank), count in counts.items():
            array = whole[start : start + count]
            received[index][rank] = self._local.bring(index, array)
            start += count
        return received

    def _progress(self) -> None:
        """Start what the host has by now; let MPI work on the masks meanwhile."""
        if self._leaving and self._sender.ready():
            self._post()
        if self._mask_waits and self._masks.ready():
            self._start_reduction()
        if self._mask_requests:
            self._mpi.Request.Testall(self._mask_requests)
