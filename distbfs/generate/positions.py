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


class ByPosition(ABC):
    """Tuples by position, from a C kernel or, without a compiler, from NumPy."""

    source: Path  # of the kernel

    @abstractmethod
    def tuples_at(self, positions: Ids) -> tuple[Ids, Ids]:
        """Return the tuples at any positions, by NumPy; int64 arrays."""

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
        size = min(CHUNK, max(stop - start, 0))
        u, v = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
        for first in range(start, stop, CHUNK):
            count = min(CHUNK, stop - first)
            if native is None:
                yield self.tuples_at(np.arange(first, first + count, dtype=np.int64))
                continue
            self._native(native, first, count, u, v)
            yield u[:count], v[:count]
