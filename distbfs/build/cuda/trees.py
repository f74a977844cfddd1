"""Trees of a graph on a CUDA device: pieces that one edge joins to the rest.

Vertices with one edge are removed round by round. The rest is the 2-core, if the trees
are not too deep; a search visits only the core, and sets the levels of tree vertices
while it writes results. A vertex's link is the sum of its neighbours, and so the
neighbour itself once one edge is left; this works without rows.
Source: pruning of trees in Graph500 codes (Ueno et al. 2016; Nakao et al. 2021).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distbfs.build.cuda.kernels import Kernels
from distbfs.device import cuda
from distbfs.graph.device_graph import SEARCHED_UNIT
from distbfs.types import DeviceArray

MOST_ROUNDS = 14  # so that a path to the core is short


class TreeRanks(NamedTuple):
    """Places of vertices in trees, by id.

    ranks: uint8 [n], 1 for leaves, 0 for vertices outside of trees; the tree vertex on
    which another hangs has a higher rank. The root of a tree that is a whole component
    also has a rank.
    links: uint32 [n], the neighbour on which a vertex with a rank hangs; undefined for
    such a root
    classed: uint32 [n], degrees, but 1 for tree vertices
    """

    ranks: DeviceArray
    links: DeviceArray
    classed: DeviceArray


def rank_trees(
    kernels: Kernels, degrees: DeviceArray, links: DeviceArray
) -> TreeRanks | None:
    """Return the trees of the graph, or None if they are too few to leave out.

    The other vertices are searched in whole units, which leaves attached to them fill
    up.

    degrees: uint32 [n], number of edges of each vertex, with repeats but without loops
    links: uint64 [n], degrees and sums of neighbours, see graph.cu; changed in place
    """
    cupy, n = cuda.cupy(), len(degrees)
    leaves, size = cupy.empty(n, np.uint32), cupy.zeros(1, np.uint32)
    kernels.over("list_leaves", n, degrees, leaves, size)
    count = int(size.get()[0])
    if not count:
        return None
    ranks = cupy.zeros(n, np.uint8)
    for number in range(1, MOST_ROUNDS + 1):
        form = leaves, links, np.uint32(number), ranks
        kernels.over("choose_leaves", count, *form)
        later, size = cupy.empty(count, np.uint32), cupy.zeros(1, np.uint32)
        kernels.over("take_leaves", count, *form, later, size)
        leaves, count = later, int(size.get()[0])
        if not count:
            break
    del leaves, later, form
    trees = TreeRanks(ranks, *(cupy.empty(n, np.uint32) for _ in range(2)))
    kernels.over("split_trees", n, degrees, links, *trees)
    counts = cupy.zeros(3, np.uint64)
    kernels.over("count_trees", n, degrees, *trees[:2], counts)
    core, hang, loose = (int(x) for x in counts.get())
    fill = -core % SEARCHED_UNIT
    return None if loose < fill or hang <= fill else trees
