"""What goes from rank to rank where arrays are on devices: counts and places.

*local all2all* (L) joins the bins of a rank's parts before *uniquify* (U) looks for
repeats; messages run between ranks with and without it (Pan, Pearce, Owens 2018,
Section V-B).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from distbfs.exchange.local_phase import LocalPhase, total_size
from distbfs.exchange.mpi import MpiWorld

if TYPE_CHECKING:
    from collections.abc import Sequence

    from distbfs.exchange.base import Traffic
    from distbfs.options import ExchangeOptions
    from distbfs.partition.layout import Placement
    from distbfs.types import Array, Ids, World


class Messages:
    """The messages of one level between ranks.

    outgoing[r]: arrays for rank r; own: [part of this rank] arrays that stay here
    copies: (place, arrays of this rank to put there); receives: (rank, place), in the
    order in which that rank sends; received: what ``finish_normals`` returns
    """

    def __init__(
        self,
        world: World,
        placement: Placement,
        local: LocalPhase,
        options: ExchangeOptions,
        bins: Sequence[Sequence[Array]],
    ) -> None:
        self._world, self._placement = world, placement
        self._local, self._options = local, options
        self.own = local.local_bins(bins)
        self.outgoing = [self._to(bins, rank) for rank in range(world.size)]
        self.copies: list[tuple[Array, list[Array]]] = []
        self.receives: list[tuple[int, Array]] = []
        self.received: list[list[tuple[int, Array]]] = [[] for _ in self.own]
        self._lay_out(self._counts())

    def _to(self, bins: Sequence[Sequence[Array]], rank: int) -> list[Array]:
        """Return what goes to a rank, for its parts in turn; nothing to this one."""
        if rank == self._world.rank:
            return []
        together, unique = self._options.local_all2all, self._options.uniquify
        messages: list[Array] = []
        for part in self._placement.parts_of(rank):
            found = [own[part] for own in bins]
            groups = [found] if together else [[array] for array in found]
            messages += [self._local.packed(arrays, unique) for arrays in groups]
        return messages

    def _counts(self) -> Ids:
        """Return how much comes, [ranks, parts of this rank, messages to each]."""
        parts = len(self._local.parts)
        each = 1 if self._options.local_all2all else parts
        sent = np.zeros((self._world.size, parts * each), np.int64)
        for row, arrays in zip(sent, self.outgoing, strict=True):
            if arrays:
                row[:] = [array.size for array in arrays]
        counts = np.zeros_like(sent)
        if isinstance(self._world, MpiWorld):
            with self._world.waits("exchange of counts"):
                self._world.comm.Alltoall(sent, counts)
        return counts.reshape(-1, parts, each)

    def _lay_out(self, counts: Ids) -> None:
        """Make room for what arrives, by part and source rank."""
        self._local.next_level()
        total = int(counts.sum()) + sum(total_size(arrays) for arrays in self.own)
        space, start = self._local.arrivals(total), 0
        for index, arrays in enumerate(self.own):
            for rank, row in enumerate(counts[:, index].tolist()):
                begin = start
                if rank == self._world.rank:
                    start += total_size(arrays)
                    self.copies.append((space[begin:start], arrays))
                for count in row:
                    if count:
                        place = space[start : start + count]
                        self.receives.append((rank, place))
                        start += count
                if start > begin:
                    self.received[index].append((rank, space[begin:start]))

    def tell(self, traffic: Traffic) -> None:
        """Count what leaves."""
        for arrays in self.outgoing:
            total = total_size(arrays)
            traffic.messages += total > 0
            traffic.normals_sent += total
            traffic.normal_bytes += total * self._local.item.itemsize
