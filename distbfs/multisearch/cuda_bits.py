"""Up to 512 searches in one traversal on one CUDA device, a bit each (bits.cu).

A batch takes 16 bytes a vertex and 128 searches for visited bits, two frontiers, and
one bit plane for each binary digit of the levels. Source: Then et al., The more the
merrier, VLDB 2014.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from distbfs.device import cuda, programs
from distbfs.device.array_table import ArrayPlan, ArrayTable, allocate, total_bytes
from distbfs.device.stop_word import StopWord
from distbfs.device.structures import Record, structure
from distbfs.device.take import take
from distbfs.engines.base import TAIL_COUNTS
from distbfs.engines.cuda.xbfs.search import LINE_BYTES
from distbfs.errors import SearchStopped, UsageError
from distbfs.graph.device_graph import (
    ISOLATED,
    MAX_VERTICES,
    DeviceGraph,
    Tails,
    degree_class,
)
from distbfs.multisearch.base import SUMS
from distbfs.plan import pull_shares
from distbfs.types import Array, DeviceArray, Ids, Stop

KERNELS = Path(__file__).parent
SOURCE, LEVELS = KERNELS / "bits.cu", KERNELS / "bits_levels.cu"
SEARCHES = 128  # of a lane
LANES = (1, 2, 4)  # of a row
LARGEST = SEARCHES * LANES[-1]
THREADS = 1024
MARKS = 4
MORE_PLANES = 4  # added at a time
MORE_LEVELS = 64  # counted at first; doubled as needed
WIDE_DEGREE = 32  # degree from which a warp reads a row
HUB_DEGREE = 2048  # degree from which a block, or all, read a row
NO_LIMIT = 0xFFFFFFFF
RESERVE = 256 << 20


def level_dtype(deepest: int) -> np.dtype[Any]:
    """Return the narrowest dtype of levels: int8 to 126, int16 to 32767, else int32."""
    if deepest <= 126:
        return np.dtype(np.int8)
    return np.dtype(np.int16 if deepest <= 32767 else np.int32)


def check_ids(graph: DeviceGraph, vertices: ArrayLike, what: str = "source") -> Ids:
    """Return ids as int64 [k]; UsageError, naming ``what``, if one is no vertex."""
    ids = np.asarray(vertices, dtype=np.int64).ravel()
    wrong = ids[(ids < 0) | (ids >= graph.n)]
    if len(wrong):
        raise UsageError(
            f"{what} {wrong[0]} is not a vertex; allowed: 0 to {graph.n - 1}"
        )
    return ids


def above(graph: DeviceGraph, degree: int) -> int:
    """Estimate the number of vertices of at least ``degree`` edges, which come first.

    Edges out and in of a directed graph, by whose sum its vertices are numbered. Exact
    where no edge was repeated and ``degree`` begins a degree class.
    """
    if degree < len(graph.at_least):
        return int(graph.at_least[max(degree, 1)])
    low, high = 0, int(graph.at_least[-1])  # trees come last, whatever their degrees
    wanted = int(degree_class(np.array([degree]))[0])
    while low < high:
        middle = (low + high) // 2
        have = degree_class(sum_of_rows(graph, middle))[0]
        low, high = (middle + 1, high) if have >= wanted else (low, middle)
    return low


def sum_of_rows(graph: DeviceGraph, number: int) -> Ids:
    """Return a vertex's number of edges, out and in, int64 [1]."""
    count: Ids = graph.row_lengths(number, number + 1).get()
    if graph.directed:
        count = count + graph.row_lengths(number, number + 1, incoming=True).get()
    return count


def asked_kernel() -> programs.Kernel:
    """Return the kernel of ``asked_levels`` on the current device."""
    return programs.Module(LEVELS, LEVEL="u8").kernel("asked")


