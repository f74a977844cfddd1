"""The contract of an exchange: the data that parts exchange at the end of a level.

Source: Pan, Pearce, Owens 2018, Section V (Fig. 4).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from distbfs.errors import UsageError
from distbfs.exchange.local_phase import LocalPhase
from distbfs.exchange.partners import Partners
from distbfs.exchange.traffic import Traffic
from distbfs.ranks.mpi import MpiWorld

if TYPE_CHECKING:
    from collections.abc import Sequence

    from distbfs.exchange.bins import Bins
    from distbfs.exchange.local_phase import Pair
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
    several only.

    Created by (world, placement, delegates, options, *, on_device), collective:
    on_device: whether arrays passed and returned are CuPy's, else NumPy's

    streamed: whether it has ``streams``, for parts that each have a device
    symmetric: whether it has ``memory``, in which devices write to each other's
    needs_devices: whether it refuses arrays in host memory

    On a device, arrays are passed and returned in the order of the current stream; the
    current device is that of the rank's first part. Received bins are on the device of
    the part's own bins, everything else is on the current device.
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
        self.on_device = on_device
        self.traffic = Traffic(len(placement.parts_of(world.rank)))
        self._local = LocalPhase(world, placement, delegates, on_device)
        self._world, self._placement, self._options = world, placement, options
        self._own: list[list[Array]] = []
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
            return self._local.reduce_masks(masks)
        return self._finish_masks_between()

    def start_normals(self, bins: Sequence[Bins]) -> None:
        """Start to send normal vertices to their owners.

        ``bins[i]``: vertices that the i-th part of this rank found for others, one item
        each: the upper 32 bits are the vertex's number there, the lower 32 bits stand
        for its parent; *uniquify* keeps one item per number (Section V-B). A rank
        without items sends nothing; the host's work grows with the number of receiving
        parts, not of all parts.
        """
        repeats = self.traffic.numbers == "questions"  # of several about one vertex
        self._own, leaving = self._local.deal(bins, self._options, repeats=repeats)
        if not self._alone:
            self._start_normals_between(leaving)

    def finish_normals(self) -> list[list[tuple[int, Array]]]:
        """Return the items received by each part of this rank: (source rank, items).

        Sources are in ascending order of rank; empty arrays are left out. Items of one
        source rank are in the order of its devices.
        """
        own, self._own = self._own, []
        self._local.next_level()
        received: list[dict[int, Array]] = [{} for _ in own]
        if not self._alone:
            received = self._finish_normals_between()
        for index, arrays in enumerate(own):
            if arrays:
                received[index][self._local.rank] = self._local.collect(index, arrays)
        return [sorted(by_rank.items()) for by_rank in received]

    def streams(self, devices: Sequence[int]) -> NcclStreams:
        """Return the streams (collective); devices: one for each part of this rank."""
        raise NotImplementedError

    def memory(self) -> NvshmemMemory:
        """Return the memory of the first devices of all ranks (collective)."""
        raise NotImplementedError

    @abstractmethod
    def close(self) -> None:
        """Free buffers and pending requests."""

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
