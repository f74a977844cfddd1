"""Bit-parallel batches on CPUs: the arrays and calls of ``bits.c``."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from distbfs.device import cc
from distbfs.device.array_table import ArrayPlan, ArrayTable, allocate, total_bytes
from distbfs.device.calls import LongCall
from distbfs.device.structures import structure
from distbfs.errors import SearchStopped
from distbfs.multisearch.base import MOST, check_depth
from distbfs.partition.part import Part, mask_words
from distbfs.types import Array, Ids, Stop

SOURCE = Path(__file__).with_name("bits.c")
WIDTHS = (1, 2, 4, 8)  # 64-bit lanes of a word
LANE = 64
MOST_SEARCHES = LANE * WIDTHS[-1]
HELD = 3  # initial planes: levels below 8
DIRECTIONS = {"auto": 0, "push": 1, "pull": 2}
NO_LIMIT = (1 << 31) - 2
KINDS = {"int8": 1, "int16": 2, "int32": 4}
FLAGS = 0
GROW, STOPPED = 1, -2
OPEN = -2  # a level that is not known yet
NO_SUMS: Mapping[str, Array] = {}
RECORD = np.dtype([(name, np.int64) for name in ("direction", "frontier", "checks")])


def prepare(width: int = 1, offset_bytes: int = 4) -> ctypes.CDLL:
    """Return the library for words of ``width`` lanes, compiled if need be."""
    offset = "uint32_t" if offset_bytes == 4 else "uint64_t"
    return cc.load(SOURCE, WIDTH=width, OFFSET=offset)


def width_for(searches: int) -> int:
    """Return the lanes for ``searches`` searches, at most the widest word."""
    return next((w for w in WIDTHS if LANE * w >= searches), WIDTHS[-1])


def array_table(n: int, rows: int, width: int, planes: int = 0) -> ArrayTable:
    """Return the arrays of a ``BitSearch``; planes: added while it runs.

    rows: vertices with edges
    """
    return {
        "seen": ArrayPlan(np.uint64, n * width),
        "other": ArrayPlan(np.uint64, n * width),
        "claimed": ArrayPlan(np.uint64, mask_words(n)),
        "queue": ArrayPlan(np.uint32, rows),
        "spare": ArrayPlan(np.uint32, rows),
        "planes": [ArrayPlan(np.uint64, n * width, later=True)] * planes,
    }


def bytes_needed(n: int, width: int, *, levels: bool, depth: int = 255) -> int:
    """Return the most bytes of a ``BitSearch`` of n vertices up to some depth."""
    planes = max(depth.bit_length(), HELD) if levels else 0
    return total_bytes(array_table(n, n, width, planes))


@dataclass(frozen=True)
class BitsRecord:
    """One level: "push" or "pull", vertices whose edges it read first, edge checks."""

    direction: str
    frontier: int
    checks: int


class BitSearch:
    """Runs up to 64 x ``width`` searches at once; results last until the next run.

    part: one part without delegates, in the ids of results
    """

    def __init__(self, part: Part, width: int, threads: int) -> None:
        self.width, self._threads, self._part = width, threads, part
        n, rows, pulled = part.local_count, part.active, part.pulled
        self._n = n
        self._library = prepare(width, part.nn.offsets.itemsize)
        self._arrays = {
            "offsets": part.nn.offsets,
            "columns": part.nn.columns,
            "in_offsets": pulled.offsets,
            "in_columns": pulled.columns,
            **allocate(array_table(n, rows, width), cc.aligned_empty),
        }
        self._arrays["claimed"][:] = 0
        self._planes: list[Array] = []
        self._view = structure(SOURCE, "bit_search", {"WIDTH": width})(
            n=n, rows=rows, edges=part.nn.edges, **self._arrays
        )
        self._sources = np.zeros(0, dtype=np.int64)
        self._counts: Array | None = None

    def run(
        self,
        sources: Ids,
        *,
        levels: bool = True,
        counts: bool = False,
        sums: Mapping[str, Array] = NO_SUMS,
        limit: int | None = None,
        direction: str = "auto",
        stop: Stop | None = None,
    ) -> None:
        """Search from vertex ids, int64 [k].

        levels: make ``levels`` and ``levels_at`` available
        counts: make ``counts`` available; limit: the last level
        sums: arrays [n] by number, of names in ``base.SUMS``, to which is added
        Raises SearchStopped when ``stop`` returns True at a level.
        """
        self._view.set(**sums)
        state, threads = ctypes.byref(self._view), ctypes.c_int(self._threads)
        way = ctypes.c_int(DIRECTIONS[direction])
        try:
            with self._call(stop) as call:
                self._begin(call, sources, levels=levels, counts=counts, limit=limit)
                run = self._library.bits_run
                self._finish(lambda: call(run, state, threads, way))
        finally:
            self._view.set(**dict.fromkeys(sums))

    def meet(
        self, sources: Ids, search: Ids, vertices: Ids, stop: Stop | None = None
    ) -> Array:
        """Return the level of each vertex id in each search (row), int32; -1 if none.

        Searches from the vertices as well, backwards, and ends where these levels are
        known: ``levels`` and ``counts`` have no results.
        """
        levels = np.full(len(search), OPEN, dtype=np.int32)
        numbers = np.ascontiguousarray(self._part.numbers[vertices])
        rows = np.ascontiguousarray(search, dtype=np.int64)
        with self._call(stop) as call:
            self._begin(call, sources, levels=False, counts=False, limit=None)
            self._finish(
                lambda: call(
                    self._library.bits_meet,
                    ctypes.byref(self._view),
                    cc.pointer(rows),
                    cc.pointer(numbers),
                    ctypes.c_int64(len(rows)),
                    cc.pointer(levels),
                    ctypes.c_int(self._threads),
                )
            )
        return levels

    @contextmanager
    def _call(self, stop: Stop | None) -> Iterator[LongCall]:
        """Yield a function that calls C to search and may end early, repeatedly."""
        call = LongCall(self._library, stop)
        self._view.stop = call.stop
        try:
            yield call
        except BaseException:  # perhaps during a level
            self._arrays["claimed"][:] = 0
            raise

    def _begin(
        self,
        call: LongCall,
        sources: Ids,
        *,
        levels: bool,
        counts: bool,
        limit: int | None,
    ) -> None:
        """Put the sources on level 0."""
        view, self._sources = self._view, sources
        numbers = self._part.numbers[sources]
        view.keep_levels, view.digits = int(levels), HELD
        view.limit = NO_LIMIT if limit is None else limit
        for plane in range(HELD if levels else 0):
            self._add_plane(plane)
        self._counts = None
        view.set(counts=None)  # they go before others come
        if counts:
            self._counts = np.zeros((1 << HELD, LANE * self.width), dtype=np.int64)
        self._records = np.zeros(1 << HELD, dtype=RECORD)
        self._point()
        state, threads = ctypes.byref(view), ctypes.c_int(self._threads)
        count = ctypes.c_int64(len(sources))
        call(self._library.bits_begin, state, cc.pointer(numbers), count, threads)

    def _finish(self, proceed: Callable[[], int]) -> None:
        """Continue until the searches are done."""
        while (done := proceed()) == GROW:
            self._grow()
        if done == STOPPED:
            level = self._view.level
            raise SearchStopped(f"the searches were stopped at level {level}")

    def _add_plane(self, plane: int) -> None:
        if plane == len(self._planes):
            self._planes.append(cc.aligned_empty(self._n * self.width, np.uint64))
            self._view.set(planes=self._planes)

    def _grow(self) -> None:
        """Double the room for levels."""
        held = int(self._view.digits)
        if self._view.keep_levels:
            self._add_plane(held)
            self._planes[held][:] = 0
        if self._counts is not None:
            self._counts = np.concatenate([self._counts, np.zeros_like(self._counts)])
        self._records = np.concatenate([self._records, np.zeros_like(self._records)])
        self._view.digits = held + 1
        self._point()

    def _point(self) -> None:
        self._view.set(counts=self._counts, records=self._records)

    @property
    def depth(self) -> Array:
        """The largest level of each search, int32 [k]."""
        return np.array(self._view.depth[: len(self._sources)], dtype=np.int32)

    @property
    def deepest(self) -> int:
        """The largest level of all searches, 0 for none."""
        return int(self.depth.max(initial=0))

    @property
    def counts(self) -> Array:
        """Vertices by search and level, int64 [k, deepest + 1]."""
        if self._counts is None:
            raise ValueError("counts were not requested")
        return self._counts[: self.deepest + 1, : len(self._sources)].T

    @property
    def records(self) -> list[BitsRecord]:
        """Records of the levels; the last finds nothing unless there was a limit."""
        names = ("push", "pull")
        return [
            BitsRecord(names[int(r["direction"])], int(r["frontier"]), int(r["checks"]))
            for r in self._records[1 : self._view.level + 1]
        ]

    def levels(self, dtype: str = "", out: Array | None = None) -> Array:
        """Return levels by id, [k, n]; -1 = unreached.

        dtype: int8, int16 or int32, "" for the narrowest that holds all levels; out:
        memory for the result, rows contiguous. Raises TooDeep where a level does not
        fit.
        """
        if out is not None:
            dtype = out.dtype.name
        deepest = self.deepest
        if not dtype:
            dtype = next(name for name, most in MOST.items() if deepest <= most)
        check_depth(deepest, dtype)
        return self._spread(KINDS[dtype], np.dtype(dtype), out)

    def reachable(self) -> Array:
        """Return which vertices each search reached by id, bool [k, n]."""
        return self._spread(FLAGS, np.dtype(np.bool_), None)

    def _spread(self, kind: int, dtype: np.dtype, out: Array | None) -> Array:
        shape = (len(self._sources), self._n)
        if out is None:
            flat = cc.aligned_empty(shape[0] * shape[1] * dtype.itemsize, np.uint8)
            out = flat.view(dtype).reshape(shape)
        if out.shape != shape:
            raise ValueError(f"out has shape {out.shape}, not {shape}")
        LongCall(self._library)(
            self._library.bits_spread,
            ctypes.byref(self._view),
            cc.pointer(self._part.numbers),
            ctypes.c_int64(shape[0]),
            ctypes.c_int(kind),
            ctypes.c_int64(self._n),
            cc.pointer(out),
            ctypes.c_int(self._threads),
        )
        return out

    def levels_at(self, search: Ids, vertices: Ids) -> Array:
        """Return the level of each vertex id in each search (row), int32; -1 if none.

        Without levels: 0 for reached vertices.
        """
        numbers, levels = self._part.numbers[vertices], np.empty(len(search), np.int32)
        self._library.bits_levels_at(
            ctypes.byref(self._view),
            cc.pointer(np.ascontiguousarray(search, dtype=np.int64)),
            cc.pointer(numbers),
            ctypes.c_int64(len(search)),
            cc.pointer(levels),
        )
        return levels
