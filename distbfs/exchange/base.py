"""The contract of an exchange: the data that parts exchange at the end of a level.

Source: Pan, Pearce, Owens 2018, Section V (Fig. 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from distbfs.exchange.bins import Bins
from distbfs.exchange.traffic import Traffic
from distbfs.types import Array, Words

if TYPE_CHECKING:
    from distbfs.exchange.nccl_streams import NcclStreams
    from distbfs.exchange.symmetric import NvshmemMemory


class Exchange(Protocol):
    """Moves delegate masks and normal vertices between parts; all methods collective.

    One instance serves the parts of one rank for many searches. A ``start`` returns as
    early as it can; the caller must not change its arrays before the matching
    ``finish``. The two pairs of calls may overlap, and the engine may visit edges in
    between.

    Created by (world, placement, delegates, options, *, on_device), collective:
    on_device: whether arrays passed and returned are CuPy's, else NumPy's

    streamed: whether it has ``streams``, for parts that each have a device
    symmetric: whether it has ``memory``, in which devices write to each other's
    needs_devices: whether it refuses arrays in host memory

    On a device, arrays are passed and returned in the order of the current stream; the
    current device is that of the rank's first part. Received bins are on the device of
    the part's own bins, everything else is on the current device.
    """

    name: str
    on_device: bool
    streamed: bool
    symmetric: bool
    needs_devices: bool
    traffic: Traffic

    def start_masks(self, masks: Sequence[Words]) -> None:
        """Start the OR-reduction of the delegate masks of this rank's parts.

        ``masks[i]``: uint64 [ceil(d/64)], the mask of the i-th part of this rank. The
        reduction has two phases: over the devices of a rank, then over ranks (Section
        V-A).
        """

    def finish_masks(self) -> Words:
        """Return the OR over all parts of all ranks, uint64 [ceil(d/64)]."""

    def start_normals(self, bins: Sequence[Bins]) -> None:
        """Start to send normal vertices to their owners.

        ``bins[i]``: vertices that the i-th part of this rank found for others, one item
        each: the upper 32 bits are the vertex's number there, the lower 32 bits stand
        for its parent; *uniquify* keeps one item per number (Section V-B). A rank
        without items sends nothing; the host's work grows with the number of receiving
        parts, not of all parts.
        """

    def finish_normals(self) -> list[list[tuple[int, Array]]]:
        """Return the items received by each part of this rank: (source rank, items).

        Sources are in ascending order of rank; empty arrays are left out.
        """

    def max_delegates(self, values: Sequence[Array]) -> Array:
        """Return the element-wise maximum over all parts of all ranks, a new array [d].

        ``values[i]``: the array [d] of the i-th part of this rank; int32, int64, uint32
        or uint64, the same on all ranks. It is called once per search, for the parents
        of delegates.
        """

    def streams(self, devices: Sequence[int]) -> NcclStreams:
        """Return the streams (collective); devices: one for each part of this rank."""

    def memory(self) -> NvshmemMemory:
        """Return the memory of the first devices of all ranks (collective)."""

    def close(self) -> None:
        """Free buffers and pending requests."""
