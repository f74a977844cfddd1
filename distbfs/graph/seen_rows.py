"""Rows with some edges hidden: a visibility bit for each edge."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from distbfs.graph.csr import CSR
from distbfs.types import Array, Ids, Marks, Words


def bits_of_flags(flags: Array) -> Words:
    """Pack flags, bool or uint8 [k], into bits, uint64 [ceil(k / 64)]."""
    packed = np.packbits(flags, bitorder="little")
    packed.resize((len(flags) + 63) // 64 * 8)
    return packed.view(np.uint64)


def flags_of_bits(bits: Words, count: int) -> Marks:
    """Return the first ``count`` bits as flags, bool [count]."""
    flags = np.unpackbits(bits.view(np.uint8), count=count, bitorder="little")
    return flags.view(np.bool_)


@dataclass(frozen=True)
class SeenRows(CSR):
    """Rows whose methods return only visible edges.

    ``offsets`` and ``columns`` are those of all edges, shared with the unmasked rows;
    ``seen`` uint64 [ceil(edges / 64)]: bit k % 64 of word k / 64 is set if edge k, in
    the order of ``columns``, is visible.
    """

    seen: Words

    @classmethod
    def of(cls, rows: CSR, flags: Marks) -> SeenRows:
        """Return rows of which ``flags``, bool [edges], marks the visible edges."""
        return cls(rows.offsets, rows.columns, bits_of_flags(flags))

    @property
    def bits(self) -> Words:
        """The bits of ``seen``."""
        return self.seen

    def flags(self) -> Marks:
        """Return which edges are visible, bool [edges]."""
        return flags_of_bits(self.seen, self.edges)

    @cached_property
    def _before(self) -> Ids:
        """Number of visible edges before each row, int64 [rows + 1]."""
        before = np.zeros(self.edges + 1, dtype=np.int64)
        np.cumsum(self.flags(), out=before[1:])
        counts: Ids = before[self.offsets]
        return counts

    def degrees(self) -> Array:
        """Return the number of visible edges of each row, int64 [rows]."""
        return np.diff(self._before)

    def occupied(self) -> Array:
        """Return the rows with a visible edge, int64 ascending."""
        return np.flatnonzero(self.degrees())

    def first_edges(self, rows: Array) -> Ids:
        """Return the index of the first visible edge of rows that have one."""
        return np.flatnonzero(self.flags())[self._before[rows]]

    def edges_of(self, rows: Array) -> tuple[Array, Array]:
        """Return (index into ``rows``, column) of the visible edges; as in CSR."""
        index, places = self.places_of(rows)
        bit = (places & 63).astype(np.uint64)
        kept = (self.seen[places >> 6] >> bit & np.uint64(1)).astype(np.bool_)
        return index[kept], self.columns[places[kept]]
