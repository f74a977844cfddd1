"""Rows of which some edges are seen and the others are not: a bit for each edge."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from distbfs.graph.csr import CSR
from distbfs.types import Array, Ids, Marks, Words


def bits_of_flags(flags: Marks) -> Words:
    """Return flags, bool [k], as bits, uint64 [ceil(k / 64)]."""
    bits = np.zeros((len(flags) + 63) // 64 * 8, dtype=np.uint8)
    packed = np.packbits(flags, bitorder="little")
    bits[: len(packed)] = packed
    return bits.view(np.uint64)


@dataclass(frozen=True)
class SeenRows(CSR):
    """Rows whose methods tell only of the edges that are seen.

    ``offsets`` and ``columns`` are those of all edges, shared with the rows without a
    mask; ``seen`` uint64 [ceil(edges / 64)]: bit k % 64 of word k / 64 tells whether
    edge k, in the order of ``columns``, is seen.
    """

    seen: Words

    @classmethod
    def of(cls, rows: CSR, flags: Marks) -> SeenRows:
        """Return rows with flags, bool [edges]: which edges are seen."""
        return cls(rows.offsets, rows.columns, bits_of_flags(flags))

    @property
    def bits(self) -> Words:
        """The bits of ``seen``."""
        return self.seen

    def flags(self) -> Marks:
        """Return which edges are seen, bool [edges]."""
        bits = np.unpackbits(self.seen.view(np.uint8), bitorder="little")
        return bits[: self.edges].view(np.bool_)

    @cached_property
    def _before(self) -> Ids:
        """How many edges are seen before each row, int64 [rows + 1]."""
        before = np.zeros(self.edges + 1, dtype=np.int64)
        np.cumsum(self.flags(), out=before[1:])
        counts: Ids = before[self.offsets]
        return counts

    def degrees(self) -> Array:
        """Return how many edges of each row are seen, int64 [rows]."""
        return np.diff(self._before)

    def occupied(self) -> Array:
        """Return the rows that have an edge that is seen, int64 ascending."""
        return np.flatnonzero(self.degrees())

    def first_edges(self, rows: Array) -> Ids:
        """Return the place of the first edge that is seen of occupied rows."""
        return np.flatnonzero(self.flags())[self._before[rows]]

    def edges_of(self, rows: Array) -> tuple[Array, Array]:
        """Return (index into ``rows``, column) of the edges that are seen; as CSR."""
        index, places = self.places_of(rows)
        bit = (places & 63).astype(np.uint64)
        kept = (self.seen[places >> 6] >> bit & np.uint64(1)).astype(np.bool_)
        return index[kept], self.columns[places[kept]]
