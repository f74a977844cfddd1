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

from distbfs.graph.csr import index_dtype
from distbfs.graph.keys import BOTH, FORTH, Deal, Items, check_range
from distbfs.graph.sorted_rows import Cut, KeyRuns, keys_by_rank
from distbfs.timing import Stopwatch
from distbfs.types import Array, Ids, TupleSource, World, slice_bounds

ROUND = 1 << 20


@dataclass(frozen=True)
class ServedRows:
    """The neighbours of the vertices that one part serves.

    offsets: int64 [local + 1]; columns: global ids ascending in each row, no loops, no
    repeats, uint32 where they fit, else uint64; degrees: int64 [local], row lengths;
    tuple_degrees: int64 [local], ends of input tuples (a loop counts twice); loops:
    number of input tuples that were loops
    """

    offsets: Ids
    columns: Array
    degrees: Ids
    tuple_degrees: Ids
    loops: int


def rounds(source: TupleSource, world: World) -> Iterator[tuple[Ids, Ids]]:
    """Yield chunks (u, v), int64, of this rank's slice, equally many on all ranks."""
    start, stop = slice_bounds(source.tuples, world.size, world.rank)
    longest = -(-source.tuples // world.size)
    count = -(-longest // ROUND)
    for index in range(count):
        first = start + index * ROUND
        yield joined(source, first, max(min(stop, first + ROUND), first))


def joined(source: TupleSource, start: int, stop: int) -> tuple[Ids, Ids]:
    """Return a copy of the tuples start … stop-1: (u, v), int64 [stop - start] each."""
    size = stop - start
    u, v = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    at = 0
    for chunk_u, chunk_v in source.chunks(start, stop):
        if len(chunk_u) == size:
            return chunk_u, chunk_v
        u[at : at + len(chunk_u)], v[at : at + len(chunk_u)] = chunk_u, chunk_v
        at += len(chunk_u)
    return u, v


def collect(
    source: TupleSource,
    world: World,
    parts: int,
    group: Sequence[int],
    translate: Callable[[Ids], Ids] | None,
    clock: Stopwatch,
    way: int = BOTH,
    threads: int = 0,
) -> dict[int, ServedRows]:
    """Collect the rows of some parts of this rank (collective).

    group: device indices, the same on every rank; the parts of rank r are ``device *
    world.size + r``. translate: a function from input ids to internal ids, None if they
    are equal
    way: the directions of a tuple that are edges; if both are, a loop has two ends
    """
    deal = Deal(source.n, parts, world.size, world.rank, tuple(group))
    share = 2 * source.tuples * len(group) // parts
    expected = share if parts == 1 else share * 21 // 20
    runs = KeyRuns(deal.form.bits, deal.rows, expected, threads)
    with clock("generation"):
        chunks = rounds(source, world)
        chunk = next(chunks, None)
    while chunk is not None:
        if translate is not None:
            check_range(*chunk, source.n)
            chunk = translate(chunk[0]), translate(chunk[1])
        items = Items(way, *chunk, deal)
        if world.size > 1:
            received = world.alltoall(keys_by_rank(items, world.size, threads))
            items = Items(FORTH, np.concatenate(received))
        runs.add(items)
        with clock("generation"):
            chunk = next(chunks, None)
    cut = runs.cut(index_dtype(source.n - 1), deal, 2 if way == BOTH else 1)
    return {
        int(part): rows_of(cut, deal, slot) for slot, part in enumerate(deal.part_of)
    }


def rows_of(cut: Cut, deal: Deal, slot: int) -> ServedRows:
    """Return the rows of the part at a slot."""
    part = int(deal.part_of[slot])
    first = slot * deal.local
    mine = slice(first, first + len(range(part, deal.n, deal.parts)))
    offsets = np.concatenate([[0], np.cumsum(cut.lengths[mine])])
    begin = int(cut.lengths[:first].sum())
    columns = cut.columns[begin : begin + int(offsets[-1])]
    ends, loops = cut.ends[mine], int(cut.loops[slot])
    return ServedRows(offsets, columns, cut.lengths[mine], ends, loops)
