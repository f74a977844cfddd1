"""The rows of a graph on a CUDA device, written range by range from sorted keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from distbfs.build.cuda.chunks import Passes
from distbfs.build.cuda.kernels import KEYS_TILE, Kernels
from distbfs.build.cuda.keys import KeyPasses, Rule, segments
from distbfs.build.cuda.numbering import Numbering
from distbfs.build.cuda.ranges import RESERVE, Ranges
from distbfs.build.cuda.room import Budget, Split
from distbfs.device import cuda
from distbfs.device.array_table import total_bytes
from distbfs.device.host_memory import pinned, seen_by_kernels
from distbfs.graph.csr import CSR, index_dtype, row_offsets
from distbfs.graph.device_graph import COLUMN_PAD, WIDE, Tails, rows_table
from distbfs.partition.share import Rows
from distbfs.types import Array, DeviceArray, KernelArgument

WASTE = 10  # columns may be allocated with 1 / WASTE unused


class RowWriter:
    """Writes rows from sorted keys of ascending rows, without repeats.

    lengths: zeros, uint32 [counted], for the rows that may have columns
    kernel: name of the kernel that writes columns; arguments: its arguments between
    lengths and columns
    bits: bits of a column in a key
    room: memory for all columns and COLUMN_PAD more; None: pieces are joined at the end
    """

    def __init__(
        self,
        kernels: Kernels,
        lengths: DeviceArray,
        kernel: str = "write_columns",
        arguments: tuple[KernelArgument, ...] = (),
        dtype: type[np.unsignedinteger] = np.uint32,
        bits: int = 32,
        room: DeviceArray | None = None,
    ) -> None:
        self._kernels, self._lengths, self._bits = kernels, lengths, np.uint32(bits)
        self._kernel, self._arguments, self._dtype = kernel, arguments, dtype
        self._pieces: list[DeviceArray] = []
        self._room, self._host = room, np.zeros(0, dtype)
        self._written = 0

    def to_host(self, most: int) -> None:
        """Write columns, ``most`` at most, to pinned host memory."""
        self._host = pinned(most + COLUMN_PAD, self._dtype, "columns of a part")
        self._room = seen_by_kernels(self._host)

    @property
    def on_host(self) -> bool:
        """Whether columns are written to host memory."""
        return len(self._host) > 0

    def _place(self, count: int) -> DeviceArray:
        """Return memory for the next columns."""
        first, self._written = self._written, self._written + count
        if self._room is not None:
            return self._room[first:]
        self._pieces.append(cuda.cupy().empty(count + COLUMN_PAD, self._dtype))
        return self._pieces[-1]

    def add(self, keys: DeviceArray, shift: int) -> None:
        """Append the columns of keys, uint64; row = row of the key + shift.

        All keys of a row must come in one call.
        """
        if len(keys):
            self._write(keys, shift, self._place)

    def _write(
        self, keys: DeviceArray, shift: int, place: Callable[[int], DeviceArray]
    ) -> int:
        """Write columns to ``place(their number)``; return their number."""
        starts, fresh = self._kernels.fresh_before(keys)
        self._kernels.over(
            self._kernel,
            len(keys),
            keys,
            starts,
            self._bits,
            np.uint32(shift & 0xFFFFFFFF),
            self._lengths,
            *self._arguments,
            place(fresh),
            per_block=KEYS_TILE,
        )
        return fresh

    def _columns(self) -> DeviceArray:
        """Return all columns, and COLUMN_PAD zeros."""
        total, room = self._written, self._room
        end = slice(total, total + COLUMN_PAD)
        if self.on_host:
            self._host[end] = 0
            return seen_by_kernels(self._host[: end.stop])
        if room is None and len(self._pieces) == 1:
            room = self._pieces.pop()
        elif room is None:
            room, at = cuda.cupy().empty(end.stop, self._dtype), 0
            for piece in self._pieces:
                count = len(piece) - COLUMN_PAD
                room[at : at + count] = piece[:count]
                at += count
            self._pieces = []
        room[end].set(np.zeros(COLUMN_PAD, self._dtype))
        return room[: end.stop]

    def finish(self, rows: int) -> CSR:
        """Return the subgraph with ``rows`` rows; rows past ``counted`` are empty."""
        columns = self._columns()[: self._written]
        offsets = row_offsets(self._lengths, index_dtype(self._written), rows)
        return CSR(offsets, columns)


class RowsByRange(RowWriter):
    """Rows of a ``Share``, written range by range.

    active: number of rows; total: number of keys, including repeats; wide: offsets have
    64 bits
    split: how rows are split, None if all columns are on the device
    """

    def __init__(
        self,
        kernels: Kernels,
        active: int,
        total: int,
        *,
        wide: bool,
        split: Split | None = None,
    ) -> None:
        cupy = cuda.cupy()
        self._split, self._wide = split, wide or split is not None
        self._total, self._in_tails = split.heads if split else total, 0
        need = total_bytes(rows_table(active, self._total, wide=True))
        cuda.require(need + 8 * active + RESERVE // 4, f"rows of {total} keys")
        self._heads = cupy.empty(self._total + COLUMN_PAD, np.uint32)
        super().__init__(kernels, cupy.zeros(active, np.uint32), room=self._heads)
        if split is not None:
            self._tails = pinned(split.tails, np.uint32, "tails of rows")

    def write(self, keys: DeviceArray, low: int) -> None:
        """Append sorted keys of rows from ``low`` on; rows with tails go apart."""
        if self._split is not None and low < self._split.tailed:
            some, keys = segments(keys, low, [self._split.tailed], 32)
            if len(some):
                self._deal(self._split, some, low)
        self.add(keys, low)

    def _deal(self, split: Split, keys: DeviceArray, low: int) -> None:
        """Put the first columns of rows on the device, others on the host."""
        columns = cuda.cupy().empty(len(keys), np.uint32)
        high = low + 1 + (int(keys[-1:].get()[0]) >> 32)
        count, lengths = self._write(keys, low, lambda _: columns), self._lengths
        lengths = lengths[low:high]
        heads, tails = split_offsets(lengths, split)
        heads += np.uint64(self._written)
        tails += np.uint64(self._in_tails)
        deal_rows(
            self._kernels,
            split.kept,
            row_offsets(lengths, np.uint64),
            columns[:count],
            heads,
            tails,
            self._heads,
            self._tails,
        )
        self._written, self._in_tails = (int(x[-1:].get()[0]) for x in (heads, tails))

    def made(self) -> Rows:
        """Return the rows that were written."""
        written, split, columns = self._written, self._split, self._columns()
        wasteful = (self._total - written) * WASTE > self._total
        if wasteful and columns.nbytes + RESERVE < cuda.free_bytes():
            columns = columns.copy()
        if split is None:
            dtype = np.uint64 if self._wide or written >= WIDE else np.uint32
            return Rows(self._kernels.scan(self._lengths, dtype), columns)
        offsets, tail_offsets = split_offsets(self._lengths, split)
        held = self._tails[: self._in_tails]
        tails = Tails(split.kept, split.tailed, tail_offsets, held)
        return Rows(offsets, columns, tails)


def split_offsets(
    lengths: DeviceArray, split: Split
) -> tuple[DeviceArray, DeviceArray]:
    """Return where heads of rows begin and all end, and their tails, both uint64.

    lengths: uint32, of whole rows; only the first ``split.tailed`` have tails
    """
    heads = cuda.cupy().minimum(lengths, np.uint32(split.kept))
    pieces = heads, (lengths - heads)[: split.tailed]
    first, last = (row_offsets(piece, np.uint64) for piece in pieces)
    return first, last


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


class Side(NamedTuple):
    """Pairs of ids of which rows of one direction are made.

    chunks: the pairs, of which one more pass must be announced
    turned: whether rows are those of the second ids; last: whether no rows follow
    """

    chunks: Passes
    budget: Budget
    turned: bool = False
    last: bool = True


def make_rows(
    kernels: Kernels,
    pairs: Side,
    numbering: Numbering,
    sides: list[Ranges],
    splits: list[Split | None],
    *,
    both: bool,
    wide: bool,
) -> Rows:
    """Build rows from pairs of ids.

    sides, splits: the numbers of keys of the rows, and how rows are split; the first
    are those of these rows, and are taken from the lists
    both: whether a pair stands for two directed edges
    """
    active = numbering.active
    with kernels.phase("numbering"):
        ranges, split = sides.pop(0), splits.pop(0)
        most = pairs.budget.keys_at_once(active, ranges, split)
    with kernels.phase("memory"):
        cuda.release()
        rows = RowsByRange(kernels, active, ranges.total, wide=wide, split=split)
    rule = Rule(
        "keys",
        active,
        (numbering.numbers, np.uint32(both)),
        ranges=ranges,
        most=most,
        turned=pairs.turned,
        last=pairs.last,
    )
    del ranges
    for keys, low in KeyPasses(kernels, pairs.chunks).sorted_keys(rule):
        with kernels.phase("rows"):
            rows.write(keys, low)
        del keys
    if pairs.last:
        pairs.chunks.drop()
    with kernels.phase("memory"):
        cuda.release()
        return rows.made()
