"""Numbering of vertices by degree, in blocks that keep results near their input ids.

Hubs get neighbouring numbers, so that the bits that pulls ask for share few cache
lines; vertices without edges come last and are never looked at.  Sorting by degree over
the whole range would scatter results over the whole output; inside blocks of
``order_block`` ids both hold (Yasui and Fujisawa 2015 sort the whole range).
"""

from __future__ import annotations

import numpy as np

from distbfs.graph.sorted_rows import inverse, stable_order, taken
from distbfs.types import Array, Ids


def degree_order(
    degrees: Ids, last: Array, block: int, threads: int = 0
) -> tuple[Array, Array, int]:
    """Return numbers for local ids: active ones first, by block, then by degree.

    degrees: int64 [local]; last: bool [local], ids that are numbered after all active
    ones (delegates, vertices without edges); block: ids per block.

    Returns (vertices uint32 [local]: number -> local id, numbers uint32 [local]: local
    id -> number, active: how many are not ``last``).
    """
    count = len(degrees)
    active = np.flatnonzero(~last)
    falling = int(degrees.max(initial=0)) - degrees[active]
    width = max(int(falling.max(initial=0)).bit_length(), 1)
    key = active // block << width | falling
    vertices = np.empty(count, dtype=np.uint32)
    vertices[: len(active)] = taken(active, stable_order(key, threads), threads)
    vertices[len(active) :] = np.flatnonzero(last)
    return vertices, inverse(vertices, threads), len(active)
