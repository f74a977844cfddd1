"""Whole graphs on a CPU: the arrays and calls of the C searches of this folder."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np

from distbfs.device import cc
from distbfs.engines.base import LevelRecord, WholeResult
from distbfs.errors import ResourceError, SearchStopped, UsageError
from distbfs.partition.part import Part, mask_words
from distbfs.types import Stop

SOURCES = {"fast": "fast.c", "push": "push.c", "hybrid": "hybrid.c"}
DIRECTIONS = {"auto": 0, "push": 1, "pull": 2}
MODES = ("push-serial", "push", "push-marking", "pull")


ASK = ctypes.CFUNCTYPE(ctypes.c_int)
STOPPED = -2


class WholeGraph(ctypes.Structure):
    """The C view (``whole_graph`` in whole.h)."""

    _fields_ = (
        ("active", ctypes.c_int64),
        ("edges", ctypes.c_int64),
        ("words", ctypes.c_int64),
        ("offsets", ctypes.c_void_p),
        ("columns", ctypes.c_void_p),
        ("first", ctypes.c_void_p),
        ("vertices", ctypes.c_void_p),
        ("mean_next", ctypes.c_double),
        ("level", ctypes.c_void_p),
        ("parent", ctypes.c_void_p),
        ("visited", ctypes.c_void_p),
        ("next", ctypes.c_void_p),
        ("marks", ctypes.c_void_p),
        ("found_by", ctypes.c_void_p),
        ("queue", ctypes.c_void_p * 2),
        ("stop", ASK),
    )


COUNTS = ("frontier", "checks", "found", "seconds")
RECORD = np.dtype(
    [
        ("mode", np.int64),
        *((name, np.int64) for name in COUNTS[:-1]),
        (COUNTS[-1], "f8"),
    ]
)


def prepare(method: str = "fast", offset_bytes: int = 4) -> ctypes.CDLL:
    """Return the library of a method, compiled if need be."""
    offset = "uint32_t" if offset_bytes == 4 else "uint64_t"
    return cc.load(Path(__file__).with_name(SOURCES[method]), OFFSET=offset)


class OpenMPWhole:
    """Searches one part without delegates (a ``WholeSearch``)."""

    def __init__(
        self, part: Part, method: str, threads: int, direction: str, parents: bool
    ) -> None:
        n = part.local_count
        if n >= 1 << 31:
            raise UsageError(
                f"engine openmp searches up to 2^31 - 1 vertices a part, not {n}; "
                "use more parts"
            )
        self._threads = threads
        self._direction = DIRECTIONS[direction]
        library = prepare(method, part.nn.offsets.itemsize)
        self._function = getattr(library, f"search_{method}")
        self._function.restype = ctypes.c_int64
        self._active = part.active
        self._level = cc.aligned_full(n, -1, np.int32)
        self._parent = cc.aligned_full(n, -1, np.int32) if parents else None
        self._numbers = np.empty(n, dtype=np.uint32)
        self._numbers[part.vertices] = np.arange(n, dtype=np.uint32)
        self._isolated: int | None = None
        self._graph = self._prepare(part)

    def _prepare(self, part: Part) -> WholeGraph:
        active, words = part.active, mask_words(part.active)
        padded = words * 64
        first = part.nn.columns[part.nn.offsets[:active]]
        degrees = part.degrees[:active].astype(np.float64)
        arrays = {
            "offsets": part.nn.offsets,
            "columns": part.nn.columns,
            "first": cc.aligned_copy(first, padded),
            "vertices": cc.aligned_copy(part.vertices[:active], padded),
            "level": self._level,
            "parent": self._parent,
            "visited": cc.aligned_empty(words, np.uint64),
            "next": cc.aligned_empty(words, np.uint64),
            "marks": cc.aligned_full(padded, 0, np.uint8),
            "found_by": cc.aligned_empty(padded, np.uint32),
        }
        queues = [cc.aligned_empty(active, np.uint32) for _ in range(2)]
        self._held = (arrays, queues)
        return WholeGraph(
            active=active,
            edges=part.nn.edges,
            words=words,
            mean_next=float((degrees**2).sum() / max(degrees.sum(), 1)),
            queue=(ctypes.c_void_p * 2)(*(cc.pointer(q).value for q in queues)),
            **{name: cc.pointer(array) for name, array in arrays.items()},
        )

    def search(
        self, root: int, *, records: bool = False, stop: Stop | None = None
    ) -> WholeResult:
        """Search from a vertex id; SearchStopped where ``stop`` said so at a level."""
        if self._isolated is not None:
            self._write(self._isolated, -1, -1)
            self._isolated = None
        number = int(self._numbers[root])
        if number >= self._active:
            if self._active:
                self._unreach()
            self._isolated = root
            self._write(root, 0, root)
            alone = [LevelRecord(MODES[0], 1, 0, 0, 0.0)] if records else []
            return WholeResult(self._level, self._parent, 1, alone)
        log = np.zeros(self._active + 1 if records else 0, dtype=RECORD)
        self._graph.stop = ASK() if stop is None else ASK(stop)
        levels = self._function(
            ctypes.byref(self._graph),
            ctypes.c_uint32(number),
            ctypes.c_int(self._threads),
            ctypes.c_int(self._direction),
            cc.pointer(log if records else None),
            ctypes.c_int64(len(log)),
        )
        if levels == STOPPED:
            raise SearchStopped("the search was stopped between two levels")
        if levels < 0:
            raise ResourceError("no memory for the queues of a search")
        found = [
            LevelRecord(MODES[row["mode"]], *(row[name].item() for name in COUNTS))
            for row in log[:levels]
        ]
        return WholeResult(self._level, self._parent, levels, found)

    def _write(self, vertex: int, level: int, parent: int) -> None:
        self._level[vertex] = level
        if self._parent is not None:
            self._parent[vertex] = parent

    def _unreach(self) -> None:
        self._level[:] = -1
        if self._parent is not None:
            self._parent[:] = -1
