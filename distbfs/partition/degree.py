"""Delegates: the vertices whose degree exceeds TH.

Source: Pan, Pearce, Owens 2018, Section III-A.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from distbfs.types import Ids, World


def gather_delegates(
    world: World, ids: Sequence[Ids], degrees: Sequence[Ids]
) -> tuple[Ids, Ids]:
    """Gather (delegates, their degrees), int64 [d], on all ranks (collective).

    ids, degrees: int64, the delegates of this rank's parts and their degrees. Delegates
    are ordered by descending degree, then by id.
    """
    own = np.zeros((2, 0), dtype=np.int64)
    for i, d in zip(ids, degrees, strict=True):
        own = np.concatenate([own, np.stack([i, d])], axis=1)
    gathered = world.allgather(own.ravel())
    merged = np.concatenate([g.reshape(2, -1) for g in gathered], axis=1)
    order = np.lexsort((merged[0], -merged[1]))
    return merged[0][order], merged[1][order]
