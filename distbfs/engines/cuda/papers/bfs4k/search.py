"""Engine ``bfs4k``: BFS-4K with all of its knobs, one launch per search (bfs4k.cu).

Source: Busato, Bombieri: BFS-4K: an Efficient Implementation of BFS for Kepler GPU
Architectures, IEEE TPDS 2015.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from distbfs.device import cuda, programs
from distbfs.device.array_table import ArrayPlan, ArrayTable, allocate
from distbfs.device.structures import structure
from distbfs.engines.base import WHOLE, LevelRecord, Until, WholeResult
from distbfs.engines.cuda.common.arguments import arguments
from distbfs.engines.cuda.common.goal import goal_of
from distbfs.engines.cuda.common.graph_engine import GraphEngine
from distbfs.engines.cuda.common.host_results import results_table
from distbfs.engines.cuda.papers.bfs4k.knobs import (
    MOST_SHARE,
    SLICE,
    Degrees,
    degrees_of,
    filled,
)
from distbfs.errors import SearchStopped, UsageError
from distbfs.graph.device_graph import DeviceGraph
from distbfs.options import Knobs
from distbfs.types import DeviceArray, Stop

SOURCE = Path(__file__).with_name("bfs4k.cu")
THREADS, WARPS, LOCAL = 1024, 32, 16  # as in bfs4k.cuh
SHARED = 128 << 10  # bytes a block; the rest is L1
LEAST_TABLE = 16 << 10  # bytes of one block's hash table
STATIC = 4 << 10
RECORDS = 1 << 16  # most recorded levels
REPEATS_ROOM = 1 << 16  # entries of a queue beyond half the number of vertices
NO_LIMIT = 0xFFFFFFFF
BETWEEN = 256  # levels of a launch if ``stop`` is called between launches
STEPS = ("push-block-edges", "push-block-warps", "push-edges", "push-warps", "pull")
RECORD = ("step", "frontier", "checks", "found")
COUNTS = (  # as in ``Record`` of bfs4k.cuh
    "repeats_found",
    "repeats_missed",
    "conflicts",
    "places",
    "searches",
    "in_turns",
    "pieces",
)
TABLE = ArrayPlan(  # of records
    np.uint64, (RECORDS + 1, len(RECORD) + len(COUNTS) + 1), later=True
)
METHODS = ("auto", "claim", "hash")


def bits_of(size: int) -> int:
    """Return the largest k for which a hash table of 2^k entries fits the bytes."""
    return max(size // 8, 2).bit_length() - 1


def queue_room(active: int, *, claim: bool) -> int:
    """Return the entries of a queue, which has repeats unless ``claim`` is set."""
    n = max(active, 1)
    return n if claim else n + n // 2 + REPEATS_ROOM


def array_table(
    active: int, room: int, pieces: int, *, claim: bool, parents: bool
) -> ArrayTable:
    """Return the arrays of searches by argument name.

    room: entries of a queue; pieces: most pieces of rows of hubs at a time
    """
    return {
        **results_table(active, parents=parents),
        "visited": ArrayPlan(np.uint32, -(-active // 32) if claim and active else 1),
        "queue": [ArrayPlan(np.uint32, room)] * 2,
        "piece": [ArrayPlan(np.uint32, 2 * max(pieces, 1))] * 2,
        "records": TABLE,
    }


class Bfs4kSearch:
    """Searches a graph on one device by vertex number.

    knobs: the knobs; those that are None are set from the degrees
    claim: an atomic operation claims each vertex found, so that no repeat is queued; if
    false, plain writes as published, which queue the repeats that the hash table misses
    pulls: pull levels whose frontier has 1/32 of the vertices or more
    stepwise: one launch per level; capacity: entries of a queue, for tests

    ``knobs`` and ``degrees`` hold the values in use. Raises ResourceError.
    """

    def __init__(
        self,
        graph: DeviceGraph,
        *,
        knobs: Knobs | None = None,
        claim: bool = True,
        parents: bool = True,
        pulls: bool = False,
        stepwise: bool = False,
        capacity: int | None = None,
    ) -> None:
        self.graph, self._claim, self._stepwise = graph, claim, stepwise
        self.degrees: Degrees = degrees_of(graph)
        self.knobs = filled(knobs or Knobs(), self.degrees)
        self.offset = programs.word_of(graph.offsets)
        self._state = structure(SOURCE, "State")
        self._control_bytes = ctypes.sizeof(structure(SOURCE, "Control"))
        self.params = arguments(SOURCE, "Params", graph, pulls=pulls)
        self._set_knobs(self.knobs)
        self._allocate(parents=parents, capacity=capacity)
        self._turn = 0
        self._launches: dict[int, programs.Launch] = {}
        self._launch(0)

    def _set_knobs(self, knobs: Knobs) -> None:
        """Set the arguments that follow from the knobs."""
        k, p, m = knobs, self.params, self.graph.m
        k1, k3, k6 = k.k1 or 1, k.k3 or 1, k.k6 or THREADS
        p.least_warp = k1.bit_length() - 1
        # mutant: int((k.k2 or 0) / 100 * self.graph.active) -> 0
        #   : test_k2_and_k3_cut_rows_of_hubs_into_pieces
        p.hubs = int((k.k2 or 0) / 100 * self.graph.active)
        # mutant: 32 * k3 -> 32 : test_k2_and_k3_cut_rows_of_hubs_into_pieces
        p.slice = 32 * k3
        # mutant: (k.k5 or 0) -> bool(k.k5)
        #   : test_k5_leaves_small_frontiers_to_one_block
        p.edge_discover, p.alone = k.k4 or 0, THREADS * (k.k5 or 0)
        # mutant: k6 // 32 -> 1 : test_k6_shares_a_table_between_warps
        p.group_warps, p.turns, p.extended = k6 // 32, k.k7 or 0, bool(k.ext)
        p.piece_capacity = p.hubs + m // p.slice + 1 if p.hubs else 0
        near = p.alone * (2 * self.graph.offsets.dtype.itemsize + 16)
        self.shared = min(max(SHARED, near + LEAST_TABLE), cuda.shared_limit() - STATIC)
        far = self.shared - 4 * WARPS * LOCAL * 32
        # mutant: * k6 // THREADS -> // 32 : test_k6_shares_a_table_between_warps
        p.table = bits_of(far * k6 // THREADS)
        p.table_alone = bits_of(self.shared - near)

    def _allocate(self, *, parents: bool, capacity: int | None) -> None:
        """Allocate the arrays of searches."""
        cp, p, active = cuda.cupy(), self.params, self.graph.active
        p.capacity = capacity or queue_room(active, claim=self._claim)
        p.words = -(-max(active, 1) // 32)
        table = array_table(
            active, p.capacity, p.piece_capacity, claim=self._claim, parents=parents
        )
        self._arrays = allocate(table, cp.empty)
        self._arrays["control"] = cp.zeros(2 * self._control_bytes, np.uint8)
        self._arrays["state"] = cp.zeros(ctypes.sizeof(self._state), np.uint8)
        self.level, self.parent = self._arrays["level"], self._arrays.get("parent")
        p.set(**self._arrays)
        self._records: DeviceArray | None = None

    def _launch(self, count: int) -> programs.Launch:
        """Return the launch of a search without (0) or with (1) counters."""
        if count not in self._launches:
            module = programs.Module(
                SOURCE, OFFSET=self.offset, COUNT=count, CLAIM=int(self._claim)
            )
            self._launches[count] = module.kernel("search").prepare(
                self.params,
                cuda.multiprocessors(),
                THREADS,
                shared=self.shared,
                cooperative=True,
            )
        return self._launches[count]

    def search(
        self,
        number: int,
        *,
        records: bool = False,
        until: Until = WHOLE,
        stop: Stop | None = None,
    ) -> WholeResult:
        """Search from a vertex number; with records, kernels count edge checks.

        stop: called every 256 levels, before each level if stepwise
        At most 65536 levels can be recorded; raises UsageError if there are more.
        """
        p = self.params
        most = NO_LIMIT if stop is None else BETWEEN
        p.root, p.budget = number, 1 if self._stepwise else most
        p.set(goal=goal_of(until, number, self.graph.active))
        table = self._clear_records() if records else None
        launch = self._launch(int(records))
        seconds, launches = 0.0, 0
        while True:
            seconds += self._run(launch)
            launches += 1
            state = self._state.from_buffer_copy(self._arrays["state"].get().tobytes())
            if not state.begun:
                break
            if stop is not None and stop():
                self._arrays["state"].fill(0)  # the next launch starts a new search
                raise SearchStopped(f"the search was stopped at level {state.depth}")
        log = [] if table is None else self._log(table, state.depth)
        levels = state.depth + bool(state.count or state.pieces)
        return WholeResult(self.level, self.parent, levels, seconds, launches, log)

    def _run(self, launch: programs.Launch) -> float:
        """Launch once, with the counters that the previous launch cleared."""
        base = self._arrays["control"].data.ptr
        self._turn ^= 1
        self.params.control = base + self._turn * self._control_bytes
        self.params.other = base + (self._turn ^ 1) * self._control_bytes
        return launch.timed()

    def _clear_records(self) -> DeviceArray:
        if self._records is None:
            self._records = cuda.cupy().empty(TABLE.shape, TABLE.dtype)
        self._records.fill(0)
        self.params.set(records=self._records, record_capacity=RECORDS)
        return self._records

    def _log(self, table: DeviceArray, levels: int) -> list[LevelRecord]:
        """Return a record of each level, by the device's clock."""
        if levels > RECORDS:
            raise UsageError(
                f"engine bfs4k records {RECORDS} levels, and this search has {levels}; "
                "allowed: no records"
            )
        rows = table[:levels].get().astype(np.int64)
        start = int(table[RECORDS, -1])
        spans = np.diff(rows[:, -1], prepend=start) * 1e-9
        log = []
        for row, span in zip(rows.tolist(), spans.tolist(), strict=True):
            extra = dict(zip(COUNTS, row[len(RECORD) : -1], strict=True))
            step, vertices, checks, fresh = row[: len(RECORD)]
            seconds = max(span, 0.0)
            log.append(
                LevelRecord(STEPS[step], vertices, checks, fresh, seconds, extra)
            )
        return log


