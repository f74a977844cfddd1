"""The memory that a search needs besides its part, predicted from tables of arrays.

Each array begins on a cache line, which may add up to 64 bytes.
"""

from __future__ import annotations

from distbfs.device.array_table import total_bytes
from distbfs.engines.openmp import part, whole
from distbfs.plan.memory import PartShape


def bytes_needed(shape: PartShape, *, parents: bool = True) -> int:
    """Return the bytes that searches by one thread keep allocated.

    A single part without delegates is searched as a whole, all others level by level.
    """
    table = part.array_table(shape, parents=parents)
    if shape.whole:
        table = whole.array_table(shape.local, shape.active, parents=parents)
    return total_bytes(table)
