"""Number of shortest paths to each vertex, from the levels of a search.

sigma(v) is 1 on level 0, and below it the sum of sigma over the edges (u, v) with u one
level above v. A stored edge counts once; loops lie on no shortest path. Source: Brandes
2001, Section 3.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from distbfs.options import COUNT_DTYPES, check_choice
from distbfs.types import Array, Ids, Words

LOW, HALF = np.uint64((1 << 32) - 1), np.uint64(32)


class PathCounter(Protocol):
    """Counts the shortest paths found by searches of a whole graph.

    seconds: device time of the last count, 0 on hosts
    """

    seconds: float

    def counts(self, level: Any, levels: int, dtype: str) -> tuple[Any, int]:
        """Return (counts [n] by id, the first level where one exceeds uint64, or 0).

        level: integers [n] by id in the graph's memory, -1 = unreached; levels: upper
        bound of level; dtype: "uint64", or "float64", whose sums are rounded
        """


def check_dtype(dtype: str) -> str:
    """Check the dtype of counts; raise UsageError for another."""
    check_choice("dtype", dtype, COUNT_DTYPES)
    return dtype


def by_level(levels: Array, depth: int) -> list[Ids]:
    """Return the places of each level 0 … depth in an array, int64, ascending."""
    order = np.argsort(levels, kind="stable")
    cuts = np.searchsorted(levels[order], np.arange(depth + 2))
    return np.split(order, cuts)[1:-1]


class Sums:
    """Sums of counts, which parts of a graph may add to one after the other.

    words: summands of each count: the halves of uint64, so that a sum of fewer than
    2^32 of them fits 64 bits; the value itself of float64. [2 or 1, size]
    """

    def __init__(self, size: int, dtype: str) -> None:
        exact = dtype == "uint64"
        self.words = np.zeros((1 + exact, size), dtype=dtype)

    def add(self, places: Ids, values: Array) -> None:
        """Add values [k] of the dtype at places [k], which may repeat."""
        if len(self.words) == 1:
            np.add.at(self.words[0], places, values)
            return
        np.add.at(self.words[0], places, values & LOW)
        np.add.at(self.words[1], places, values >> HALF)

    def totals(self) -> tuple[Array, bool]:
        """Return (sums [size], whether one exceeds uint64, and so is wrong)."""
        return totals_of(self.words)


def totals_of(words: Array) -> tuple[Array, bool]:
    """Return ``Sums.totals`` of words, of one part or summed over several."""
    if len(words) == 1:
        return words[0], False
    low, high = words
    high = high + (low >> HALF)
    sums: Words = high << HALF | low & LOW
    return sums, bool((high > LOW).any())