@dataclass(frozen=True)
class Bfs4kOptions:
    """knobs: K1 to K7; those that are None are set from the graph."""

    knobs: Knobs = field(default_factory=Knobs)


class Bfs4kEngine(GraphEngine):
    """Its methods are claim (no repeat is queued), hash (as published), auto (claim).

    The paper has direction "push", which is also the only one of method hash; with
    other methods, "auto" pulls dense levels, as ``layer`` does.
    """

    name = "bfs4k"
    methods = METHODS
    takes = ("stepwise", "internal_ids")
    own = Bfs4kOptions

    @property
    def _claim(self) -> bool:
        """Repeats cost more than claims on every family of scripts/bench_engines.py."""
        return self.method != "hash"  # mutant: hash -> none : test_methods_claim_or_not

    def by_number(self, graph: DeviceGraph) -> Bfs4kSearch:
        """Prepare searches by vertex number."""
        o = self.options
        return Bfs4kSearch(
            graph,
            knobs=self.own_options.knobs,
            claim=self._claim,
            parents=o.parents,
            # mutant: "auto" and self._claim -> "auto" : test_hash_pushes_as_published
            pulls=o.direction == "auto" and self._claim,
            stepwise=o.stepwise,
        )

    def table(self, graph: DeviceGraph) -> ArrayTable:
        """Return the largest arrays that searches by number may have."""
        k, room = self.own_options.knobs, queue_room(graph.active, claim=self._claim)
        share = MOST_SHARE if k.k2 is None else k.k2
        length = 32 * (k.k3 or SLICE)
        pieces = int(graph.active * share) // 100 + graph.m // length + 1
        parents = self.options.parents
        return array_table(
            graph.active, room, pieces, claim=self._claim, parents=parents
        )

    def describe(self) -> dict[str, Any]:
        """Return the engine's hardware and settings, for reports."""
        return {
            **super().describe(),
            "knobs": self.own_options.knobs.as_dict() or "auto",
        }
