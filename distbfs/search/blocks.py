"""Results of parts in blocks of consecutive input ids."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from distbfs.generate.hashing import Permutation
from distbfs.partition.device_part import DevicePart
from distbfs.partition.layout import Layout
from distbfs.partition.part import Part
from distbfs.types import Array, Ids, World, slice_bounds


def input_ids(ids: Ids, permutation: Permutation | None) -> Ids:
    """Return the input ids of ids inside, int64; -1 stays."""
    if permutation is None:
        return ids
    out = np.full(len(ids), -1, dtype=np.int64)
    out[ids >= 0] = permutation.inverse(ids[ids >= 0])
    return out


class BlockMap:
    """Moves results from parts to blocks of consecutive input ids.

    The way is found once; a search sends values only.
    """

    def __init__(
        self,
        world: World,
        layout: Layout,
        parts: Sequence[Part] | Sequence[DevicePart],
        permutation: Permutation | None,
    ) -> None:
        self._world = world
        n = layout.n
        ids = np.concatenate(
            [
                layout.global_of(part.index, np.arange(part.local_count))
                for part in parts
            ]
        )
        if permutation is not None:
            ids = permutation.inverse(ids)
        starts = np.array(
            [slice_bounds(n, world.size, r)[0] for r in range(world.size)]
        )
        owner = np.searchsorted(starts, ids, side="right") - 1
        self._order = np.argsort(owner, kind="stable")
        self._cuts = np.searchsorted(owner[self._order], np.arange(1, world.size))
        self._first, stop = slice_bounds(n, world.size, world.rank)
        self._size = stop - self._first
        ascending = bool(np.all(ids[1:] > ids[:-1]))
        self._straight = world.size == len(parts) == 1 and ascending
        arrived = world.alltoall(np.split(ids[self._order], self._cuts))
        self._place = np.concatenate(arrived) - self._first

    def gather(self, values: Sequence[Array]) -> Array:
        """Return this rank's block from the arrays of its parts (collective)."""
        if self._straight:
            return values[0]
        joined = np.concatenate(values)[self._order]
        out = np.empty(self._size, dtype=joined.dtype)
        arrived = self._world.alltoall(np.split(joined, self._cuts))
        out[self._place] = np.concatenate(arrived)
        return out
