"""A buffer that is reused in all levels and searches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.device import cuda

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from distbfs.types import Array

GROWTH = 1.5


def device_empty(count: int, dtype: Any) -> Any:
    """Allocate a CuPy array [count]; raise ResourceError if memory is short."""
    with cuda.memory_of("exchange between parts"):
        return cuda.cupy().empty(count, dtype)


class Buffer:
    """Memory that grows on demand and never shrinks.

    allocate: returns an array [count] of a dtype; by default in host memory
    """

    def __init__(
        self, dtype: npt.DTypeLike, allocate: Callable[[int, Any], Array] = np.empty
    ) -> None:
        self._allocate = allocate
        self._dtype = np.dtype(dtype)
        self._memory: Array | None = None

    @property
    def capacity(self) -> int:
        """Number of elements that fit without growing."""
        return 0 if self._memory is None else self._memory.size

    def take(self, count: int) -> Array:
        """Return the first ``count`` elements, shape [count], contents undefined.

        An array returned earlier stays valid, but may share memory with this one.
        """
        if self._memory is None or count > self.capacity:
            size = max(count, int(self.capacity * GROWTH))
            self.free()  # free the old buffer first
            self._memory = self._allocate(size, self._dtype)
        return self._memory[:count]

    def free(self) -> None:
        """Free the memory; the buffer can be used again."""
        self._memory = None
