"""Numbering of vertices by degree, in blocks that keep results near their input ids.

Hubs get neighbouring numbers, so that the bits that pulls test share few cache lines;
vertices without edges come last and are never read. Sorting by degree over the whole
range would scatter results over the whole output; blocks of ``order_block`` ids avoid
that (Yasui and Fujisawa 2015 sort the whole range).
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from distbfs.graph.sorted_rows import inverse, stable_order, taken
from distbfs.types import Array, Ids


@dataclass(frozen=True)
class Numbering:
    """Numbers of the vertices of one part: active ones first, by block, by degree.

    vertices: uint32 [local], number -> local id; numbers: uint32 [local], local id ->
    number; active: number of active vertices; falling: uint32 [local], local ids by
    falling degree alone
    """

    vertices: Array
    numbers: Array
    active: int
    falling: Array


def degree_order(degrees: Ids, block: int, threads: int = 0) -> Numbering:
    """Assign numbers to a part's vertices by block, then falling degree, then id.

    degrees: int64 [local], 0 for inactive ids, which come last (delegates, vertices
    without edges); block: ids per block.
    """
    falling = stable_order(degrees, threads, falling=True)
    active = bisect_left(falling, 1, key=lambda vertex: degrees[vertex] == 0)
    vertices = falling
    if block < len(degrees):
        blocks = falling // np.uint32(block)
        blocks[active:] = (len(degrees) - 1) // block  # inactive: in the last block
        vertices = taken(falling, stable_order(blocks, threads), threads)
    return Numbering(vertices, inverse(vertices, threads), active, falling)
