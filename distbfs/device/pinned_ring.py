"""Pinned host memory through which arrays are copied to a device piece by piece."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from distbfs.device import cuda

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from distbfs.types import Array, DeviceArray, Event


class PinnedRing:
    """Pinned buffers of ``size`` bytes, used in turn."""

    def __init__(self, size: int, buffers: int) -> None:
        self._bytes = [cuda.pinned_empty(size, np.uint8) for _ in range(buffers)]
        self._copied: list[Event | None] = [None] * buffers
        self._given = self._taken = 0

    def place(self, dtype: npt.DTypeLike) -> Callable[[int, int], Array]:
        """Return a function that allots memory for values start … stop-1 of a dtype."""

        def give(start: int, stop: int) -> Array:
            turn, self._given = self._given % len(self._bytes), self._given + 1
            if (copied := self._copied[turn]) is not None:
                copied.synchronize()
            size = (stop - start) * np.dtype(dtype).itemsize
            room: Array = self._bytes[turn][:size].view(dtype)
            return room

        return give

    def copy(self, values: Array, out: DeviceArray) -> None:
        """Copy the oldest values to ``out``, of their size and dtype; does not wait."""
        stream = cuda.cupy().cuda.get_current_stream()
        out.set(values, stream)
        self._copied[self._taken % len(self._bytes)] = stream.record()
        self._taken += 1
