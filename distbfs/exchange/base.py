"""The contract of an exchange: the data that parts exchange at the end of a level.

Source: Pan, Pearce, Owens 2018, Section V (Fig. 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from distbfs.exchange.bins import Bins
from distbfs.exchange.traffic import Traffic
from distbfs.types import Array, Words

if TYPE_CHECKING:
    from distbfs.device.programs import Module


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

    def streams(self, devices: Sequence[int]) -> Streams:
        """Return the streams (collective); devices: one for each part of this rank."""

    def memory(self) -> SymmetricMemory:
        """Return the memory of the first devices of all ranks (collective)."""

    def close(self) -> None:
        """Free buffers and pending requests."""


class Streams(Protocol):
    """Moves arrays between parts on streams of their devices; the host does not wait.

    Calls that move data are collective. A ``place`` is the index of a part among those
    of this rank.

    streams: one for each part of this rank; each runs all operations of its part in
    order
    captures: whether ``cross`` may be captured in CUDA graphs, one per stream
    """

    streams: Sequence[Any]
    captures: bool
    traffic: Traffic

    def connect(self, partners: Sequence[Sequence[int]]) -> None:
        """Prepare connections from each part of this rank to its ``partners``."""

    def here(self, place: int) -> AbstractContextManager[None]:
        """Make a part's device and its stream the current ones."""

    def follow(self) -> None:
        """Make these streams wait for the callers'."""

    def cross(
        self,
        gathers: Sequence[tuple[int, Any, Any]],
        leaving: Sequence[tuple[int, int, Any]] = (),
        coming: Sequence[tuple[int, int, Any]] = (),
    ) -> None:
        """Gather arrays of all parts, and send and receive arrays, all at once.

        gathers: (place, array, result), always in the same order; the result has the
        arrays of all parts, [parts, shape of the array]
        leaving: (place, part, array to send); coming: (place, part, array to fill)

        Between two parts, arrays arrive in the order of sending.
        """

    def room(self, place: int, count: int) -> Any:
        """Return a receive buffer, uint64 [count].

        It stays valid until the second call after this one.
        """

    def wait(self, event: Any) -> None:
        """Wait for an event of a stream; raise DistbfsError if a rank has ended."""


class SymmetricMemory(Protocol):
    """Memory on one device of each rank, to which kernels of all ranks write.

    near: whether all devices are on one host
    """

    near: bool

    def allocate(self, size: int, what: str) -> Any:
        """Return zeros, uint8 [size], at the same offset on all devices (collective).

        size: equal on all ranks. If memory runs out, all ranks raise OutOfMemory.
        """

    def module(self, source: Path, **definitions: str | int) -> Module:
        """Return the kernels of a file that write to this memory."""
