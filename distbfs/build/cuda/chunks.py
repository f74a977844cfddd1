"""Pairs of ids in device memory, in chunks, for any number of passes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from distbfs.device import cuda
from distbfs.progress import Sum
from distbfs.types import DeviceArray

CHUNK = 1 << 25  # pairs a chunk


def longest(count: int) -> int:
    """Return the length of the longest chunk of ``count`` pairs."""
    return min(count, CHUNK)


class Pairs(Protocol):
    """Pairs of ids that can be read any number of times; dtype: dtype of the ids."""

    dtype: type[np.unsignedinteger]

    def fill(self, start: int, stop: int, u: DeviceArray, v: DeviceArray) -> None:
        """Write the pairs start … stop-1 to the front of CuPy arrays of ``dtype``."""


class Passes(Protocol):
    """Passes over pairs of ids, chunk by chunk in device memory."""

    def __iter__(self) -> Iterator[tuple[DeviceArray, DeviceArray]]:
        """Yield (u, v) of a chunk, CuPy uint32 or uint64."""

    def expect(self, passes: int) -> None:
        """Announce ``passes`` more passes."""

    def drop(self) -> None:
        """Free the memory; no pass may follow."""


class Chunks:
    """All pairs, chunk by chunk in device memory.

    count: number of pairs; hold: keep them after the first pass
    done: called with the number of pairs made. One pass is announced from the start.
    """

    def __init__(
        self,
        pairs: Pairs,
        count: int,
        *,
        hold: bool,
        done: Sum | None = None,
    ) -> None:
        self.pairs, self.count, self.hold = pairs, count, hold
        self._complete, self._done = False, done or Sum()
        self._done.more(count)
        size = count if hold else longest(count)
        self._u, self._v = (cuda.cupy().empty(size, pairs.dtype) for _ in range(2))

    def __iter__(self) -> Iterator[tuple[DeviceArray, DeviceArray]]:
        for start in range(0, self.count, CHUNK):
            stop = min(start + CHUNK, self.count)
            at = slice(start, stop) if self.hold else slice(0, stop - start)
            u, v = self._u[at], self._v[at]
            if not self._complete:
                self.pairs.fill(start, stop, u, v)
            yield u, v
            if not self._complete:
                self._done(stop - start)
        self._complete = self.hold

    def expect(self, passes: int) -> None:
        """Announce ``passes`` more passes."""
        if not self.hold:
            self._done.more(passes * self.count)

    def drop(self) -> None:
        """Free the memory; no pass may follow."""
        self._u = self._v = None
