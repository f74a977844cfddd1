"""Rows of adjacent vertices from edge tuples, in passes of bounded memory.

Each rank reads its slice of the tuples, sends both directions of every tuple to the
rank that serves its source, and sorts what arrives.  A directed edge travels as one
64-bit key, row above column, so that sorting, dropping repeats and counting are
operations on one array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from distbfs.errors import InputError, UsageError
from distbfs.graph.csr import SLICE, add_counts
from distbfs.timing import Stopwatch
from distbfs.types import Array, Ids, TupleSource, World, slice_bounds

ROUND = 1 << 20


@dataclass(frozen=True)
class Rows:
    """The neighbours of the vertices that one part serves.

    offsets: int64 [local + 1]; columns: int64, global ids ascending in each row, no
    loops, no repeats; tuple_degrees: int64 [local], ends of input tuples (a loop is
    two); loops: how many input tuples were loops
    """

    offsets: Ids
    columns: Ids
    tuple_degrees: Ids
    loops: int

    @property
    def degrees(self) -> Ids:
        """Row lengths, int64 [local]."""
        return np.diff(self.offsets)


@dataclass(frozen=True)
class KeyFormat:
    """How (row, column) is packed: row · 2^bits + column."""

    bits: int

    @classmethod
    def for_graph(cls, n: int, rows: int) -> KeyFormat:
        """Return the format for ``rows`` local rows; UsageError when 64 bits fail."""
        bits = max(n - 1, 1).bit_length()
        if bits + max(rows - 1, 1).bit_length() > 64:
            raise UsageError(
                f"{rows} vertices a part of {n} in all do not fit 64-bit keys; "
                "use more parts"
            )
        return cls(bits)

    def pack(self, row: Array, column: Array) -> Array:
        """Return uint64 keys."""
        return row.astype(np.uint64) << np.uint64(self.bits) | column.astype(np.uint64)

    def row(self, key: Array) -> Ids:
        """Return the row of each key, int64."""
        return (key >> np.uint64(self.bits)).view(np.int64)

    def column(self, key: Array) -> Ids:
        """Return the column of each key, int64."""
        return (key & np.uint64((1 << self.bits) - 1)).view(np.int64)

    def find(self, keys: Array, row: int) -> int:
        """Return the position of the first key of a row or above in sorted keys."""
        if row << self.bits >= 1 << 64:
            return len(keys)
        return int(np.searchsorted(keys, np.uint64(row << self.bits)))


class KeyBuffer:
    """A growing array of keys."""

    def __init__(self, capacity: int) -> None:
        self._data = np.empty(max(capacity, 1), dtype=np.uint64)
        self._size = 0

    def append(self, keys: Array) -> None:
        """Add keys at the end."""
        need = self._size + len(keys)
        if need > len(self._data):
            grown = np.empty(max(need, len(self._data) * 5 // 4), dtype=np.uint64)
            grown[: self._size] = self._data[: self._size]
            self._data = grown
        self._data[self._size : need] = keys
        self._size = need

    def take(self) -> Array:
        """Return the keys and let go of them."""
        keys, self._data = self._data[: self._size], np.empty(0, dtype=np.uint64)
        return keys


def rounds(source: TupleSource, world: World) -> Iterator[tuple[Ids, Ids]]:
    """Yield chunks of this rank's slice, the same number of times on every rank."""
    start, stop = slice_bounds(source.tuples, world.size, world.rank)
    longest = -(-source.tuples // world.size)
    count = -(-longest // ROUND)
    for index in range(count):
        first = start + index * ROUND
        yield joined(source, first, max(min(stop, first + ROUND), first))


def joined(source: TupleSource, start: int, stop: int) -> tuple[Ids, Ids]:
    """Return a slice of the tuples; a source may use a chunk's arrays again."""
    size = stop - start
    u, v = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    at = 0
    for one, other in source.chunks(start, stop):
        if len(one) == size:
            return one, other
        u[at : at + len(one)], v[at : at + len(one)] = one, other
        at += len(one)
    return u, v


def both_directions(u: Ids, v: Ids) -> tuple[Ids, Ids]:
    """Return sources and targets of both directions; a loop comes once."""
    other = u != v
    return np.concatenate([u, v[other]]), np.concatenate([v, u[other]])


def collect(
    source: TupleSource,
    world: World,
    parts: int,
    group: Sequence[int],
    translate: Callable[[Ids], Ids],
    clock: Stopwatch,
    edges: Callable[[Ids, Ids], tuple[Ids, Ids]] = both_directions,
) -> dict[int, Rows]:
    """Return the rows of some parts of this rank (collective).

    group: device indices, the same on every rank; the parts of rank r are
    ``device * world.size + r``.  translate: input id -> internal id.
    edges: rows and columns of tuples
    """
    local = -(-source.n // parts)
    form = KeyFormat.for_graph(source.n, local * len(group))
    slot_of_device = np.full(parts // world.size, -1, dtype=np.int64)
    slot_of_device[list(group)] = np.arange(len(group))
    share = 2 * source.tuples * len(group) // parts
    buffer = KeyBuffer(share if parts == 1 else share * 21 // 20)
    with clock("generation"):
        chunks = rounds(source, world)
        chunk = next(chunks, None)
    while chunk is not None:
        check_range(*chunk, source.n)
        src, dst = edges(translate(chunk[0]), translate(chunk[1]))
        for keys in route(world, form, parts, local, slot_of_device, src, dst):
            buffer.append(keys)
        with clock("generation"):
            chunk = next(chunks, None)
    keys = buffer.take()
    keys.sort()
    return cut(keys, form, source.n, parts, world.rank, world.size, group, local)


def check_range(u: Ids, v: Ids, n: int) -> None:
    """Raise InputError unless all ids are vertices."""
    for ids in (u, v):
        if len(ids) and (ids.min() < 0 or ids.max() >= n):
            raise InputError(f"an edge tuple has an end outside 0 … {n - 1}")


def route(
    world: World,
    form: KeyFormat,
    parts: int,
    local: int,
    slot_of_device: Ids,
    src: Ids,
    dst: Ids,
) -> list[Array]:
    """Send directed edges to the ranks that serve their sources (collective)."""
    if parts == 1:
        return [form.pack(src, dst)]
    part = src % parts
    row = src // parts
    if len(slot_of_device) > 1:
        slot = slot_of_device[part // world.size]
        row += slot * local
        wanted = slot >= 0
        if not wanted.all():
            part, row, dst = part[wanted], row[wanted], dst[wanted]
    keys = form.pack(row, dst)
    if world.size == 1:
        return [keys]
    owner = (part % world.size).astype(np.uint16)
    order = np.argsort(owner, kind="stable")
    bounds = np.searchsorted(owner[order], np.arange(world.size + 1))
    keys = keys[order]
    return world.alltoall([keys[bounds[r] : bounds[r + 1]] for r in range(world.size)])


def cut(
    keys: Array,
    form: KeyFormat,
    n: int,
    parts: int,
    rank: int,
    ranks: int,
    group: Sequence[int],
    local: int,
) -> dict[int, Rows]:
    """Cut sorted keys into the rows of each part, without loops and repeats.

    The columns are written over the keys.
    """
    out = {}
    for slot, device in enumerate(group):
        part = device * ranks + rank
        count = (n - part + parts - 1) // parts if part < n else 0
        low, high = form.find(keys, slot * local), form.find(keys, (slot + 1) * local)
        mine = keys[low:high]
        kept = loops = 0
        ends = np.zeros(count, dtype=np.int64)
        degrees = np.zeros(count, dtype=np.int64)
        before = None
        for start in range(0, len(mine), SLICE):
            piece = mine[start : start + SLICE].copy()
            fresh = np.ones(len(piece), dtype=bool)
            np.not_equal(piece[1:], piece[:-1], out=fresh[1:])
            fresh[0] = before != piece[0]
            before = piece[-1]
            row, column = form.row(piece) - slot * local, form.column(piece)
            loop = row * parts + part == column
            add_counts(ends, row)
            add_counts(ends, row[loop])
            fresh &= ~loop
            loops += int(loop.sum())
            add_counts(degrees, row[fresh])
            found = column[fresh]
            mine[kept : kept + len(found)] = found
            kept += len(found)
        offsets = np.zeros(count + 1, dtype=np.int64)
        np.cumsum(degrees, out=offsets[1:])
        out[part] = Rows(offsets, mine[:kept].view(np.int64), ends, loops)
    return out
