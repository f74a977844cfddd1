"""Bit-parallel batches on CPUs: the arrays and calls of ``bits.c``."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from distbfs.device import cc
from distbfs.device.array_table import ArrayPlan, ArrayTable, allocate, total_bytes
from distbfs.device.calls import LongCall
from distbfs.device.structures import structure
from distbfs.errors import SearchStopped
from distbfs.multisearch.base import MOST, SUMS, RunOptions, check_depth
from distbfs.multisearch.part_loop import Wanted
from distbfs.partition.part import Part, mask_words
from distbfs.types import Array, Ids, Stop, Words

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
LEVELS = Wanted(levels=True, counts=False)
RECORD = np.dtype([(name, np.int64) for name in ("direction", "frontier", "checks")])


def prepare(width: int = 1, offset_bytes: int = 4) -> ctypes.CDLL:
    """Return the library for words of ``width`` lanes, compiled if necessary."""
    offset = "uint32_t" if offset_bytes == 4 else "uint64_t"
    return cc.load(SOURCE, WIDTH=width, OFFSET=offset)


def width_for(searches: int) -> int:
    """Return the number of lanes for ``searches`` searches, at most the widest word."""
    return next((w for w in WIDTHS if LANE * w >= searches), WIDTHS[-1])


def sources_at_once(count: int, options: RunOptions, need: Callable[[int], int]) -> int:
    """Return the number of sources in a traversal: 64 to 512, as memory allows.

    need: function from the number of lanes of a word to the bytes of the searches
    """
    if options.batch:
        return min(options.batch, MOST_SEARCHES)
    lanes = width_for(count)
    while lanes > 1 and need(lanes) > options.memory:
        lanes //= 2
    return LANE * lanes


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


def bytes_needed(n: int, width: int, *, levels: bool, depth: int = 255) -> int:
    """Return an upper bound of the bytes of a ``BitSearch`` of n vertices."""
    planes = max(depth.bit_length(), HELD) if levels else 0
    return total_bytes(array_table(n, n, width, planes))


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

    def begin(
        self,
        numbers: Array,
        searches: Ids,
        wanted: Wanted,
        call: LongCall | None = None,
    ) -> None:
        """Forget all searches; begin new ones at vertices ``numbers``, uint32 [k].

        searches: int64 [k], numbers of the searches that begin there
        """
        view, self.level_counts, self.sums = self.view, None, {}
        self.arrays["claimed"][:] = 0  # an error may have left some
        view.keep_levels, view.digits = int(wanted.levels), HELD
        for plane in range(HELD if wanted.levels else 0):
            self._add_plane(plane)
        view.set(counts=None, **dict.fromkeys(SUMS))  # they go before others come
        self.sums = {name: np.zeros(self.n, SUMS[name]) for name in wanted.sums}
        view.set(**self.sums)
        if wanted.counts:
            shape = 1 << HELD, LANE * self.width
            self.level_counts = np.zeros(shape, dtype=np.int64)
        self._records = np.zeros(1 << HELD, dtype=RECORD)
        self._point()
        (call or LongCall(self.library))(
            self.library.bits_begin,
            self.state,
            cc.pointer(numbers),
            cc.pointer(searches),
            ctypes.c_int64(len(searches)),
            self.threads,
        )

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
        self._records = np.concatenate([self._records, np.zeros_like(self._records)])
        self.view.digits = held + 1
        self._point()

    def _point(self) -> None:
        self.view.set(counts=self.level_counts, records=self._records)

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
        self.library.bits_levels_at(
            self.state,
            cc.pointer(searches),
            cc.pointer(numbers),
            ctypes.c_int64(len(searches)),
            cc.pointer(levels),
        )
        return levels


class BitSearch(WordRows):
    """Runs up to 64 x ``width`` searches at once; results last until the next run.

    part: one part without delegates, whose ids are those of the results
    """

    adds_up = False  # sums are those of the last run

    def __init__(self, part: Part, width: int, threads: int) -> None:
        pulled, self._part = part.pulled, part
        super().__init__(
            part.local_count,
            width,
            threads,
            part.active,
            edges=part.nn.edges,
            offsets=part.nn.offsets,
            columns=part.nn.columns,
            in_offsets=pulled.offsets,
            in_columns=pulled.columns,
        )
        self._sources = np.zeros(0, dtype=np.int64)

    def run(
        self, sources: Ids, wanted: Wanted = LEVELS, direction: str = "auto"
    ) -> None:
        """Search from vertex ids, int64 [k].

        Raises SearchStopped when ``wanted.stop`` returns True at a level.
        """
        call, run = self._begun(sources, wanted), self.library.bits_run
        way = ctypes.c_int(DIRECTIONS[direction])
        self._finish(lambda: call(run, self.state, self.threads, way))

    def meet(
        self, sources: Ids, search: Ids, vertices: Ids, stop: Stop | None = None
    ) -> Array:
        """Return the level of each vertex id in each search (row), int32; -1 if none.

        It also searches backwards from the vertices, and ends as soon as their levels
        are known, so ``levels`` and ``counts`` have no results.
        """
        levels = np.full(len(search), OPEN, dtype=np.int32)
        numbers = np.ascontiguousarray(self._part.numbers[vertices])
        rows = np.ascontiguousarray(search, dtype=np.int64)
        call = self._begun(sources, Wanted(counts=False, stop=stop))
        self._finish(
            lambda: call(
                self.library.bits_meet,
                self.state,
                cc.pointer(rows),
                cc.pointer(numbers),
                ctypes.c_int64(len(rows)),
                cc.pointer(levels),
                self.threads,
            )
        )
        return levels

    def _begun(self, sources: Ids, wanted: Wanted) -> LongCall:
        """Put the sources on level 0; return the caller of the C code."""
        call, view = LongCall(self.library, wanted.stop), self.view
        self._sources, view.stop = sources, call.stop
        view.limit = NO_LIMIT if wanted.limit is None else wanted.limit
        numbers, searches = self._part.numbers[sources], np.arange(len(sources))
        self.begin(numbers, searches, wanted, call)
        return call

    def _finish(self, proceed: Callable[[], int]) -> None:
        """Call ``proceed`` until the searches are complete."""
        while (done := proceed()) == GROW:
            self.grow()
        if done == STOPPED:
            level = self.view.level
            raise SearchStopped(f"the searches were stopped at level {level}")

    @property
    def depth(self) -> Array:
        """The largest level of each search, int32 [k]."""
        return np.array(self.view.depth[: len(self._sources)], dtype=np.int32)

    @property
    def deepest(self) -> int:
        """The largest level of all searches, 0 for none."""
        return int(self.depth.max(initial=0))

    def counts(self) -> Array:
        """Return the number of vertices by search and level, int64 [k, deepest + 1]."""
        if self.level_counts is None:
            raise ValueError("counts were not requested")
        return self.level_counts[: self.deepest + 1, : len(self._sources)].T

    @property
    def records(self) -> np.recarray[Any, Any]:
        """Records of the levels; the last level finds nothing unless there was a limit.

        direction: 0 for a push, 1 for a pull; frontier: vertices whose edges the level
        read first; checks: number of edge checks
        """
        return self._records[1 : self.view.level + 1].view(np.recarray)

    def levels(self, dtype: str = "", out: Array | None = None) -> Array:
        """Return levels by id, [k, n]; -1 = unreached.

        dtype: int8, int16 or int32, "" for the narrowest that holds all levels
        out: memory for the result, with contiguous rows. Raises TooDeep if a level does
        not fit.
        """
        if out is not None:
            dtype = out.dtype.name
        deepest = self.deepest
        if not dtype:
            dtype = next(name for name, most in MOST.items() if deepest <= most)
        check_depth(deepest, dtype)
        return self._spread(KINDS[dtype], np.dtype(dtype), out)

    def reachable(self) -> Array:
        """Return which vertices each search reached, bool [k, n] by id."""
        return self._spread(FLAGS, np.dtype(np.bool_), None)

    def put_levels(self, out: Array) -> None:
        """Write levels by id; see ``bit_batches.Searched``."""
        if out.dtype.name in KINDS:
            self.levels(out=out)
        else:
            out[...] = self.reachable()

    def sum_by_id(self, name: str) -> Array:
        """Return a sum of ``base.SUMS`` by id, [n]."""
        return self.sums[name][self._part.numbers]

    def tail_counts(self) -> dict[str, int]:
        """Return {}: only devices have tails of rows in host memory."""
        return {}

    def _spread(self, kind: int, dtype: np.dtype, out: Array | None) -> Array:
        shape = (len(self._sources), self.n)
        if out is None:
            flat = cc.aligned_empty(shape[0] * shape[1] * dtype.itemsize, np.uint8)
            out = flat.view(dtype).reshape(shape)
        if out.shape != shape:
            raise ValueError(f"out has shape {out.shape}, not {shape}")
        LongCall(self.library)(
            self.library.bits_spread,
            self.state,
            cc.pointer(self._part.numbers),
            ctypes.c_int64(shape[0]),
            ctypes.c_int(kind),
            ctypes.c_int64(self.n),
            cc.pointer(out),
            self.threads,
        )
        return out

    def levels_at(self, search: Ids, vertices: Ids) -> Array:
        """Return the level of vertex ids [k] in searches [k]; see ``levels_of``."""
        return self.levels_of(search, self._part.numbers[vertices])
