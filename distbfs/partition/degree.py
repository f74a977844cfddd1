"""Delegates: the vertices of a degree above TH.

Source: Pan, Pearce, Owens 2018, Section III-A.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from distbfs.types import Array, Ids, World


def gather_delegates(
    world: World, ids: Sequence[Ids], degrees: Sequence[Ids]
) -> tuple[Ids, Ids]:
    """Gather (delegates, their degrees), int64 [d], on all ranks (collective).

    ids, degrees: int64, those of this rank's parts. Delegates are ordered by descending
    degree, then by id.
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
