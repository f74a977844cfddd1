"""Engine ``bfs4k``: BFS-4K with all of its knobs, one launch per search (bfs4k.cu).

Source: Busato, Bombieri: BFS-4K: an Efficient Implementation of BFS for Kepler GPU
Architectures, IEEE TPDS 2015.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from distbfs.device import cuda, programs
from distbfs.device.array_table import ArrayPlan, ArrayTable
from distbfs.engines.cuda.common.graph_engine import GraphEngine
from distbfs.engines.cuda.common.host_results import results_table
from distbfs.engines.cuda.common.resident import ResidentSearch
from distbfs.engines.cuda.papers.bfs4k.knobs import (
    MOST_SHARE,
    SLICE,
    Degrees,
    degrees_of,
    filled,
)
from distbfs.options import Knobs
from distbfs.partition.share import Share

SOURCE = Path(__file__).with_name("bfs4k.cu")
THREADS, WARPS, LOCAL = 1024, 32, 16  # as in bfs4k.cuh
SHARED = 128 << 10  # bytes a block; the rest is L1
LEAST_TABLE = 16 << 10  # bytes of one block's hash table
STATIC = 4 << 10
REPEATS_ROOM = 1 << 16  # entries of a queue beyond half the number of vertices
STEPS = ("push-block-edges", "push-block-warps", "push-edges", "push-warps")
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
        "records": Bfs4kSearch.records_plan(),
    }


class Bfs4kSearch(ResidentSearch):
    """Searches a graph on one device by vertex number.

    knobs: the knobs; those that are None are set from the degrees
    claim: an atomic operation claims each vertex found, so that no repeat is queued; if
    false, plain writes as published, which queue the repeats that the hash table misses
    capacity: entries of a queue, for tests

    ``knobs`` and ``degrees`` hold the values in use. Raises ResourceError.
    """

    source, steps = SOURCE, STEPS

    def __init__(
        self,
        graph: Share,
        *,
        knobs: Knobs | None = None,
        claim: bool = True,
        parents: bool = True,
        capacity: int | None = None,
    ) -> None:
        super().__init__(graph)
        self._claim = claim
        self.degrees: Degrees = degrees_of(graph)
        self.knobs = filled(knobs or Knobs(), self.degrees)
        self._set_knobs(self.knobs)
        p, active = self.params, graph.active
        p.capacity = capacity or queue_room(active, claim=claim)
        p.words = -(-max(active, 1) // 32)
        pieces = p.piece_capacity
        self._allocate(
            array_table(active, p.capacity, pieces, claim=claim, parents=parents)
        )
        self._launch(counting=False)

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
        near = p.alone * (2 * self.graph.out.offsets.dtype.itemsize + 16)
        self.shared = min(max(SHARED, near + LEAST_TABLE), cuda.shared_limit() - STATIC)
        far = self.shared - 4 * WARPS * LOCAL * 32
        # mutant: * k6 // THREADS -> // 32 : test_k6_shares_a_table_between_warps
        p.table = bits_of(far * k6 // THREADS)
        p.table_alone = bits_of(self.shared - near)

    def _prepare(self, *, counting: bool) -> programs.Launch:
        offset = programs.word_of(self.graph.out.offsets)
        module = programs.Module(
            SOURCE, OFFSET=offset, COUNT=int(counting), CLAIM=int(self._claim)
        )
        return module.kernel("search").prepare(
            self.params,
            cuda.multiprocessors(),
            THREADS,
            shared=self.shared,
            cooperative=True,
        )

    def _end(self, state: Any) -> tuple[int, int, bool]:
        left = bool(state.count or state.pieces)
        return state.depth, state.depth + left, bool(state.stopped)


@dataclass(frozen=True)
class Bfs4kOptions:
    """knobs: K1 to K7; those that are None are set from the graph."""

    knobs: Knobs = field(default_factory=Knobs)


class Bfs4kEngine(GraphEngine):
    """Its methods are claim (no repeat is queued), hash (as published), auto (claim).

    As in the paper, all levels are pushed.
    """

    name = "bfs4k"
    methods = METHODS
    own = Bfs4kOptions

    @property
    def _claim(self) -> bool:
        """Repeats cost more than claims on every family of scripts/bench_engines.py."""
        return self.method != "hash"  # mutant: hash -> none : test_methods_claim_or_not

    def by_number(self, graph: Share) -> Bfs4kSearch:
        """Prepare searches by vertex number."""
        return Bfs4kSearch(
            graph,
            knobs=self.own_options.knobs,
            claim=self._claim,
            parents=self.options.parents,
        )

    def table(self, graph: Share) -> ArrayTable:
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
