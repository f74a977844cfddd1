"""Level and parent of any vertex, from results distributed in blocks.

Rank r holds the block slice_bounds(n, size, r). Two ways with the same answers:
``Replicated`` gathers all blocks on every rank once; ``Routed`` asks the owners, chunk
by chunk, with memory for one chunk only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from distbfs.distinct import distinct
from distbfs.exchange.router import Delivery
from distbfs.types import UNREACHED, Array, Ids, Levels, Marks, World, slice_bounds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Chunk = TypeVar("Chunk", bound=tuple[Any, ...])

REPLICATED_LIMIT = 2 << 30
BYTES_PER_VERTEX = 12
INVALID = -2
LOW_HALF = (1 << 32) - 1


class Lookup(Protocol):
    """Finds results by vertex id and keeps one mark per vertex.

    ``n`` is the number of vertices.  ``fetch``, ``mark`` and ``rounds`` may be
    collective; ``marked`` is.  Ids given are int64 in 0 … n-1.
    """

    n: int

    def rounds(self, chunks: Iterable[Chunk], empty: Chunk) -> Iterator[Chunk]:
        """Yield chunks, then empty ones until every rank is at its end."""

    def fetch(self, ids: Ids) -> tuple[Ids, Ids]:
        """Return levels, int64, and parents, int64, of the vertices of ``ids``.

        Parents are -1 where the search gave levels only, and less for invalid ids.
        """

    def mark(self, ids: Ids) -> None:
        """Mark vertices, int64 in 0 … n-1, on whatever rank they are."""

    def marked(self) -> Marks:
        """Return which vertices of this rank's block any rank marked, bool."""


class Replicated:
    """All results on every rank: one 64-bit word per vertex, level above parent."""

    def __init__(
        self, world: World, n: int, level: Levels, parent: Array | None
    ) -> None:
        """Gather the blocks; collective.  n must fit 31 bits."""
        self.world = world
        self.n = n
        self.words: Ids = np.concatenate(world.allgather(_pack(level, parent, n)))
        self.seen = np.zeros(n, dtype=np.uint8)

    def rounds(self, chunks: Iterable[Chunk], empty: Chunk) -> Iterator[Chunk]:  # noqa: ARG002
        """Yield the chunks; needs no other rank."""
        yield from chunks

    def fetch(self, ids: Ids) -> tuple[Ids, Ids]:
        """Return (levels, parents) of vertices, int64; local."""
        words = self.words[ids]
        return words >> 32, words.astype(np.int32).astype(np.int64)

    def mark(self, ids: Ids) -> None:
        """Mark vertices, int64; local until ``marked``."""
        self.seen[ids] = 1

    def marked(self) -> Marks:
        """Return the marks of this rank's block, bool; collective."""
        bits = np.zeros(-(-self.n // 64) * 8, dtype=np.uint8)
        packed = np.packbits(self.seen)
        bits[: len(packed)] = packed
        everywhere = self.world.allreduce(bits.view(np.uint64), "or").view(np.uint8)
        low, high = slice_bounds(self.n, self.world.size, self.world.rank)
        first = low // 8
        block = np.unpackbits(everywhere[first : -(-high // 8)])
        return block[low - 8 * first : high - 8 * first].astype(np.bool_)


class Routed:
    """Results stay with their owners; every lookup is two messages per rank."""

    def __init__(
        self, world: World, n: int, level: Levels, parent: Array | None
    ) -> None:
        self.world = world
        self.n = n
        self.low, high = slice_bounds(n, world.size, world.rank)
        self.level = level
        self.parent = parent
        self.seen = np.zeros(high - self.low, dtype=np.bool_)
        cuts = [slice_bounds(n, world.size, rank)[0] for rank in range(world.size)]
        self.cuts = np.array(cuts, dtype=np.int64)

    def rounds(self, chunks: Iterable[Chunk], empty: Chunk) -> Iterator[Chunk]:
        """Yield the same number of chunks on every rank; collective."""
        remaining = iter(chunks)
        while True:
            chunk = next(remaining, None)
            more = np.array([chunk is not None], dtype=np.int64)
            if not self.world.allreduce(more, "max")[0]:
                return
            yield empty if chunk is None else chunk

    def fetch(self, ids: Ids) -> tuple[Ids, Ids]:
        """Return (levels, parents) of vertices, int64; collective.

        Each distinct id is requested once.
        """
        each, where = np.unique(ids, return_inverse=True)
        where = where.reshape(-1)
        delivery = self._delivery(each)
        asked = [places - self.low for places in delivery.send(each)]
        level = delivery.back([self.level[places] for places in asked])
        level = level.astype(np.int64)[where]
        if self.parent is None:
            return level, np.full(len(ids), UNREACHED, dtype=np.int64)
        parent = delivery.back([self.parent[places] for places in asked])
        return level, parent.astype(np.int64)[where]

    def mark(self, ids: Ids) -> None:
        """Mark vertices, int64, at their owners; collective."""
        ids = distinct(ids)
        for places in self._delivery(ids).send(ids):
            self.seen[places - self.low] = True

    def marked(self) -> Marks:
        """Return the marks of this rank's block, bool; local."""
        return self.seen

    def _delivery(self, ids: Ids) -> Delivery:
        """Return the delivery of ids to their owners."""
        return Delivery(self.world, np.searchsorted(self.cuts, ids, "right") - 1)


def make_lookup(
    world: World, n: int, level: Levels, parent: Array | None, limit: int
) -> Replicated | Routed:
    """Return the lookup for n vertices; collective.

    ``limit`` bounds n · 12 bytes of a replicated result.
    """
    if n * BYTES_PER_VERTEX <= limit and n < 1 << 31:
        return Replicated(world, n, level, parent)
    return Routed(world, n, level, parent)


def _pack(level: Levels, parent: Array | None, n: int) -> Ids:
    """Pack level · 2^32 + parent into words; an invalid parent becomes -2."""
    words: Ids = level.astype(np.int64) << 32
    if parent is None:
        return words | LOW_HALF
    allowed = (parent >= UNREACHED) & (parent < n)
    return words | (np.where(allowed, parent, INVALID).astype(np.int64) & LOW_HALF)
