"""Planar triangulations similar to Delaunay's, with six neighbours on average.

Vertices are the points of a square grid, each moved by less than a quarter of a side in
both directions, so that the corners of each square still form a convex quadrilateral.
The square's diagonal is that of the Delaunay triangulation of its four corners. The
tuples are the edges to the right, then those below, then the diagonals, each in the
order of the vertices.
"""

from __future__ import annotations

import math

import numpy as np

from distbfs.generate.hashing import draws, mix_seed
from distbfs.generate.positions import ByFormula
from distbfs.options import check_range
from distbfs.types import Ids, Marks

MAX_VERTICES = 1 << 48
MOVE_BITS = 10
SIDE = 1 << (MOVE_BITS + 1)  # of a square


class Triangulation(ByFormula):
    """Edge tuples of a triangulated square (a TupleSource).

    vertices: approximate number, 4 … 2^48; n is the nearest square number
    seed: any integer
    """

    family = "triangulation"
    about = "moved grid points, six neighbours on average"

    def __init__(self, vertices: int, seed: int = 1) -> None:
        check_range("vertices", vertices, 4, MAX_VERTICES)
        self.vertices, self.seed = vertices, seed
        root = math.isqrt(vertices)
        self.side = root + (vertices - root * root > root)
        self.n = self.side**2
        across = self.side * (self.side - 1)
        self._ends = across, 2 * across
        self.tuples = 2 * across + (self.side - 1) ** 2
        self._key = mix_seed(seed, 7)

    def points(self, vertices: Ids) -> tuple[Ids, Ids]:
        """Return the coordinates (x, y) of vertices, int64; a square's side is SIDE."""
        x = draws(self._key, vertices).view(np.int64)
        mask = (1 << MOVE_BITS) - 1
        row, column = np.divmod(vertices, self.side)
        return column * SIDE + (x & mask), row * SIDE + (x >> MOVE_BITS & mask)

    def tuples_at(self, positions: Ids) -> tuple[Ids, Ids]:
        """Return the tuples at any positions; int64 arrays."""
        right, below = self._ends
        row, column = np.divmod(positions, self.side - 1)
        u = row * self.side + column
        v = u + 1
        down = positions >= right
        u[down] = positions[down] - right
        v[down] = u[down] + self.side
        square = np.flatnonzero(positions >= below)
        row, column = np.divmod(positions[square] - below, self.side - 1)
        corner = row * self.side + column
        turned = self._other_diagonal(corner)
        u[square] = corner + turned
        v[square] = corner + self.side + ~turned
        return u, v

    def _other_diagonal(self, corner: Ids) -> Marks:
        """Return whether the diagonal starts at the upper right corner, bool.

        It does if the lower left corner lies in the circle through the other three.
        """
        at = [corner, corner + 1, corner + self.side + 1, corner + self.side]
        x, y = zip(*(self.points(vertices) for vertices in at), strict=True)
        a, b, c = ((x[k] - x[3], y[k] - y[3]) for k in range(3))
        lifted = [p[0] * p[0] + p[1] * p[1] for p in (a, b, c)]
        inside = (
            lifted[0] * (b[0] * c[1] - c[0] * b[1])
            - lifted[1] * (a[0] * c[1] - c[0] * a[1])
            + lifted[2] * (a[0] * b[1] - b[0] * a[1])
        )
        return inside > 0
