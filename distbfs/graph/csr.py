"""Compressed sparse rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from distbfs.device.arrays import array_module, is_of_device
from distbfs.errors import InputError
from distbfs.graph.keys import BOTH, FORTH, HALF, Items
from distbfs.graph.sorted_rows import KeyRuns
from distbfs.types import AnyArray, Array, Ids, Words

SLICE = 1 << 21  # edges handled in one piece


def index_dtype(largest: int) -> type[np.unsignedinteger]:
    """Return uint32 if ``largest`` fits in it, else uint64."""
    return np.uint32 if largest < 1 << 32 else np.uint64


def add_counts(counts: Ids, rows: Array) -> None:
    """Add to ``counts`` how often each row occurs; ``rows``: int64, ascending."""
    if len(rows):
        first, last = int(rows[0]), int(rows[-1])
        counts[first : last + 1] += np.bincount(rows - first)


def row_blocks(
    offsets: AnyArray, most: int | None = None, first: int = 0
) -> Iterator[tuple[int, int]]:
    """Yield (first, last + 1) of runs of rows: ``most`` edges at most, or one row.

    offsets: uint32 or uint64 [rows + 1]; most: by default SLICE; first: the row to
    begin with. Together the runs cover all rows from it on.
    """
    xp, rows, end = array_module(offsets), len(offsets) - 1, np.iinfo(offsets.dtype).max
    while first < rows:
        limit = min(int(offsets[first]) + (most or SLICE), end)
        # an array of another type would convert all offsets
        place = xp.searchsorted(offsets, xp.asarray([limit], offsets.dtype), "right")
        last = min(max(int(place[0]) - 1, first + 1), rows)
        yield first, last
        first = last


def row_offsets(
    lengths: Any, dtype: type[np.unsignedinteger] | None = None, rows: int = 0
) -> Any:
    """Return where rows with these lengths begin and all end, [rows + 1].

    dtype: by default uint32 if it fits, else uint64; rows: their number, by default
    that of lengths; further ones are empty
    """
    xp, counted = array_module(lengths), len(lengths)
    kind = index_dtype(int(lengths.sum())) if dtype is None else dtype
    offsets = xp.zeros(max(rows, counted) + 1, kind)
    xp.cumsum(lengths, out=offsets[1 : counted + 1], dtype=kind)
    offsets[counted + 1 :] = offsets[counted]
    return offsets


def check_columns(columns: Array, below: int) -> None:
    """Raise InputError if a column is not below ``below``."""
    if len(columns) and int(columns.max()) >= below:
        raise InputError(f"a column is not below {below}")


def check_offsets(offsets: Array, edges: int) -> None:
    """Raise InputError unless offsets rise from 0 to the number of edges."""
    if len(offsets) == 0 or int(offsets[0]) != 0:
        raise InputError("row offsets do not start at 0")
    if np.any(offsets[1:] < offsets[:-1]):
        raise InputError("row offsets do not rise")
    if int(offsets[-1]) != edges:
        raise InputError("the last row offset is not the number of columns")


@dataclass(frozen=True)
class CSR:
    """Rows of column numbers.

    ``offsets`` [rows + 1], uint32 or uint64, rises from 0 to the number of edges;
    ``columns`` [edges], uint32 or uint64. Both are NumPy arrays, or CuPy arrays with
    COLUMN_PAD more columns behind the last.
    """

    offsets: Any
    columns: Any

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.offsets) - 1

    @property
    def edges(self) -> int:
        """Number of stored directed edges."""
        return len(self.columns)

    @property
    def bits(self) -> Words | None:
        """Visibility bits of the edges, or None: all visible."""
        return None

    @property
    def nbytes(self) -> int:
        """Bytes of both arrays, without the last offset."""
        return self.offsets.nbytes - self.offsets.itemsize + self.columns.nbytes

    def degrees(self) -> Array:
        """Return the row lengths, int64 [rows]."""
        return np.diff(self.offsets.astype(np.int64))

    def occupied(self) -> Array:
        """Return the rows that have an edge, int64 ascending."""
        ends = self.offsets if self.edges else self.offsets[:0]
        return np.flatnonzero(np.diff(ends))

    def sources(self, start: int = 0, stop: int | None = None) -> Array:
        """Return the row of each edge start … stop-1, by default all, int64."""
        stop = self.edges if stop is None else stop
        ends = np.array([start, stop], dtype=self.offsets.dtype)
        low, high = np.searchsorted(self.offsets, ends).tolist()
        low, rows = max(low - 1, 0), np.arange(max(low - 1, 0), high)
        cuts = np.clip(self.offsets[low : high + 1].astype(np.int64), start, stop)
        return np.repeat(rows, np.diff(cuts))

    def check(self, columns_below: int) -> None:
        """Raise InputError unless offsets rise from 0 and columns are in range."""
        check_offsets(self.offsets, self.edges)
        check_columns(self.columns, columns_below)

    @classmethod
    def from_keys(
        cls, rows: int, keys: Words, way: int = FORTH, threads: int = 0
    ) -> CSR:
        """Build rows from keys ``row << 32 | column``, uint64.

        way: FORTH takes the keys as they are, BACK exchanges their halves, BOTH does
        both
        """
        runs = KeyRuns(HALF, rows, len(keys) * (2 if way == BOTH else 1), threads)
        runs.add(Items(way, keys))
        cut = runs.cut(np.uint32)
        return cls(row_offsets(cut.lengths), cut.columns)

    def edges_of(self, rows: Any) -> tuple[Any, Any]:
        """Return (index into ``rows`` int64, column) of every edge of rows, in order.

        rows: integers [k]
        """
        index, places = self.places_of(rows)
        return index, self.columns[places]

    def places_of(self, rows: Any) -> tuple[Any, Any]:
        """Return (index into ``rows``, place in ``columns``) of these edges, int64."""
        start = self.offsets[rows].astype(np.int64)
        length = self.offsets[rows + 1].astype(np.int64) - start
        ends = length.cumsum()
        first = start - (ends - length)
        if is_of_device(length):
            cp = array_module(length)
            edge = cp.arange(int(ends[-1]) if len(rows) else 0, dtype=np.int64)
            index = cp.searchsorted(ends, edge, side="right")
            return index, edge + first[index]
        index = np.repeat(np.arange(len(rows)), length)
        edge = np.repeat(first, length)
        return index, edge + np.arange(len(edge))

    def first_edges(self, rows: Array) -> Array:
        """Return the index in ``columns`` of the first edge of nonempty rows."""
        return self.offsets[rows]

    def permute_rows(self, order: Array) -> CSR:
        """Reorder the rows: new row k is the present row ``order[k]``."""
        return CSR(row_offsets(self.degrees()[order]), self.edges_of(order)[1])

    @classmethod
    def empty(cls, rows: int, dtype: type[np.unsignedinteger] = np.uint32) -> CSR:
        """Return rows without edges, whose columns have dtype ``dtype``."""
        return cls(np.zeros(rows + 1, dtype=np.uint32), np.zeros(0, dtype=dtype))
