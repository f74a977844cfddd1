"""Delegates, the vertices whose degree exceeds TH, and their numbers.

Source: Pan, Pearce, Owens 2018, Section III-A.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from distbfs.graph.csr import CSR, row_offsets
from distbfs.partition.layout import Layout
from distbfs.types import Array, Ids, World

DENSE_VERTICES = 1 << 30  # above, no table of all vertices is made
AT_ONCE = 1 << 20  # columns that are numbered
SPARSE = 4  # vertices of a table for each delegate: it takes what sorting would


def gather_delegates(
    world: World, ids: Sequence[Ids], degrees: Sequence[Ids]
) -> tuple[Ids, Ids]:
    """Gather (delegates, their degrees), int64 [d], on all ranks (collective).

    ids, degrees: int64, the delegates of this rank's parts and their degrees. Delegates
    are ordered by descending degree, then by id.
    """
    own = np.concatenate([np.zeros(0, dtype=np.int64), *ids, *degrees])
    gathered = world.allgather(own)
    merged = np.concatenate([g.reshape(2, -1) for g in gathered], axis=1)
    order = np.lexsort((merged[0], -merged[1]))
    return merged[0][order], merged[1][order]


class DelegateNumbers:
    """The delegate numbers of vertices.

    delegates: [d] global ids, -1 for none
    n: number of vertices of the graph, given if about as many numbers are looked up as
    there are edges. Numbers are then kept in a table, as they are if most vertices are
    delegates.
    count: number of delegates
    """

    def __init__(self, delegates: Ids, n: int = 0) -> None:
        self.count = int(np.count_nonzero(delegates >= 0))
        self._table: Array | None = None
        highest = int(delegates.max(initial=-1))
        n = max(n, highest + 1 if highest < SPARSE * self.count else 0)
        if self.count and 0 < n <= DENSE_VERTICES:
            self._table = np.full(n + 1, -1, dtype=np.int32)  # the last: of no vertex
            numbers = np.arange(len(delegates), dtype=np.int32)
            self._table[delegates] = np.where(delegates >= 0, numbers, -1)
            return
        self._order = np.argsort(delegates)
        self._sorted = delegates[self._order]

    def of(self, vertices: Ids) -> Array:
        """Return each vertex's delegate number, integers [k], -1 for normal ones."""
        if self._table is not None:
            return self._table[np.minimum(vertices, len(self._table) - 1)]
        if not len(self._order):
            return np.full(len(vertices), -1, dtype=np.int64)
        places = np.searchsorted(self._sorted, vertices)
        places = np.minimum(places, len(self._order) - 1)
        return np.where(self._sorted[places] == vertices, self._order[places], -1)

    def one(self, vertex: int) -> int:
        """Return the delegate number of a vertex, -1 if it is normal."""
        if self._table is not None:
            return int(self._table[min(vertex, len(self._table) - 1)])
        place = int(self._sorted.searchsorted(vertex))
        if place == len(self._sorted) or self._sorted[place] != vertex:
            return -1
        return int(self._order[place])


class ByOwner:
    """The delegates of parts that own rows, in the order of their owners.

    In this order, the vertices for which a part pulls are adjacent in bitmaps. In rows,
    neighbours stay in descending order of degree.

    delegates: int64 [d], ids by number; order: the ``DelegateNumbers`` by descending
    degree
    numbers: uint32 [d], the numbers of the delegates by descending degree
    """

    def __init__(self, layout: Layout, delegates: Ids) -> None:
        """Take ids, int64 [d], by descending degree."""
        self.order: Ids = np.argsort(layout.part_of(delegates), kind="stable")
        self.delegates: Ids = delegates[self.order]
        self.numbers = np.empty(len(delegates), dtype=np.uint32)
        self.numbers[self.order] = np.arange(len(delegates), dtype=np.uint32)

    def rows(self, lengths: Ids, columns: Array) -> CSR:
        """Return the rows of a part; the columns change in place.

        lengths: int64 [d], lengths of the part's rows, 0 for other rows
        columns: uint32, the columns of these rows, below d

        Both rows and columns are numbered by descending degree.
        """
        for first in range(0, len(columns), AT_ONCE):
            some = columns[first : first + AT_ONCE]
            # mutant: self.numbers[some] -> some : test_directed_parts
            some[:] = self.numbers[some]
        return CSR(row_offsets(lengths[self.order]), columns)
