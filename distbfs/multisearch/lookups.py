"""Levels of pairs of vertices by edge lookups on CPUs (lookups.c).

In a graph with hubs, paths of a few edges through hubs join nearly all pairs of
vertices.
Sources: Akiba, Iwata, Yoshida, Fast exact shortest-path distance queries, SIGMOD 2013;
Pohl, Bi-directional search, 1971.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np

from distbfs.device import cc
from distbfs.device.structures import structure
from distbfs.errors import UsageError
from distbfs.graph.csr import CSR, SLICE
from distbfs.graph.sorted_rows import stable_order
from distbfs.graph.trees import first_tree
from distbfs.partition.part import Part
from distbfs.types import Array, Numbers

SOURCE = Path(__file__).with_name("lookups.c")
ALONE = 256  # pairs up to which one thread is as fast, and keeps no other busy
OPEN = -2  # a level that is not known
MOST = 4096  # lookups of a pair; on Kronecker graphs 99 of 100 pairs take less than 80


def ranks_of(part: Part, threads: int) -> Numbers:
    """Return each vertex's rank in the rows of a whole graph, uint32 [n] by number.

    Vertices are ranked by descending degree, then id; last, in the order of their
    numbers, come trees and, where directed graphs are numbered so, what no edge enters.
    """
    rank, core = np.arange(part.local_count, dtype=np.uint32), part.active
    if not part.directed:
        core = first_tree(part.nn.offsets, part.nn.columns, core)
    else:
        entered = np.diff(part.pulled.offsets[: core + 1]) > 0
        first = np.count_nonzero(entered)
        # mutant: int(first) if -> core if : test_numbers_by_block
        core = int(first) if entered[:first].all() else core
    degrees = np.zeros(part.local_count, dtype=np.int64)
    degrees[part.vertices[:core]] = part.degrees[:core]
    falling = stable_order(degrees, threads, falling=True)[:core]
    rank[part.numbers[falling]] = np.arange(core, dtype=np.uint32)
    return rank


def ascend(rows: CSR, rank: Numbers) -> bool:
    """Return whether the columns of each row ascend by rank."""
    offsets, columns = rows.offsets, rows.columns
    for low in range(0, len(columns), SLICE):
        ranks = rank[columns[low : low + SLICE + 1]]
        falls = np.flatnonzero(ranks[1:] <= ranks[:-1]) + (low + 1)
        begins = offsets[np.searchsorted(offsets, falls.astype(offsets.dtype))]
        # mutant: begins != falls -> begins < falls
        #   : test_rows_in_another_order_are_refused
        if (begins != falls).any():
            return False
    return True


class Lookups:
    """Finds levels of pairs of vertices of a whole graph if a few lookups suffice.

    If many pairs of a graph need more than ``most`` lookups, no more pairs are looked
    up.

    part: one part without delegates, as it was built; most: largest number of lookups
    for a pair

    Raises UsageError if rows have another order, ResourceError if there is no compiler.
    """

    def __init__(self, part: Part, threads: int, most: int = MOST) -> None:
        narrow = part.nn.offsets.itemsize == 4
        self._library = cc.load(SOURCE, OFFSET="uint32_t" if narrow else "uint64_t")
        self._threads = threads
        out, pulled, rank = part.nn, part.pulled, ranks_of(part, threads)
        if not all(
            ascend(x, rank) for x in ([out, pulled] if part.directed else [out])
        ):
            raise UsageError("neighbours are not in the order of their degrees")
        self._view = structure(SOURCE, "pair_lookups")(
            out_offsets=out.offsets,
            out_columns=out.columns,
            in_offsets=pulled.offsets,
            in_columns=pulled.columns,
            rank=rank,
            most=most,
        )

    def levels(self, sources: Numbers, targets: Numbers) -> Array:
        """Return the level of targets[j] from sources[j], int32 [k].

        sources, targets: vertex numbers, uint32 [k]
        Level -1 means unreached, OPEN not known.
        """
        level = np.empty(len(sources), dtype=np.int32)
        view = self._view
        view.set(source=sources, target=targets, level=level)
        view.set(count=len(sources), next=0)
        threads = self._threads if len(sources) > ALONE else 1
        self._library.look_up_pairs(ctypes.byref(view), ctypes.c_int(threads))
        return level
