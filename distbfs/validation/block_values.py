"""Level and parent of any vertex, from results distributed in blocks.

Rank r holds the block slice_bounds(n, size, r). If all blocks fit a limit, every rank
gathers them once. Otherwise the owners are asked, chunk by chunk, with memory for one
chunk only. The answers are the same in both cases.
"""

from __future__ import annotations

from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from distbfs.distinct import distinct
from distbfs.exchange.router import Delivery
from distbfs.types import UNREACHED, Array, Ids, Levels, Marks, World, slice_bounds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Chunk = TypeVar("Chunk", bound=tuple[Any, ...])

REPLICATED_LIMIT = 2 << 30
BYTES_PER_VERTEX = 12


class Lookup:
    """Finds results by vertex id and keeps one mark per vertex.

    ``marked`` is always collective; ``fetch``, ``mark`` and ``rounds`` are unless
    ``whole``. The ids passed are int64 in 0 … n-1.

    n: number of vertices; low: first vertex of this rank's block
    whole: whether all results are on every rank
    level, parent: arrays of all vertices if ``whole``, else of this rank's block;
    parent is None if there are only levels
    """

    def __init__(
        self, world: World, n: int, level: Levels, parent: Array | None, limit: int
    ) -> None:
        """Gather the blocks if n · 12 bytes are within the limit (collective)."""
        self.world, self.n, self.level = world, n, np.ascontiguousarray(level)
        self.parent = parent
        if parent is not None:
            self.parent = np.ascontiguousarray(parent, dtype=np.int64)
        self.whole = world.size == 1 or n * BYTES_PER_VERTEX <= limit
        cuts = [slice_bounds(n, world.size, rank) for rank in range(world.size)]
        self.low, self._high = cuts[world.rank]
        self._cuts = np.array([low for low, _ in cuts], dtype=np.int64)
        if self.whole and world.size > 1:
            self.level = np.concatenate(world.allgather(level))
            if self.parent is not None:
                self.parent = np.concatenate(world.allgather(self.parent))
        self.seen = np.zeros(len(self.level), dtype=np.uint8)

    def rounds(self, chunks: Iterable[Chunk], empty: Chunk) -> Iterator[Chunk]:
        """Yield chunks, then empty ones until all ranks have come to their end."""
        for chunk in chain(chunks, repeat(None)):
            more = np.array([chunk is not None], dtype=np.int64)
            if not (more if self.whole else self.world.allreduce(more, "max"))[0]:
                return
            yield empty if chunk is None else chunk

    def fetch(self, ids: Ids) -> tuple[Ids, Ids]:
        """Return levels, int64, and parents, int64, of the vertices of ``ids``.

        Parents are -1 if the search gave only levels. Each distinct id is requested
        from its owner once.
        """
        values = [x for x in (self.level, self.parent) if x is not None]
        if self.whole:
            answers = [x[ids] for x in values]
        else:
            each, where = np.unique(ids, return_inverse=True)
            delivery, where = self._delivery(each), where.reshape(-1)
            asked = [places - self.low for places in delivery.send(each)]
            answers = [delivery.back([x[y] for y in asked])[where] for x in values]
        if self.parent is None:
            answers.append(np.full(len(ids), UNREACHED, dtype=np.int64))
        level, parent = answers
        return level.astype(np.int64), parent.astype(np.int64, copy=False)

    def value(self, name: str, vertex: int) -> int:
        """Return the "level" or "parent" of a vertex; see ``fetch``."""
        level, parent = self.fetch(np.array([vertex]))
        return int((level if name == "level" else parent)[0])

    def mark(self, ids: Ids) -> None:
        """Mark vertices, whichever rank owns them."""
        if self.whole:
            self.seen[ids] = 1
            return
        ids = distinct(ids)
        for places in self._delivery(ids).send(ids):
            self.seen[places - self.low] = 1

    def marked(self) -> Marks:
        """Return, as bool, which vertices of this rank's block any rank has marked."""
        if not self.whole:
            return self.seen.astype(np.bool_)
        bits = np.packbits(self.seen)
        bits.resize(-(-len(bits) // 8) * 8)
        bits = self.world.allreduce(bits.view(np.uint64), "or").view(np.uint8)
        everywhere = np.unpackbits(bits, count=self.n)
        return everywhere[self.low : self._high].astype(np.bool_)

    def _delivery(self, ids: Ids) -> Delivery:
        """Return the delivery that sends ids to their owners."""
        return Delivery(self.world, np.searchsorted(self._cuts, ids, "right") - 1)
