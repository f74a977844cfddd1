"""Numbers, rows and tables of a graph in the memory of a CUDA device.

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

from dataclasses import dataclass

import numpy as np

from distbfs.device.array_table import ArrayPlan, ArrayTable
from distbfs.types import Array, DeviceArray, Ids

ISOLATED = (1 << 32) - 1  # entry of ``numbers`` without a number
MAX_VERTICES = 1 << 31
COLUMN_PAD = 256  # columns that kernels may read past the end
WIDE = 1 << 32  # offsets have 64 bits from this number of edges on
SET_BITS = 96  # ids in a block of a set
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
    """Return the row arrays of a ``Share``; wide: offsets have 64 bits."""
    offset = np.uint64 if wide or m >= WIDE else np.uint32
    return {
        "offsets": ArrayPlan(offset, active + 1),
        "columns": ArrayPlan(np.uint32, m + COLUMN_PAD),
    }


def vertices_table(n: int, active: int) -> ArrayTable:
    """Return the arrays by vertex of a ``Share`` that has no ``members``."""
    return {
        "vertices": ArrayPlan(np.uint32, active),
        "numbers": ArrayPlan(np.uint32, n),
        "tuple_degrees": ArrayPlan(np.uint32, n),
    }


def graph_table(
    n: int, active: int, m: int, *, directed: bool = False, wide: bool = False
) -> ArrayTable:
    """Return the arrays of a ``Share`` without tails; wide: 64-bit offsets."""
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


@dataclass(frozen=True)
class Trees:
    """The tree vertices, which a search may leave out; each has a lower neighbour.

    count: how many there are; the number of other vertices is a multiple of
    SEARCHED_UNIT
    chain: the most edges on the way from a tree vertex to the other vertices
    at_least: as in ``Share``, for the other vertices only
    """

    count: int
    chain: int
    at_least: Ids


def reversed_at_least(active: int, at_least: Ids) -> Ids:
    """Return ``at_least`` of a directed graph with reversed edges; see ``Share``."""
    bounds = at_least.copy()
    bounds[: FEW_OUT + 1] = active
    return bounds
