"""The degree threshold TH and the delegates above it.

Source: Pan, Pearce, Owens 2018, Sections III-A and VI-B.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from distbfs.graph.degrees import DegreeHistogram
from distbfs.types import Array, Ids, World

DELEGATES_PER_PART = 4  # d <= 4 n / p
NN_SHARE = 0.1  # |Enn| <= 10 % of m


@dataclass(frozen=True)
class Separation:
    """What a threshold is expected to give.

    delegates: d; nn_edges: expected |Enn|; stored_bytes: Table I over all parts
    """

    threshold: int
    delegates: int
    nn_edges: float
    stored_bytes: float


def expect(histogram: DegreeHistogram, parts: int, threshold: int) -> Separation:
    """Return what a threshold gives, from the degree histogram alone.

    d is exact.  |Enn| is expected as if edges joined their ends at random,
    (sum of normal degrees)^2 / m, which is a little too high for Kronecker graphs.
    """
    n, m = histogram.n, histogram.m
    d = histogram.above(threshold)
    normal = histogram.degrees <= threshold
    ends = float((histogram.degrees[normal] * histogram.counts[normal]).sum())
    nn = ends * ends / m if m else 0.0
    return Separation(threshold, d, nn, 8 * n + 8 * d * parts + 4 * m + 4 * nn)


def suggest_threshold(histogram: DegreeHistogram, parts: int) -> Separation:
    """Return the threshold that stores the graph in the fewest bytes.

    Among those with d <= 4n/p and |Enn| <= 10 % of m where any is; where none is, the
    bound on d comes first.  One part needs no delegates: its threshold is the largest
    degree.  The bytes of Table I weigh what a delegate costs on every part against what
    an nn edge costs, and so do the volumes of the exchange; along weak scaling the
    minimum moves by about the paper's factor of the square root of 2 per scale.
    """
    if parts == 1 or not len(histogram.degrees):
        return expect(histogram, parts, histogram.largest)
    thresholds = np.union1d(0, histogram.degrees).tolist()
    candidates = [expect(histogram, parts, t) for t in thresholds]
    limit = DELEGATES_PER_PART * histogram.n / parts
    few = [c for c in candidates if c.delegates <= limit]
    local = [c for c in few if c.nn_edges <= NN_SHARE * histogram.m]
    if local:
        return min(local, key=lambda c: c.stored_bytes)
    return min(few, key=lambda c: c.nn_edges)


def gather_delegates(
    world: World, ids: Sequence[Ids], degrees: Sequence[Ids]
) -> tuple[Ids, Ids]:
    """Return (delegates, their degrees), int64 [d], the same on all ranks (collective).

    ids, degrees: int64, those of this rank's parts.  Delegates are ordered by
    descending degree, then by id.
    """
    own = np.zeros((2, 0), dtype=np.int64)
    for i, d in zip(ids, degrees, strict=True):
        own = np.concatenate([own, np.stack([i, d])], axis=1)
    gathered = world.allgather(own.ravel())
    merged = np.concatenate([g.reshape(2, -1) for g in gathered], axis=1)
    order = np.lexsort((merged[0], -merged[1]))
    return merged[0][order], merged[1][order]


class DelegateIndex:
    """Looks up the delegate number of vertices."""

    DENSE_LIMIT = 1 << 30

    def __init__(self, n: int, delegates: Ids) -> None:
        self._dense: Array | None = None
        if n <= self.DENSE_LIMIT and len(delegates):
            self._dense = np.full(n, -1, dtype=np.int32 if n < 1 << 31 else np.int64)
            self._dense[delegates] = np.arange(len(delegates))
        else:
            self._order = np.argsort(delegates)
            self._sorted = delegates[self._order]

    def find(self, ids: Ids) -> Array:
        """Return the delegate number of each id, integers, -1 for a normal vertex."""
        if self._dense is not None:
            return self._dense[ids]
        if not len(self._sorted):
            return np.full(len(ids), -1, dtype=np.int64)
        place = np.minimum(np.searchsorted(self._sorted, ids), len(self._sorted) - 1)
        return np.where(self._sorted[place] == ids, self._order[place], -1)
