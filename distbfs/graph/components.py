"""Connected components from edges in any order.

Every root hooks to the smallest root that one of its edges leads to, then all pointers
jump to their roots, until no edge joins two trees (Shiloach and Vishkin 1982).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from distbfs.types import Array, Ids


def component_labels(n: int, edges: Callable[[], Iterable[tuple[Array, Array]]]) -> Ids:
    """Return the smallest id of the component of each vertex, int64 [n].

    edges: returns an iterator over all edges, integer arrays (u, v) chunk by chunk; it
    is called at most about log2 n times
    """
    label = np.arange(n, dtype=np.int64)
    joined = True
    while joined:
        joined = False
        for u, v in edges():
            label_u, label_v = label[u], label[v]
            apart = np.flatnonzero(label_u != label_v)
            if len(apart):
                joined = True
                low = np.minimum(label_u[apart], label_v[apart])
                np.minimum.at(label, np.maximum(label_u[apart], label_v[apart]), low)
        jump(label)
    return label


def jump(label: Ids) -> None:
    """Point every vertex at the root of its tree, in place; int64 [n]."""
    while True:
        further = label[label]
        if np.array_equal(further, label):
            return
        label[:] = further
