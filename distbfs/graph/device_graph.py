"""A whole graph in the memory of one CUDA device.

Numbers.  Vertices with edges are numbered by falling degree class and, inside a class,
by rising id: a stable sort of the ids.  So hubs come first and share cache lines, each
row lists its neighbours of high degree first, and vertices that are near each other in
their ids stay near inside their class, which makes results in ids cheap to write.
Vertices without edges have no number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from distbfs.types import Array, DeviceArray, Ids

ISOLATED = (1 << 32) - 1  # in ``numbers``: no number
MAX_VERTICES = 1 << 31
COLUMN_PAD = 256  # columns that may be read past the end
EXACT_DEGREES = 16  # each its own class; above, four classes an octave
AT_LEAST = 18  # entries of ``at_least``


def degree_class(degrees: Array) -> Ids:
    """Return the class of each degree, int64; it never falls with the degree.

    Degrees up to EXACT_DEGREES are their own class, 0 among them; each octave above has
    four classes.
    """
    d = np.maximum(degrees.astype(np.int64), 1)
    octave = np.frexp(d.astype(np.float64))[1] - 1  # exact: d < 2^53
    quarter = (d >> np.maximum(octave - 2, 0)) & 3
    wide = EXACT_DEGREES + 4 * (octave - 4) + quarter
    return np.where(degrees <= EXACT_DEGREES, degrees.astype(np.int64), wide)


@dataclass
class DeviceGraph:
    """Rows of neighbours by number, without loops and repeats.

    n: vertices by id; active: vertices that have a number; m: stored directed edges
    tuples: input tuples; loops: how many of them were loops
    at_least: int64 [AT_LEAST], at_least[k]: every vertex of degree k or more has a
        number below it (k = 1 … 17)
    offsets: uint32 (uint64 from 2^32 edges on) [active + 1], by number
    columns: uint32 [m + COLUMN_PAD], numbers, rising in each row
    vertices: uint32 [active], number -> id
    numbers: uint32 [n], id -> number, or ISOLATED
    tuple_degrees: uint32 [n], by id: ends of input tuples at the vertex; a loop is two
    source: what recreates the tuples
    seconds: what the build took, by phase
    in_offsets, in_columns: of a directed graph, whose rows hold the edges out: as
        offsets and columns, the edges in; else None

    The arrays are CuPy's.  Of a directed graph, vertices are numbered by the sum of
    both degrees, rows may be empty, and a tuple is two ends at the vertex it leaves.
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
    in_offsets: DeviceArray | None = None
    in_columns: DeviceArray | None = None

    @property
    def directed(self) -> bool:
        """Whether edges lead one way only."""
        return self.in_offsets is not None

    @property
    def pulled(self) -> tuple[DeviceArray, DeviceArray]:
        """Offsets and columns of the rows that pulls look at, as those of the class."""
        if self.in_offsets is None or self.in_columns is None:
            return self.offsets, self.columns
        return self.in_offsets, self.in_columns

    @property
    def nbytes(self) -> int:
        """Bytes of device memory that the arrays take."""
        arrays = [self.offsets, self.columns, self.vertices, self.numbers]
        arrays += self.pulled if self.directed else ()
        return sum(int(a.nbytes) for a in (*arrays, self.tuple_degrees))
