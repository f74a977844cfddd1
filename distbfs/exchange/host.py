"""The exchange through host memory and MPI.

Source: Pan, Pearce, Owens 2018, Section V. Masks of delegates are OR-ed on each rank,
then by MPI_Allreduce (BR) or MPI_Iallreduce (IR) between ranks. Normal vertices are
sent by MPI_Isend and MPI_Irecv between parts that have items for each other. With
*local all2all* (L), the parts of a rank first pass their bins to the device whose place
on the rank is that of the destination, so that only devices of equal places send
messages: at most p²/p_gpu pairs instead of p². With *uniquify* (U), each message holds
a vertex once. A single rank sends nothing and needs no MPI: everything stays in its
memory.

A rank learns from ``partners`` how many messages to expect, and from a matched probe
the source and length of each. A bin travels in messages of at most ``chunk_elements``
elements, which arrive in order.

Arrays of a device pass through pinned memory (``staging``): all items of a level take
one copy to the host and one back, and so do the masks. MPI never gets a device pointer.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.exchange.base import Exchange
from distbfs.exchange.staging import HostSlot, PinnedSlot
from distbfs.ranks.mpi import pieces

if TYPE_CHECKING:
    from collections.abc import Sequence

    from distbfs.exchange.partners import Pair
    from distbfs.options import ExchangeOptions
    from distbfs.partition.layout import Placement
    from distbfs.types import Array, Words, World


class HostExchange(Exchange):
    """Serves any number of ranks; see ``base.Exchange``. Creating it is collective."""

    name = "host"

    def __init__(
        self,
        world: World,
        placement: Placement,
        delegates: int,
        options: ExchangeOptions,
        *,
        on_device: bool = False,
    ) -> None:
        super().__init__(world, placement, delegates, options, on_device=on_device)
        self._devices = placement.per_rank
        self._mask: Words = np.empty(0, dtype=np.uint64)
        self._mask_waits = False
        self._mask_requests: list[Any] = []
        self._normals_wait = False  # between their start and their finish
        self._leaving: list[Pair] = []
        self._sends: list[Any] = []  # requests, which keep what they send
        if not self._alone:
            from mpi4py import MPI  # noqa: PLC0415

            self._mpi: Any = MPI
            self._comm: Any = self._ranks.comm.Dup()
            self._masks, self._sender, self._receiver = self._slots()

    def _start_masks_between(self, masks: Sequence[Words]) -> None:
        """Reduce the masks of this rank; start IR between ranks."""
        self._mask = self._reduce_own(masks)
        self._masks.begin([self._mask])
        self._mask_waits = self._options.mask_reduce == "nonblocking"
        self._progress()

    def _finish_masks_between(self) -> Words:
        """Return the OR over all ranks.

        The blocking reduction runs here, after the sends of normal vertices have
        started.
        """
        self._progress()
        wire = self._masks.wires()[0]
        self._start_reduction()
        self._post()  # before this rank waits for others
        if self._options.mask_reduce == "nonblocking":
            with self._ranks.waits("exchange of masks"):
                self._mpi.Request.Waitall(self._mask_requests)
            self._mask_requests = []
        else:
            self._reduce(wire)
        return self._masks.back()

    def _start_normals_between(self, leaving: Sequence[tuple[Pair, Array]]) -> None:
        """Post the sends to other ranks, once the host has the data."""
        self._normals_wait = True
        self._partners.next_level()
        self._sender.begin([array for _, array in leaving])
        self._leaving = [pair for pair, _ in leaving]
        self._progress()

    def close(self) -> None:
        """Free buffers and communicator; never wait, so that errors are not held up.

        Operations that are started and not finished keep their memory.
        """
        if not self._alone:
            slots = (self._masks, self._sender, self._receiver)
            if self._normals_wait or self._mask_requests or self._mask_waits:
                held = (self._sends, self._mask_requests, self._mask, slots)
                self._ranks.hold(held)
            else:
                self._comm.Free()
                self._partners.free()
                for slot in slots:
                    slot.free()
        self._leaving, self._mask_waits = [], False
        self._sends, self._mask_requests = [], []
        super().close()

    def _slots(self) -> tuple[HostSlot, HostSlot, HostSlot]:
        """Return the slots for masks, sent items and received items."""
        if not self.on_device:
            return HostSlot(), HostSlot(), HostSlot()
        # masks do not queue behind numbers
        streams = [self.xp.cuda.Stream(non_blocking=True) for _ in range(2)]
        masks, normals = streams
        return PinnedSlot(masks), PinnedSlot(normals), PinnedSlot(normals)

    def _reduce(self, wire: Words) -> None:
        """OR masks between ranks, in place."""
        mpi = self._mpi
        for piece in pieces(wire.size, self._options.chunk_elements):
            self.traffic.count(wire[piece].nbytes, "masks")
            with self._ranks.waits("exchange of masks"):
                self._comm.Allreduce(mpi.IN_PLACE, wire[piece], mpi.BOR)

    def _start_reduction(self) -> None:
        """Start the nonblocking reduction of the masks unless it has started."""
        if not self._mask_waits:
            return
        self._mask_waits = False
        wire, mpi = self._masks.wires()[0], self._mpi
        for piece in pieces(wire.size, self._options.chunk_elements):
            self.traffic.count(wire[piece].nbytes, "masks")
            # mutant: Iallreduce(mpi.IN_PLACE, wire[piece], mpi.BOR) ->
            #   Allreduce(mpi.IN_PLACE, wire[piece], mpi.BOR) or mpi.REQUEST_NULL :
            #   test_masks_are_reduced_as_asked_for
            request = self._comm.Iallreduce(mpi.IN_PLACE, wire[piece], mpi.BOR)
            self._mask_requests.append(request)

    def _post(self) -> None:
        """Start the sends of this level unless they have started."""
        pairs, self._leaving = self._leaving, []
        if pairs:
            for pair, array in zip(pairs, self._sender.wires(), strict=True):
                self._send(array, pair)

    def _send(self, array: Array, pair: Pair) -> None:
        comm, tag = self._partners.comm, pair.here * self._devices + pair.there
        for place in pieces(array.size, self._options.chunk_elements):
            piece = array[place]
            self._sends.append(comm.Isend(piece, pair.rank, tag))
            self._partners.announce(pair.rank)
            # mutant: pair.here -> 0 : test_traffic
            self.traffic.count(piece.nbytes, part=pair.here)

    def _probe(self) -> list[tuple[int, int, int, Any, int]]:
        """Wait for all messages of this level; return them in the order of places.

        Each is (receiving part, rank, sending part, message, elements).
        """
        comm, mpi, status = self._partners.comm, self._mpi, self._mpi.Status()
        messages = []
        coming = self._partners.coming()
        with self._ranks.waits("exchange of vertices"):
            for _ in range(coming):
                message = comm.Mprobe(mpi.ANY_SOURCE, mpi.ANY_TAG, status)
                sender, receiver = divmod(status.Get_tag(), self._devices)
                count = status.Get_count(mpi.UINT64_T)
                messages.append((receiver, status.Get_source(), sender, message, count))
        return sorted(messages, key=itemgetter(0, 1, 2))  # in order within a bin

    def _finish_normals_between(self) -> list[dict[int, Array]]:
        """Return each part's items from other ranks, by rank; wait for the sends."""
        self._post()
        self._progress()
        messages = self._probe()
        counts: dict[tuple[int, int], int] = {}
        for here, rank, _, _, count in messages:
            counts[here, rank] = counts.get((here, rank), 0) + count
        received: list[dict[int, Array]] = [{} for _ in self._homes]
        requests = []
        if messages:
            self._receiver.space(self._arrivals(sum(counts.values())))
            (wire,) = self._receiver.wires()
            start = 0
            for *_, message, count in messages:
                requests.append(message.Irecv(wire[start : start + count]))
                start += count
        if requests or self._sends:
            with self._ranks.waits("exchange of vertices"):
                self._mpi.Request.Waitall(requests + self._sends)
        self._sends = []
        if messages:
            whole, start = self._receiver.back(), 0
            for (index, rank), count in counts.items():
                array = whole[start : start + count]
                received[index][rank] = self._bring(index, array)
                start += count
        self._normals_wait = False
        return received

    def _progress(self) -> None:
        """Start the transfers whose data the host has; let MPI progress the masks."""
        if self._leaving and self._sender.ready():
            self._post()
        if self._mask_waits and self._masks.ready():
            self._start_reduction()
        if self._mask_requests:
            self._mpi.Request.Testall(self._mask_requests)
