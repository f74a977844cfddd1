"""Ranges of rows whose keys are sorted together, within a memory limit."""

from __future__ import annotations

import numpy as np

from distbfs.build.cuda.kernels import Kernels
from distbfs.device import cuda
from distbfs.types import DeviceArray, Ids

ROWS_TILE = 1024  # numbers whose degrees are summed together
KEY_BYTES = 16  # a key and its place in the sort
RESERVE = 1 << 30


def histogram(kernels: Kernels, values: DeviceArray) -> tuple[Ids, Ids]:
    """Return the distinct values, ascending, and how often each occurs, int64."""
    most = max(Ranges(kernels, values).longest, 1023)
    counts = cuda.cupy().zeros(most + 1, np.uint32)
    kernels.over("histogram", len(values), values, counts)
    host = counts.get()
    occur = np.flatnonzero(host)
    return occur, host[occur].astype(np.int64)


class Ranges:
    """Ranges of numbers whose keys fit a buffer.

    lengths: uint32 [rows], keys of each row
    total: keys of all rows; longest: keys of the longest row
    """

    def __init__(self, kernels: Kernels, lengths: DeviceArray) -> None:
        cupy = cuda.cupy()
        self.lengths = lengths
        tiles = -(-len(lengths) // ROWS_TILE)
        sums, longest = cupy.empty(tiles, np.uint64), cupy.zeros(1, np.uint32)
        rows = np.uint64(len(lengths))
        kernels.launch("sum_rows", tiles, 1, rows, lengths, sums, longest)
        self._before = np.zeros(tiles + 1, dtype=np.int64)
        np.cumsum(sums.get().astype(np.int64), out=self._before[1:])
        self.longest = int(longest.get()[0])
        self.total = int(self._before[-1])

    def beyond(self, rows: int, kept: int) -> int:
        """Count the keys beyond the first ``kept`` in the first ``rows`` rows."""
        with self.lengths.device:
            some = self.lengths[:rows]
            first = cuda.cupy().minimum(some, np.uint32(kept)).sum(dtype=np.uint64)
            return self._keys_before(rows) - int(first)

    def cut(self, capacity: int, rows: int) -> list[tuple[int, int, int]]:
        """Return (first row, last + 1, keys) of ranges of at most ``capacity`` keys.

        capacity: at least the keys of the longest row; rows: most rows of a range
        """
        out: list[tuple[int, int, int]] = []
        row = done = 0
        while row < len(self.lengths):
            last = min(self._row_after(done + capacity), row + rows)
            upto = self._keys_before(last)
            out.append((row, last, upto - done))
            row, done = last, upto
        return out

    def _row_after(self, keys: int) -> int:
        """Return how many first rows have at most ``keys`` keys together."""
        tile = int(np.searchsorted(self._before, keys, side="right")) - 1
        first = tile * ROWS_TILE
        ends = self._before[tile] + np.cumsum(self._tile(tile))
        return first + int(np.searchsorted(ends, keys, side="right"))

    def _keys_before(self, row: int) -> int:
        tile, inside = divmod(row, ROWS_TILE)
        return int(self._before[tile] + self._tile(tile)[:inside].sum())

    def _tile(self, tile: int) -> Ids:
        first = tile * ROWS_TILE
        return self.lengths[first : first + ROWS_TILE].get().astype(np.int64)
