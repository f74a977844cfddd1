"""Bit-parallel batches on CPUs: the arrays and calls of ``bits.c``."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from distbfs.device import cc
from distbfs.device.array_table import ArrayPlan, ArrayTable, allocate
from distbfs.device.calls import LongCall
from distbfs.device.structures import structure
from distbfs.multisearch.base import SUMS
from distbfs.multisearch.part_loop import Wanted
from distbfs.partition.part import mask_words
from distbfs.types import Array, Ids, Words

SOURCE = Path(__file__).with_name("bits.c")
WIDTHS = (1, 2, 4, 8)  # 64-bit lanes of a word
LANE = 64
HELD = 3  # initial planes: levels below 8
RECORD = np.dtype([(name, np.int64) for name in ("direction", "frontier", "checks")])


def prepare(width: int = 1, offset_bytes: int = 4) -> ctypes.CDLL:
    """Return the library for words of ``width`` lanes, compiled if necessary."""
    offset = "uint32_t" if offset_bytes == 4 else "uint64_t"
    return cc.load(SOURCE, WIDTH=width, OFFSET=offset)


def width_for(searches: int) -> int:
    """Return the number of lanes for ``searches`` searches, at most the widest word."""
    return next((w for w in WIDTHS if LANE * w >= searches), WIDTHS[-1])


def array_table(
    n: int, rows: int, width: int, planes: int = 0, sums: Sequence[str] = ()
) -> ArrayTable:
    """Return the arrays of ``WordRows``, with the planes and sums of its searches.

    rows: number of vertices with edges
    """
    return {
        "seen": ArrayPlan(np.uint64, n * width),
        "other": ArrayPlan(np.uint64, n * width),
        "claimed": ArrayPlan(np.uint64, mask_words(n)),
        "queue": ArrayPlan(np.uint32, rows),
        "spare": ArrayPlan(np.uint32, rows),
        "planes": [ArrayPlan(np.uint64, n * width, later=True)] * planes,
        **{name: ArrayPlan(SUMS[name], n, later=True) for name in sums},
    }


class WordRows:
    """The words of some vertices in searches that share a traversal; see bits.c.

    rows: number of vertices that may be in a frontier, which have the first numbers
    edges: members of ``bit_search`` that describe the edges of a whole graph
    sums: arrays by vertex number; their names are those of ``base.SUMS``
    """

    def __init__(
        self, n: int, width: int, threads: int, rows: int | None = None, **edges: Any
    ) -> None:
        rows, self.n, self.width = n if rows is None else rows, n, width
        self.threads = ctypes.c_int(threads)
        self.arrays = allocate(array_table(n, rows, width), cc.aligned_empty)
        self.sums: dict[str, Array] = {}
        self.planes: list[Array] = []
        self.level_counts: Array | None = None
        offsets = edges.get("offsets")
        self.library = prepare(width, 4 if offsets is None else offsets.itemsize)
        self.view = structure(SOURCE, "bit_search", {"WIDTH": width})(
            n=n, rows=rows, **edges, **self.arrays
        )
        self.state = ctypes.byref(self.view)

    def begin(self, numbers: Array, searches: Ids, wanted: Wanted) -> None:
        """Forget all searches; begin new ones at vertices ``numbers``, uint32 [k].

        searches: int64 [k], numbers of the searches that begin there
        """
        view, self.level_counts = self.view, None
        self.arrays["claimed"][:] = 0  # an error may have left some
        view.keep_levels, view.digits = int(wanted.levels), HELD
        for plane in range(HELD if wanted.levels else 0):
            self._add_plane(plane)
        view.set(counts=None)
        if not wanted.continued:
            view.set(**dict.fromkeys(SUMS))  # they go before others come
            self.sums = {name: np.zeros(self.n, SUMS[name]) for name in wanted.sums}
            view.set(**self.sums)
        if wanted.counts:
            shape = 1 << HELD, LANE * self.width
            self.level_counts = np.zeros(shape, dtype=np.int64)
        self.records = np.zeros(1 << HELD, dtype=RECORD)
        self._point()
        sources = cc.arguments(numbers, searches, len(searches))
        begin = self.library.bits_begin
        LongCall(self.library)(begin, self.state, *sources, self.threads)

    def _add_plane(self, plane: int) -> None:
        if plane == len(self.planes):
            self.planes.append(cc.aligned_empty(self.n * self.width, np.uint64))
            self.view.set(planes=self.planes)

    def grow(self) -> None:
        """Double the memory for levels."""
        held, counts = int(self.view.digits), self.level_counts
        if self.view.keep_levels:
            self._add_plane(held)
            self.planes[held][:] = 0
        if counts is not None:
            self.level_counts = np.concatenate([counts, np.zeros_like(counts)])
        self.records = np.concatenate([self.records, np.zeros_like(self.records)])
        self.view.digits = held + 1
        self._point()

    def _point(self) -> None:
        self.view.set(counts=self.level_counts, records=self.records)

    def words(self, name: str) -> Words:
        """Return words [n, width]: ``seen``, or ``other``, those of the next level."""
        words: Words = self.arrays[name].reshape(-1, self.width)
        return words

    @property
    def changed(self) -> Array:
        """The vertices to which the steps of a level gave words, uint32 [k]."""
        return self._spare[: self.view.tail]

    @changed.setter
    def changed(self, numbers: Array) -> None:
        self._spare[: len(numbers)] = numbers
        self.view.tail = len(numbers)

    @property
    def _spare(self) -> Array:
        """The array of changed vertices, which each level swaps with the frontier."""
        queue: Array = self.arrays["queue"]
        at_queue = self.view.spare == queue.ctypes.data
        return queue if at_queue else self.arrays["spare"]

    def levels_of(self, searches: Ids, numbers: Array) -> Array:
        """Return the level of each vertex number in each search, int32; -1 if none.

        If levels are not kept, it is 0 for reached vertices.
        """
        searches = np.ascontiguousarray(searches, dtype=np.int64)
        numbers = np.ascontiguousarray(numbers, dtype=np.uint32)
        levels = np.empty(len(searches), dtype=np.int32)
        places = cc.arguments(searches, numbers, len(searches), levels)
        self.library.bits_levels_at(self.state, *places)
        return levels
