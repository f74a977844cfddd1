"""Numbers of shortest paths on CPUs: the arrays and the call of counts.c."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np

from distbfs.device import cc
from distbfs.device.calls import LongCall
from distbfs.device.structures import structure
from distbfs.partition.part import Part
from distbfs.types import Array

SOURCE = Path(__file__).with_name("counts.c")
TYPES = {"uint64": "uint64_t", "float64": "double"}


class OpenMPCounter:
    """A ``PathCounter`` by the threads of a process, any number at a time."""

    seconds = 0.0

    def __init__(self, part: Part, threads: int) -> None:
        self._part, self._threads = part, threads

    def counts(
        self,
        level: Array,
        levels: int,  # noqa: ARG002
        dtype: str,
    ) -> tuple[Array, int]:
        """Return counts [n] by id; see ``PathCounter``."""
        part, pulled = self._part, self._part.pulled
        n, present = part.local_count, int(level.max(initial=-1)) + 1
        counts = np.empty(n, dtype=dtype)
        arrays = {
            "offsets": part.nn.offsets,
            "columns": part.nn.columns,
            "in_offsets": pulled.offsets,
            "in_columns": pulled.columns,
            "vertices": part.vertices,
            "level": np.ascontiguousarray(level, np.int32),
            "sigma": np.zeros(n, dtype=dtype),
            "counts": counts,
            "at": np.empty(n, np.int32),
            "order": np.empty(n, np.uint32),
            "begins": np.zeros(present + 1, np.int64),
            "out": np.zeros(present, np.int64),
            "into": np.zeros(present, np.int64),
        }
        library = cc.load(
            SOURCE,
            OFFSET="uint64_t" if part.nn.offsets.itemsize == 8 else "uint32_t",
            COUNT=TYPES[dtype],
            EXACT=int(dtype == "uint64"),
        )
        call = library.count_paths
        call.restype = ctypes.c_int64
        task = structure(SOURCE, "counting")(n=n, levels=present, **arrays)
        threads = ctypes.c_int(self._threads)
        return counts, LongCall(library)(call, ctypes.byref(task), threads)