def asked_levels(
    kernel: programs.Kernel,
    graph: DeviceGraph,
    rows: tuple[DeviceArray, Sequence[DeviceArray]],
    searches: Array,
    targets: Array,
) -> DeviceArray:
    """Return the level of targets[q] in search searches[q], CuPy int32; -1 = unreached.

    rows: (seen, planes), uint32, by number; without planes a level is 0
    targets: ids of the graph's vertices
    """
    cp, (seen, planes) = cuda.cupy(), rows
    out = cp.empty(len(searches), np.int32)
    if not len(searches) or not graph.active:
        out.fill(-1)
        return out
    asked = structure(LEVELS, "Asked")(
        numbers=graph.numbers,
        members=graph.members,
        seen=seen,
        plane=list(planes),
        search=cp.asarray(searches.astype(np.uint32)),
        target=cp.asarray(targets.astype(np.uint32)),
        out=out,
        count=len(searches),
        words=seen.size // graph.active,
        planes=len(planes),
    )
    kernel.prepare(asked, 8 * cuda.multiprocessors(), 256)()
    return out


def write_levels(
    out: DeviceArray,
    numbers: DeviceArray,
    rows: tuple[DeviceArray, Sequence[DeviceArray]],
    words: int,
) -> None:
    """Write the levels of the first searches by id, -1 = unreached.

    out: integers [searches, n]; numbers: uint32 [n], id -> number, or ISOLATED
    rows: (seen, planes), uint32, by number; words: of 32 searches, in a row
    """
    matrix = structure(LEVELS, "Matrix")(
        numbers=numbers,
        seen=rows[0],
        plane=list(rows[1]),
        out=out,
        n=out.shape[1],
        k=len(out),
        words=words,
        planes=len(rows[1]),
    )
    module = programs.Module(LEVELS, LEVEL=f"u{8 * out.dtype.itemsize}")
    module.kernel("matrix").prepare(matrix, 8 * cuda.multiprocessors(), 256)()


def array_table(
    active: int, lanes: int, *, levels: bool, sums: Sequence[str] = ()
) -> ArrayTable:
    """Return the arrays of ``BitSearches``, with room for planes to be added once.

    Besides counts.
    """
    row, mark = active * SEARCHES // 32 * lanes, (-(-active // 32) + 3) // 4 * 4
    return {
        "seen": ArrayPlan(np.uint32, row),
        "front": [ArrayPlan(np.uint32, row)] * 2,
        "mark": [ArrayPlan(np.uint32, mark)] * MARKS,
        "queue": [ArrayPlan(np.uint32, active)] * 2,
        "plane": [ArrayPlan(np.uint32, row, later=True)] * (2 * MORE_PLANES * levels),
        **{name: ArrayPlan(SUMS[name], active) for name in sums},
    }


@dataclass
class Batch:
    """Finished searches.

    sources: int64 [k], ids; deepest: the largest level of any; seconds: of the kernels
    pulls, pushes: number of levels by direction
    tails: what was read of rows in host memory; empty if no row has a tail
    """

    owner: BitSearches
    sources: Ids
    deepest: int
    seconds: float
    pulls: int
    pushes: int
    tails: dict[str, int]

    def levels(self, out: DeviceArray | None = None) -> DeviceArray:
        """Return the levels by id, CuPy [k, n], of ``level_dtype(deepest)``.

        out: a C-contiguous array [k, n] of that or a wider dtype for the result
        """
        return self.owner._matrix(self, out)

    def counts(self) -> DeviceArray:
        """Return vertices by level, CuPy int64 [k, deepest + 1]."""
        return self.owner._counted(self)

    def levels_at(self, searches: ArrayLike, targets: ArrayLike) -> DeviceArray:
        """Return the level of targets[q] in search searches[q] of 0 … k-1, CuPy int32.

        -1 where unreached
        """
        return self.owner._levels_at(self, searches, targets)

    def reached(self, searches: ArrayLike, targets: ArrayLike) -> DeviceArray:
        """Return whether search searches[q] of 0 … k-1 has reached targets[q], bool."""
        return self.owner._asked(self, searches, targets, []) >= 0


class TailReads:
    """Reads of tails in host memory by a shared traversal (bits_tails.cuh).

    words: of 32 searches, in a row
    """

    def __init__(self, tails: Tails, words: int) -> None:
        cp = cuda.cupy()
        self._tails = tails
        self._reads, self._live = cp.zeros(2, np.uint64), cp.zeros(2 * words, np.uint32)

    def show(self, p: Record) -> None:
        """Set the kernels' arguments about tails; ``p.adj`` is set."""
        tails = self._tails
        p.set(
            tail_row=tails.offsets,
            far=tails.from_column(p.adj),
            tailed=tails.tailed,
            kept=tails.kept,
            reads=self._reads,
            live=self._live,
        )

    def clear(self) -> None:
        """Reset the counts of reads."""
        stream = cuda.cupy().cuda.get_current_stream()
        for array in (self._reads, self._live):
            cuda.clear(array, stream)

    def counts(self) -> dict[str, int]:
        """Return the counts of tail reads, by the names in ``TAIL_COUNTS``."""
        columns, lines = self._reads.get().tolist()
        return dict(zip(TAIL_COUNTS, (columns, lines * LINE_BYTES), strict=True))


