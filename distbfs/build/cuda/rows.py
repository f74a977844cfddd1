"""The rows of a graph on a CUDA device, written range by range from sorted keys."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from distbfs.build.cuda.chunks import Passes
from distbfs.build.cuda.kernels import KEYS_TILE, Kernels, check_keys
from distbfs.build.cuda.numbering import Numbering
from distbfs.build.cuda.ranges import KEY_BYTES, RESERVE, Ranges
from distbfs.build.cuda.room import EVERY, Budget, Split
from distbfs.device import cuda
from distbfs.device.array_table import allocate, total_bytes
from distbfs.device.host_memory import pinned
from distbfs.graph.device_graph import COLUMN_PAD, WIDE, Tails, rows_table
from distbfs.types import Array, DeviceArray, Marks

NO_KEYS = np.uint64((1 << 64) - 1)  # offset of a row without keys, until it is set
WASTE = 10  # columns may be allocated with 1 / WASTE unused


class RowsByRange:
    """Columns and offsets that are written range by range.

    active: number of rows; total: number of keys, including repeats; wide: offsets have
    64 bits
    split: how rows are split, None if all columns are on the device
    gaps: bool [active], which rows have no keys; None if all have some
    """

    def __init__(
        self,
        kernels: Kernels,
        active: int,
        total: int,
        *,
        wide: bool,
        split: Split | None = None,
        gaps: Marks | None = None,
    ) -> None:
        cupy = cuda.cupy()
        self._gaps = gaps
        self._kernels, self._split = kernels, split
        self._active, self._total = active, split.heads if split else total
        self._wide = wide or split is not None
        self._large = self._wide or total >= WIDE
        table = rows_table(active, self._total, wide=self._large)
        made = allocate(table, cupy.empty)
        self._offsets, self._columns = made["offsets"], made["columns"]
        self._written = self._in_tails = 0
        if split is not None:
            self._tail_offsets = cupy.empty(split.tailed + 1, np.uint64)
            self._tails = pinned(split.tails, np.uint32, "tails of rows")

    @property
    def m(self) -> int:
        """Number of columns written, without repeats."""
        return self._written + self._in_tails

    def write(self, keys: Any, rows: tuple[int, int, int]) -> None:
        """Append sorted keys of a range of rows (first, last + 1, keys)."""
        low, high, _ = rows
        if self._split is not None and low < self._split.tailed:
            self._deal(keys, low, high, self._split.kept)
            return
        self._written += self._write(
            keys, self._written, self._columns[self._written :], self._offsets[low:]
        )

    def _write(
        self, keys: Any, base: int, columns: DeviceArray, offsets: DeviceArray
    ) -> int:
        """Write columns, and offsets from ``base`` on; return the number of columns."""
        starts, fresh = self._kernels.fresh_before(keys)
        name = "write_rows_64" if self._large else "write_rows_32"
        count = np.uint64(len(keys))
        self._kernels.launch(
            name,
            len(keys),
            KEYS_TILE,
            count,
            keys,
            starts,
            np.uint64(base),
            columns,
            offsets,
        )
        return fresh

    def _deal(self, keys: Any, low: int, high: int, kept: int) -> None:
        """Put the first ``kept`` columns of rows on the device, others on the host."""
        cupy, rows = cuda.cupy(), high - low
        columns = cupy.empty(len(keys), np.uint32)
        offsets = cupy.full(rows + 1, NO_KEYS, np.uint64)
        count = self._write(keys, 0, columns, offsets)
        offsets[rows:].set(np.array([count], np.uint64))
        if self._gaps is not None:
            places = offsets.get()
            offsets.set(filled(places, places[:-1] == NO_KEYS))
        lengths = cupy.diff(offsets)
        heads = cupy.minimum(lengths, np.uint64(kept))
        places = []
        for sizes, at, out in (
            (heads, self._written, self._offsets),
            (lengths - heads, self._in_tails, self._tail_offsets),
        ):
            place = out[low : high + 1]
            place[:1] = at
            place[1:] = cupy.cumsum(sizes, dtype=np.uint64) + np.uint64(at)
            places.append(place)
        deal_rows(
            self._kernels,
            kept,
            offsets,
            columns[:count],
            places[0],
            places[1],
            self._columns,
            self._tails,
        )
        self._written, self._in_tails = (int(x[-1:].get()[0]) for x in places)

    def finish(self) -> dict[str, Any]:
        """Return offsets, columns, m and tails of the rows, as in Share."""
        written = self._written
        self._offsets[self._active :].set(np.array([written], self._offsets.dtype))
        if self._large and not self._wide and written < WIDE:
            self._offsets = self._offsets.astype(np.uint32)
        if self._gaps is not None:
            self._offsets.set(filled(self._offsets.get(), self._gaps))
        columns = self._columns[: written + COLUMN_PAD]
        columns[written:].set(np.zeros(COLUMN_PAD, dtype=np.uint32))
        wasteful = (self._total - written) * WASTE > self._total
        if wasteful and columns.nbytes + RESERVE < cuda.free_bytes():
            columns = columns.copy()
        made = {"m": self.m, "offsets": self._offsets, "columns": columns}
        if self._split is not None:
            tails = self._tails[: self._in_tails]
            kept, tailed, *_ = self._split
            if self._gaps is not None:
                self._tail_offsets[tailed:].set(np.array([self._in_tails], np.uint64))
                starts = filled(self._tail_offsets.get(), self._gaps[:tailed])
                self._tail_offsets.set(starts)
            made["tails"] = Tails(kept, tailed, self._tail_offsets, tails)
        return made


def filled(offsets: Array, empty: Marks) -> Array:
    """Fill gaps in offsets [rows + 1]: an empty row begins where the next one begins.

    empty: bool [rows], which rows are empty
    """
    offsets[:-1][empty] = offsets[-1]
    return np.ascontiguousarray(np.minimum.accumulate(offsets[::-1])[::-1])


def deal_rows(
    kernels: Kernels,
    kept: int,
    offsets: DeviceArray,
    columns: DeviceArray,
    head_at: DeviceArray,
    tail_at: DeviceArray,
    heads: DeviceArray,
    tails: Array,
) -> None:
    """Write the first ``kept`` columns of rows to the device, others to the host.

    offsets: uint64 [rows + 1], from 0; columns: uint32, those of these rows
    head_at, tail_at: uint64 [rows], where each row begins in ``heads`` and ``tails``
    """
    kernels.launch(
        "deal_rows",
        len(columns),
        KEYS_TILE,
        np.uint64(len(offsets) - 1),
        np.uint32(kept),
        offsets,
        columns,
        head_at,
        tail_at,
        heads,
        np.uint64(tails.ctypes.data),
    )


def make_rows(
    kernels: Kernels,
    chunks: Passes,
    numbering: Numbering,
    sides: list[Ranges],
    budget: Budget,
    kept: int,
    *,
    both: bool,
    wide: bool,
    gaps: Marks | None,
) -> dict[str, Any]:
    """Build offsets, columns, m and tails of rows from pairs of ids.

    chunks: the pairs, of which one more pass must be announced
    sides: the numbers of keys of the rows; the first are those of these rows, and are
    taken from the list
    kept: number of columns of a row on the device; gaps: see ``RowsByRange``
    both: whether a pair stands for two directed edges
    """
    with kernels.phase("numbering"):
        ranges, active = sides.pop(0), numbering.active
        split = None if kept == EVERY else Split.at(kept, numbering, ranges)
        capacity = budget.keys_at_once(active, ranges, split)
        bounds = ranges.cut(capacity, at=split and split.tailed)
        total, columns = ranges.total, split.heads if split else ranges.total
        del ranges
    with kernels.phase("memory"):
        cuda.release()
        need = total_bytes(rows_table(active, columns, wide=True))
        need += KEY_BYTES * capacity + RESERVE // 4
        cuda.require(need, f"building a graph of {total} directed edges")
        rows = RowsByRange(kernels, active, total, wide=wide, split=split, gaps=gaps)
        buffer = cuda.cupy().empty(capacity, np.uint64)
    chunks.expect(len(bounds) - 1)
    each = partial(kernels.each, chunks, "keys")
    for index, bound in enumerate(bounds):
        low, high, expected = bound
        ends = numbering.numbers, np.uint32(low), np.uint32(high), np.uint32(both)
        check_keys(kernels.append(each, "append_keys", ends, buffer), expected)
        keys = buffer[:expected]
        if index == len(bounds) - 1:
            chunks.drop()
        with kernels.phase("sort"):
            keys.sort()
        with kernels.phase("rows"):
            rows.write(keys, bound)
        del keys
    chunks.drop()
    del buffer
    with kernels.phase("memory"):
        cuda.release()
        return rows.finish()
