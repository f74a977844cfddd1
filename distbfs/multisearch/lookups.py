"""Levels of pairs of vertices by edge lookups on CPUs (lookups.c).

In a graph with hubs nearly all pairs of vertices are a few edges apart, by way of hubs.
Sources: Akiba, Iwata, Yoshida, Fast exact shortest-path distance queries, SIGMOD 2013;
Pohl, Bi-directional search, 1971.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np

from distbfs.device import cc
from distbfs.errors import UsageError
from distbfs.graph.csr import CSR
from distbfs.graph.trees import first_tree
from distbfs.multisearch.bits import OPEN
from distbfs.partition.part import Part
from distbfs.types import Array, Numbers

__all__ = ["OPEN", "Lookups", "ranks_of"]
SOURCE = Path(__file__).with_name("lookups.c")
MOST = 4096  # lookups of a pair; on Kronecker graphs 99 of 100 pairs take less than 80


class View(ctypes.Structure):
    """``pair_lookups`` in lookups.c."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("out_offsets", "out_columns")),
        *((name, ctypes.c_void_p) for name in ("in_offsets", "in_columns", "rank")),
        *((name, ctypes.c_void_p) for name in ("source", "target", "level")),
        *((name, ctypes.c_int64) for name in ("count", "most")),
        *((name, ctypes.c_int64) for name in ("next", "tried", "open")),
    )


def ranks_of(part: Part) -> Numbers:
    """Return the order of vertices in rows of a whole graph, uint32 [n] by number.

    By falling degree, then id; trees last. Raises UsageError where rows do not ascend
    by it, as on road networks, whose vertices are numbered depth first.
    """
    rank = np.arange(part.local_count, dtype=np.uint32)
    core = part.active
    if not part.directed:
        core = first_tree(part.nn.offsets, part.nn.columns, core)
    by = (part.vertices[:core], -part.degrees[:core])
    rank[np.lexsort(by)] = np.arange(core, dtype=np.uint32)
    for rows in (part.nn, part.pulled):
        if not _ascend(rows, rank):
            raise UsageError("neighbours are not in the order of their degrees")
    return rank


def _ascend(rows: CSR, rank: Numbers) -> bool:
    """Return whether each row ascends by rank."""
    ranks = rank[rows.columns]
    rises = ranks[1:] > ranks[:-1]
    starts = rows.offsets[1:-1].astype(np.int64)
    rises[starts[(starts > 0) & (starts < len(ranks))] - 1] = True
    return bool(rises.all())


class Lookups:
    """Finds levels of pairs of vertices of a whole graph, where few lookups suffice.

    In a graph where many pairs take more than ``most``, no pair is looked up any more.

    part: one part without delegates, as it was built; most: lookups of a pair

    Raises UsageError where rows have another order, ResourceError without a compiler.
    """

    def __init__(self, part: Part, threads: int, most: int = MOST) -> None:
        wide = part.nn.offsets.itemsize == 8
        self._library = cc.load(SOURCE, OFFSET="uint64_t" if wide else "uint32_t")
        self._threads = threads
        self._held = (part.nn, part.pulled, ranks_of(part))
        out, pulled, rank = self._held
        self._view = View(
            *(cc.pointer(x) for x in (out.offsets, out.columns)),
            *(cc.pointer(x) for x in (pulled.offsets, pulled.columns, rank)),
            most=most,
        )

    def levels(self, sources: Numbers, targets: Numbers) -> Array:
        """Return the level of targets[j] from sources[j], int32 [k].

        sources, targets: uint32 [k], vertex numbers; -1 = unreached, OPEN = not known
        """
        level = np.empty(len(sources), dtype=np.int32)
        view = self._view
        view.source, view.target, view.level = (
            cc.pointer(x) for x in (sources, targets, level)
        )
        view.count, view.next = len(sources), 0
        self._library.look_up_pairs(ctypes.byref(view), ctypes.c_int(self._threads))
        return level
