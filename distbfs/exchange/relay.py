"""Items that travel in two hops over a grid of ranks, so that messages stay few.

In one hop a rank may send a message to each of p - 1 others in a level. Here it sends
only along its row of the grid, to the rank in the column of the receiver, which joins
what it gets and sends it on along the column: O(√p) messages. Every item crosses the
wire twice. Ranks of the last row, which may be short, go along a column first where
their row lacks the receiver's column.
Source: Bruck, Ho, Kipnis, Upfal, Weathersby 1997 (collectives in several hops); Buluç,
Madduri 2011 (rows and columns of a grid of ranks in breadth-first search).

A message is a header, then segments of items. The header is one word with the number of
segments and two words for each: the part that receives it and the rank that sent it,
and how many items it has.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from distbfs.device.arrays import host_array, near
from distbfs.exchange.bins import Bins, joined

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from distbfs.exchange.base import Exchange
    from distbfs.partition.layout import Placement
    from distbfs.types import Array, Words

PART_AT = 32  # bits of a header's word: the receiving part, below it the sending rank
RANK_MASK = (1 << PART_AT) - 1


class Segment(NamedTuple):
    """Items, uint64 [k], that a rank sends to a part."""

    part: int
    rank: int
    items: Any


class Grid:
    """Ranks in rows of ``width``, the last of which may be shorter."""

    def __init__(self, ranks: int) -> None:
        self.ranks, self.width = ranks, math.isqrt(ranks - 1) + 1

    def carrier(self, here: int, there: int) -> int:
        """Return the rank to which ``here`` gives items for ``there``."""
        row, column = divmod(here, self.width)
        to_row, to_column = divmod(there, self.width)
        rank = row * self.width + to_column
        # mutant: < self.ranks -> >= 0 : test_relay::test_carriers
        return rank if rank < self.ranks else to_row * self.width + column


class RelayExchange:
    """Sends the items of another exchange in two hops; see ``base.Exchange``.

    What is received is the same as in one hop; a rank's second hop begins in
    ``finish_normals``, and counts for its first part. Masks go as they do there.
    """

    streamed = symmetric = False

    def __init__(self, exchange: Exchange, placement: Placement, rank: int) -> None:
        self._exchange, self._placement, self._rank = exchange, placement, rank
        self._grid = Grid(placement.ranks)
        self._own = {part: at for at, part in enumerate(placement.parts_of(rank))}
        self._stay: list[Segment] = []  # that this rank sends on, or keeps
        self._homes: list[Any] = [nullcontext()] * len(self._own)

    def __getattr__(self, name: str) -> Any:
        """Return what the other exchange has."""
        return getattr(self._exchange, name)

    def start_normals(self, bins: Sequence[Bins]) -> None:
        """Begin the first hop, to the carriers; collective."""
        if self.on_device:
            self._homes = [own.items.device for own in bins]
        pieces: dict[int, list[Any]] = {}
        for own in bins:
            for part, items in own.pieces():
                pieces.setdefault(part, []).append(items)
        carried: dict[int, list[Segment]] = {}
        for part, arrays in sorted(pieces.items()):
            carrier = self._grid.carrier(self._rank, self._placement.rank_of(part))
            items = joined(arrays)
            carried.setdefault(carrier, []).append(Segment(part, self._rank, items))
        self._stay = carried.pop(self._rank, [])
        self._exchange.start_normals(self._packed(carried))

    def finish_normals(self) -> list[list[tuple[int, Array]]]:
        """Finish the first hop and do the second; collective."""
        segments, self._stay = self._stay + self._received(), []
        onward: dict[int, list[Segment]] = {}
        for segment in segments:
            rank = self._placement.rank_of(segment.part)
            onward.setdefault(rank, []).append(segment)
        here = onward.pop(self._rank, [])
        self._exchange.start_normals(self._packed(onward))
        every: list[list[tuple[int, Array]]] = [[] for _ in self._own]
        for part, rank, items in sorted(here + self._received(), key=lambda x: x[:2]):
            at = self._own[part]
            with self._homes[at]:
                # the engine may change what it has sent
                kept = items.copy() if rank == self._rank else items
                every[at].append((rank, near(kept)))
        return every

    def _packed(self, messages: dict[int, list[Segment]]) -> list[Bins]:
        """Return messages to ranks as bins of this rank's first part, for theirs."""
        arrays: list[Any] = []
        sizes = np.zeros(self._placement.parts, np.int64)
        for rank, segments in sorted(
            messages.items(), key=lambda x: self._first_part(x[0])
        ):
            head = [len(segments)]
            for part, source, items in segments:
                head += [part << PART_AT | source, items.size]
            message = [segment.items for segment in segments]
            arrays += [self.xp.asarray(np.array(head, np.uint64)), *message]
            sizes[self._first_part(rank)] = len(head) + sum([x.size for x in message])
        nothing = Bins(self.xp.zeros(0, np.uint64))
        if not arrays:
            return [nothing] * len(self._own)
        ends = np.cumsum(sizes)
        items = joined(arrays)
        whole = Bins(items, lambda: (ends - sizes, ends))
        return [whole, *[nothing] * (len(self._own) - 1)]

    def _first_part(self, rank: int) -> int:
        """Return the part of a rank that receives its messages."""
        return int(self._placement.parts_of(rank)[0])

    def _received(self) -> list[Segment]:
        """Finish a hop; return the segments of its messages."""
        arrays = [items for _, items in self._exchange.finish_normals()[0]]
        counts = self._read(array[:1] for array in arrays).tolist()
        ends = [1 + 2 * count for count in counts]
        heads = self._read(x[1:end] for x, end in zip(arrays, ends, strict=True))
        rows = iter(heads.reshape(-1, 2).tolist())
        segments = []
        for array, count, begin in zip(arrays, counts, ends, strict=True):
            at = begin
            for _ in range(count):
                who, size = next(rows)
                items = array[at : at + size]
                segments.append(Segment(who >> PART_AT, who & RANK_MASK, items))
                at += size
        return segments

    def _read(self, arrays: Iterable[Any]) -> Words:
        """Return words of several arrays, one after the other, in host memory."""
        every = [self.xp.zeros(0, np.uint64), *arrays]
        words: Words = host_array(joined(every))
        return words
