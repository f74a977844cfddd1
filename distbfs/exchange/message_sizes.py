"""Sizes and places of messages between ranks whose arrays are on devices.

Messages go from part to part; with *local all2all* (L), only between parts with the
same place on their ranks (Pan, Pearce, Owens 2018, Section V-B).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from distbfs.exchange.local_phase import LocalPhase, total_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from distbfs.exchange.bins import Bins
    from distbfs.exchange.partners import Partners
    from distbfs.exchange.traffic import Traffic
    from distbfs.options import ExchangeOptions
    from distbfs.types import Array, Ids


class Messages:
    """The messages of one level between ranks; creating it is collective.

    partners: None on a single rank
    leaving: (pair, array) for each message to other ranks
    own: the arrays that stay, by part of this rank
    copies: (place, arrays of this rank to copy there)
    receives: (rank, place) for each message to receive, in the order in which that rank
    sends
    received: the result of ``finish_normals``
    """

    def __init__(
        self,
        local: LocalPhase,
        partners: Partners | None,
        options: ExchangeOptions,
        bins: Sequence[Bins],
    ) -> None:
        self._local = local
        self.own, self.leaving = local.deal(bins, options)
        self.copies: list[tuple[Array, list[Array]]] = []
        self.receives: list[tuple[int, Array]] = []
        self.received: list[list[tuple[int, Array]]] = [[] for _ in self.own]
        self._lay_out({} if partners is None else self._counts(partners))

    def _counts(self, partners: Partners) -> dict[int, Ids]:
        """Return sizes to receive, by ascending rank, int64 [place here, there]."""
        parts = self._local.most
        rows: dict[int, Ids] = {}
        for pair, array in self.leaving:
            if pair.rank not in rows:
                rows[pair.rank] = np.zeros((parts, parts), np.int64)
            rows[pair.rank][pair.there, pair.here] = array.size
        return partners.swap(rows, (parts, parts))

    def _lay_out(self, counts: dict[int, Ids]) -> None:
        """Allocate room for received items, by part and source rank."""
        self._local.next_level()
        me, sizes = self._local.rank, [total_size(arrays) for arrays in self.own]
        total = sum(int(row.sum()) for row in counts.values()) + sum(sizes)
        space, start = self._local.arrivals(total), 0
        for index, arrays in enumerate(self.own):
            for rank in sorted([*counts, me]):
                begin = start
                if rank == me:
                    start += sizes[index]
                    self.copies.append((space[begin:start], arrays))
                else:
                    for count in filter(None, counts[rank][index].tolist()):
                        place = space[start : start + count]
                        self.receives.append((rank, place))
                        start += count
                if start > begin:
                    self.received[index].append((rank, space[begin:start]))

    def tell(self, traffic: Traffic) -> None:
        """Count the sent items."""
        for pair, array in self.leaving:
            traffic.count(array.nbytes, part=pair.here)
