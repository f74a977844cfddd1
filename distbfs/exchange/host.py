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
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from distbfs.errors import UsageError
from distbfs.exchange.base import Traffic
from distbfs.exchange.local import LocalPhase, fill, total_size
from distbfs.exchange.mpi import MpiWorld, pieces

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from distbfs.options import SearchOptions
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

    def __init__(
        self,
        world: World,
        placement: Placement,
        delegates: int,
        options: SearchOptions,
    ) -> None:
        self.traffic = Traffic()
        self._local = LocalPhase(world, placement, delegates)
        self._rank = world.rank
        self._placement = placement
        self._options = options
        self._pairs = list(self._pairs_of(world.rank))
        self._level = 0
        self._own: list[list[Array]] = []
        self._mask: Words = np.empty(0, dtype=np.uint64)
        self._mask_requests: list[Any] = []
        self._sends: list[Any] = []
        self._sent: list[Array] = []
        self._world: MpiWorld | None = None
        if world.size > 1:
            if not isinstance(world, MpiWorld):
                raise UsageError(
                    f"exchange 'host' needs MPI between {world.size} ranks, "
                    f"not a {type(world).__name__}"
                )
            from mpi4py import MPI  # noqa: PLC0415

            self._mpi: Any = MPI
            self._world = world
            self._comm: Any = world.comm.Dup()

    def start_masks(self, masks: Sequence[Words]) -> None:
        """Reduce the masks of this rank, begin to between ranks (IR); collective."""
        self._mask = self._local.reduce_masks(masks)
        if self._world is None:
            return
        self.traffic.mask_bytes += self._mask.nbytes
        if self._options.mask_reduce == "nonblocking":
            mpi = self._mpi
            self._mask_requests = [
                self._comm.Iallreduce(mpi.IN_PLACE, self._mask[piece], mpi.BOR)
                for piece in self._mask_pieces()
            ]

    def finish_masks(self) -> Words:
        """Return the OR over all parts of all ranks; collective.

        The blocking reduction runs here, when normal vertices are on their way.
        """
        if self._world is None:
            return self._mask
        mpi = self._mpi
        if self._options.mask_reduce == "nonblocking":
            mpi.Request.Waitall(self._mask_requests)
            self._mask_requests = []
        else:
            for piece in self._mask_pieces():
                self._comm.Allreduce(mpi.IN_PLACE, self._mask[piece], mpi.BOR)
        return self._mask

    def start_normals(self, bins: Sequence[Sequence[Array]]) -> None:
        """Post the sends to other ranks; collective."""
        self._level ^= 1
        self._own = self._local.local_bins(bins)
        for pair in self._pairs:
            part = pair.rank + pair.there * self._placement.ranks
            if self._options.local_all2all:
                arrays = [own[part] for own in bins]
            else:
                arrays = [bins[pair.here][part]]
            self._send(self._packed(arrays), pair)
        self._progress()

    def finish_normals(self) -> list[list[tuple[int, Array]]]:
        """Return for each part what arrived: (source rank, uint32 numbers); collective.

        Numbers of one source rank are in the order of its devices.
        """
        self._progress()
        self._local.next_level()
        incoming: list[dict[int, list[tuple[Any, int]]]] = [{} for _ in self._own]
        for pair in sorted(self._pairs, key=lambda pair: (pair.rank, pair.there)):
            found = incoming[pair.here].setdefault(pair.rank, [])
            found.extend(self._probe(pair))
        receives: list[Any] = []
        received = [
            self._receive(device, sources, receives)
            for device, sources in enumerate(incoming)
        ]
        if self._world is not None:
            self._mpi.Request.Waitall(receives + self._sends)
        self._own, self._sends, self._sent = [], [], []
        return received

    def close(self) -> None:
        """Free buffers and communicator; never waits, so that errors get through.

        What was started and not finished stays alive until the program ends.
        """
        if self._world is not None:
            if self._sends or self._mask_requests:
                held = (self._sends, self._sent, self._mask_requests, self._mask)
                self._world.hold(held)
            else:
                self._comm.Free()
            self._world = None
        self._sends, self._sent, self._mask_requests = [], [], []
        self._local.free()

    def _pairs_of(self, rank: int) -> Iterator[Pair]:
        """Yield the pairs of a rank, nearest higher rank first to spread the load."""
        ranks, devices = self._placement.ranks, range(self._placement.per_rank)
        for step in range(1, ranks):
            for here in devices:
                for there in devices:
                    if here == there or not self._options.local_all2all:
                        yield Pair((rank + step) % ranks, here, there)

    def _mask_pieces(self) -> Iterator[slice]:
        return pieces(self._mask.size, self._options.chunk_elements)

    def _tag(self, source: int, destination: int) -> int:
        """Return the tag of a pair of devices; neighbouring levels differ."""
        devices = self._placement.per_rank
        return (self._level * devices + source) * devices + destination

    def _packed(self, arrays: list[Array]) -> Array:
        """Return what one message holds, contiguous uint32."""
        array = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
        if self._options.uniquify:
            array = np.unique(array)
        return np.ascontiguousarray(array, dtype=np.uint32)

    def _send(self, array: Array, pair: Pair) -> None:
        chunk, tag = self._options.chunk_elements, self._tag(pair.here, pair.there)
        for start in range(0, array.size + 1, chunk):
            piece = array[start : start + chunk]
            self._sends.append(self._comm.Isend(piece, pair.rank, tag))
            self.traffic.messages += 1
        self._sent.append(array)
        self.traffic.normals_sent += array.size
        self.traffic.normal_bytes += array.nbytes

    def _probe(self, pair: Pair) -> list[tuple[Any, int]]:
        """Wait for the messages of a pair; return (message, elements) of each."""
        chunk, tag = self._options.chunk_elements, self._tag(pair.there, pair.here)
        status = self._mpi.Status()
        found: list[tuple[Any, int]] = []
        while not found or found[-1][1] == chunk:
            message = self._comm.Mprobe(pair.rank, tag, status)
            found.append((message, status.Get_count(self._mpi.UINT32_T)))
        return found

    def _receive(
        self,
        device: int,
        sources: dict[int, list[tuple[Any, int]]],
        receives: list[Any],
    ) -> list[tuple[int, Array]]:
        """Begin to receive what goes to one part here; add the requests."""
        own = self._own[device]
        counts = {rank: sum(n for _, n in found) for rank, found in sources.items()}
        counts[self._rank] = total_size(own)
        space = self._local.space(device, sum(counts.values()))
        received: list[tuple[int, Array]] = []
        for rank in sorted(counts):
            array, space = space[: counts[rank]], space[counts[rank] :]
            if rank == self._rank:
                fill(array, own)
            start = 0
            for message, count in sources.get(rank, []):
                receives.append(message.Irecv(array[start : start + count]))
                start += count
            if array.size:
                received.append((rank, array))
        return received

    def _progress(self) -> None:
        """Let MPI work on the masks while the host is here anyway."""
        if self._mask_requests:
            self._mpi.Request.Testall(self._mask_requests)
