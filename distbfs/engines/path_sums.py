"""Sums along shortest paths, from the levels of a search.

The number of paths, sigma(v), is 1 on level 0; on later levels, it is the sum of
sigma(u) over the edges (u, v) with u on the level before that of v. A stored edge
counts once; loops lie on no shortest path. Source: Brandes 2001, Section 3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from distbfs.graph.sorted_rows import stable_order

if TYPE_CHECKING:
    from distbfs.graph.csr import CSR
    from distbfs.types import Array, Ids

LOW, HALF = np.uint64((1 << 32) - 1), np.uint64(32)

MakeSums: TypeAlias = "Callable[[Array, int, str], PathSums]"
"""Makes sums of numbers of paths to vertices; arguments: level, depth and dtype."""


class PathSums:
    """Sums of values of vertices from level to level, in NumPy.

    The vertices are those of a whole graph, or the normals or delegates of a part.
    At first, values are numbers of paths, summed from the first level to the last;
    after ``turn``, they are (1 + dependency) / paths, summed from the last level to the
    first.

    level: int32 [k] by number, -1 = unreached; depth: the last level
    dtype: "uint64" or "float64", the dtype of ``values``, [k]
    """

    def __init__(self, level: Array, depth: int, dtype: str, threads: int = 1) -> None:
        self.level, self._depth, self._dtype = level, depth, dtype
        self.values = np.zeros(len(level), dtype=dtype)
        self._paths: Any = None
        self._base: Any = None  # 1 / paths, on the way back
        keys = (level + 1).astype(np.uint32)
        self._order = stable_order(keys, threads)
        self._begins = np.cumsum(np.bincount(keys, minlength=depth + 2))
        self.values[self.places(0)] = 1

    def places(self, level: int) -> Ids:
        """Return the numbers of the vertices on a level, int64, ascending."""
        first, last = self._begins[level : level + 2]
        some: Ids = self._order[first:last].astype(np.int64, copy=False)
        return some

    def along(
        self,
        edges: CSR,
        back: CSR | None,  # noqa: ARG002
        start: PathSums,
        begin: int,
        goal: int,
    ) -> bool:
        """Add values of level ``begin`` of ``start`` to those of level ``goal``.

        edges: rows from the vertices of ``start`` to these; back: the same edges by
        target, which other engines use, None if they are not on this part. Returns
        whether any sum exceeds uint64.
        """
        rows = start.places(begin)
        index, columns = edges.edges_of(rows)
        below = self.level[columns] == goal
        return self.add(columns[below], start.values[rows[index[below]]], goal)

    def down(self, edges: CSR, back: CSR) -> int:
        """Add up the values of a whole graph, from the first level to the last.

        edges, back: see ``along``. Returns the first level where a sum exceeds uint64,
        or 0.
        """
        passed = 0
        for goal in range(1, self._depth + 1):
            over = self.along(edges, back, self, goal - 1, goal)
            passed = passed or goal * over
        return passed

    def add(self, numbers: Array, values: Array, goal: int) -> bool:
        """Add values [k] to vertices of a level; return whether a sum exceeds uint64.

        numbers: [k], the vertices, which may repeat
        """
        places = self.places(goal)
        words = words_of(self.values[places])
        where = np.searchsorted(places, numbers)
        for sums, summands in zip(words, words_of(values), strict=True):
            np.add.at(sums, where, summands)
        return self.put(words, goal)

    def put(self, words: Array, goal: int) -> bool:
        """Set the values of a level from words; return whether any exceeds uint64."""
        self.values[self.places(goal)], over = totals_of(words)
        return over

    def settle(self, goal: int) -> None:
        """Complete the sums of a level: after ``turn``, add 1 / paths."""
        places = self.places(goal)
        if self._base is not None:
            # mutant: += self._base -> = self._base : test_betweenness_by_parts
            self.values[places] += self._base[places]

    def turn(self) -> None:
        """Keep the numbers of paths; start again at the last level with 1 / paths."""
        self._paths, zeros = self.values, np.zeros_like(self.values)
        self._base = np.divide(1, self._paths, out=zeros, where=self._paths > 0)
        self.values = np.zeros_like(zeros)
        self.settle(self._depth)

    def dependencies(self) -> Array:
        """Return the dependencies of the root, 0 at the root, after the way back."""
        shares: Array = self._paths * (self.values - self._base)
        shares[self.places(0)] = 0
        return shares


def words_of(values: Array) -> Array:
    """Return the words of values, [2 or 1, k], which can be summed in 64 bits.

    For uint64, they are the lower and the upper halves, of which fewer than 2^32 can be
    summed; for float64, the values themselves.
    """
    if values.dtype != np.uint64:
        return values[None].copy()
    return np.stack([values & LOW, values >> HALF])


def totals_of(words: Array) -> tuple[Array, bool]:
    """Return (sums [k] from their words, whether any exceeds uint64 and is wrong)."""
    if len(words) == 1:
        return words[0], False
    low, high = words
    high = high + (low >> HALF)
    return high << HALF | low & LOW, bool((high > LOW).any())
