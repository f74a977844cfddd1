"""One CUDA device while it makes its degree-separated parts; see device_construct.

Source: Pan, Pearce, Owens 2018, Section III-B.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from distbfs.build.cuda.kernels import BLOCK, KEYS_TILE
from distbfs.build.cuda.keys import KeyPasses, RowWriter, Rule, segments
from distbfs.build.cuda.ranges import Ranges
from distbfs.device import cuda
from distbfs.errors import InputError, UsageError
from distbfs.graph.device_graph import SET_BITS
from distbfs.partition.device_part import DevicePart
from distbfs.partition.layout import Layout, Placement
from distbfs.progress import Sum
from distbfs.types import Array, Ids, TupleSource, World

MAX_DEGREE = MAX_ROWS = (1 << 32) - 1
VERTEX_BYTES = 24  # of all arrays by vertex of a part at once, at most


class Shape:
    """Sizes that are the same for all parts.

    per: vertices of a part, at most; blocks: of a part in each set
    """

    def __init__(self, layout: Layout) -> None:
        self.layout, self.parts = layout, layout.parts
        self.per = max(layout.local_count(0), 1)
        self.blocks = -(-self.per // SET_BITS)

    def own(self, part: int) -> tuple[np.uint32, np.uint32]:
        """Return how kernels are told of a part."""
        return np.uint32(self.parts), np.uint32(part)


@dataclass
class Counted:
    """What the first round finds of a part.

    degrees: without loops and repeats; ends: of tuples; both device uint32 [local]
    histogram: (degrees that occur, how often), int64; total: sum of ends
    """

    degrees: Any
    ends: Any
    histogram: tuple[Array, Array]
    loops: int
    total: int


@dataclass
class Numbered:
    """Numbers of the vertices of a part, and what the other parts must know of it.

    vertices, numbers, tuple_degrees: as in DevicePart
    normals, members: host uint32 [4 * blocks], sets of normal vertices and delegates
    keys: host uint64, its delegates, see ``number_vertices``
    """

    active: int
    vertices: Any
    numbers: Any
    tuple_degrees: Any
    normals: Array
    members: Array
    keys: Array


@dataclass
class Tables:
    """What one device knows of all vertices.

    normals, members: uint32 [parts * 4 * blocks]; ranks of members are over all parts
    table: uint64 [d], see device_construct.cu; delegates: NumPy int64 [d]
    """

    normals: Any
    members: Any
    table: Any
    delegates: Ids


class Shared:
    """What the ranks share of all parts, on the host (making it is collective).

    normals, members: uint32 [parts * 4 * blocks]; keys: uint64 [d], by part
    bases: uint32 [parts], delegates of the parts that come before in ``keys``
    """

    def __init__(
        self,
        world: World,
        placement: Placement,
        mine: Sequence[Numbered],
        delegates: int,
    ) -> None:
        order = [k for rank in range(world.size) for k in placement.parts_of(rank)]

        def gathered(arrays: list[Array]) -> Array:
            return np.concatenate(world.allgather(np.concatenate(arrays)))

        def by_part(values: Array) -> Array:
            out = np.empty_like(values).reshape(placement.parts, -1)
            out[order] = values.reshape(placement.parts, -1)
            return out.ravel()

        self.normals = by_part(gathered([x.normals for x in mine]))
        self.keys = np.zeros(0, dtype=np.uint64)
        if delegates:
            self.members = by_part(gathered([x.members for x in mine]))
            self.keys = gathered([x.keys for x in mine])
            sizes = gathered([np.array([len(x.keys)], dtype=np.int64) for x in mine])
            self.bases = by_part((np.cumsum(sizes) - sizes).astype(np.uint32))
        if len(self.keys) != delegates:
            raise InputError("the degrees of the parts changed while they were shared")


class Builder:
    """One device while it builds its parts of this rank."""

    def __init__(
        self, source: TupleSource, shape: Shape, buffer_bytes: int | None, done: Sum
    ) -> None:
        self.shape, self.layout = shape, shape.layout
        self.keys = KeyPasses(source, shape.parts, buffer_bytes, done)
        self.kernels = self.keys.kernels
        self.clock = self.keys.clock

    def count(self, part: int) -> Counted:
        """Find the degrees of a part."""
        cupy, launch = cuda.cupy(), self.kernels.launch
        local = self.layout.local_count(part)
        cuda.require(VERTEX_BYTES * local, f"part {part} of {local} vertices")
        degrees, ends = (cupy.zeros(local, np.uint32) for _ in range(2))
        loops = cupy.zeros(1, np.uint64)
        own = self.shape.own(part)

        def count_loops(u: Any, v: Any) -> None:
            arguments = (np.uint64(len(u)), u, v, *own, ends, loops)
            launch("count_loops", len(u), BLOCK, *arguments)

        rule = Rule("own", local, own, count_loops)
        for keys, low in self.keys.sorted_keys(rule, lambda _: 0):
            with self.kernels.phase("degrees"):
                self._measure(keys, low, degrees, ends)
            del keys
        with self.kernels.phase("degrees"):
            cuda.release()
            return Counted(
                degrees,
                ends,
                self.kernels.histogram(degrees),
                int(loops.get()[0]),
                self.kernels.sum(ends),
            )

    def _measure(self, keys: Any, low: int, degrees: Any, ends: Any) -> None:
        if len(keys):
            starts, _ = self.kernels.fresh_before(keys)
            rows = (np.uint64(len(keys)), keys, starts, np.uint32(low))
            out = (degrees, ends)
            self.kernels.launch("measure_rows", len(keys), KEYS_TILE, *rows, *out)

    def _rank(self, counts: Any, members: Any) -> int:
        """Finish a set from the members of each of its blocks; return how many."""
        starts = self.kernels.scan(counts)
        blocks = len(counts)
        arguments = (np.uint64(blocks), np.uint32(0), starts, members)
        self.kernels.launch("rank_set", blocks, BLOCK, *arguments)
        return int(starts[-1:].get()[0])

    def _sets(self, degrees: Any, threshold: int) -> list[tuple[Any, int]]:
        """Return (set, members) of the normal vertices and delegates of a part.

        degrees: uint32 [local]; a set is uint32 [4 * blocks]
        """
        cupy, blocks = cuda.cupy(), self.shape.blocks
        sets = [cupy.empty(4 * blocks, np.uint32) for _ in range(2)]
        counts = [cupy.empty(blocks, np.uint32) for _ in range(2)]
        form = (np.uint64(len(degrees)), np.uint64(blocks), degrees)
        arguments = (*form, np.uint32(min(threshold, MAX_DEGREE)), *sets, *counts)
        self.kernels.launch("mark_sets", blocks, BLOCK // 32, *arguments)
        sizes = [self._rank(*pair) for pair in zip(counts, sets, strict=True)]
        return list(zip(sets, sizes, strict=True))

    def number(self, part: int, counted: Counted, threshold: int) -> Numbered:
        """Give numbers to the vertices of a part, and let go of what was found."""
        cupy, launch = cuda.cupy(), self.kernels.launch
        local = len(counted.degrees)
        with self.kernels.phase("numbering"):
            sets = self._sets(counted.degrees, threshold)
            (normals, active), (members, delegates) = sets
            keys = cupy.empty(delegates, np.uint64)
            arrays = [cupy.empty(local, np.uint32) for _ in range(3)]
            known = (np.uint32(active), normals, members)
            arguments = (np.uint64(local), *self.shape.own(part), *known)
            launch(
                "number_vertices",
                local,
                BLOCK,
                *(*arguments, counted.degrees, counted.ends, *arrays, keys),
            )
            host = (x.get() for x in (normals, members, keys))
            out = Numbered(active, *arrays, *host)
            counted.degrees = counted.ends = None
        return out

    def tables(self, shared: Shared) -> Tables:
        """Copy what the ranks have shared to the device, and number the delegates."""
        cupy, launch = cuda.cupy(), self.kernels.launch
        shape, d = self.shape, len(shared.keys)
        with self.kernels.phase("delegates"):
            normals = cupy.asarray(shared.normals)
            if not d:
                none = cupy.empty(0, np.uint64)
                return Tables(normals, none, none, np.zeros(0, dtype=np.int64))
            members = cupy.asarray(shared.members)
            bases = cupy.asarray(shared.bases)
            size = shape.parts * shape.blocks
            form = (np.uint64(size), np.uint64(shape.blocks))
            launch("shift_set", size, BLOCK, *form, bases, members)
            keys = cupy.asarray(shared.keys)
            keys.sort()
            table, ids = (cupy.empty(d, np.uint64) for _ in range(2))
            sizes = (np.uint32(shape.parts), np.uint32(shape.blocks))
            arguments = (np.uint64(d), keys, *sizes, members, table, ids)
            launch("number_delegates", d, BLOCK, *arguments)
            return Tables(normals, members, table, ids.get().astype(np.int64))

    def separate(
        self, part: int, numbered: Numbered, tables: Tables, threshold: int
    ) -> DevicePart:
        """Make the four subgraphs of a part."""
        shape, active, d = self.shape, numbered.active, len(tables.delegates)
        local = self.layout.local_count(part)
        bases = [0, active, 2 * active, 2 * active + d, 2 * (active + d)]
        if bases[-1] > MAX_ROWS:
            raise UsageError(
                f"part {part} has {active} normal vertices and {d} delegates; allowed: "
                f"{MAX_ROWS // 2} together; use more parts or another threshold"
            )
        lengths = cuda.cupy().zeros(bases[-1], np.uint32)
        places = np.uint32(shape.per), np.uint32(shape.blocks)
        sizes = np.uint32(active), np.uint32(d)
        sets = (tables.normals, tables.members, tables.table)
        arguments = (*shape.own(part), *places, *sizes, *sets)
        rule = Rule("separated", bases[-1], arguments)
        writers = self._writers(lengths, bases, (*places, tables.normals))
        column = 4 if shape.parts == 1 else 8

        def kept(counts: Any) -> int:
            nn, every = (
                Ranges(self.kernels, x).total for x in (counts[:active], counts)
            )
            return column * nn + 4 * (every - nn) + 16 * (local + d)

        for keys, low in self.keys.sorted_keys(rule, kept):
            with self.kernels.phase("rows"):
                pieces = segments(self.kernels, keys, low, bases[1:4])
                for writer, piece, base in zip(writers, pieces, bases[:4], strict=True):
                    writer.add(piece, low - base)
                del pieces, piece
            del keys
        with self.kernels.phase("rows"):
            cuda.release()
            sizes_of = zip(writers, (local, local, d, d), strict=True)
            nn, nd, dn, dd = (writer.finish(rows) for writer, rows in sizes_of)
        return DevicePart(
            self.layout,
            part,
            threshold,
            active,
            tables.delegates,
            nn,
            nd,
            dn,
            dd,
            numbered.vertices,
            numbered.numbers,
            numbered.tuple_degrees,
        )

    def _writers(
        self, lengths: Any, bases: list[int], numbers: tuple[Any, ...]
    ) -> list[RowWriter]:
        """Return what writes nn, nd, dn, dd; numbers: arguments of that of nn."""
        spans = [lengths[a:b] for a, b in pairwise(bases)]
        dtype = np.uint32 if self.shape.parts == 1 else np.uint64
        name = f"write_numbers_{8 * np.dtype(dtype).itemsize}"
        nn = RowWriter(self.kernels, spans[0], name, numbers, dtype)
        return [nn, *(RowWriter(self.kernels, span) for span in spans[1:])]
