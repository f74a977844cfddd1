"""Graphs whose tuples a formula gives: complete, star, path and binary tree."""

from __future__ import annotations

import numpy as np

from distbfs.generate.positions import ByFormula
from distbfs.options import check_range
from distbfs.types import Ids

MAX_VERTICES = 1 << 48
MAX_COMPLETE = 1 << 26  # square roots of twice its tuples are exact


class Shape(ByFormula):
    """A graph of n vertices that has no other parameters (a TupleSource)."""

    most = MAX_VERTICES

    def __init__(self, vertices: int) -> None:
        check_range("vertices", vertices, 1, self.most)
        self.n = self.vertices = vertices
        self.tuples = vertices - 1


class Complete(Shape):
    """Every pair of n vertices once, n ≤ 2^26; (u, v), u < v, is tuple v(v-1)/2 + u."""

    family = "complete"
    most = MAX_COMPLETE

    def __init__(self, vertices: int) -> None:
        super().__init__(vertices)
        self.tuples = vertices * (vertices - 1) // 2

    def tuples_at(self, positions: Ids) -> tuple[Ids, Ids]:
        """Return the tuples at any positions; int64 arrays."""
        root = np.sqrt(8.0 * positions + 1.0)
        v = ((root + 1) / 2).astype(np.int64)
        v -= v * (v - 1) // 2 > positions  # if the root was rounded up
        return positions - v * (v - 1) // 2, v


class Star(Shape):
    """Vertex 0 with an edge to each of the others."""

    family = "star"

    def tuples_at(self, positions: Ids) -> tuple[Ids, Ids]:
        """Return the tuples at any positions; int64 arrays."""
        return np.zeros_like(positions), positions + 1


class Path(Shape):
    """A path: an edge from each vertex k to k + 1."""

    family = "path"

    def tuples_at(self, positions: Ids) -> tuple[Ids, Ids]:
        """Return the tuples at any positions; int64 arrays."""
        return positions.copy(), positions + 1


class BinaryTree(Shape):
    """A tree in which vertex k > 0 is a child of vertex (k - 1) / 2, rounded down."""

    family = "binary-tree"

    def tuples_at(self, positions: Ids) -> tuple[Ids, Ids]:
        """Return the tuples at any positions; int64 arrays."""
        return positions // 2, positions + 1
