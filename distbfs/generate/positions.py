"""Families whose tuples follow from their positions alone."""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from distbfs.device import cc
from distbfs.types import Ids

CHUNK = 1 << 20


class ByFormula(ABC):
    """Tuples by position, from NumPy."""

    @abstractmethod
    def tuples_at(self, positions: Ids) -> tuple[Ids, Ids]:
        """Return the tuples at any positions, by NumPy; int64 arrays."""

    def chunks(self, start: int, stop: int) -> Iterator[tuple[Ids, Ids]]:
        """Yield (u, v) int64 arrays of the tuples start … stop-1, in order."""
        for first in range(start, stop, CHUNK):
            last = min(first + CHUNK, stop)
            yield self.tuples_at(np.arange(first, last, dtype=np.int64))


class ByPosition(ByFormula):
    """Tuples by position, from a C kernel or, without a compiler, from NumPy."""

    source: Path  # of the kernel

    @abstractmethod
    def _native(
        self, native: ctypes.CDLL, start: int, count: int, u: Ids, v: Ids
    ) -> None:
        """Write the tuples start … start + count - 1 by the kernel."""

    def chunks(self, start: int, stop: int) -> Iterator[tuple[Ids, Ids]]:
        """Yield (u, v) int64 arrays of the tuples start … stop-1, in order.

        The arrays are reused for the next chunk.
        """
        native = cc.load_or_none(self.source)
        if native is None:
            yield from super().chunks(start, stop)
            return
        size = min(CHUNK, max(stop - start, 0))
        u, v = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
        for first in range(start, stop, CHUNK):
            count = min(CHUNK, stop - first)
            self._native(native, first, count, u, v)
            yield u[:count], v[:count]
