"""The contract of an exchange: the data that parts exchange at the end of a level.

Source: Pan, Pearce, Owens 2018, Section V (Fig. 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from distbfs.errors import UsageError
from distbfs.exchange.bins import Bins
from distbfs.exchange.traffic import Traffic
from distbfs.types import Array, Words

if TYPE_CHECKING:
    from distbfs.device.programs import Module


class Exchange(Protocol):
    """Moves delegate masks and normal vertices between parts; all methods collective.

    One instance serves the parts of one rank for many searches. A ``start`` returns as
    early as it can; the arrays given to it stay unchanged until its ``finish``. The two
    pairs may overlap each other and the visits in between.

    Created by (world, placement, delegates, options, *, on_device), collective:
    on_device: arrays passed and returned are CuPy's, else NumPy's

    streamed: it is a ``StreamedExchange``, for parts on devices of their own
    symmetric: it is a ``SymmetricExchange`` as well
    needs_devices: it does not take arrays in host memory

    On a device, arrays are passed and returned in the order of the current stream; the
    current device is that of the rank's first part. Received bins are on the device of
    the part's own bins, all else on the current one.
    """

    name: str
    on_device: bool
    streamed: bool
    symmetric: bool
    needs_devices: bool
    traffic: Traffic

    def start_masks(self, masks: Sequence[Words]) -> None:
        """Start the OR-reduction of the delegate masks of this rank's parts.

        ``masks[i]``: uint64 [ceil(d/64)] of the i-th part of this rank. Two phases:
        devices of the rank, then ranks (Section V-A).
        """

    def finish_masks(self) -> Words:
        """Return the OR over all parts of all ranks, uint64 [ceil(d/64)]."""

    def start_normals(self, bins: Sequence[Bins]) -> None:
        """Start to send normal vertices to their owners.

        ``bins[i]``: vertices that the i-th part of this rank found for others, one item
        each: the vertex's number there, above the 32 bits of the parent; *uniquify*
        keeps one item per number (Section V-B). A rank without any sends nothing; the
        host's work grows with the receiving parts, not with all parts.
        """

    def finish_normals(self) -> list[list[tuple[int, Array]]]:
        """Return the items received by each part of this rank: (source rank, items).

        Sources come in ascending rank order; empty arrays are left out.
        """

    def max_delegates(self, values: Sequence[Array]) -> Array:
        """Return the element-wise maximum over all parts of all ranks, a new array [d].

        ``values[i]``: [d] of the i-th part of this rank, int32, int64, uint32 or
        uint64, the same everywhere.  It is called once in a search, for the parents of
        delegates.
        """

    def close(self) -> None:
        """Free buffers and pending requests."""


class Streams(Protocol):
    """Moves arrays between parts on streams of their devices; the host does not wait.

    streams: of the parts of this rank; all operations follow their order; calls that
    move data are collective
    captures: ``cross`` may be captured in CUDA graphs, one of each stream
    A ``place`` is the index of a part among those of this rank.
    """

    streams: Sequence[Any]
    captures: bool
    traffic: Traffic

    def connect(self, partners: Sequence[Sequence[int]]) -> None:
        """Prepare connections; partners: other parts, for each part of this rank."""

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

        gathers: (place, array, result of all parts, [parts, its shape], always in the
        same order)
        leaving: (place, part, array); coming: (place, part, receiving array)

        Between two parts, arrays arrive in the order of sending.
        """

    def room(self, place: int, count: int) -> Any:
        """Return a receive buffer, uint64 [count], valid until the second next call."""

    def wait(self, event: Any) -> None:
        """Wait for an event of a stream; raise DistbfsError if a rank has ended."""


class StreamedExchange(Exchange, Protocol):
    """An exchange that also has ``Streams``."""

    def streams(self, devices: Sequence[int]) -> Streams:
        """Return the streams; collective; devices: of this rank's parts, each once."""


class SymmetricMemory(Protocol):
    """Memory of one device of each rank that kernels of all ranks put into.

    near: the devices are those of one host
    """

    near: bool

    def allocate(self, size: int, what: str) -> Any:
        """Return zeros, uint8 [size], at the same place of all devices (collective).

        size: the same on all ranks. Raises OutOfMemory on all ranks alike.
        """

    def module(self, source: Path, **definitions: str | int) -> Module:
        """Return the kernels of a file that put into it."""


class SymmetricExchange(StreamedExchange, Protocol):
    """An exchange whose devices put into each other's memory."""

    def memory(self) -> SymmetricMemory:
        """Return the memory of the first devices of all ranks (collective)."""


def need_device_arrays(name: str, on_device: bool) -> None:
    """Raise UsageError if an exchange of device arrays would get host arrays."""
    if not on_device:
        raise UsageError(
            f"exchange '{name}' takes arrays in device memory only; allowed: host"
        )