class BitSearches:
    """Searches a graph on one device, up to 512 at once.

    levels, counts: wanted results of a batch, besides reachability
    sums: wanted sums over all searches by vertex, of names in ``base.SUMS``
    width: searches of a batch, 128, 256 or 512 (default: as memory allows)
    pull_edges: pull frontiers of this many edges (default: m / ``pull_shares.MANY``)

    control: uint64, what blocks meet at; to be cleared before a launch

    Raises UsageError where the graph is too large, ResourceError where device memory is
    short.
    """

    def __init__(
        self,
        graph: DeviceGraph,
        *,
        levels: bool = True,
        counts: bool = False,
        sums: Sequence[str] = (),
        width: int | None = None,
        pull_edges: int | None = None,
    ) -> None:
        if graph.n > MAX_VERTICES:
            raise UsageError(f"{graph.n} vertices; allowed: {MAX_VERTICES}")
        if graph.directed and graph.held_back:
            raise UsageError(
                "many searches of a directed graph need all of it on the device, and "
                f"{graph.held_back} of its edges are in host memory"
            )
        self.graph, self._with_levels, self._with_counts = graph, levels, counts
        self._sum_names = tuple(sums)
        self._lone: list[Ids] = []  # sources without edges
        self._lanes = self._choose_lanes(width)
        self.width = SEARCHES * self._lanes
        self._words = 4 * self._lanes
        self._planes: list[DeviceArray] = []
        self._word = StopWord()
        self._numbers: DeviceArray = graph.numbers
        with cuda.memory_of("bit-parallel searches"):
            self._allocate()
        self.params = self._parameters(pull_edges)
        module = programs.Module(
            SOURCE,
            PIECES=self._lanes,
            DIRECTED=int(graph.directed),
            SPLIT=int(graph.tails is not None),
        )
        self._first = structure(SOURCE, "Begin")(numbers=graph.numbers)
        self._begin = module.kernel("begin").prepare(self._first, 1, THREADS)
        self._launch = module.kernel("search").prepare(
            self.params, cuda.multiprocessors(), THREADS, cooperative=True
        )

    @cached_property
    def _asked_kernel(self) -> programs.Kernel:
        return asked_kernel()

    def _choose_lanes(self, width: int | None) -> int:
        allowed = [SEARCHES * lanes for lanes in LANES]
        if width is not None:
            if width not in allowed:
                text = ", ".join(map(str, allowed))
                raise UsageError(f"width is {width}; allowed: {text}")
            return width // SEARCHES
        for lanes in reversed(LANES[1:]):
            if total_bytes(self._table(lanes)) + RESERVE <= cuda.free_bytes():
                return lanes
        need = total_bytes(self._table(LANES[0])) + RESERVE
        cuda.require(need, f"a batch of searches of {self.graph.active} vertices")
        return LANES[0]

    def _table(self, lanes: int) -> ArrayTable:
        sums, levels = self._sum_names, self._with_levels
        return array_table(self.graph.active, lanes, levels=levels, sums=sums)

    def _allocate(self) -> None:
        cp = cuda.cupy()
        self._arrays = allocate(self._table(self._lanes), cp.zeros)
        self._seen: DeviceArray = self._arrays["seen"]
        self._sums = {name: self._arrays[name] for name in self._sum_names}
        self._host_state = structure(SOURCE, "State")
        sizes = map(ctypes.sizeof, (structure(SOURCE, "Control"), self._host_state))
        self.control, self._state = (cp.zeros(size // 8, np.uint64) for size in sizes)
        self._tails: TailReads | None = None
        if self.graph.tails is not None:
            self._tails = TailReads(self.graph.tails, self._words)
        self._counts: DeviceArray | None = None
        if self._with_counts:
            self._counts = cp.zeros((MORE_LEVELS, self.width), np.uint32)

    def _parameters(self, pull_edges: int | None) -> Record:
        graph, (in_offsets, in_columns) = self.graph, self.graph.pulled
        p: Record = structure(SOURCE, "Params")(
            row=graph.offsets,
            adj=graph.columns,
            in_row=in_offsets,
            in_adj=in_columns,
            control=self.control,
            state=self._state,
            active=graph.active,
            words=len(self._arrays["mark"][0]),
            hubs=above(graph, HUB_DEGREE) // 32 * 32,
            wide=above(graph, WIDE_DEGREE) // 32 * 32,
            pull_edges=(
                max(graph.m // pull_shares.MANY, 1)
                if pull_edges is None
                else pull_edges
            ),
            **self._arrays,
        )
        if self._tails is not None:
            self._tails.show(p)
        return p

    def batches(
        self,
        sources: ArrayLike,
        most: int | None = None,
        stop: Stop | None = None,
        at_once: int | None = None,
    ) -> Iterator[tuple[int, int, Batch]]:
        """Yield (first, last + 1, batch) over all sources; each lasts until the next.

        most: the last level to search; stop: as in ``search``
        at_once: sources of a batch, by default and at most the width
        """
        ids, step = check_ids(self.graph, sources), at_once or self.width
        for first in range(0, len(ids), step):
            some = ids[first : first + step]
            try:
                batch = self.search(some, most, stop)
            except SearchStopped as stopped:
                done = f"stopped after {first} of {len(ids)} sources"
                raise SearchStopped(done) from stopped
            yield first, first + len(some), batch

    def search(
        self, sources: ArrayLike, most: int | None = None, stop: Stop | None = None
    ) -> Batch:
        """Search from up to ``width`` sources, ids, at once.

        stop: called before each launch and during one; SearchStopped if it returns True
        with levels left
        """
        ids = check_ids(self.graph, sources)
        if len(ids) > self.width:
            raise UsageError(f"{len(ids)} searches at once; allowed: {self.width}")
        if most is not None and most < 0:
            raise UsageError(f"most is {most}; allowed: 0 or more")
        self._open(ids)
        limit = NO_LIMIT if most is None else most
        seconds, state_of = 0.0, self._host_state.from_buffer_copy
        state = state_of(self._state.get().tobytes())
        while state.edges and state.depth < limit:
            if state.stopped or (stop is not None and stop()):
                raise SearchStopped(f"the searches were stopped at level {state.depth}")
            self._word.stop = stop
            self.params.stop = self._word.address
            self.params.last = min(limit, self._room(state.depth))
            control = self.control.view(np.uint32)
            seconds += self._launch.timed(before=[(control, 0)], word=self._word)
            state = state_of(self._state.get().tobytes())
        # the last level of a complete search found nothing
        deepest = state.depth if state.edges or not state.depth else state.depth - 1
        tails = {} if self._tails is None else self._tails.counts()
        return Batch(self, ids, deepest, seconds, state.pulls, state.pushes, tails)

    def _clear(self) -> None:
        """Forget the searches before, in stream order."""
        stream = cuda.cupy().cuda.get_current_stream()
        front, mark = self._arrays["front"], self._arrays["mark"]
        for array in (self._seen, *front, *mark, self._state, *self._planes):
            if array.nbytes:
                cuda.clear(array, stream)
        if self._counts is not None:
            cuda.clear(self._counts, stream)
        if self._tails is not None:
            self._tails.clear()

    def _open(self, ids: Ids) -> None:
        """Initialise level 0 of some searches."""
        cp, p = cuda.cupy(), self.params
        self._clear()
        there = take(self._numbers, ids) != ISOLATED
        self._lone.append(ids[~there])
        bits = np.zeros(self._words * 32, dtype=np.uint8)
        bits[: len(ids)] = there
        full = np.packbits(bits, bitorder="little")
        np.frombuffer(p.full, np.uint8)[: len(full)] = full
        p.planes = len(self._planes)
        p.set(counts=self._counts)
        sources = cp.asarray(ids.astype(np.uint32))
        self._first.set(p=p, source=sources, k=len(ids))
        self._begin()

    def _room(self, depth: int) -> int:
        """Allocate more levels than ``depth``; return the last one allocated."""
        cp, p, last = cuda.cupy(), self.params, NO_LIMIT
        if self._with_levels:
            while (1 << len(self._planes)) - 1 <= depth:
                with cuda.memory_of("levels of bit-parallel searches"):
                    size = self.graph.active * self._words
                    for _ in range(MORE_PLANES):
                        self._planes.append(cp.zeros(size, np.uint32))
            p.set(plane=self._planes, planes=len(self._planes))
            last = (1 << len(self._planes)) - 1
        if self._counts is not None:
            if len(self._counts) <= depth + 1:
                wider = cp.zeros((2 * len(self._counts), self.width), np.uint32)
                wider[: len(self._counts)] = self._counts
                self._counts = wider
            p.set(counts=self._counts)
            last = min(last, len(self._counts) - 1)
        return min(last, NO_LIMIT)

    def sums(self) -> dict[str, Array]:
        """Return the sums of all searches so far by vertex id, [n] on the host."""
        results = {}
        vertices = self.graph.vertices.get()
        for name, array in self._sums.items():
            results[name] = np.zeros(self.graph.n, array.dtype)
            results[name][vertices] = array.get()
        if "reached_from" in results:
            np.add.at(results["reached_from"], np.concatenate(self._lone), 1)
        return results

    def _matrix(self, batch: Batch, out: DeviceArray | None) -> DeviceArray:
        cp, n, k = cuda.cupy(), self.graph.n, len(batch.sources)
        if not self._with_levels:
            raise UsageError("these searches ran without levels")
        dtype = level_dtype(batch.deepest)
        if out is None:
            with cuda.memory_of("levels"):
                out = cp.empty((k, n), dtype)
        if out.shape != (k, n) or out.dtype.itemsize < dtype.itemsize:
            raise UsageError(f"levels {out.shape} {out.dtype} for {k} x {n} of {dtype}")
        planes = self._planes[: max(batch.deepest, 0).bit_length()]
        write_levels(out, self._numbers, (self._seen, planes), self._words)
        alone = take(self._numbers, batch.sources) == ISOLATED
        rows = np.flatnonzero(alone)
        if len(rows):
            out[cp.asarray(rows), cp.asarray(batch.sources[rows])] = 0
        return out

    def _counted(self, batch: Batch) -> DeviceArray:
        if self._counts is None:
            raise UsageError("these searches ran without counts")
        counts = self._counts[: batch.deepest + 1, : len(batch.sources)]
        return counts.T.astype(np.int64)

    def _levels_at(
        self, batch: Batch, searches: ArrayLike, targets: ArrayLike
    ) -> DeviceArray:
        if not self._with_levels:
            raise UsageError("these searches ran without levels")
        planes = self._planes[: max(batch.deepest, 0).bit_length()]
        return self._asked(batch, searches, targets, planes)

    def _asked(
        self,
        batch: Batch,
        searches: ArrayLike,
        targets: ArrayLike,
        planes: Sequence[DeviceArray],
    ) -> DeviceArray:
        rows: Array = np.asarray(searches, dtype=np.int64)
        ids = check_ids(self.graph, targets, "target")
        if rows.shape != ids.shape or (rows < 0).any():
            raise UsageError("searches and targets differ in shape")
        if len(rows) and rows.max() >= len(batch.sources):
            raise UsageError(f"search {rows.max()} of {len(batch.sources)}")
        held = (self._seen, planes)
        out = asked_levels(self._asked_kernel, self.graph, held, rows, ids)
        # a vertex without edges reaches itself
        out[cuda.cupy().asarray(batch.sources[rows] == ids)] = 0
        return out


def all_levels(
    graph: DeviceGraph, sources: ArrayLike, width: int | None = None
) -> DeviceArray:
    """Return the levels from all sources by id, CuPy [k, n] (``level_dtype``)."""
    cp, searches = cuda.cupy(), BitSearches(graph, width=width)
    ids = check_ids(graph, sources)
    out: DeviceArray | None = None
    for first, last, batch in searches.batches(ids):
        dtype = level_dtype(batch.deepest)
        if out is None:
            with cuda.memory_of("levels"):
                out = cp.empty((len(ids), graph.n), dtype)
        elif out.dtype.itemsize < dtype.itemsize:
            with cuda.memory_of("levels"):
                out = out.astype(dtype)
        batch.levels(out[first:last])
    return cp.empty((0, graph.n), np.int8) if out is None else out
