"""Random geometric graphs (rgg): points in a square, with edges between near ones.

The square is divided into cells as wide as the radius. A hash of the cell gives its
number of points, which is Poisson distributed, and hashes of the points give their
coordinates, so that the points form a Poisson process. Ids run along the rows of cells.
The points and tuples before every block of BLOCK cells are counted once, so that any
slice can be computed from the seed, with O(n / BLOCK) memory.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from distbfs.generate.hashing import draws, mix_seed
from distbfs.generate.positions import ByBlocks, numbered, size
from distbfs.options import INPUT, option
from distbfs.progress import Tell, untold
from distbfs.types import Ids, Words

BLOCK, MOST = 64, 256  # cells; points of a cell
RADIUS = 1 << 30
MIN_VERTICES, MAX_VERTICES = 4, 1 << 40
MAX_DEGREE = 256
CANDIDATES = 1 << 14  # pairs of points of a cell that are looked at together, about
AROUND = ((0, 0), (1, 0), (-1, 1), (0, 1), (1, 1))  # cells right, below


def usual_degree(vertices: int) -> float:
    """Return the mean degree for a radius of .55 (ln n / n)^.5 in a unit square.

    The graphs rgg_n_2_* of the 10th DIMACS challenge have this degree.
    """
    return math.pi * 0.55**2 * math.log(max(vertices, 2))


def poisson_limits(mean: float) -> Words:
    """Return 2^64 times the probability of at most k points, k = 0, 1, …, as uint64."""
    limits, below, mass, k = [], 0.0, math.exp(-mean), 0
    while k < MOST and below < 1 - 2.0**-52:
        below += mass
        limits.append(min(int(below * 2.0**64), (1 << 64) - 1))
        k += 1
        mass *= mean / k
    return np.array(limits, dtype=np.uint64)


@dataclass(eq=False)
class Geometric(ByBlocks):
    """Edge tuples of a random geometric graph (a TupleSource).

    ``vertices`` is the expected number, n the actual one; ``tell`` receives the
    progress of the initial count of tuples.

    degree: Mean degree away from the border; 0 stands for ``usual_degree``.
    """

    family = "geometric"
    about = "points in a square, edges where they are near"
    block = BLOCK

    vertices: int = size(MIN_VERTICES, MAX_VERTICES)
    degree: float = option(
        INPUT, default=0.0, low=0, high=MAX_DEGREE, usual="radius .55 (ln n / n)^.5"
    )
    seed: int = 1
    tell: Tell = untold

    def __post_init__(self) -> None:
        super().__post_init__()
        vertices, seed = self.vertices, self.seed
        mean = (self.degree or usual_degree(vertices)) / math.pi  # points of a cell
        self.side = max(round(math.sqrt(vertices / mean)), 1)
        self.limits = poisson_limits(vertices / self.side**2)
        self.at_a_time = max(int(CANDIDATES / (BLOCK * mean * mean)), 1)
        self._keys = mix_seed(seed, 9), mix_seed(seed, 10)
        self._cells = self.side * self.side
        self._count_all(-(-self._cells // BLOCK), self.tell)

    def _count(self, low: int, high: int) -> tuple[Ids, Ids]:
        cells = np.arange(low * BLOCK, min(high * BLOCK, self._cells))
        block, near = cells // BLOCK - low, self._near(cells)[0]
        vertices = np.bincount(block, self.counts(cells), high - low)
        tuples = np.bincount(block[near], minlength=high - low)
        return vertices.astype(np.int64), tuples

    def counts(self, cells: Ids) -> Ids:
        """Return the number of points in cells, int64 of the same shape."""
        x = draws(self._keys[0], cells)
        return np.searchsorted(self.limits, x, side="right").astype(np.int64)

    def points(self, cells: Ids, index: Ids) -> tuple[Ids, Ids]:
        """Return coordinates of points within their cells, int64 of the same shape.

        index: which point of its cell each is, below ``counts``; a cell has the side
        RADIUS
        """
        x = draws(self._keys[1], cells * MOST + index)
        mask = np.uint64(RADIUS - 1)
        return (x & mask).view(np.int64), (x >> np.uint64(30) & mask).view(np.int64)

    def _sizes(self, blocks: Ids) -> Ids:
        return self.counts(blocks[:, None] * BLOCK + np.arange(BLOCK))

    def _near(self, cells: Ids) -> tuple[Ids, Ids, Ids, Ids]:
        """Return the tuples of cells in order: (cell, point, nearby cell, its point).

        Cells are indices into ``cells`` and into AROUND, int64.
        """
        right, below = np.array(AROUND).T
        column = cells[:, None] % self.side + right
        row = cells[:, None] // self.side + below
        in_grid = (column >= 0) & (column < self.side) & (row < self.side)
        others = np.where(in_grid, row * self.side + column, 0)
        sizes = np.where(in_grid, self.counts(others), 0)
        cell, point = numbered(self.counts(cells))
        place, other_point = numbered(sizes[cell].ravel())
        cell, point = (np.repeat(x, len(AROUND))[place] for x in (cell, point))
        around = place % len(AROUND)
        x, y = self.points(cells[cell], point)
        other_x, other_y = self.points(others[cell, around], other_point)
        x, y = (
            other_x + right[around] * RADIUS - x,
            other_y + below[around] * RADIUS - y,
        )
        near = (np.abs(x) < RADIUS) & (np.abs(y) < RADIUS)
        near &= (around > 0) | (other_point > point)
        near = np.flatnonzero(near)
        near = near[x[near] ** 2 + y[near] ** 2 < RADIUS * RADIUS]
        return cell[near], point[near], around[near], other_point[near]

    def _of_blocks(self, blocks: Ids) -> tuple[Ids, Ids]:
        cells = (blocks[:, None] * BLOCK + np.arange(BLOCK)).ravel()
        cells = cells[cells < self._cells]
        cell, point, around, other_point = self._near(cells)
        right, below = np.array(AROUND).T
        other_cells = cells[cell] + right[around] + below[around] * self.side
        return self.starts(cells[cell]) + point, self.starts(other_cells) + other_point
