"""Up to 512 searches in one traversal of the graph of one CUDA device (bits.cu).

One launch runs all levels, or several if the memory for levels must grow. The device is
a domain of one: its memory and results are those of a ``Share``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from distbfs.device import cuda, programs
from distbfs.device.array_table import total_bytes
from distbfs.device.stop_word import StopWord
from distbfs.device.structures import structure
from distbfs.errors import SearchStopped, UsageError
from distbfs.graph.device_graph import ISOLATED, MAX_VERTICES
from distbfs.multisearch.cuda_bits import (
    HUB_DEGREE,
    KERNELS,
    LANES,
    NO_LIMIT,
    SEARCHES,
    THREADS,
    WIDE_DEGREE,
    above,
    check_ids,
    level_dtype,
)
from distbfs.multisearch.domain_members import Member, lanes_that_fit
from distbfs.multisearch.domain_share import Share
from distbfs.multisearch.part_loop import Wanted
from distbfs.plan import pull_shares
from distbfs.ranks.world import SoloWorld

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from distbfs.graph.device_graph import DeviceGraph
    from distbfs.types import Array, DeviceArray, Ids, Stop


class BitSearches(Share):
    """Runs up to 512 searches at once on one device; results last until the next run.

    levels, counts: whether these results are wanted, besides reachability
    sums: names in ``base.SUMS`` of wanted sums over all searches, by vertex
    width: searches at a time, 128, 256 or 512 (default: as memory allows)
    pull_edges: pull frontiers of this many edges or more (default: m /
    ``pull_shares.MANY``)

    control: uint64, counters of the barriers of blocks; to be cleared before a launch
    sources: int64 [k], ids; deepest: the largest level of any search; seconds: time of
    the kernels
    pulls, pushes: number of levels by direction

    Raises UsageError if the graph is too large, ResourceError if device memory is
    short.
    """

    source = KERNELS / "bits.cu"
    adds_up = True  # sums are of all searches so far

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
        cp, member, self.graph = cuda.cupy(), Member.of_graph(graph), graph
        self._wanted = Wanted(levels, counts, tuple(sums))
        self._lone: list[Ids] = []  # sources without edges
        self._word = StopWord()
        self._pull_edges = pull_edges
        if pull_edges is None:
            self._pull_edges = max(graph.m // pull_shares.MANY, 1)
        lanes = self._lanes_of(width, member)
        self.width = SEARCHES * lanes
        self._host_state = structure(self.source, "State")
        kinds = structure(self.source, "Control"), self._host_state
        with cuda.memory_of("bit-parallel searches"):
            self.control, self._state = (
                cp.zeros(ctypes.sizeof(kind) // 8, np.uint64) for kind in kinds
            )
            memory = cp.zeros(total_bytes(member.shared(lanes)), np.uint8)
            super().__init__(member, lanes, memory, np.zeros(1, np.int64))
            self._sums = self._zero_sums(self._wanted)
        self.params.set(**self._sums)

    def _lanes_of(self, width: int | None, member: Member) -> int:
        allowed = [SEARCHES * lanes for lanes in LANES]
        if width is None:
            levels = self._wanted.levels
            return lanes_that_fit(SoloWorld(), [member], levels=levels)
        if width not in allowed:
            text = ", ".join(map(str, allowed))
            raise UsageError(f"width is {width}; allowed: {text}")
        return width // SEARCHES

    def _open_kernels(self, bases: Ids) -> None:  # noqa: ARG002
        """Prepare the launches, and arguments that only they need."""
        graph, (in_offsets, in_columns) = self.graph, self.graph.pulled
        self.params.set(
            in_row=in_offsets,
            in_adj=in_columns,
            control=self.control,
            state=self._state,
            pull_edges=self._pull_edges,
        )
        module = programs.Module(
            self.source,
            PIECES=self.lanes,
            DIRECTED=int(graph.directed),
            SPLIT=int(self.tails is not None),
        )
        self._begin_level = module.kernel("begin_level").prepare(self.first, 1, THREADS)
        self._launch = module.kernel("search").prepare(
            self.params, cuda.multiprocessors(), THREADS, cooperative=True
        )

    def _split_rows(self) -> list[int]:
        return [above(self.graph, x) // 32 * 32 for x in (HUB_DEGREE, WIDE_DEGREE)]

    def batches(
        self, sources: ArrayLike, most: int | None = None
    ) -> Iterator[tuple[int, int, BitSearches]]:
        """Yield (first, last + 1, these searches) over all sources."""
        ids = check_ids(self.graph, sources)
        for first in range(0, len(ids), self.width):
            last = min(first + self.width, len(ids))
            yield first, last, self.search(ids[first:last], most)

    def search(
        self, sources: ArrayLike, most: int | None = None, stop: Stop | None = None
    ) -> BitSearches:
        """Search from up to ``width`` sources, ids, at once; return this.

        most: the last level to search
        stop: function that is called before and during each launch; SearchStopped is
        raised if it returns True while levels are left
        """
        ids = check_ids(self.graph, sources)
        if len(ids) > self.width:
            raise UsageError(f"{len(ids)} searches at once; allowed: {self.width}")
        if most is not None and most < 0:
            raise UsageError(f"most is {most}; allowed: 0 or more")
        numbers = self.member.numbers_of(ids)
        there = numbers != ISOLATED
        self.sources, self.seconds = ids, 0.0
        self._lone.append(ids[~there])
        self.clear(self._wanted)
        self.begin(numbers, there)
        limit, state_of = NO_LIMIT if most is None else most, self._state_of
        state = state_of()
        while state.edges and state.depth < limit:
            if state.stopped or (stop is not None and stop()):
                raise SearchStopped(f"the searches were stopped at level {state.depth}")
            self._word.stop = stop
            self.params.stop = self._word.address
            self.params.last = min(limit, self._room(state.depth))
            control = self.control.view(np.uint32)
            self.seconds += self._launch.timed([(control, 0)], word=self._word)
            state = state_of()
        # the last level of a complete search found nothing
        self.deepest: int = state.depth - (not state.edges and state.depth > 0)
        self.pulls, self.pushes = state.pulls, state.pushes
        return self

    def _state_of(self) -> ctypes.Structure:
        """Return the state that the last launch left."""
        return self._host_state.from_buffer_copy(self._state.get().tobytes())

    def _fresh(self) -> list[DeviceArray]:
        return [*self._shared["front"], self._state]

    def _begin_sums(self, wanted: Wanted) -> None:
        """Keep the sums, which cover all searches."""

    def _room(self, depth: int) -> int:
        """Allocate more levels than ``depth``; return the last one allocated."""
        levels, last = self._wanted.levels, NO_LIMIT
        self.make_room(depth + 1, levels=levels)
        if levels:
            last = min(last, (1 << len(self._planes)) - 1)
        if self._counts is not None:
            last = min(last, len(self._counts) - 1)
        return last

    def sum_by_id(self, name: str) -> Array:
        """Return a sum of all searches so far by vertex id, [n] on the host."""
        by_id = self.sums(name)
        if name == "reached_from":
            np.add.at(by_id, np.concatenate(self._lone), 1)
        return by_id

    def levels(self, out: DeviceArray | None = None) -> DeviceArray:
        """Return the levels by id, CuPy [k, n], of ``level_dtype(deepest)``.

        If levels are not kept, it is 0 for reached vertices.

        out: a C-contiguous array [k, n] of that dtype or a wider one, for the result
        """
        cp, shape = cuda.cupy(), (len(self.sources), self.graph.n)
        planes = self._planes_of(self.deepest)
        dtype = level_dtype(self.deepest if planes else 0)
        if out is None:
            with cuda.memory_of("levels"):
                out = cp.empty(shape, dtype)
        if out.shape != shape or out.dtype.itemsize < dtype.itemsize:
            raise UsageError(f"levels {out.shape} {out.dtype} for {shape} of {dtype}")
        self.write_levels(out, self._numbers_by_id(), self.deepest)
        lone = np.flatnonzero(np.isin(self.sources, self._lone[-1]))
        if len(lone):
            out[cp.asarray(lone), cp.asarray(self.sources[lone])] = 0
        return out

    def put_levels(self, out: Array) -> None:
        """Write levels by id; see ``bit_batches.Searched``."""
        levels = self.levels()
        if out.dtype.kind == "i":
            levels.astype(out.dtype, copy=False).get(out=out)
        else:
            out[...] = (levels >= 0).get()

    def counts(self) -> Array:
        """Count the vertices by level, int64 [k, deepest + 1] on the host."""
        return self.level_counts(self.deepest + 1)[:, : len(self.sources)].T

    def tail_counts(self) -> dict[str, int]:
        """Return the counts of tail reads from host memory; {} if no row has one."""
        return {} if self.tails is None else self.tails.counts()

    def levels_at(self, searches: ArrayLike, targets: ArrayLike) -> Array:
        """Return the level of targets[q] in search number searches[q], 0 … k-1, int32.

        It is -1 for unreached vertices; if levels are not kept, it is 0 for reached
        ones.
        """
        rows: Ids = np.asarray(searches, dtype=np.int64)
        ids = check_ids(self.graph, targets, "target")
        if rows.shape != ids.shape or (rows < 0).any():
            raise UsageError("searches and targets differ in shape")
        if len(rows) and rows.max() >= len(self.sources):
            raise UsageError(f"search {rows.max()} of {len(self.sources)}")
        levels = self.levels_in(self.deepest, rows, ids)
        levels[self.sources[rows] == ids] = 0  # also a vertex without edges
        return levels
