"""The memory of a search besides its part, predicted from the tables of arrays.

Each array begins on a cache line, which may add 64 bytes.
"""

from __future__ import annotations

from distbfs.device.array_table import total_bytes
from distbfs.engines.openmp import part, whole
from distbfs.plan.memory import PartShape


def bytes_needed(shape: PartShape, *, parents: bool = True) -> int:
    """Return the bytes of a search by one thread, kept from search to search.

    One part without delegates is searched whole, all others level by level.
    """
    table = part.array_table(shape, parents=parents)
    if shape.whole:
        table = whole.array_table(shape.local, shape.active, parents=parents)
    return total_bytes(table)
