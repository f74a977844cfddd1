"""Families that compute a tuple from its position alone."""

from __future__ import annotations

import ctypes
import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from distbfs.device import cc
from distbfs.device.structures import structure
from distbfs.options import INPUT, check_declared, option
from distbfs.progress import Tell, progress_slices
from distbfs.types import Ids

CHUNK = 1 << 20
RUNNING = ("threads", "tell")  # arguments that do not change the tuples


def size(low: int, high: int) -> Any:
    """Return the field of a family's scale or number of vertices."""
    return option(INPUT, default=MISSING, low=low, high=high)


class ByFormula(ABC):
    """Tuples by position, from NumPy.

    family: its name in the registry; all arguments of the class are attributes of the
    same names, except for RUNNING
    """

    family: ClassVar[str]

    def __post_init__(self) -> None:
        """Check the arguments of a family that is a dataclass of options."""
        check_declared(self)
        for item in fields(self):  # type: ignore[arg-type]
            if item.type == "float":  # as ``describe`` gives it
                setattr(self, item.name, float(getattr(self, item.name)))

    def describe(self) -> dict[str, Any]:
        """Return a description that ``from_description`` accepts: the arguments."""
        taken = inspect.signature(type(self)).parameters
        arguments = {x: getattr(self, x) for x in taken if x not in RUNNING}
        return {"family": self.family, **arguments}

    @abstractmethod
    def tuples_at(self, positions: Ids) -> tuple[Ids, Ids]:
        """Return the tuples at any positions, by NumPy; int64 arrays."""

    def chunks(self, start: int, stop: int) -> Iterator[tuple[Ids, Ids]]:
        """Yield (u, v) int64 arrays of the tuples start … stop-1, in order."""
        for first in range(start, stop, CHUNK):
            last = min(first + CHUNK, stop)
            yield self.tuples_at(np.arange(first, last, dtype=np.int64))


class ByPosition(ByFormula):
    """Tuples by position, from a kernel or, without a compiler, from NumPy.

    source: file of the kernel in C, which has the name of the file; beside it, in a
    file of the same name for CUDA, is ``NAME_tuples``; both take a ``slice``
    """

    source: Path
    n: int
    tuples: int
    threads: int

    @abstractmethod
    def members(self) -> dict[str, Any]:
        """Return the members of the kernels' structure ``slice`` for all tuples."""

    def chunks(self, start: int, stop: int) -> Iterator[tuple[Ids, Ids]]:
        """Yield (u, v) int64 arrays of the tuples start … stop-1, in order.

        The arrays are reused for the next chunk.
        """
        native = cc.load_or_none(self.source)
        if native is None:
            yield from super().chunks(start, stop)
            return
        kind = structure(self.source, "slice")
        size = min(CHUNK, max(stop - start, 0))
        u, v = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
        for first in range(start, stop, CHUNK):
            count = min(CHUNK, stop - first)
            some = {"start": first, "count": count, "threads": self.threads}
            made = kind(**self.members(), **some, u=u, v=v)
            native[self.source.stem](ctypes.pointer(made))
            yield u[:count], v[:count]


def numbered(sizes: Ids) -> tuple[Ids, Ids]:
    """Return (group, index in it) of each member of groups of these sizes, int64."""
    group = np.repeat(np.arange(len(sizes)), sizes)
    return group, np.arange(len(group)) - (np.cumsum(sizes) - sizes)[group]


class ByBlocks(ByFormula):
    """Tuples of the cells of a plane, whose blocks are counted before any is made.

    Vertices and tuples are in the order of their cells.
    block: number of cells of a block
    at_a_time: number of blocks that are counted, or whose tuples are made, together
    """

    block: ClassVar[int]
    at_a_time: int

    @abstractmethod
    def _count(self, low: int, high: int) -> tuple[Ids, Ids]:
        """Count the vertices and the tuples of the blocks low … high-1."""

    @abstractmethod
    def _sizes(self, blocks: Ids) -> Ids:
        """Return the number of vertices of each cell of blocks, [k, block]."""

    @abstractmethod
    def _of_blocks(self, blocks: Ids) -> tuple[Ids, Ids]:
        """Return all tuples of blocks, in order."""

    def _count_all(self, blocks: int, tell: Tell) -> None:
        """Count all blocks; set ``n``, ``tuples`` and the counts before each block.

        The counts are ``_vertices`` and ``_tuples``, int64 [blocks + 1].
        """
        counts = np.zeros((2, blocks + 1), dtype=np.int64)
        for low, high in progress_slices(blocks, self.at_a_time, tell):
            counts[:, low + 1 : high + 1] = self._count(low, high)
        self._vertices, self._tuples = np.cumsum(counts, axis=1)
        self.n, self.tuples = int(self._vertices[-1]), int(self._tuples[-1])

    def starts(self, cells: Ids) -> Ids:
        """Return the id of the first vertex of each cell, int64 of the same shape."""
        blocks, row = np.unique(cells // self.block, return_inverse=True)
        count = self._sizes(blocks)
        before = np.cumsum(count, axis=1) - count + self._vertices[blocks][:, None]
        return before[row.reshape(cells.shape), cells % self.block]

    def tuples_at(self, positions: Ids) -> tuple[Ids, Ids]:
        """Return the tuples at any positions; int64 arrays."""
        u, v = np.empty_like(positions), np.empty_like(positions)
        block = np.searchsorted(self._tuples, positions, side="right") - 1
        blocks, row = np.unique(block, return_inverse=True)
        order = np.argsort(row, kind="stable")
        bounds = np.searchsorted(row[order], np.arange(len(blocks) + 1))
        step = self.at_a_time
        for first in range(0, len(blocks), step):
            piece = blocks[first : first + step]
            asked = order[bounds[first] : bounds[min(first + step, len(blocks))]]
            from_ids, to_ids = self._of_blocks(piece)
            sizes = self._tuples[piece + 1] - self._tuples[piece]
            before = np.cumsum(sizes) - sizes
            at = positions[asked] - self._tuples[block[asked]]
            at += before[row[asked] - first]
            u[asked], v[asked] = from_ids[at], to_ids[at]
        return u, v
