"""The rows of a graph on a CUDA device, written range by range from sorted keys."""

from __future__ import annotations

from typing import Any

import numpy as np

from distbfs.build.cuda.chunks import Passes
from distbfs.build.cuda.kernels import KEYS_TILE, Kernels
from distbfs.build.cuda.numbering import Numbering
from distbfs.build.cuda.ranges import KEY_BYTES, RESERVE, Budget, Ranges
from distbfs.device import cuda
from distbfs.errors import InputError
from distbfs.graph.device_graph import COLUMN_PAD
from distbfs.types import DeviceArray

WASTE = 10  # columns may take 1 / WASTE more than they need
WIDE = 1 << 32


class Rows:
    """Columns and offsets, written range by range.

    active: rows; total: keys, repeats counted; wide: offsets of 64 bits
    """

    def __init__(
        self,
        kernels: Kernels,
        numbers: DeviceArray,
        active: int,
        total: int,
        *,
        wide: bool,
    ) -> None:
        cupy = cuda.cupy()
        self._kernels, self._numbers = kernels, numbers
        self._active, self._total, self._wide = active, total, wide
        self._large = wide or total >= WIDE
        self._offsets = cupy.empty(active + 1, np.uint64 if self._large else np.uint32)
        self._columns = cupy.empty(total + COLUMN_PAD, np.uint32)
        self.m = 0

    def add(
        self,
        chunks: Passes,
        keys: DeviceArray,
        rows: tuple[int, int, int],
        *,
        both: bool,
    ) -> DeviceArray:
        """Collect the keys of a range of rows; return them, unsorted.

        keys: uint64, room for those of any range; rows: (first, last + 1, keys)
        Raises InputError where there are not as many keys.
        """
        low, high, expected = rows
        size = cuda.cupy().zeros(1, np.uint64)
        form = (np.uint32(low), np.uint32(high), np.uint32(both))

        def append(u: DeviceArray, v: DeviceArray) -> None:
            count = np.uint64(len(u))
            room = np.uint64(len(keys))
            arguments = (count, u, v, self._numbers, *form, room, keys, size)
            self._kernels.launch("append_keys", len(u), KEYS_TILE, *arguments)

        self._kernels.each(chunks, "keys", append)
        total = int(size.get()[0])
        if total != expected:
            raise InputError(
                "the edge tuples changed while the graph was built: "
                f"{total} instead of {expected} keys"
            )
        return keys[:total]

    def write(self, keys: Any, low: int) -> None:
        """Append sorted keys of the rows from ``low`` on."""
        starts, fresh = self._kernels.fresh_before(keys)
        name = "write_rows_64" if self._large else "write_rows_32"
        sizes = np.uint64(len(keys)), np.uint64(self.m)
        out = (self._columns[self.m :], self._offsets[low:])
        arguments = (sizes[0], keys, starts, sizes[1], *out)
        self._kernels.launch(name, len(keys), KEYS_TILE, *arguments)
        self.m += fresh

    def finish(self) -> tuple[DeviceArray, DeviceArray]:
        """Return (offsets, columns) of the rows, as in DeviceGraph."""
        last = self._offsets.dtype.type(self.m)
        self._offsets[self._active :].set(np.array([last]))
        if self._large and not self._wide and self.m < WIDE:
            self._offsets = self._offsets.astype(np.uint32)
        columns = self._columns[: self.m + COLUMN_PAD]
        columns[self.m :].set(np.zeros(COLUMN_PAD, dtype=np.uint32))
        wasteful = (self._total - self.m) * WASTE > self._total
        if wasteful and columns.nbytes + RESERVE < cuda.free_bytes():
            columns = columns.copy()
        return self._offsets, columns


def make_rows(
    kernels: Kernels,
    chunks: Passes,
    numbering: Numbering,
    lengths: list[DeviceArray],
    budget: Budget,
    *,
    both: bool,
    wide: bool,
) -> tuple[DeviceArray, DeviceArray, int]:
    """Return (offsets, columns, edges) of rows from pairs of ids.

    chunks: one pass over them is planned
    lengths: uint32 [active], keys of each row, one array in a list, which is emptied
    both: a pair is two directed edges.  Offsets of empty rows are not set.
    """
    with kernels.phase("numbering"):
        ranges = Ranges(kernels, lengths.pop())
        capacity = min(max(budget.buffer // KEY_BYTES, ranges.longest), ranges.total)
        bounds = ranges.cut(capacity)
        active = numbering.active
        del ranges._degrees
    with kernels.phase("memory"):
        cuda.release()
        need = 4 * ranges.total + 8 * active + KEY_BYTES * capacity + RESERVE // 4
        cuda.require(need, f"building a graph of {ranges.total} directed edges")
        rows = Rows(kernels, numbering.numbers, active, ranges.total, wide=wide)
        buffer = cuda.cupy().empty(capacity, np.uint64)
    chunks.expect(len(bounds) - 1)
    for index, bound in enumerate(bounds):
        keys = rows.add(chunks, buffer, bound, both=both)
        if index == len(bounds) - 1:
            chunks.drop()
        with kernels.phase("sort"):
            keys.sort()
        with kernels.phase("rows"):
            rows.write(keys, bound[0])
        del keys
    chunks.drop()
    del buffer
    with kernels.phase("memory"):
        cuda.release()
        offsets, columns = rows.finish()
    return offsets, columns, rows.m
