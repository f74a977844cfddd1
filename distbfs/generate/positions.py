"""Families that compute a tuple from its position alone."""

from __future__ import annotations

import ctypes
import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from distbfs.device import cc
from distbfs.device.structures import structure
from distbfs.progress import Tell, progress_slices
from distbfs.types import Ids

CHUNK = 1 << 20
RUNNING = ("threads", "tell")  # arguments that do not change the tuples


class ByFormula(ABC):
    """Tuples by position, from NumPy.

    family: its name in the registry; all arguments of the class are attributes of the
    same names, except for RUNNING
    """

    family: ClassVar[str]

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
    """Tuples by position, from a C kernel or, without a compiler, from NumPy."""

    source: Path  # of the kernel, whose name is that of the file
    threads: int

    @abstractmethod
    def _members(self) -> dict[str, Any]:
        """Return the members of the kernel's structure ``slice`` for all tuples."""

    def _places(self, start: int, count: int) -> dict[str, Any]:  # noqa: ARG002
        """Return further members for the tuples start … start + count - 1."""
        return {}

    def _slice(self, **members: Any) -> Any:
        """Return a pointer to a structure ``slice`` of the kernel."""
        kind = structure(self.source, "slice")
        return ctypes.pointer(kind(**self._members(), threads=self.threads, **members))

    def chunks(self, start: int, stop: int) -> Iterator[tuple[Ids, Ids]]:
        """Yield (u, v) int64 arrays of the tuples start … stop-1, in order.

        The arrays are reused for the next chunk.
        """
        native = cc.load_or_none(self.source)
        if native is None:
            yield from super().chunks(start, stop)
            return
        size = min(CHUNK, max(stop - start, 0))
        u, v = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
        for first in range(start, stop, CHUNK):
            count = min(CHUNK, stop - first)
            some = {"start": first, "count": count, **self._places(first, count)}
            native[self.source.stem](self._slice(**some, u=u, v=v))
            yield u[:count], v[:count]


class ByBlocks(ByPosition):
    """Tuples of a plane whose blocks are counted before any tuple is written.

    The kernels are NAME_count and NAME in the file NAME.c.

    at_a_time: numbers of blocks that C and NumPy count between two progress reports
    """

    at_a_time: ClassVar[tuple[int, int]]

    @abstractmethod
    def _count(self, low: int, high: int) -> tuple[Ids, Ids]:
        """Count the vertices and the tuples of the blocks low … high-1, by NumPy."""

    def _count_all(self, blocks: int, tell: Tell) -> None:
        """Count all blocks; set ``n``, ``tuples`` and the counts before each block.

        The counts are ``_vertices`` and ``_tuples``, int64 [blocks + 1].
        """
        vertices, tuples = (np.zeros(blocks + 1, dtype=np.int64) for _ in range(2))
        native = cc.load_or_none(self.source)
        by_c, by_numpy = self.at_a_time
        if native is None:
            for low, high in progress_slices(blocks, by_numpy, tell):
                piece = slice(low + 1, high + 1)
                vertices[piece], tuples[piece] = self._count(low, high)
        else:
            count = native[f"{self.source.stem}_count"]
            for low, high in progress_slices(blocks, by_c, tell):
                count(self._slice(low=low, high=high, vertices=vertices, tuples=tuples))
        self._vertices = np.cumsum(vertices, out=vertices)
        self._tuples = np.cumsum(tuples, out=tuples)
        self.n, self.tuples = int(vertices[-1]), int(tuples[-1])

    def _places(self, start: int, count: int) -> dict[str, Any]:
        ends = np.array([start, start + count - 1])
        low, high = (np.searchsorted(self._tuples, ends, side="right") - 1).tolist()
        ids, places = self._vertices, self._tuples
        return {"low": low, "high": high + 1, "ids": ids, "places": places}
