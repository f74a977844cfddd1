"""Trees: the vertices outside the 2-core, which hang on a core vertex or on none.

Leaves are removed in rounds until none is left (Matula and Beck 1983 for k = 2). In the
reverse order of removal, every vertex has at most one neighbour before it. The kernel
is in ``trees.c``; without a compiler trees are not told apart.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np

from distbfs.device import cc
from distbfs.device.calls import LongCall
from distbfs.types import Array, Ids

SOURCE = Path(__file__).with_name("trees.c")


def tree_vertices(offsets: Ids, degrees: Ids, columns: Array) -> Array:
    """Return the vertices outside the 2-core, uint32, in reverse order of removal.

    Leaves whose neighbour is in the core come after all others.  offsets: int64
    [rows + 1], degrees: int64 [rows], columns: uint32 [edges], symmetric without loops
    and repeats. Vertices without edges are not included, and none is without a
    compiler.
    """
    left = degrees.copy()
    leaves = np.flatnonzero(left == 1).astype(np.uint32)
    native = cc.load_or_none(SOURCE, OFFSET="uint64_t")
    if native is None:
        return leaves[:0]
    removed = np.empty(np.count_nonzero(degrees), dtype=np.uint32)
    removed[: len(leaves)] = leaves
    native.remove_leaves.restype = ctypes.c_int64
    arguments = cc.arguments(offsets, columns, left, removed, len(leaves))
    count = LongCall(native)(native.remove_leaves, *arguments)
    removed = removed[:count]
    in_core = left[columns[offsets[leaves]]] > 0
    order = removed[len(leaves) :][::-1], leaves[~in_core][::-1], leaves[in_core][::-1]
    return np.concatenate(order)


def first_tree(offsets: Array, columns: Array, active: int) -> int:
    """Return c: each row from c on has at most one neighbour before it.

    offsets: uint32 or uint64 [rows + 1], columns: uint32 [edges], of a symmetric graph
    whose rows from ``active`` on are empty. In each row from c to ``active``, all
    columns but the first are greater than the row's number.
    """
    native = cc.load(SOURCE, OFFSET="uint32_t" if offsets.itemsize == 4 else "uint64_t")
    native.first_tree.restype = ctypes.c_int64
    arguments = cc.arguments(offsets, columns, active)
    return int(LongCall(native)(native.first_tree, *arguments))


def trees_last(offsets: Array, columns: Array, first: Array, core: int) -> bool:
    """Return whether rows list tree vertices after all other neighbours.

    They do if rows are in ascending order, as built rows are; rows that a program
    passes may not be.

    offsets, columns: see ``first_tree``, which returns ``core``; first: uint32
    [active], the first column of each row
    """
    if (first[:core] >= core).any():
        return False
    hung = first[core:]
    counts = np.bincount(hung[hung < core], minlength=core)
    rows = np.flatnonzero(counts)
    lengths, ends = counts[rows], offsets[rows + 1].astype(np.int64)
    behind = np.repeat(ends - np.cumsum(lengths), lengths) + np.arange(lengths.sum())
    return bool((columns[behind] >= core).all())
