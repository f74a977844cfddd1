"""The trees of a graph on a CUDA device: what hangs on the rest by one edge.

Vertices with one edge are taken away round by round. What is left is the 2-core, if the
trees are not too deep; a search looks for that alone, and gives the others their levels
while it writes results. A link, the XOR of all neighbours, is the neighbour itself once
one edge is left, so that no rows are needed.
Source: pruning of trees in Graph500 codes (Ueno et al. 2016; Nakao et al. 2021).
"""

from __future__ import annotations

import numpy as np

from distbfs.build.cuda.kernels import BLOCK, Kernels
from distbfs.device import cuda
from distbfs.types import DeviceArray

MOST_ROUNDS = 14  # so that a path to the core is short


def rank_trees(
    kernels: Kernels, degrees: DeviceArray, links: DeviceArray
) -> DeviceArray | None:
    """Return how deep what hangs on a vertex of a tree is, uint8 [n]; None: no trees.

    1 for leaves, 0 for vertices outside of trees; always more for the neighbour that a
    vertex hangs on. The root of a tree that is a component has a rank, too.

    degrees: uint32 [n], edges of each vertex, repeats counted, loops not
    links: uint32 [n], the XOR of these neighbours; overwritten
    """
    cupy = cuda.cupy()
    leaves = cupy.flatnonzero(degrees == 1).astype(np.uint32)
    if not len(leaves):
        return None
    ranks = cupy.zeros(len(degrees), np.uint8)
    left = degrees.copy()
    for number in range(1, MOST_ROUNDS + 1):
        count, which = len(leaves), np.uint32(number)
        form = (np.uint64(count), leaves, left, links, which, ranks)
        kernels.launch("choose_leaves", count, BLOCK, *form)
        later, size = cupy.empty(count, np.uint32), cupy.zeros(1, np.uint32)
        kernels.launch("take_leaves", count, BLOCK, *form, later, size)
        leaves = later[: int(size.get()[0])]
        if not len(leaves):
            break
    return ranks
