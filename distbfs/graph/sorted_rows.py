"""Keys that become rows: grouped as they come, then sorted by all threads.

The kernels are in ``rows.c``; without a compiler NumPy gives the same results.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from distbfs.device import cc
from distbfs.errors import InputError
from distbfs.graph.keys import FORTH, HALF, OUTSIDE, Deal, Items, KeyFormat
from distbfs.types import Array, Ids

SOURCE = Path(__file__).with_name("sorted_rows.c")
BUCKET_KEYS = 1 << 10  # keys of a bucket where there are few in all
BUCKET_BITS = 11  # of the number of buckets, at most
PIECE = 1 << 14  # items that a thread groups at once
CALL = 1 << 26  # keys of a call, so that none takes long
BLOCK = 1 << 15  # edges that a thread ranks at once


class _Items(ctypes.Structure):
    """``items`` in sorted_rows.c."""

    _fields_ = (
        ("u", ctypes.c_void_p),
        ("v", ctypes.c_void_p),
        ("count", ctypes.c_int64),
        ("n", ctypes.c_int64),
        ("way", ctypes.c_int64),
        ("parts", ctypes.c_int64),
        ("ranks", ctypes.c_int64),
        ("local", ctypes.c_int64),
        ("slots", ctypes.c_void_p),
        ("bits", ctypes.c_int64),
        ("shift", ctypes.c_int64),
    )


class Grouping:
    """Keys of items by class: by bucket, or by rank (shift -1).

    starts: int64 [classes + 1], where each class begins.  Raises InputError where an
    end is no vertex.
    """

    def __init__(
        self, native: ctypes.CDLL, items: Items, classes: int, shift: int, threads: int
    ) -> None:
        self._native, self._threads = native, threads
        deal, count = items.deal, len(items.u)
        u = np.ascontiguousarray(items.u)
        v = None if items.v is None else np.ascontiguousarray(items.v)
        slots = None if deal is None else deal.slots
        self._held = u, v, slots
        self._items = _Items(
            cc.pointer(u),
            cc.pointer(v),
            count,
            deal.n if deal else 0,
            items.way,
            deal.parts if deal else 1,
            deal.ranks if deal else 1,
            deal.local if deal else 0,
            cc.pointer(slots),
            deal.form.bits if deal else HALF,
            shift,
        )
        pieces = -(-count // PIECE)
        self._counts = np.empty((pieces, classes), dtype=np.uint32)
        self.starts = np.zeros(classes + 1, dtype=np.int64)
        self._shape = [ctypes.c_int64(x) for x in (classes, PIECE, pieces)]
        call = native.count_keys
        call.restype = ctypes.c_int64
        self.total = call(
            ctypes.byref(self._items),
            *self._shape,
            cc.pointer(self._counts),
            cc.pointer(self.starts),
            threads,
        )
        if self.total < 0:
            raise InputError(OUTSIDE.format(self._items.n - 1))

    def place(self, keys: Array) -> None:
        """Write the keys by class; keys: uint64 [total].  Once."""
        self._native.place_keys(
            ctypes.byref(self._items),
            *self._shape,
            cc.pointer(self._counts),
            cc.pointer(keys),
            self._threads,
        )


def keys_by_rank(items: Items, ranks: int, threads: int) -> list[Array]:
    """Return the keys of tuples for each rank, uint64, in any order."""
    native = cc.load_or_none(SOURCE)
    if native is None:
        keys, owner = items.keys()
        return [keys[owner == rank] for rank in range(ranks)]
    grouping = Grouping(native, items, ranks, -1, threads)
    keys = np.empty(grouping.total, dtype=np.uint64)
    grouping.place(keys)
    return np.split(keys, grouping.starts[1:-1])


class KeyBuffer:
    """A growing array of keys."""

    def __init__(self, capacity: int) -> None:
        self._data = np.empty(max(capacity, 1), dtype=np.uint64)
        self.size = 0

    def room(self, count: int) -> Array:
        """Return the place of ``count`` more keys at the end."""
        need = self.size + count
        if need > len(self._data):
            grown = np.empty(max(need, len(self._data) * 5 // 4), dtype=np.uint64)
            grown[: self.size] = self._data[: self.size]
            self._data = grown
        self.size = need
        return self._data[need - count : need]

    def take(self) -> Array:
        """Return the keys and let go of them."""
        keys, self._data = self._data[: self.size], np.empty(0, dtype=np.uint64)
        return keys


class _Buckets(ctypes.Structure):
    """``bucket_set`` in sorted_rows.c."""

    _fields_ = (
        ("keys", ctypes.c_void_p),
        ("starts", ctypes.c_void_p),
        ("runs", ctypes.c_int64),
        ("buckets", ctypes.c_int64),
        ("bits", ctypes.c_int64),
        ("width", ctypes.c_int64),
        ("distinct", ctypes.c_int64),
        ("loop_ends", ctypes.c_int64),
        ("parts", ctypes.c_int64),
        ("local", ctypes.c_int64),
        ("part_of", ctypes.c_void_p),
        ("ends", ctypes.c_void_p),
        ("lengths", ctypes.c_void_p),
        ("loops", ctypes.c_void_p),
        ("kept", ctypes.c_void_p),
        ("places", ctypes.c_void_p),
        ("columns", ctypes.c_void_p),
        ("next", ctypes.c_int64),
        ("last", ctypes.c_int64),
        ("no_memory", ctypes.c_int64),
    )


@dataclass(frozen=True)
class Cut:
    """Sorted keys as rows.

    columns: by row, ascending in each; lengths: int64 [rows]; of a deal, where columns
    are without loops and repeats, also ends: int64 [rows] of tuples, and loops: int64
    [slots] how many tuples were loops
    """

    columns: Array
    lengths: Ids
    ends: Ids
    loops: Ids


class KeyRuns:
    """Keys ``row << bits | column`` that are to be sorted.

    rows: there are, or more; expected: how many keys, about
    """

    def __init__(self, bits: int, rows: int, expected: int, threads: int = 0) -> None:
        self._native = cc.load_or_none(SOURCE)
        self._form, self._rows = KeyFormat(bits), rows
        self._threads = cc.thread_count(threads)
        wanted = min(max(expected // BUCKET_KEYS, 1).bit_length(), BUCKET_BITS)
        most = (max(rows, 1) << bits) - 1
        self._shift = max(most.bit_length() - wanted, 0)
        self._buckets = (most >> self._shift) + 1
        self._keys = KeyBuffer(expected)
        self._starts: list[Ids] = []

    def add(self, items: Items) -> None:
        """Add the keys of items; InputError where an end is no vertex."""
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
        *,
        counted: bool = True,
    ) -> Cut:
        """Return the rows; the keys are gone afterwards.

        dtype: uint32 or uint64, of columns; deal: drop loops and repeats, count ends,
        of which a loop has ``loop_ends``; counted: whether row lengths are wanted.
        Raises MemoryError.
        """
        rows, slots = (self._rows if counted else 0), len(deal.group) if deal else 0
        lengths = np.zeros(rows, dtype=np.int64)
        ends = np.zeros(rows if deal else 0, dtype=np.int64)
        loops = np.zeros(slots, dtype=np.int64)
        keys = self._keys.take()
        if self._native is None:
            return self._plain_cut(keys, dtype, deal, loop_ends, rows)
        starts = np.array(self._starts, dtype=np.int64).reshape(-1, self._buckets + 1)
        kept = np.zeros(self._buckets, dtype=np.int64)
        part_of = deal.part_of if deal else None
        buckets = _Buckets(
            keys=cc.pointer(keys),
            starts=cc.pointer(starts),
            runs=len(starts),
            buckets=self._buckets,
            bits=self._form.bits,
            width=np.dtype(dtype).itemsize,
            distinct=deal is not None,
            loop_ends=loop_ends,
            parts=deal.parts if deal else 1,
            local=deal.local if deal else 1,
            part_of=cc.pointer(part_of),
            ends=cc.pointer(ends),
            lengths=cc.pointer(lengths if counted else None),
            loops=cc.pointer(loops),
            kept=cc.pointer(kept),
        )
        sizes = np.diff(starts, axis=1).sum(axis=0)
        for first, last in calls(np.cumsum(sizes)):
            if self._native.sort_buckets(
                ctypes.byref(buckets),
                ctypes.c_int64(first),
                ctypes.c_int64(last),
                self._threads,
            ):
                raise MemoryError("no memory to sort the edges of a graph")
        places = np.cumsum(kept) - kept
        columns = np.empty(int(kept.sum()), dtype=dtype)
        buckets.places, buckets.columns = cc.pointer(places), cc.pointer(columns)
        for first, last in calls(places + kept):
            self._native.copy_buckets(
                ctypes.byref(buckets),
                ctypes.c_int64(first),
                ctypes.c_int64(last),
                self._threads,
            )
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
        lengths = np.bincount(row, minlength=rows) if rows else ends
        return Cut(column.astype(dtype), lengths, ends, loops)


def calls(ends: Ids) -> Iterator[tuple[int, int]]:
    """Yield (first, last + 1) of items that have about CALL keys together.

    ends: int64, keys up to the end of each item
    """
    first = 0
    while first < len(ends):
        limit = (int(ends[first - 1]) if first else 0) + CALL
        last = max(int(np.searchsorted(ends, limit, side="right")), first + 1)
        yield first, last
        first = last


def stable_order(values: Ids, threads: int = 0) -> Array:
    """Return the stable order of up to 2^32 int64 values of 0 or more, uint32."""
    most, bits = int(values.max(initial=0)), max(len(values) - 1, 1).bit_length()
    if most.bit_length() + bits > 64:
        return np.argsort(values, kind="stable").astype(np.uint32)
    keys = values.astype(np.uint64) << np.uint64(bits)
    keys |= np.arange(len(values), dtype=np.uint64)
    runs = KeyRuns(bits, most + 1, len(values), threads)
    runs.add(Items(FORTH, keys))
    return runs.cut(np.uint32, counted=False).columns


class _Taking(ctypes.Structure):
    """``taking`` in sorted_rows.c."""

    _fields_ = (
        ("index", ctypes.c_void_p),
        ("values", ctypes.c_void_p),
        ("width", ctypes.c_int64),
        ("out", ctypes.c_void_p),
    )


def taken(values: Array, index: Array, threads: int = 0) -> Array:
    """Return ``values[index]``; values of 4 or 8 bytes, index: uint32."""
    native = cc.load_or_none(SOURCE)
    if native is None:
        return values[index]
    out = np.empty(len(index), dtype=values.dtype)
    arrays = cc.pointer(index), cc.pointer(values), values.itemsize, cc.pointer(out)
    size = ctypes.c_int64(len(index))
    native.take(ctypes.byref(_Taking(*arrays)), size, cc.thread_count(threads))
    return out


def inverse(order: Array, threads: int = 0) -> Array:
    """Return where each number stands in an order of all numbers; both uint32."""
    out = np.empty(len(order), dtype=np.uint32)
    native = cc.load_or_none(SOURCE)
    if native is None:
        out[order] = np.arange(len(order), dtype=np.uint32)
        return out
    arrays = cc.pointer(order), None, 0, cc.pointer(out)
    size = ctypes.c_int64(len(order))
    native.invert(ctypes.byref(_Taking(*arrays)), size, cc.thread_count(threads))
    return out


class _Rows(ctypes.Structure):
    """``row_set`` in sorted_rows.c."""

    _fields_ = (
        ("offsets", ctypes.c_void_p),
        ("columns", ctypes.c_void_p),
        ("order", ctypes.c_void_p),
        ("rank", ctypes.c_void_p),
        ("name", ctypes.c_void_p),
        ("blocks", ctypes.c_void_p),
        ("places", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("bits", ctypes.c_int64),
        ("next", ctypes.c_int64),
        ("last", ctypes.c_int64),
        ("no_memory", ctypes.c_int64),
    )


def ranked_rows(
    offsets: Ids,
    lengths: Ids,
    columns: Array,
    order: Array,
    rank: Array,
    name: Array,
    threads: int = 0,
) -> tuple[Ids, Array]:
    """Return (offsets int64, columns uint32) of rows in another order, columns by rank.

    offsets: int64 [rows + 1], lengths: int64 [rows], columns: uint32 [edges]; order:
    uint32 [rows], row k is the present row ``order[k]``; rank: uint32, of each column;
    name: uint32, what the column of each rank is called in the result.
    Raises MemoryError.
    """
    lengths = taken(lengths, order, threads)
    places = np.empty(len(offsets), dtype=np.int64)
    places[0] = 0
    np.cumsum(lengths, out=places[1:])
    out = np.empty(len(columns), dtype=np.uint32)
    native = cc.load_or_none(SOURCE)
    if native is None:
        edge = np.repeat(offsets[order] - places[:-1], lengths) + np.arange(len(out))
        keys = np.repeat(np.arange(len(order), dtype=np.uint64), lengths)
        keys = keys << np.uint64(HALF) | rank[columns[edge]]
        keys.sort()
        out[:] = name[keys.astype(np.uint32)]
        return places, out
    cuts = np.searchsorted(places, np.arange(BLOCK, int(places[-1]), BLOCK), "left")
    blocks = np.unique(np.append(cuts, [0, len(order)]))
    work = _Rows(
        *(cc.pointer(x) for x in (offsets, columns, order, rank, name)),
        *(cc.pointer(x) for x in (blocks, places, out)),
        max(len(rank) - 1, 1).bit_length(),
    )
    for first, last in calls(places[blocks[1:]]):
        if native.rank_rows(
            ctypes.byref(work),
            ctypes.c_int64(first),
            ctypes.c_int64(last),
            cc.thread_count(threads),
        ):
            raise MemoryError("no memory to sort the rows of a graph")
    return places, out
