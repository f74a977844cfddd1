"""The contract of an exchange: the data that parts exchange at the end of a level.

An exchange has two phases: over the parts of a rank, which is the same in all, and
between ranks. Source: Pan, Pearce, Owens 2018, Section V (Fig. 4).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.device import cuda
from distbfs.device.arrays import near
from distbfs.errors import LaunchError, UsageError
from distbfs.exchange.bins import NUMBER_AT, joined
from distbfs.exchange.buffer import Buffer, device_empty
from distbfs.exchange.partners import Pair, Partners
from distbfs.exchange.traffic import Traffic
from distbfs.ranks.mpi import MpiWorld

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from distbfs.exchange.bins import Bins
    from distbfs.exchange.nccl_streams import NcclStreams
    from distbfs.exchange.symmetric import NvshmemMemory
    from distbfs.options import ExchangeOptions
    from distbfs.partition.layout import Placement
    from distbfs.types import Array, Words, World


class Exchange(ABC):
    """Moves delegate masks and normal vertices between parts; all methods collective.

    One instance serves the parts of one rank for many searches. A ``start`` returns as
    early as it can; the caller must not change its arrays before the matching
    ``finish``. The two pairs of calls may overlap, and the engine may visit edges in
    between. Methods named ``_between`` move data between ranks, and are called on
    several only. Buffers alternate from level to level: a returned array stays valid
    until the level after the next one.

    Created by (world, placement, delegates, options, *, on_device), collective:
    on_device: whether arrays passed and returned are CuPy's, else NumPy's

    xp: CuPy if arrays are on a device, else NumPy
    streamed: whether it has ``streams``, for parts that each have a device
    symmetric: whether it has ``memory``, in which devices write to each other's
    needs_devices: whether it refuses arrays in host memory

    On a device, arrays are passed and returned in the order of the current stream, and
    only data of another device are waited for; the current device is that of the rank's
    first part. Received bins are on the device of the part's own bins, everything else
    is on the current device.
    """

    name = ""
    streamed = symmetric = needs_devices = False

    def __init__(
        self,
        world: World,
        placement: Placement,
        delegates: int,
        options: ExchangeOptions,
        *,
        on_device: bool = False,
    ) -> None:
        if self.needs_devices and not on_device:
            raise UsageError(
                f"exchange '{self.name}' takes arrays in device memory only; allowed: "
                "host"
            )
        self._alone = world.size == 1  # or closed
        if not (self._alone or isinstance(world, MpiWorld)):
            raise UsageError(
                f"exchange '{self.name}' needs MPI between {world.size} ranks, "
                f"not a {type(world).__name__}"
            )
        self.check(world, options)
        if placement.ranks != world.size:
            raise LaunchError(
                f"{placement.parts} parts are placed on {placement.ranks} ranks, "
                f"but {world.size} were started"
            )
        self._world, self._placement, self._options = world, placement, options
        self.on_device, self.xp = on_device, cuda.cupy() if on_device else np
        count = len(placement.parts_of(world.rank))
        self.traffic = Traffic(count)
        empty = device_empty if on_device else np.empty
        self._masks_of_rank = [empty(-(-delegates // 64), np.uint64) for _ in range(2)]
        # items received by each part, then those of other ranks for all of them
        self._received_items = [
            [Buffer(np.uint64, empty) for _ in range(2)] for _ in range(count + 1)
        ]
        self._homes: list[AbstractContextManager[Any]] = [nullcontext()] * count
        self._turn = 0
        self._own: list[list[Array]] = [[] for _ in range(count)]
        self._own_masks: Sequence[Words] = ()  # of one rank, until they are reduced
        if isinstance(world, MpiWorld) and not self._alone:
            self._ranks, self._partners = world, Partners(world)

    def check(self, world: World, options: ExchangeOptions) -> None:  # noqa: B027
        """Raise LaunchError if these ranks cannot use the exchange (collective)."""

    def start_masks(self, masks: Sequence[Words]) -> None:
        """Start the OR-reduction of the delegate masks of this rank's parts.

        ``masks[i]``: uint64 [ceil(d/64)], the mask of the i-th part of this rank. The
        reduction has two phases: over the devices of a rank, then over ranks (Section
        V-A). A single rank only stores them, because their reduction may wait for
        devices.
        """
        if self._alone:
            self._own_masks = masks
        else:
            self._start_masks_between(masks)

    def finish_masks(self) -> Words:
        """Return the OR over all parts of all ranks, uint64 [ceil(d/64)]."""
        if self._alone:
            masks, self._own_masks = self._own_masks, ()
            return self._reduce_own(masks)
        return self._finish_masks_between()

    def _reduce_own(self, masks: Sequence[Words]) -> Words:
        """Return the OR of the masks of this rank's parts, uint64 [ceil(d/64)]."""
        self._masks_of_rank.reverse()
        result = self._masks_of_rank[0]
        result[...] = near(masks[0])
        for mask in masks[1:]:
            # mutant: bitwise_or -> bitwise_xor : test_levels_in_a_row
            self.xp.bitwise_or(result, near(mask), out=result)
        return result

    def start_normals(self, bins: Sequence[Bins]) -> None:
        """Start to send normal vertices to their owners.

        ``bins[i]``: vertices that the i-th part of this rank found for others, one item
        each: the upper 32 bits are the vertex's number there, the lower 32 bits stand
        for its parent; *uniquify* keeps one item per number (Section V-B). A rank
        without items sends nothing; the host's work grows with the number of receiving
        parts, not of all parts.
        """
        if self.on_device:
            self._homes = [own.items.device for own in bins]
        leaving = self._deal(bins)
        if not self._alone:
            self._start_normals_between(leaving)

    def finish_normals(self) -> list[list[tuple[int, Array]]]:
        """Return the items received by each part of this rank: (source rank, items).

        Sources are in ascending order of rank; empty arrays are left out. Items of one
        source rank are in the order of its devices.
        """
        self._turn ^= 1
        received: list[dict[int, Array]] = [{} for _ in self._own]
        if not self._alone:
            received = self._finish_normals_between()
        for index, arrays in enumerate(self._own):
            if arrays:
                received[index][self._world.rank] = self._collect(index, arrays)
        return [sorted(by_rank.items()) for by_rank in received]

    def _deal(self, bins: Sequence[Bins]) -> list[tuple[Pair, Array]]:
        """Return the items that leave, by pair; keep those that stay, by part.

        With *local all2all* (L), all items of this rank for another part are joined
        before *uniquify* (U) removes repeats, and the part of the same place on this
        rank (modulo its number of parts) sends them. The next higher ranks come first,
        which spreads the load.
        """
        placement, options, rank = self._placement, self._options, self._world.rank
        self._own = [[] for _ in self._own]
        leaving: dict[Pair, list[Array]] = {}
        for place, sent in enumerate(bins):
            for part, array in sent.pieces():
                there, receiver = placement.rank_of(part), placement.device_of(part)
                if there == rank:
                    self._own[receiver].append(array)
                else:
                    # mutant: receiver if options.local_all2all else place -> place
                    #   : test_traffic
                    sender = receiver if options.local_all2all else place
                    pair = Pair(there, sender % len(self._own), receiver)
                    leaving.setdefault(pair, []).append(array)

        def turn(pair: Pair) -> tuple[int, int, int]:
            return (pair.rank - rank) % placement.ranks, pair.there, pair.here

        return [
            (pair, self._packed(leaving[pair])) for pair in sorted(leaving, key=turn)
        ]

    def _packed(self, arrays: Sequence[Array]) -> Array:
        """Concatenate arrays on the current device, uint64 [k].

        With *uniquify*, they are sorted by number, of which one item each is kept; it
        does not matter which parent. Of questions, several may be about one vertex.
        """
        array = joined(arrays)
        unique = self._options.uniquify and self.traffic.numbers != "questions"
        with cuda.memory_of("bins") if self.on_device else nullcontext():
            # mutant: > 1 -> < 0 : test_uniquify_sends_each_vertex_once
            if unique and array.size > 1:
                # mutant: array >> np.uint64(NUMBER_AT) -> array
                #   : test_uniquify_sends_each_vertex_once
                numbers = array >> np.uint64(NUMBER_AT)
                array = array[self.xp.unique(numbers, return_index=True)[1]]
            packed: Array = self.xp.ascontiguousarray(array, dtype=np.uint64)
            return packed

    def _collect(self, index: int, arrays: Sequence[Array]) -> Array:
        """Concatenate arrays, uint64 [k], in a buffer of a part of this rank."""
        with self._homes[index]:
            total = sum([array.size for array in arrays])
            space = self._received_items[index][self._turn].take(total)
            start = 0
            for array in arrays:
                space[start : start + array.size] = near(array)
                start += array.size
        return space

    def _arrivals(self, count: int) -> Array:
        """Return an uninitialised buffer for items of other ranks, uint64 [count]."""
        return self._received_items[-1][self._turn].take(count)

    def _bring(self, index: int, array: Array) -> Array:
        """Copy an array of the current device to that of a part of this rank."""
        with self._homes[index]:
            brought: Array = near(array)
        return brought

    def streams(self, devices: Sequence[int]) -> NcclStreams:
        """Return the streams (collective); devices: one for each part of this rank."""
        raise NotImplementedError

    def memory(self) -> NvshmemMemory:
        """Return the memory of the first devices of all ranks (collective)."""
        raise NotImplementedError

    def close(self) -> None:
        """Free the memory; pending requests of other ranks are not waited for."""
        self._alone = True
        self._masks_of_rank, self._received_items = [], []

    @abstractmethod
    def _start_masks_between(self, masks: Sequence[Words]) -> None:
        """Do the same as ``start_masks``."""

    @abstractmethod
    def _finish_masks_between(self) -> Words:
        """Do the same as ``finish_masks``."""

    @abstractmethod
    def _start_normals_between(self, leaving: Sequence[tuple[Pair, Array]]) -> None:
        """Start to send items to the parts of other ranks."""

    @abstractmethod
    def _finish_normals_between(self) -> list[dict[int, Array]]:
        """Return each part's items from other ranks, by rank."""
