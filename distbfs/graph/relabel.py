"""Numbering of vertices by degree, in blocks that keep results near their input ids.

Hubs get neighbouring numbers, so that the bits that pulls test share few cache lines;
vertices without edges come last and are never read. Sorting by degree over the whole
range would scatter results over the whole output; blocks of ``order_block`` ids avoid
that (Yasui and Fujisawa 2015 sort the whole range).

The vertices outside the 2-core of a whole graph, its trees, come after the core in an
order in which each has one neighbour before it at most: a search of the core alone then
tells their levels, as the record codes of the Graph500 list do.
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


def degree_order(
    degrees: Ids, block: int, threads: int = 0, trees: Array | None = None
) -> Numbering:
    """Assign numbers to a part's vertices by block, then falling degree, then id.

    degrees: int64 [local], 0 for inactive ids, which come last (delegates, vertices
    without edges); block: ids per block; trees: uint32, active ids that come
    after the other active ones, in this order and whatever their block and degree.
    """
    if trees is not None:
        degrees = degrees.copy()
        degrees[trees] = 0
    falling = stable_order(degrees, threads, falling=True)
    core = bisect_left(falling, 1, key=lambda vertex: degrees[vertex] == 0)
    active = core
    if trees is not None:
        active += len(trees)
        hanging = np.zeros(len(degrees), dtype=np.bool_)
        hanging[trees] = True
        without_edges = falling[core:][~hanging[falling[core:]]]
        falling[core:active], falling[active:] = trees, without_edges
    vertices = falling
    if block < len(degrees):
        blocks = falling // np.uint32(block)
        blocks[core:] = (len(degrees) - 1) // block  # all others: in the last block
        vertices = taken(falling, stable_order(blocks, threads), threads)
    return Numbering(vertices, inverse(vertices, threads), active, falling)
