"""Searches by one cluster, for graphs whose frontiers stay small (cluster.cu)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from distbfs.build.cuda.seen import SeenEdges
from distbfs.device import cuda, programs
from distbfs.device.array_table import ArrayPlan, ArrayTable, allocate
from distbfs.device.stop_word import StopWord
from distbfs.device.structures import uints
from distbfs.device.take import Back
from distbfs.engines.cuda.common.arguments import arguments
from distbfs.engines.cuda.xbfs.limits import NO_LIMIT
from distbfs.errors import SearchStopped
from distbfs.partition.share import Share

SOURCE = Path(__file__).with_name("cluster.cu")
MEMBERS, ROOM, TURNS, MESSAGE_BYTES = 16, 256, 3, 8
LARGEST_MEAN = 4.0  # mean degree of a neighbour, Σd²/Σd
STATIC_BYTES = 2048
FULL, STOPPED = 1, 2  # how a search has ended that is not complete


def suits(graph: Share, mean_next: float) -> bool:
    """Return whether frontiers of a graph may be expected to stay small.

    mean_next: mean degree of a neighbour. Until repeats set in, a level has about
    mean_next - 1 times as many vertices as the one before, and mean_next times as many
    if no edge leads back.
    """
    sparse = graph.m <= LARGEST_MEAN * graph.active
    # mutant: graph.directed -> 0 : test_directed_kernels::test_clusters
    return sparse and mean_next + graph.directed <= LARGEST_MEAN


def cluster_table(active: int) -> ArrayTable:
    """Return the arrays of searches by one cluster, without those of results.

    visited: its bits may fit shared memory instead
    """
    return {
        "record": ArrayPlan(np.uint32, 4 * active),
        "visited": ArrayPlan(np.uint32, active // 32 + 1),
    }


class ClusterSearch:
    """Searches by one cluster that write results to the arrays of another search.

    level, parent: CuPy int32 or None
    """

    def __init__(self, graph: Share, level: Any, parent: Any, *, in_ids: bool) -> None:
        cp = cuda.cupy()
        self._graph = graph
        self._level, self._parent = level, parent
        state = cp.zeros(4, dtype=cp.uint32)
        self._ended = Back(state)
        modern = int(cuda.cupy().cuda.Device().compute_capability) >= 90
        members = MEMBERS if modern else 1
        inbox = TURNS * members * ROOM * MESSAGE_BYTES
        words = graph.active // members // 32 + 2
        inside = inbox + 4 * words <= cuda.shared_limit() - STATIC_BYTES
        table = cluster_table(graph.active)
        if inside:
            del table["visited"]
        made = allocate(table, cp.empty)
        self._visited = made.get("visited")  # cleared before a search
        self.params = arguments(
            SOURCE,
            "ClusterParams",
            graph,
            **made,
            level_out=level,
            parent_out=parent,
            state=state,
            words=words,
            in_ids=in_ids,
        )
        self._members = members
        self._shared = inbox + (4 * words if inside else 0)
        self._launches: dict[bool, programs.Launch] = {}
        self.see(None)

    def see(self, seen: SeenEdges | None) -> None:
        """Restrict later searches to some edges, whose bits must be kept; None: all."""
        graph, masked = self._graph, seen is not None
        module = programs.Module(SOURCE, MASKED=int(masked))
        bits: Any = np.uint64(0) if seen is None else seen.bits
        module.kernel("records")(
            8 * cuda.multiprocessors(),
            256,
            uints(graph.out.offsets),
            graph.out.columns,
            np.uint32(graph.active),
            bits,
            self.params.held["record"],
        )
        self.params.set(seen=None if seen is None else seen.bits)
        if masked not in self._launches:
            self._launches[masked] = module.kernel("search").prepare(
                self.params,
                self._members,
                32 * MEMBERS,
                shared=self._shared,
                cluster=self._members,
            )
        self._launch = self._launches[masked]

    def search(
        self,
        root: int,
        last: int = NO_LIMIT,
        targets: int = 0,
        sought: int = 0,
        word: StopWord | None = None,
    ) -> tuple[int, float, bool]:
        """Search from an id; returns (largest level, seconds, whether it has ended).

        A search has not ended if a frontier was too large.
        last, targets, sought: where the search ends, as in ``Params`` of search.cuh
        word: read between levels; SearchStopped is raised if it was set
        """
        p = self.params
        p.stop = 0 if word is None else word.address
        p.root, p.last, p.targets, p.sought = root, last, targets, sought
        cleared = [self._level, self._parent, self._visited]
        fills = [
            (a, v) for a, v in zip(cleared, (-1, -1, 0), strict=True) if a is not None
        ]
        seconds = self._launch.timed(before=fills, back=self._ended, word=word)
        level, end, *_ = self._ended.pinned.tolist()
        if end == STOPPED:
            raise SearchStopped(f"the search was stopped at level {level}")
        return level, seconds, end != FULL
