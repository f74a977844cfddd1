"""Stencils: grids of one to six dimensions, each vertex joined to its nearest ones.

They resemble meshes of finite elements and finite differences: degrees are nearly
equal, the diameter grows with the side, and there are many triangles. Offsets of the k
nearest neighbours are sorted by length, then by coordinates, larger ones first; of each
pair (o, -o), the one whose first nonzero coordinate is positive makes the tuples.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from distbfs.errors import UsageError
from distbfs.generate.positions import ByFormula, size
from distbfs.options import INPUT, option
from distbfs.types import Ids

MAX_VERTICES = 1 << 48
MOST_NEIGHBOURS = 256


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


@dataclass(eq=False)
class Stencil(ByFormula):
    """Edge tuples of a grid (a TupleSource), each edge once.

    ``vertices`` is approximate: n is the product of the sides.

    neighbours: Nearest vertices on the grid, on all sides: even.
    dimensions: Dimensions of the grid.
    """

    family = "stencil"
    about = "a grid whose vertices are joined to their nearest"

    vertices: int = size(2, MAX_VERTICES)
    neighbours: int = option(INPUT, default=6, low=2)
    dimensions: int = option(INPUT, default=2, low=1, high=6)

    def __post_init__(self) -> None:
        super().__post_init__()
        vertices, dimensions = self.vertices, self.dimensions
        if self.neighbours % 2 or self.neighbours > MOST_NEIGHBOURS:
            raise UsageError(
                f"neighbours is {self.neighbours}; allowed: even, 2 to "
                f"{MOST_NEIGHBOURS}"
            )
        side = max(round(vertices ** (1 / dimensions)), 1)
        most = max(round(vertices / side ** (dimensions - 1)), 1)
        self.sides = (most,) + (side,) * (dimensions - 1)
        self.n = math.prod(self.sides)
        self._set_offsets(nearest(dimensions, self.neighbours // 2))

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
