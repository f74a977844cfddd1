"""A whole graph in the memory of one CUDA device.

Numbers. Vertices with edges are numbered by descending degree class and, inside a
class, by ascending id: a stable sort of the ids. So hubs come first and share cache
lines, each row lists its neighbours of high degree first, and vertices with close ids
stay close inside their class, which makes results by id cheap to write. Vertices
without edges have no number. Vertices of trees, each attached to the rest by one edge,
come last, except for some leaves that fill up a unit of the others. The first column of
a tree vertex's row is the vertex to which it is attached, if that one has a lower
number. In a directed graph the degree is the number of outgoing and incoming edges;
vertices with up to FEW_OUT outgoing edges and no incoming ones come last.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from distbfs.device import cuda, take
from distbfs.device.array_table import ArrayPlan, ArrayTable
from distbfs.types import Array, DeviceArray, Ids

ISOLATED = (1 << 32) - 1  # entry of ``numbers`` without a number
MAX_VERTICES = 1 << 31
COLUMN_PAD = 256  # columns that kernels may read past the end
WIDE = 1 << 32  # offsets have 64 bits from this number of edges on
SET_BITS = 96  # ids in a block of a set
IDS_AT_ONCE = 1 << 16  # ids looked up together in a set
SEARCHED_UNIT = 256  # vertices that kernels take together, at most
EXACT_DEGREES = 16  # a class each; above, four classes an octave
AT_LEAST = 18  # entries of ``at_least``
FEW_OUT = 7  # most edges of vertices that come last since no edge leads to them


def degree_class(degrees: Array) -> Ids:
    """Return the class of each degree, int64; it never decreases with the degree.

    Degrees up to EXACT_DEGREES, including 0, have their own class; each octave above
    has four classes.
    """
    d = np.maximum(degrees.astype(np.int64), 1)
    octave = np.frexp(d.astype(np.float64))[1] - 1  # exact: d < 2^53
    quarter = (d >> np.maximum(octave - 2, 0)) & 3
    wide = EXACT_DEGREES + 4 * (octave - 4) + quarter
    return np.where(degrees <= EXACT_DEGREES, degrees.astype(np.int64), wide)


def rows_table(active: int, m: int, *, wide: bool = False) -> ArrayTable:
    """Return the row arrays of a ``DeviceGraph``; wide: offsets have 64 bits."""
    offset = np.uint64 if wide or m >= WIDE else np.uint32
    return {
        "offsets": ArrayPlan(offset, active + 1),
        "columns": ArrayPlan(np.uint32, m + COLUMN_PAD),
    }


def vertices_table(n: int, active: int) -> ArrayTable:
    """Return the arrays by vertex of a ``DeviceGraph`` that has no ``members``."""
    return {
        "vertices": ArrayPlan(np.uint32, active),
        "numbers": ArrayPlan(np.uint32, n),
        "tuple_degrees": ArrayPlan(np.uint32, n),
    }


def graph_table(
    n: int, active: int, m: int, *, directed: bool = False, wide: bool = False
) -> ArrayTable:
    """Return the arrays of a ``DeviceGraph`` without tails; wide: 64-bit offsets."""
    rows = rows_table(active, m, wide=wide)
    into = {f"in_{name}": plan for name, plan in rows.items()} if directed else {}
    return rows | into | vertices_table(n, active)


@dataclass
class Tails:
    """The columns of long rows after the first ones, in pinned host memory.

    kept: number of columns of each row that are on the device
    tailed: number below which lie the numbers of all rows that have tails
    offsets: uint64 [tailed + 1], start of each tail, on the device
    columns: NumPy uint32 [offsets[-1]], numbers, which kernels read in place
    """

    kept: int
    tailed: int
    offsets: DeviceArray
    columns: Array

    def from_column(self, columns: int) -> int:
        """Return the distance, in columns, of the tails from the columns on the device.

        The difference of the two addresses, modulo 2^62. columns: address on the device
        of the columns of rows
        """
        return ((self.columns.ctypes.data - columns) % (1 << 64)) >> 2


@dataclass(frozen=True)
class Trees:
    """The tree vertices, which a search may leave out; each has a lower neighbour.

    count: how many there are; the number of other vertices is a multiple of
    SEARCHED_UNIT
    chain: the most edges on the way from a tree vertex to the other vertices
    at_least: as in DeviceGraph, for the other vertices only
    """

    count: int
    chain: int
    at_least: Ids


def reversed_at_least(active: int, at_least: Ids) -> Ids:
    """Return ``at_least`` of a directed graph with reversed edges; see DeviceGraph."""
    bounds = at_least.copy()
    bounds[: FEW_OUT + 1] = active
    return bounds


@dataclass
class DeviceGraph:
    """Rows of neighbours by number, without loops and repeated edges.

    n: number of vertices; active: how many of them have a number; m: number of stored
    directed edges
    tuples: number of input tuples; loops: how many of them were loops
    trees: the vertices of trees, which have the last numbers; None if trees are not set
    apart
    at_least: int64 [AT_LEAST]; every vertex of degree k or more has a number below
    at_least[k] (k = 1 … 17); of a directed graph, if k is at most FEW_OUT, every
    such vertex with an incoming edge
    offsets: uint32 (uint64 from 2^32 edges on) [active + 1], by number
    columns: uint32 [m + COLUMN_PAD], numbers, ascending in each row
    vertices: uint32 [active], number -> id
    numbers: uint32 [n], id -> number, or ISOLATED; [active] with ``members``
    tuple_degrees: uint32 [n], by id: number of ends of input tuples at the vertex; a
    loop has two
    ended: uint32, the ids to which ``tuple_degrees`` belongs, those of ``vertices``
    first; None if it is by id
    source: description of the tuples
    seconds: time of each phase of the build
    members: uint32 [4 * blocks], set of the ids that have a number (sets.cuh), by whose
    rank in it ``numbers`` is then indexed; else None
    in_offsets, in_columns: like offsets and columns, for the incoming edges of a
    directed graph, whose other rows hold the outgoing ones; else None
    tails: the other columns of a graph larger than the device, where ``columns`` has
    only the first ones of each row, and offsets are uint64; else None
    in_tails: the same for the incoming edges of a directed graph; it has both kinds of
    tails or none

    The arrays are CuPy's. In a directed graph, vertices are numbered by the sum of both
    degrees, rows may be empty, and both ends of a tuple count at its source vertex.
    """

    n: int
    active: int
    m: int
    tuples: int
    loops: int
    at_least: Ids
    offsets: DeviceArray
    columns: DeviceArray
    vertices: DeviceArray
    numbers: DeviceArray
    tuple_degrees: DeviceArray
    source: dict[str, Any]
    seconds: dict[str, float]
    members: DeviceArray | None = None
    in_offsets: DeviceArray | None = None
    in_columns: DeviceArray | None = None
    tails: Tails | None = None
    trees: Trees | None = None
    in_tails: Tails | None = None
    ended: DeviceArray | None = None

    @property
    def directed(self) -> bool:
        """Whether the graph is directed."""
        return self.in_offsets is not None

    @property
    def pulled(self) -> tuple[DeviceArray, DeviceArray]:
        """Offsets and columns of the rows that pulls read; see ``DeviceGraph``."""
        if self.in_offsets is None or self.in_columns is None:
            return self.offsets, self.columns
        return self.in_offsets, self.in_columns

    @property
    def pulled_tails(self) -> Tails | None:
        """The tails of the rows that pulls read."""
        return self.in_tails if self.directed else self.tails

    def reversed(self) -> DeviceGraph:
        """Return a directed graph with all edges reversed; arrays are shared.

        Each stored edge counts as one tuple.
        """
        into, _ = self.pulled
        ends = cuda.cupy().zeros_like(self.tuple_degrees)
        ends[self.vertices] = (into[1:] - into[:-1]) * 2
        return replace(self.turned(), tuple_degrees=ends)

    def turned(self) -> DeviceGraph:
        """Return a directed graph with all edges reversed, but not ends of tuples."""
        into, columns = self.pulled
        return replace(
            self,
            at_least=reversed_at_least(self.active, self.at_least),
            offsets=into,
            columns=columns,
            in_offsets=self.offsets,
            in_columns=self.columns,
            tails=self.in_tails,
            in_tails=self.tails,
        )

    def numbers_at(self, ids: Ids) -> Array:
        """Return the number or ISOLATED for ids, int64 [k], as uint32 on the host."""
        if self.members is None:
            return take.take(self.numbers, ids)
        numbers = np.full(len(ids), ISOLATED, np.uint32)
        for low in range(0, len(ids), IDS_AT_ONCE):
            block, bit = np.divmod(ids[low : low + IDS_AT_ONCE], SET_BITS)
            words = take.take(self.members, (4 * block[:, None] + np.arange(4)).ravel())
            words = words.reshape(-1, 4)
            bits = np.unpackbits(words[:, 1:].view(np.uint8), 1, bitorder="little")
            inside = bits[np.arange(len(bit)), bit] > 0
            before = (bits * (np.arange(SET_BITS) < bit[:, None])).sum(
                1, dtype=np.int64
            )
            ranks = (words[:, 0].astype(np.int64) + before)[inside]
            some = numbers[low : low + IDS_AT_ONCE]
            if len(ranks):
                some[inside] = take.take(self.numbers, ranks)
        return numbers

    def numbers_of(self, ids: Ids) -> DeviceArray:
        """Return the number or ISOLATED for ids, int64 [k], as uint32 on the device."""
        cp = cuda.cupy()
        if self.members is None:
            some: DeviceArray = self.numbers[cp.asarray(ids)]
            return some
        listed: DeviceArray = cp.asarray(self.numbers_at(ids))
        return listed

    def row_lengths(self, low: int, high: int, *, incoming: bool = False) -> Ids:
        """Return the lengths of rows low … high-1 with their tails, int64.

        incoming: take the rows that pulls read
        """
        offsets, tails = self.offsets, self.tails
        if incoming:
            offsets, tails = self.pulled[0], self.pulled_tails
        lengths: Ids = np.diff(offsets[low : high + 1].get()).astype(np.int64)
        if tails is not None and low < tails.tailed:
            upto = min(high, tails.tailed)
            beyond = np.diff(tails.offsets[low : upto + 1].get())
            lengths[: upto - low] += beyond.astype(np.int64)
        return lengths

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays in device memory."""
        arrays = [self.offsets, self.columns, self.vertices, self.numbers]
        arrays += self.pulled if self.directed else ()
        arrays += () if self.members is None else (self.members,)
        arrays += [x.offsets for x in (self.tails, self.in_tails) if x is not None]
        return sum(int(a.nbytes) for a in (*arrays, self.tuple_degrees))

    @property
    def held_back(self) -> int:
        """Number of stored edges in host memory."""
        tails = (self.tails, self.in_tails)
        return sum(len(x.columns) for x in tails if x is not None)
