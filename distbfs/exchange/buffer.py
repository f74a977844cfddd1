"""Memory that is kept from level to level and from search to search."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from distbfs.types import Array

GROWTH = 1.5


class Buffer:
    """Host memory that grows when more is asked for and never shrinks.

    In host memory the data face (what kernels read) and the wire face (what MPI
    writes) are the same array.
    """

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self._memory = np.empty(0, dtype)

    @property
    def capacity(self) -> int:
        """How many elements fit without growing."""
        return self._memory.size

    def take(self, count: int) -> Array:
        """Return the first ``count`` elements, shape [count], contents undefined.

        An array returned before stays alive, but may share memory with this one.
        """
        if count > self._memory.size:
            size = max(count, int(self._memory.size * GROWTH))
            dtype = self._memory.dtype
            self._memory = np.empty(0, dtype)  # free the old one first
            self._memory = np.empty(size, dtype)
        return self._memory[:count]

    def free(self) -> None:
        """Give the memory back; the buffer can be used again."""
        self._memory = np.empty(0, self._memory.dtype)
