"""The local phase of an exchange: between the parts of one rank, in memory.

Source: Pan, Pearce, Owens 2018, Section V-A (reduction across the devices of a rank)
and V-B (bins that stay on the rank).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from distbfs.errors import LaunchError
from distbfs.exchange.buffer import Buffer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from distbfs.partition.layout import Placement
    from distbfs.types import Array, Words, World


class LocalPhase:
    """OR-reduction and bins of the parts of one rank.

    Buffers alternate from level to level: what was returned at one level stays as it
    is until the level after the next one.
    """

    def __init__(self, world: World, placement: Placement, delegates: int) -> None:
        if placement.ranks != world.size:
            raise LaunchError(
                f"{placement.parts} parts are placed on {placement.ranks} ranks, "
                f"but {world.size} were started"
            )
        self.parts = placement.parts_of(world.rank)
        self._masks = [np.zeros((delegates + 63) // 64, np.uint64) for _ in range(2)]
        self._received = [[Buffer(np.uint32) for _ in range(2)] for _ in self.parts]
        self._mask_turn = 0
        self._turn = 0

    def reduce_masks(self, masks: Sequence[Words]) -> Words:
        """Return the OR of the masks of this rank's parts, uint64 [ceil(d/64)]."""
        self._mask_turn ^= 1
        result = self._masks[self._mask_turn]
        np.copyto(result, masks[0])
        for mask in masks[1:]:
            np.bitwise_or(result, mask, out=result)
        return result

    def local_bins(self, bins: Sequence[Sequence[Array]]) -> list[list[Array]]:
        """Return for each part of this rank what the parts of this rank send to it."""
        return [[own[part] for own in bins] for part in self.parts]

    def next_level(self) -> None:
        """Change to the other set of buffers."""
        self._turn ^= 1

    def space(self, device: int, count: int) -> Array:
        """Return uint32 [count] for what the part on ``device`` receives."""
        return self._received[device][self._turn].take(count)

    def free(self) -> None:
        """Give the memory back."""
        self._masks = [mask[:0] for mask in self._masks]
        for pair in self._received:
            for buffer in pair:
                buffer.free()


def fill(space: Array, arrays: Sequence[Array]) -> None:
    """Copy arrays one after the other into ``space``, which they fill."""
    start = 0
    for array in arrays:
        space[start : start + array.size] = array
        start += array.size


def total_size(arrays: Sequence[Array]) -> int:
    """Return the number of elements of all arrays together."""
    return sum(array.size for array in arrays)
