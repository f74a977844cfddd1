"""Conversion of keys to rows: grouped as they arrive, then sorted by all threads.

The module also has the other operations on whole arrays that construction needs. They
are parallel, since a sequential step between two kernels limits the speed-up.

The kernels are in ``sorted_rows.c``; without a compiler NumPy gives the same results.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from distbfs.device import cc
from distbfs.device.calls import LongCall
from distbfs.device.structures import structure
from distbfs.errors import InputError
from distbfs.graph.keys import HALF, OUTSIDE, Deal, Items, KeyFormat
from distbfs.types import Array, Ids

SOURCE = Path(__file__).with_name("sorted_rows.c")
BUCKET_KEYS = 1 << 10  # keys of a bucket in small inputs
BUCKET_BITS = 11  # most bits of the number of buckets
PIECE = 1 << 13  # items that a thread groups at once
CALL = 1 << 26  # keys of a call, to bound its time
BLOCK = 1 << 15  # edges that a thread ranks at once
DIGIT = 11  # most bits of a value sorted in one pass
LARGE_PAGE = 1 << 21  # bytes
AHEAD = 1 << 24  # keys of a growing array whose pages are touched at once


def make_pages(array: Array, threads: int, *, zero: bool = False) -> None:
    """Touch the pages of new memory with all threads; with ``zero``, clear it.

    Without ``zero`` the values are undefined afterwards.
    """
    native = cc.load_or_none(SOURCE)
    if native is not None and (zero or array.nbytes >= LARGE_PAGE):
        memory = cc.arguments(array, array.nbytes, zero)
        LongCall(native)(native.touch, *memory, cc.thread_count(threads))
    elif zero:
        array[:] = 0


def fresh(
    count: int, dtype: type[np.generic], threads: int, *, zero: bool = False
) -> Array:
    """Return a new array with its pages touched; see ``make_pages``."""
    array = np.empty(count, dtype=dtype)
    make_pages(array, threads, zero=zero)
    return array


class Grouping:
    """Keys of items grouped by class: by bucket, or by rank (shift -1).

    starts: int64 [classes + 1], start of each class. Raises InputError if an end of a
    tuple is not a vertex.
    """

    def __init__(
        self, native: ctypes.CDLL, items: Items, classes: int, shift: int, threads: int
    ) -> None:
        self._native, self._threads = native, threads
        deal, count = items.deal, len(items.u)
        pieces = -(-count // PIECE)
        counts = np.empty((pieces, classes), dtype=np.uint32)
        self.starts = np.empty(classes + 1, dtype=np.int64)
        self._work = structure(SOURCE, "grouping")(
            edges={
                "u": np.ascontiguousarray(items.u),
                "v": None if items.v is None else np.ascontiguousarray(items.v),
                "count": count,
                "n": deal.n if deal else 0,
                "way": items.way,
                "parts": deal.parts if deal else 1,
                "ranks": deal.ranks if deal else 1,
                "local": deal.local if deal else 0,
                "slots": deal.slots if deal else None,
                "bits": deal.form.bits if deal else HALF,
                "shift": shift,
            },
            at={
                "classes": classes,
                "pieces": pieces,
                "counts": counts,
                "starts": self.starts,
            },
            piece=PIECE,
        )
        native.count_keys.restype = ctypes.c_int64
        self.total = self._call(native.count_keys)
        if deal and self.total < 0:
            raise InputError(OUTSIDE.format(deal.n - 1))

    def _call(self, kernel: Any) -> int:
        work = ctypes.byref(self._work)
        return int(LongCall(self._native)(kernel, work, self._threads))

    def place(self, keys: Array) -> None:
        """Write the keys by class to ``keys``, uint64 [total]; call it only once."""
        self._work.set(keys=keys)
        self._call(self._native.place_keys)


def keys_by_rank(items: Items, ranks: int, threads: int) -> list[Array]:
    """Return the keys of tuples, uint64, for each rank, in no particular order."""
    native = cc.load_or_none(SOURCE)
    if native is None:
        keys, owner = items.keys()
        return [keys[owner == rank] for rank in range(ranks)]
    grouping = Grouping(native, items, ranks, -1, threads)
    keys = np.empty(grouping.total, dtype=np.uint64)
    grouping.place(keys)
    return np.split(keys, grouping.starts[1:-1])


class KeyBuffer:
    """A growing array of keys, whose pages all threads touch."""

    def __init__(self, capacity: int, threads: int = 0) -> None:
        self._data = np.empty(max(capacity, 1), dtype=np.uint64)
        self._threads = threads
        self._made = self.size = 0

    def room(self, count: int) -> Array:
        """Return the next ``count`` free elements, uint64 [count]."""
        need = self.size + count
        if need > len(self._data):
            grown = np.empty(max(need, len(self._data) * 5 // 4), dtype=np.uint64)
            grown[: self.size] = self._data[: self.size]
            self._data, self._made = grown, self.size
        if need > self._made:
            made = max(need, min(self._made + AHEAD, len(self._data)))
            make_pages(self._data[self._made : made], self._threads)
            self._made = made
        self.size = need
        return self._data[need - count : need]

    def take(self) -> Array:
        """Return the keys, uint64, and empty the buffer."""
        keys, self._data = self._data[: self.size], np.empty(0, dtype=np.uint64)
        return keys


@dataclass(frozen=True)
class Cut:
    """Sorted keys as rows.

    columns: by row, ascending in each; lengths: int64 [rows], columns in each row
    ends, loops: only for a deal, whose columns have no loops and repeats: int64 [rows],
    ends of tuples in each row, and int64 [slots], tuples that were loops
    """

    columns: Array
    lengths: Ids
    ends: Ids
    loops: Ids


class KeyRuns:
    """Keys ``row << bits | column`` to be sorted.

    rows: upper bound of the number of rows; expected: approximate number of keys
    """

    def __init__(self, bits: int, rows: int, expected: int, threads: int = 0) -> None:
        self._native = cc.load_or_none(SOURCE)
        self._form, self._rows = KeyFormat(bits), rows
        self._threads = cc.thread_count(threads)
        bits_of_bucket = min(max(expected // BUCKET_KEYS, 1).bit_length(), BUCKET_BITS)
        most = (max(rows, 1) << bits) - 1
        self._shift = max(most.bit_length() - bits_of_bucket, 0)
        self._buckets = (most >> self._shift) + 1
        self._keys = KeyBuffer(expected, threads)
        self._starts: list[Ids] = []

    def add(self, items: Items) -> None:
        """Add the keys of items; raise InputError if an end is not a vertex."""
        for piece in items.pieces():
            if self._native is None:
                keys = piece.keys()[0]
                self._keys.room(len(keys))[:] = keys
                continue
            grouping = Grouping(
                self._native, piece, self._buckets, self._shift, self._threads
            )
            self._starts.append(grouping.starts + self._keys.size)
            grouping.place(self._keys.room(grouping.total))

    def cut(
        self,
        dtype: type[np.unsignedinteger],
        deal: Deal | None = None,
        loop_ends: int = 2,
    ) -> Cut:
        """Sort the keys into rows, which discards the keys.

        dtype: of the columns, uint32 or uint64
        deal: if it is not None, drop loops and repeats, and count the ends of tuples,
        of which a loop has ``loop_ends``. Raises MemoryError.
        """
        keys = self._keys.take()
        if self._native is None:
            return self._plain_cut(keys, dtype, deal, loop_ends, self._rows)
        lengths = fresh(self._rows, np.int64, self._threads, zero=True)
        ends = fresh(self._rows if deal else 0, np.int64, self._threads, zero=True)
        loops = np.zeros(len(deal.group) if deal else 0, dtype=np.int64)
        starts = np.array(self._starts, dtype=np.int64).reshape(-1, self._buckets + 1)
        kept = np.zeros(self._buckets, dtype=np.int64)
        buckets = structure(SOURCE, "bucket_set")(
            keys=keys,
            starts=starts,
            runs=len(starts),
            buckets=self._buckets,
            bits=self._form.bits,
            width=np.dtype(dtype).itemsize,
            distinct=deal is not None,
            loop_ends=loop_ends,
            parts=deal.parts if deal else 1,
            local=deal.local if deal else 1,
            part_of=deal.part_of if deal else None,
            ends=ends,
            lengths=lengths,
            loops=loops,
            kept=kept,
        )
        sizes = np.diff(starts, axis=1).sum(axis=0)
        in_calls(self._native.sort_buckets, buckets, np.cumsum(sizes), self._threads)
        places = np.cumsum(kept) - kept
        columns = fresh(int(kept.sum()), dtype, self._threads)
        buckets.set(places=places, columns=columns)
        in_calls(self._native.copy_buckets, buckets, places + kept, self._threads)
        return Cut(columns, lengths, ends, loops)

    def _plain_cut(
        self,
        keys: Array,
        dtype: type[np.unsignedinteger],
        deal: Deal | None,
        loop_ends: int,
        rows: int,
    ) -> Cut:
        keys.sort()
        row, column = self._form.row(keys), self._form.column(keys)
        ends, loops = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        if deal:
            slot = row // max(deal.local, 1)
            vertex = (row - slot * deal.local) * deal.parts + deal.part_of[slot]
            loop = vertex == column
            ends = np.bincount(row, minlength=rows)
            ends += (loop_ends - 1) * np.bincount(row[loop], minlength=rows)
            loops = np.bincount(slot[loop], minlength=len(deal.group))
            fresh = ~loop
            fresh[1:] &= keys[1:] != keys[:-1]
            row, column = row[fresh], column[fresh]
        lengths = np.bincount(row, minlength=rows)
        return Cut(column.astype(dtype), lengths, ends, loops)


def calls(ends: Ids) -> Iterator[tuple[int, int]]:
    """Yield (first, last + 1) of runs of items that have about CALL keys together.

    ends: int64, number of keys up to the end of each item
    """
    first = 0
    while first < len(ends):
        limit = (int(ends[first - 1]) if first else 0) + CALL
        last = max(int(np.searchsorted(ends, limit, side="right")), first + 1)
        yield first, last
        first = last


def in_calls(kernel: Any, work: Any, ends: Ids, threads: int) -> None:
    """Call a kernel for all items, a run of them at a time; see ``calls``.

    work: its structure. Raises MemoryError if a call has no memory.
    """
    library = cc.load(SOURCE)
    for first, last in calls(ends):
        run = cc.arguments(ctypes.byref(work), first, last)
        if LongCall(library)(kernel, *run, threads):
            raise MemoryError("no memory to sort the edges of a graph")


def stable_order(values: Array, threads: int = 0, *, falling: bool = False) -> Array:
    """Return the stable sorting order of up to 2^32 values, uint32.

    values: uint32, or int64 of 0 or more; falling: greatest first
    """
    native, threads = cc.load_or_none(SOURCE), cc.thread_count(threads)
    count, most = len(values), values.max(initial=0)
    used, bits = int(most).bit_length(), max(count - 1, 1).bit_length()
    if native is None or used + bits > 64:
        rising = most - values if falling else values
        return np.argsort(rising, kind="stable").astype(np.uint32)
    passes = max(-(-used // DIGIT), 1)
    digit = -(-used // passes)
    classes, pieces = 1 << digit, -(-count // PIECE)
    counts = np.empty(pieces * classes, dtype=np.uint32)
    starts = np.empty(classes + 1, dtype=np.int64)
    keys = [fresh(count, np.uint64, threads) for _ in range(min(passes - 1, 2))]
    order = fresh(count, np.uint32, threads)
    work = structure(SOURCE, "ordering")(
        values=values,
        width=values.itemsize,
        count=count,
        piece=PIECE,
        bits=bits,
        digit=digit,
        falling=falling,
        order=order,
        at={"classes": classes, "pieces": pieces, "counts": counts, "starts": starts},
        **dict(zip(("keys", "beside"), keys, strict=False)),
    )
    arguments = cc.arguments(ctypes.byref(work), passes)
    LongCall(native)(native.order_values, *arguments, threads)
    return order


def taken(values: Array, index: Array, threads: int = 0) -> Array:
    """Return ``values[index]``; values have 4 or 8 bytes, index is uint32."""
    out = fresh(len(index), values.dtype.type, threads)
    if not moved("take", index, out, threads, values=values, width=values.itemsize):
        values.take(index, out=out)
    return out


def inverse(order: Array, threads: int = 0) -> Array:
    """Return the inverse of a permutation; both uint32."""
    out = fresh(len(order), np.uint32, threads)
    if not moved("invert", order, out, threads):
        out[order] = np.arange(len(order), dtype=np.uint32)
    return out


def moved(name: str, index: Array, out: Array, threads: int, **values: Any) -> bool:
    """Call the kernel ``take`` or ``invert``; False without a compiler."""
    native = cc.load_or_none(SOURCE)
    if native is None:
        return False
    work = structure(SOURCE, "taking")(index=index, out=out, **values)
    arguments = cc.arguments(ctypes.byref(work), len(index))
    LongCall(native)(getattr(native, name), *arguments, cc.thread_count(threads))
    return True


def ranked_rows(
    offsets: Ids,
    lengths: Ids,
    columns: Array,
    order: Array,
    rank: Array,
    name: Array,
    dtype: type[np.integer],
    threads: int = 0,
) -> tuple[Array, Array]:
    """Return (offsets, columns uint32) of reordered rows, columns sorted by rank.

    offsets: int64 [rows + 1]; lengths: int64 [rows]; columns: uint32 [edges]
    order: uint32 [rows], new row k is the present row ``order[k]``
    rank: uint32, rank of each column; name: uint32, new column for each rank
    dtype: of the returned offsets, uint32 or uint64. Raises MemoryError.
    """
    lengths = taken(lengths, order, threads)
    places = np.zeros(len(lengths) + 1, dtype=dtype)
    np.cumsum(lengths, out=places[1:], dtype=dtype)
    out = fresh(len(columns), np.uint32, threads)
    native = cc.load_or_none(SOURCE)
    if native is None:
        edge = np.repeat(
            offsets[order] - places[:-1].astype(np.int64), lengths
        ) + np.arange(len(out))
        keys = np.repeat(np.arange(len(order), dtype=np.uint64), lengths)
        keys = keys << np.uint64(HALF) | rank[columns[edge]]
        keys.sort()
        out[:] = name[keys.astype(np.uint32)]
        return places, out
    wanted = np.arange(BLOCK, int(places[-1]), BLOCK, dtype=dtype)
    cuts = np.searchsorted(places, wanted, "left")
    blocks = np.unique(np.append(cuts, [0, len(order)]))
    work = structure(SOURCE, "row_set")(
        offsets=offsets,
        columns=columns,
        order=order,
        rank=rank,
        name=name,
        blocks=blocks,
        places=places,
        out=out,
        width=places.itemsize,
        bits=max(len(rank) - 1, 1).bit_length(),
    )
    ends = places[blocks[1:]].astype(np.int64)
    in_calls(native.rank_rows, work, ends, cc.thread_count(threads))
    return places, out
