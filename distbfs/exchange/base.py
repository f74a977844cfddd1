"""The contract of an exchange: what crosses parts at the end of a level.

Source: Pan, Pearce, Owens 2018, Section V (Fig. 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from distbfs.errors import UsageError
from distbfs.exchange.bins import Bins
from distbfs.exchange.traffic import Traffic
from distbfs.types import Array, Words


class Exchange(Protocol):
    """Moves delegate masks and normal vertices between parts; all methods collective.

    One instance serves the parts of one rank for many searches.  A ``start`` returns
    as early as it can; the arrays given to it stay unchanged until its ``finish``.
    The two pairs may overlap each other and the visits in between.

    Made by (world, placement, delegates, options, *, item, on_device), collective:
    item: dtype of what bins hold: uint32, a number, or uint64, a number above 32 bits
        that say its parent; *uniquify* keeps one item a number
    on_device: arrays, given and returned, are CuPy's, else NumPy's

    streamed: it is a ``StreamedExchange``, for parts on devices of their own
    needs_devices: arrays in host memory are none for it

    On a device, arrays are given and returned in the order of the current stream; the
    current device is that of the rank's first part.  Bins that arrive lie on the device
    that the part's own bins came from, all else on the current one.
    """

    name: str
    on_device: bool
    streamed: bool
    needs_devices: bool
    traffic: Traffic

    def start_masks(self, masks: Sequence[Words]) -> None:
        """Begin the OR-reduction of the delegate masks of this rank's parts.

        ``masks[i]``: uint64 [ceil(d/64)] of the i-th part of this rank.  Two phases:
        devices of the rank, then ranks (Section V-A).
        """

    def finish_masks(self) -> Words:
        """Return the OR over all parts of all ranks, uint64 [ceil(d/64)]."""

    def start_normals(self, bins: Sequence[Bins]) -> None:
        """Begin to send normal vertices to their owners.

        ``bins[i]``: what the i-th part of this rank found for others, as vertex numbers
        there (Section V-B).  A rank without any sends nothing; what the host does goes
        with the parts that there is something for, not with all of them.
        """

    def finish_normals(self) -> list[list[tuple[int, Array]]]:
        """Return for each part of this rank what arrived: (source rank, item [k]).

        Sources come in ascending rank order; empty arrays are left out.
        """

    def max_delegates(self, values: Sequence[Array]) -> Array:
        """Return the element-wise maximum over all parts of all ranks, a new array [d].

        ``values[i]``: [d] of the i-th part of this rank, int32, int64, uint32 or
        uint64, the same everywhere.  Once a search, for the parents of delegates.
        """

    def close(self) -> None:
        """Free buffers and pending requests."""


class Streams(Protocol):
    """Moves arrays between parts on streams of their devices; the host goes ahead.

    streams: of the parts of this rank, in whose order everything runs; all calls that
    move something are collective
    captures: ``cross`` may be captured in CUDA graphs, one of each stream
    A ``place`` is that of a part among those of this rank.
    """

    streams: Sequence[Any]
    captures: bool
    traffic: Traffic

    def connect(self, partners: Sequence[Sequence[int]]) -> None:
        """Make ready to cross; partners: other parts, of each part of this rank."""

    def here(self, place: int) -> AbstractContextManager[None]:
        """Make a part's device and its stream the current ones."""

    def follow(self) -> None:
        """Let what is called next run after what the callers' streams have to do."""

    def cross(
        self,
        gathers: Sequence[tuple[int, Any, Any]],
        leaving: Sequence[tuple[int, int, Any]] = (),
        coming: Sequence[tuple[int, int, Any]] = (),
    ) -> None:
        """Gather arrays of all parts, and send and receive arrays, all at once.

        gathers: (place, array, where those of all parts go, [parts, its shape], in an
        order that is always the same)
        leaving: (place, part, array); coming: (place, part, where it goes)
        Between two parts, arrays come in the order in which they leave.
        """

    def room(self, place: int, count: int) -> Any:
        """Return uint64 [count] for what comes, until the second next call."""

    def wait(self, event: Any) -> None:
        """Wait until an event of a stream; DistbfsError where a rank is gone."""


class StreamedExchange(Exchange, Protocol):
    """An exchange that also has ``Streams``."""

    def streams(self, devices: Sequence[int]) -> Streams:
        """Return them; collective; devices: of the parts of this rank, each once."""


def need_device_arrays(name: str, on_device: bool) -> None:
    """Raise UsageError where an exchange of device arrays is given others."""
    if not on_device:
        raise UsageError(
            f"exchange '{name}' takes arrays in device memory only; allowed: solo, host"
        )
