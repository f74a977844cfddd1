"""The local phase of an exchange: transfers between the parts of one rank.

Source: Pan, Pearce, Owens 2018, Section V-A (reduction across the devices of a rank)
and V-B (bins that stay on the rank).
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from distbfs.device import cuda
from distbfs.device.arrays import brought_here
from distbfs.errors import LaunchError
from distbfs.exchange.bins import NUMBER_AT
from distbfs.exchange.buffer import Buffer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from distbfs.exchange.bins import Bins
    from distbfs.options import ExchangeOptions
    from distbfs.partition.layout import Placement
    from distbfs.types import Array, Words, World


def array_module(on_device: bool) -> Any:
    """Return CuPy for arrays on a device, else NumPy."""
    return cuda.cupy() if on_device else np


def device_empty(count: int, dtype: Any) -> Any:
    """Allocate a CuPy array [count]; raise ResourceError if memory is short."""
    with cuda.memory_of("exchange between parts"):
        return cuda.cupy().empty(count, dtype)


def near(array: Any, *, on_device: bool) -> Any:
    """Return an array on the current device, copied if it is on another."""
    return brought_here(array) if on_device else array


def joined(arrays: Sequence[Any], *, on_device: bool) -> Any:
    """Concatenate arrays, on the current device or in host memory."""
    own = [near(array, on_device=on_device) for array in arrays]
    with cuda.memory_of("bins") if on_device else nullcontext():
        return own[0] if len(own) == 1 else array_module(on_device).concatenate(own)


class Pair(NamedTuple):
    """A part of this rank, by its place on it, and a part of another rank."""

    rank: int
    here: int
    there: int


class LocalPhase:
    """OR-reduction and bins of the parts of one rank.

    Buffers alternate from level to level: a returned array stays valid until the level
    after the next one. On a device, everything runs in the order of the current stream;
    only data of another device are waited for.

    rank: this rank; parts: the parts of this rank; most: the largest number of parts on
    a rank
    xp: CuPy if arrays are on a device, else NumPy
    """

    def __init__(
        self,
        world: World,
        placement: Placement,
        delegates: int,
        on_device: bool = False,
    ) -> None:
        if placement.ranks != world.size:
            raise LaunchError(
                f"{placement.parts} parts are placed on {placement.ranks} ranks, "
                f"but {world.size} were started"
            )
        self.rank, self.parts = world.rank, placement.parts_of(world.rank)
        self.most = placement.per_rank
        self._placement = placement
        self.xp = array_module(on_device)
        self._on_device = on_device
        empty = device_empty if on_device else np.empty
        words = (delegates + 63) // 64
        self._masks = [empty(words, np.uint64) for _ in range(2)]
        pairs = len(self.parts) + 1  # the last is for items of other ranks
        self._received = [
            [Buffer(np.uint64, empty) for _ in range(2)] for _ in range(pairs)
        ]
        self._homes: list[AbstractContextManager[Any]] = [nullcontext()] * pairs
        self._mask_turn = 0
        self._turn = 0
        self._ranks = world.size

    def reduce_masks(self, masks: Sequence[Words]) -> Words:
        """Return the OR of the masks of this rank's parts, uint64 [ceil(d/64)]."""
        self._mask_turn ^= 1
        result = self._masks[self._mask_turn]
        result[...] = self.near(masks[0])
        for mask in masks[1:]:
            # mutant: bitwise_or -> bitwise_xor : test_levels_in_a_row
            self.xp.bitwise_or(result, self.near(mask), out=result)
        return result

    def deal(
        self, bins: Sequence[Bins], options: ExchangeOptions, *, repeats: bool = False
    ) -> tuple[list[list[Array]], list[tuple[Pair, Array]]]:
        """Return items that stay, by part of this rank, and items that leave, by pair.

        With *local all2all* (L), all items of this rank for another part are joined
        before *uniquify* (U) removes repeats, and the part of the same place on this
        rank (modulo its number of parts) sends them. The next higher ranks come first,
        which spreads the load.

        repeats: whether several items may have the same number and are all needed
        """
        if self._on_device:
            self._homes[:-1] = [own.items.device for own in bins]
        own: list[list[Array]] = [[] for _ in self.parts]
        placement = self._placement
        leaving: dict[Pair, list[Array]] = {}
        for place, sent in enumerate(bins):
            for part, array in sent.pieces():
                rank, receiver = placement.rank_of(part), placement.device_of(part)
                if rank == self.rank:
                    own[receiver].append(array)
                else:
                    # mutant: receiver if options.local_all2all else place -> place
                    #   : test_traffic
                    sender = receiver if options.local_all2all else place
                    pair = Pair(rank, sender % len(self.parts), receiver)
                    leaving.setdefault(pair, []).append(array)
        return own, [
            (pair, self.packed(leaving[pair], options.uniquify and not repeats))
            for pair in sorted(leaving, key=self._turn_of)
        ]

    def _turn_of(self, pair: Pair) -> tuple[int, int, int]:
        """Return the sort key of a pair in the sending order of this rank."""
        return (pair.rank - self.rank) % self._ranks, pair.there, pair.here

    def packed(self, arrays: Sequence[Array], unique: bool) -> Array:
        """Concatenate arrays on the current device, uint64 [k].

        unique: whether to sort by number and keep one item for each
        """
        array = joined(arrays, on_device=self._on_device)
        with cuda.memory_of("bins") if self._on_device else nullcontext():
            # mutant: > 1 -> < 0 : test_uniquify_sends_each_vertex_once
            if unique and array.size > 1:
                array = self._one_each(array)
            return self.xp.ascontiguousarray(array, dtype=np.uint64)

    def _one_each(self, items: Array) -> Array:
        """Keep one item for each number, ascending; it does not matter which parent."""
        # mutant: items >> np.uint64(NUMBER_AT) -> items
        #   : test_uniquify_sends_each_vertex_once
        _, first = self.xp.unique(items >> np.uint64(NUMBER_AT), return_index=True)
        return items[first]

    def next_level(self) -> None:
        """Switch to the other set of buffers."""
        self._turn ^= 1

    def collect(self, index: int, arrays: Sequence[Array]) -> Array:
        """Concatenate arrays, uint64 [k], in a buffer of the part ``index``."""
        with self._homes[index]:
            space = self._received[index][self._turn].take(total_size(arrays))
            start = 0
            for array in arrays:
                if array.size:
                    space[start : start + array.size] = self.near(array)
                start += array.size
        return space

    def arrivals(self, count: int) -> Array:
        """Return an uninitialised buffer for items of other ranks, uint64 [count]."""
        return self._received[-1][self._turn].take(count)

    def bring(self, index: int, array: Array) -> Array:
        """Copy an array from the current device to the device of the part ``index``."""
        with self._homes[index]:
            return self.near(array)

    def near(self, array: Any) -> Array:
        """Return an array on the current device, copied if it is on another."""
        return near(array, on_device=self._on_device)

    def free(self) -> None:
        """Free the memory."""
        self._masks = []
        for pair in self._received:
            for buffer in pair:
                buffer.free()


def total_size(arrays: Sequence[Array]) -> int:
    """Return the number of elements of all arrays together."""
    return sum([array.size for array in arrays])  # faster than a generator
