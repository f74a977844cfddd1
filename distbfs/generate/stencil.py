"""Stencils: grids of one to six dimensions, each vertex joined to its nearest ones.

They resemble meshes of finite elements and finite differences: degrees are nearly
equal, the diameter grows with the side, and there are many triangles. Offsets of the k
nearest neighbours are sorted by length, then by coordinates, larger ones first; of each
pair (o, -o), the one whose first nonzero coordinate is positive makes the tuples.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from distbfs.errors import UsageError
from distbfs.generate.parameters import NEIGHBOURS, Parameter
from distbfs.generate.positions import ByFormula
from distbfs.options import check_range
from distbfs.types import Ids

MAX_VERTICES = 1 << 48
MOST_DIMENSIONS, MOST_NEIGHBOURS = 6, 256
DIMENSIONS = Parameter(
    "dimensions", int, "Dimensions of the grid", 1, MOST_DIMENSIONS, usual=2
)


def nearest(dimensions: int, count: int) -> list[tuple[int, ...]]:
    """Return the ``count`` shortest offsets of a grid, one of each pair (o, -o)."""
    radius = 1
    while True:
        every = itertools.product(range(-radius, radius + 1), repeat=dimensions)
        half = [o for o in every if o > (0,) * dimensions]
        inside = [o for o in half if sum(x * x for x in o) <= radius * radius]
        if len(inside) >= count:
            inside.sort(key=lambda o: (sum(x * x for x in o), *(-x for x in o)))
            return inside[:count]
        radius += 1


class Stencil(ByFormula):
    """Edge tuples of a grid (a TupleSource), each edge once.

    vertices: approximate number, 2 … 2^48; n is the product of the sides
    neighbours: number of neighbours of an inner vertex, even, 2 … 256; dimensions: 1 …
    6
    """

    family = "stencil"
    about = "a grid whose vertices are joined to their nearest"
    parameters = NEIGHBOURS, DIMENSIONS

    def __init__(self, vertices: int, neighbours: int = 6, dimensions: int = 2) -> None:
        check_range("vertices", vertices, 2, MAX_VERTICES)
        check_range("dimensions", dimensions, 1, MOST_DIMENSIONS)
        if neighbours % 2 or not 2 <= neighbours <= MOST_NEIGHBOURS:
            raise UsageError(
                f"neighbours is {neighbours}; allowed: even, 2 to {MOST_NEIGHBOURS}"
            )
        self.vertices, self.neighbours = vertices, neighbours
        self.dimensions = dimensions
        side = max(round(vertices ** (1 / dimensions)), 1)
        most = max(round(vertices / side ** (dimensions - 1)), 1)
        self.sides = (most,) + (side,) * (dimensions - 1)
        self.n = math.prod(self.sides)
        self._set_offsets(nearest(dimensions, neighbours // 2))

    def _set_offsets(self, offsets: list[tuple[int, ...]]) -> None:
        """Compute each offset's first tuple, the box of its first ends, and steps."""
        shape = (len(offsets), self.dimensions)
        by_offset = np.array(offsets, dtype=np.int64).reshape(shape)
        sides = np.array(self.sides, dtype=np.int64)
        self._strides = np.array(
            [math.prod(self.sides[k + 1 :]) for k in range(self.dimensions)], np.int64
        )
        self._extents = np.maximum(sides - np.abs(by_offset), 0)
        self._first = np.maximum(-by_offset, 0) @ self._strides
        self._step = by_offset @ self._strides
        counts = self._extents.prod(axis=1)
        self._starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.tuples = int(self._starts[-1])

    def tuples_at(self, positions: Ids) -> tuple[Ids, Ids]:
        """Return the tuples at any positions; int64 arrays."""
        which = np.searchsorted(self._starts, positions, side="right") - 1
        rest = positions - self._starts[which]
        u = self._first[which]
        for k in range(self.dimensions - 1, -1, -1):
            rest, at = np.divmod(rest, self._extents[which, k])
            u = u + at * self._strides[k]
        return u, u + self._step[which]
