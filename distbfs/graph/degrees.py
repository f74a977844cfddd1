"""Degree histograms of a distributed graph."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from distbfs.types import Ids, World


@dataclass(frozen=True)
class DegreeHistogram:
    """The number of vertices of each degree; equal on all ranks.

    degrees: int64 ascending, without repeats; counts: int64 of the same length
    """

    degrees: Ids
    counts: Ids

    @property
    def n(self) -> int:
        """Number of vertices."""
        return int(self.counts.sum())

    @property
    def m(self) -> int:
        """Sum of degrees: stored directed edges."""
        return int((self.degrees * self.counts).sum())

    @property
    def largest(self) -> int:
        """Largest degree (0 for a graph without vertices)."""
        return int(self.degrees[-1]) if len(self.degrees) else 0

    def above(self, threshold: int) -> int:
        """Count the vertices whose degree is above ``threshold``."""
        return int(self.counts[self.degrees > threshold].sum())

    def summary(self) -> dict[str, Any]:
        """Return statistics for the store (JSON values)."""
        n = max(self.n, 1)
        mean = self.m / n
        variance = float((self.counts * (self.degrees - mean) ** 2).sum()) / n
        isolated = int(self.counts[self.degrees == 0].sum())
        return {
            "largest": self.largest,
            "mean": mean,
            "deviation": variance**0.5,
            "isolated": isolated,
        }


def histogram_of(world: World, pieces: Iterable[tuple[Ids, Ids]]) -> DegreeHistogram:
    """Compute the histogram over the vertices of all ranks (collective).

    pieces: what ``occurring`` returns for the degrees of each of this rank's parts
    """
    values, counts = merge(list(pieces))
    both = world.allgather(np.concatenate([values, counts]))
    pairs = [np.split(item, 2) for item in both]
    return DegreeHistogram(*merge([(p[0], p[1]) for p in pairs]))


def occurring(values: Ids) -> tuple[Ids, Ids]:
    """Return (distinct values ascending, count of each) of int64 values >= 0."""
    if values.max(initial=0) > len(values):
        return np.unique(values, return_counts=True)
    counts = np.bincount(values)
    occur = np.flatnonzero(counts)
    return occur, counts[occur]


def merge(pieces: list[tuple[Ids, Ids]]) -> tuple[Ids, Ids]:
    """Merge (values, counts) pairs, int64, values ascending; add up equal values."""
    empty = np.zeros(0, dtype=np.int64)
    values = np.concatenate([empty, *(piece[0] for piece in pieces)])
    counts = np.concatenate([empty, *(piece[1] for piece in pieces)])
    unique, place = np.unique(values, return_inverse=True)
    total = np.zeros(len(unique), dtype=np.int64)
    np.add.at(total, place, counts)
    return unique, total
