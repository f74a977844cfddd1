"""Any problem over many searches on one CUDA device, with a block for each search.

Blocks are resident and take searches in turn. Memory is needed only for the blocks and
for the pairwise results of a batch of searches. Source: McLaughlin, Riedy, Bader 2015.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from distbfs.device import cuda, programs
from distbfs.device.array_table import ArrayPlan, allocate, total_bytes
from distbfs.device.stop_word import StopWord
from distbfs.engines.cuda.common.hubs import above
from distbfs.errors import OutOfMemory, SearchStopped, UsageError
from distbfs.graph.device_graph import ISOLATED, MAX_VERTICES
from distbfs.multisearch.base import RunOptions
from distbfs.multisearch.cuda_bits import RESERVE, check_ids
from distbfs.multisearch.cuda_program import (
    Program,
    program_of,
)
from distbfs.multisearch.problem import Problem, State
from distbfs.multisearch.warp_degree import ENDLESS, choose_warp_degree
from distbfs.options import check_choice
from distbfs.partition.share import Share
from distbfs.types import DeviceArray, Ids

METHODS = ("hybrid", "warp", "work-efficient", "edge-parallel")
LEVEL_TYPES = {"u8": "int8", "u16": "int16", "u32": "int32"}
BLOCK_THREADS = (1024, 256)
WIDE_MEAN = 8  # mean degree from which a block gets 1,024 threads
THREADS_AT_ONCE = 2048  # of a multiprocessor
REGISTERS_AT_ONCE = 1 << 16
SHARE = 0.5  # most of the free memory for blocks
DEEPER, STOPPED = 1, 2  # why blocks stopped taking searches
EDGES_AT_ONCE = 1 << 24  # whose rows are found together
STATIC_BYTES = 1024  # of shared memory, besides visited bits

Sink = Callable[[int, int, dict[str, DeviceArray]], None]


class DeviceRunner:
    """Runs a problem over many searches of a graph on one device.

    sources: int64 [k], ids
    options: ``method`` is "hybrid" (a warp for each vertex of degree T or more) by
    default, "warp" (T = 0), "work-efficient" (T infinite) or "edge-parallel";
    ``threshold`` is T, or "auto" to choose it from the degrees; a T above 16 is rounded
    up to a quarter of an octave; ``batch`` is the number of searches whose pairwise
    results are in memory at once (default: as many as fit); ``stop`` is called while
    searches run, and blocks read the answer before each level
    sink: function that is called with (first, last + 1, pairwise results of these
    searches), and owns the arrays [last + 1 - first, n] that it gets
    levels: whether the result "level" by pair is wanted: int8 for levels up to 126,
    else int16 or int32; the dtype may widen from call to call; -1 = unreached

    seconds: time of the search kernels of the last run; warp_degree: its T
    batches, blocks, block: the numbers of batches, of blocks, and of threads of a block
    that were used; level: C++ type of the levels

    Raises OutOfMemory if rows have columns in host memory, UsageError for invalid
    sources or for a problem that cannot be compiled, with the line of its text.
    """

    def __init__(
        self,
        problem: Problem,
        graph: Share,
        sources: ArrayLike,
        options: RunOptions | None = None,
        sink: Sink | None = None,
        *,
        levels: bool = False,
    ) -> None:
        self.options, self.sink = options or RunOptions(), sink
        self.method = self.options.method or METHODS[0]
        check_choice("method", self.method, METHODS)
        self.ids = check_ids(graph, sources)
        if graph.n > MAX_VERTICES:
            raise UsageError(f"{graph.n} vertices; allowed: {MAX_VERTICES}")
        if graph.out.tails is not None:
            raise OutOfMemory(
                f"problem '{problem.name}' needs the whole graph on the device, and "
                f"{graph.held_back} of its edges are in host memory; use engine openmp"
            )
        self.problem, self.graph = problem, graph
        self.word = StopWord()
        self.word.stop = self.options.stop
        self.program: Program = program_of(problem)
        self.by_pair = [s for s in problem.state if s.per == "pair" and s.result]
        self.edges, self.by_search = self.method == "edge-parallel", levels
        self.levels = levels or self.program.levels or self.edges
        self.ends = "end" in self.program.used

    def run(self) -> dict[str, DeviceArray]:
        """Return the results by name of state, CuPy arrays [k] or [n], by id.

        Raises ResourceError if memory is short, SearchStopped if ``stop`` returned
        True.
        """
        what = f"problem '{self.problem.name}' over {len(self.ids)} searches"
        with cuda.memory_of(what):
            self._number()
            self._shape()
            self._allocate()
            self._prepare()
            for first in range(0, len(self.ids), self.rows):
                last = min(first + self.rows, len(self.ids))
                stop = self.options.stop
                if (stop is not None and stop()) or not self._batch(first, last):
                    done = f"stopped after {first} of {len(self.ids)} sources"
                    raise SearchStopped(done)
                if self.sink is not None and (rows := self._by_pair(first, last)):
                    self.sink(first, last, rows)
            return self._finish()

    def _number(self) -> None:
        """Assign numbers to vertices without edges, after all others."""
        cp, graph = cuda.cupy(), self.graph
        alone = cp.flatnonzero(graph.numbers == ISOLATED).astype(np.uint32)
        self.numbers = graph.numbers.copy()
        self.numbers[alone] = cp.arange(graph.active, graph.n, dtype=np.uint32)
        self.vertices = cp.concatenate([graph.vertices, alone])
        self.sources = cp.asarray(self.ids.astype(np.uint32))

    def _shape(self) -> None:
        """Choose blocks, warp_degree, and the number of searches of a batch."""
        graph = self.graph
        wide = graph.m >= WIDE_MEAN * max(graph.active, 1)
        self.block = BLOCK_THREADS[0 if wide else 1]
        self.words = (-(-graph.active // 32) + 3) // 4 * 4
        self.stride = max(-(-graph.n // 16) * 16, 16)
        self.level, self.batches, self.seconds = "u8", 0, 0.0
        registers = self._module().kernel("search").attribute(programs.REGISTERS)
        each = min(
            THREADS_AT_ONCE // self.block,
            max(REGISTERS_AT_ONCE // (max(registers, 1) * self.block), 1),
        )
        room = cuda.shared_limit() // each - STATIC_BYTES
        self.shared = 4 * self.words if 4 * self.words <= room else 0
        alone = 4 * self.words <= cuda.shared_limit() - STATIC_BYTES
        if alone and not self.shared and self.block == BLOCK_THREADS[0]:
            # one large block with its bits in shared memory beats several
            each, self.shared = 1, 4 * self.words
        blocks = min(each * cuda.multiprocessors(), max(len(self.ids), 1))
        self.blocks, self.rows = self._bounded(blocks)
        self.warp_degree = self._warp_degree(self.blocks)

    def _states(self, blocks: int, rows: int) -> dict[str, ArrayPlan]:
        """Return the arrays of state by name; rows: number of searches of a batch."""
        counts = {"vertex": max(self.graph.n, 1), "search": max(len(self.ids), 1)}

        def count(state: State) -> int:
            by_pair = (rows if state.result else blocks) * self.stride
            return counts.get(state.per, by_pair)

        return {s.name: ArrayPlan(s.dtype, count(s)) for s in self.problem.state}

    def _others(self, blocks: int, rows: int, level: str) -> dict[str, ArrayPlan]:
        """Return the other arrays by name in kernels; level: C++ type of levels."""
        active, words = self.graph.active, 0 if self.shared else self.words
        table = {"order": ArrayPlan(np.uint32, blocks * (active + 1))}
        if self.ends:
            table["starts"] = ArrayPlan(np.uint32, blocks * 2 * (active + 3))
        if words:
            table["bits"] = ArrayPlan(np.uint32, blocks * words)
        if self.edges:
            table["from"] = ArrayPlan(np.uint32, max(self.graph.m, 1))
        if self.levels:
            count = (rows if self.by_search else blocks) * self.stride
            table["level"] = ArrayPlan(LEVEL_TYPES[level], count)
        return table

    def _bytes(self, blocks: int, rows: int) -> int:
        """Return the bytes of all arrays if levels have the widest type."""
        others = self._others(blocks, rows, "u32")
        return total_bytes(self._states(blocks, rows)) + total_bytes(others)

    def _bounded(self, blocks: int) -> tuple[int, int]:
        """Return (blocks, searches of a batch) that fit the free memory."""
        k, n = len(self.ids), self.graph.n
        shared = self._bytes(0, 0)
        each, row = self._bytes(1, 0) - shared, self._bytes(0, 1) - shared
        free = cuda.free_bytes() - RESERVE - 3 * shared
        row = row // self.stride * (self.stride + n)  # by number, and by id
        if free < each + row:
            raise OutOfMemory(
                f"problem '{self.problem.name}' over {k} searches of {n} vertices "
                f"needs {shared + each + row} bytes of device memory and more; "
                f"{cuda.free_bytes()} are free"
            )
        part = free if not row else int(free * SHARE)
        blocks = max(min(blocks, part // each), 1)
        rows = k if not row else (free - blocks * each) // row
        return blocks, max(min(rows, self.options.batch or k, k), 1)

    def _warp_degree(self, blocks: int) -> int:
        """Return T, the degree from which a warp handles a vertex."""
        fixed = {"warp": 0, "work-efficient": ENDLESS}
        if self.method in fixed:
            return fixed[self.method]
        if self.options.threshold != "auto":
            return min(int(self.options.threshold), ENDLESS)
        cp, graph = cuda.cupy(), self.graph
        if not graph.active:
            return ENDLESS
        degrees = cp.diff(graph.out.offsets).astype(np.int64)
        histogram: Ids = cp.bincount(degrees).get().astype(np.int64)
        return choose_warp_degree(histogram, len(self.ids), blocks)

    def _split(self) -> int:
        """Return the number below which vertices get a warp."""
        warp_degree = self.warp_degree
        if warp_degree == ENDLESS:
            return 0
        return ENDLESS if warp_degree == 0 else above(self.graph, warp_degree)

    def _module(self) -> programs.Module:
        return self.program.module(
            LEVEL=self.level,
            LEVELS=int(self.levels),
            EDGES=int(self.edges),
            THREADS=self.block,
        )

    def _allocate(self) -> None:
        cp, sizes = cuda.cupy(), (self.blocks, self.rows)
        self.held = allocate(self._states(*sizes), cp.empty)
        for state in self.problem.state:
            if state.per != "pair":
                self.held[state.name].fill(state.fill)
        self.small = allocate(self._others(*sizes, self.level), cp.empty)
        self.small["control"] = cp.zeros(2, np.uint32)
        for low in range(0, self.graph.m if self.edges else 0, EDGES_AT_ONCE):
            some = self.small["from"][low : low + EDGES_AT_ONCE]
            edges = cp.arange(low, low + len(some), dtype=np.int64)
            some[...] = cp.searchsorted(self.graph.out.offsets, edges, "right") - 1

    def _prepare(self) -> None:
        """Prepare the launch for the present type of levels."""
        graph, held, small = self.graph, self.held, self.small
        shared = {
            "row": graph.out.offsets,
            "adj": graph.out.columns,
            "numbers": self.numbers,
            "vertices": self.vertices,
            "sources": self.sources,
            "stop": self.word.address,
            "m": graph.m,
            "stride": self.stride,
            "n": graph.n,
            "active": graph.active,
            "words": self.words,
            "split": self._split(),
            "level_by_search": self.by_search,
            "most": ENDLESS if self.options.depth is None else self.options.depth,
        }
        state = {f"state_{name}": array for name, array in held.items()}
        self.job = self.program.structures.kind("Job")(p=shared | small, f=state)
        self.module = self._module()
        self.launch = self.module.kernel("search").prepare(
            self.job, self.blocks, self.block, shared=self.shared
        )

    def _batch(self, first: int, last: int) -> bool:
        """Search from first … last-1; repeat with wider levels if needed.

        Returns False if the host ended the searches.
        """
        small = self.small
        self.batches += 1
        kept = {
            state.name: self.held[state.name].copy()
            for state in self.problem.state
            if state.per != "pair"
        }
        while True:
            self.job.p.first, self.job.p.count = first, last - first
            control = small["control"]
            self.seconds += self.launch.timed(before=[(control, 0)], word=self.word)
            ended = 0
            if self.levels or self.options.stop is not None:
                ended = int(control.get()[1])
            if ended != DEEPER:
                return ended != STOPPED
            names = list(LEVEL_TYPES)
            self.level = names[names.index(self.level) + 1]
            for name, array in kept.items():
                self.held[name][...] = array
            self.job.set(p={"level": None})  # it goes before the wider ones come
            del small["level"]
            plan = self._others(self.blocks, self.rows, self.level)["level"]
            small["level"] = cuda.cupy().empty(plan.shape, plan.dtype)
            self._prepare()

    def _by_pair(self, first: int, last: int) -> dict[str, DeviceArray]:
        """Return a batch's pairwise results by id."""
        arrays = {s.name: self.held[s.name] for s in self.by_pair}
        if self.by_search:
            arrays["level"] = self.small["level"]
        return {
            name: array.reshape(-1, self.stride)[: last - first, self.numbers]
            for name, array in arrays.items()
        }

    def _finish(self) -> dict[str, DeviceArray]:
        """Call ``finalize``; return the results per search and per vertex."""
        n, k = self.graph.n, len(self.ids)
        if "finalize" in self.program.used:
            end_type = self.program.structures.kind("End")
            end = end_type(f=self.job.f, vertices=self.vertices, n=n, k=k)
            grid = 8 * cuda.multiprocessors()
            self.module.kernel("finish").prepare(end, grid, 256)()
        results: dict[str, DeviceArray] = {}
        for state in self.problem.state:
            if not state.result or state.per == "pair":
                continue
            places = slice(k) if state.per == "search" else self.numbers
            results[state.name] = self.held[state.name][places]
        return results
