"""Sums along shortest paths on CPUs (paths.c)."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.device import cc
from distbfs.device.calls import LongCall
from distbfs.device.structures import structure
from distbfs.engines.path_sums import PathSums

if TYPE_CHECKING:
    from distbfs.graph.csr import CSR
    from distbfs.types import Array

SOURCE = Path(__file__).with_name("paths.c")
TYPES = {"uint64": "uint64_t", "float64": "double"}


def prepare(dtype: str, offset_bytes: int = 4) -> ctypes.CDLL:
    """Return the library for values of a dtype and row offsets of a size."""
    return cc.load(
        SOURCE,
        OFFSET="uint32_t" if offset_bytes == 4 else "uint64_t",
        COUNT=TYPES[dtype],
        EXACT=int(dtype == "uint64"),
    )


class OpenMPSums(PathSums):
    """Sums that the threads of a process compute; see ``PathSums``."""

    def __init__(self, level: Array, depth: int, dtype: str, threads: int) -> None:
        self._threads = ctypes.c_int(threads)
        super().__init__(np.ascontiguousarray(level), depth, dtype, threads)

    def _view(self) -> Any:
        return structure(SOURCE, "leveled")(
            n=len(self.level),
            at=self.level,
            order=self._order,
            begins=self._begins,
            values=self.values,
        )

    def along(
        self, edges: CSR, back: CSR | None, start: Any, begin: int, goal: int
    ) -> bool:
        """Add the values of a level; see ``PathSums``."""
        own, other = self._view(), start._view()
        ends = ctypes.byref(other), ctypes.byref(own)
        levels = ctypes.c_int32(begin), ctypes.c_int32(goal)
        self._call("carry_along", edges, back, *ends, *levels)
        return bool(own.passed)

    def down(self, edges: CSR, back: CSR) -> int:
        """Add up the values of a whole graph; see ``PathSums``."""
        own = cc.arguments(ctypes.byref(self._view()), self._depth + 1)
        return int(self._call("carry_down", edges, back, *own))

    def _call(self, name: str, edges: CSR, back: CSR | None, *others: Any) -> Any:
        """Call a function of paths.c with edges by source and by target."""
        library = prepare(self._dtype, edges.offsets.itemsize)
        function = getattr(library, name)
        function.restype = ctypes.c_int64
        ends = (None, None) if back is None else (back.offsets, back.columns)
        arrays = edges.offsets, edges.columns, *ends
        own = cc.arguments(*arrays, *others)
        return LongCall(library)(function, *own, self._threads)
