"""A road-like graph: a thinned square grid whose edges are chains of vertices.

Crossings form a grid of side * side. Each edge from a crossing to its neighbour to the
right or below is kept with probability 0.9, and 0, 1, 2 or 3 vertices of degree 2 lie
on it, with equal probability; one hash per crossing decides this for its two edges. Ids
run along the rows, each crossing followed by the vertices on its edges, so that
neighbours have close ids, as in road files. The vertices and tuples before every block
of BLOCK crossings are counted once, so that any slice can be computed from the seed,
with O(n / BLOCK) memory. Some vertices are outside the largest component.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from distbfs.generate.hashing import draws, mix_seed
from distbfs.generate.positions import ByBlocks, numbered
from distbfs.options import check_range
from distbfs.progress import Tell, untold
from distbfs.types import Floats, Ids, Marks

BLOCK = 128  # crossings
KEEP = 966367642  # 0.9 * 2^30
DRAW = (1 << 30) - 1
MIN_VERTICES, MAX_VERTICES = 4, 1 << 36


class Crossings(NamedTuple):
    """The edges of crossings to the right and below, by their number of links.

    Both are int64 of one shape; an edge of k > 0 links has k - 1 vertices on it, a
    missing edge has 0 links.
    """

    right: Ids
    below: Ids

    @property
    def vertices(self) -> Ids:
        """Return the number of vertices of a crossing and its two edges, int64."""
        return 1 + np.maximum(self.right - 1, 0) + np.maximum(self.below - 1, 0)


def side_of(vertices: int) -> int:
    """Return the side of the grid whose expected size is closest to ``vertices``.

    A grid of side w has w^2 crossings and 2 w (w - 1) edges with 0.9 * 1.5 vertices.
    """
    return max((2 * (27 + math.isqrt(729 + 1480 * vertices)) + 74) // 148, 2)


class Road(ByBlocks):
    """Edge tuples of a road-like graph (a TupleSource).

    vertices: approximate number, 4 … 2^36; n is the actual number
    seed: any integer; tell: receives the progress of the initial count of tuples
    """

    family = "road"
    about = "a thinned grid whose edges are chains, of many levels"
    block = BLOCK
    at_a_time = 64

    def __init__(self, vertices: int, seed: int = 1, tell: Tell = untold) -> None:
        check_range("vertices", vertices, MIN_VERTICES, MAX_VERTICES)
        self.vertices = vertices
        self.seed = seed
        self.side = side_of(vertices)
        self._key = mix_seed(seed, 5)
        self._count_all(-(-self.side * self.side // BLOCK), tell)

    def coordinates(self) -> Floats:
        """Return the coordinates of vertices, (x, y) float64 [n, 2].

        Crossings have integer coordinates; the vertices on an edge divide it evenly.
        """
        places = np.empty((self.n, 2))
        step, end = self.at_a_time, len(self._vertices) - 1
        for low in range(0, end, step):
            blocks = np.arange(low, min(low + step, end))
            crossings, in_grid = self._crossings(blocks)
            count = (crossings.vertices * in_grid).ravel()
            which, place = numbered(count)  # 0 is the crossing
            right, below = (
                crossings.right.ravel()[which],
                crossings.below.ravel()[which],
            )
            down = place - np.maximum(right - 1, 0)
            crossing = low * BLOCK + which
            x = np.where(down > 0, 0, place / np.maximum(right, 1))
            y = np.where(down > 0, down / np.maximum(below, 1), 0)
            piece = slice(self._vertices[blocks[0]], self._vertices[blocks[-1] + 1])
            places[piece, 0] = crossing % self.side + x
            places[piece, 1] = crossing // self.side + y
        return places

    def _count(self, low: int, high: int) -> tuple[Ids, Ids]:
        crossings, in_grid = self._crossings(np.arange(low, high))
        vertices = (crossings.vertices * in_grid).sum(axis=1)
        return vertices, (crossings.right + crossings.below).sum(axis=1)

    def _crossings(self, blocks: Ids) -> tuple[Crossings, Marks]:
        """Return the crossings of blocks, [k, BLOCK], and which of them exist."""
        crossing = blocks[:, None] * BLOCK + np.arange(BLOCK)
        x = draws(self._key, crossing)
        drawn = [(x >> np.uint64(k) & np.uint64(DRAW)) < KEEP for k in (4, 34)]
        links = [
            (x >> np.uint64(k) & np.uint64(3)).astype(np.int64) + 1 for k in (0, 2)
        ]
        size = self.side * self.side
        in_grid = crossing < size
        right = drawn[0] & in_grid & (crossing % self.side + 1 < self.side)
        below = drawn[1] & (crossing + self.side < size)
        return Crossings(links[0] * right, links[1] * below), in_grid

    def _sizes(self, blocks: Ids) -> Ids:
        return self._crossings(blocks)[0].vertices

    def _of_blocks(self, blocks: Ids) -> tuple[Ids, Ids]:
        crossings, in_grid = self._crossings(blocks)
        cells = (blocks[:, None] * BLOCK + np.arange(BLOCK))[in_grid]
        right, below, sizes = (x[in_grid] for x in (*crossings, crossings.vertices))
        links = np.stack((right, below), axis=1)
        near = self.starts(cells)
        # on the way to the right and on the way down: the first vertex, and the end
        first = np.stack((near + 1, near + np.maximum(right, 1)), axis=1)
        under = self.starts(np.where(below > 0, cells + self.side, cells))
        far = np.stack((near + sizes, under), axis=1)
        edge, link = numbered(links.ravel())
        begin = first.ravel()[edge] + link
        u = np.where(link == 0, near[edge // 2], begin - 1)
        v = np.where(link == links.ravel()[edge] - 1, far.ravel()[edge], begin)
        return u, v
