"""Shortest paths of a whole graph on one device, from the levels of a search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.device import cuda
from distbfs.engines.cuda.common.paths import DeviceCounter
from distbfs.errors import UsageError
from distbfs.locks import ForkLock
from distbfs.search.paths import (
    NO_EDGES,
    chosen_ends,
    edges_back,
    gathered,
    runs,
    table_of,
    within,
)

if TYPE_CHECKING:
    from distbfs.partition.share import Share
    from distbfs.types import DeviceArray, Ids, World


class DevicePaths:
    """A ``PathFinder`` of a graph on the device of one rank.

    graphs: the graph, none on the other ranks
    """

    refusal = ""

    def __init__(self, world: World, graphs: Sequence[Share]) -> None:
        self._world, self._graphs = world, graphs
        self._counters = [DeviceCounter(graph) for graph in graphs]
        self.directed = any(graph.directed for graph in graphs)
        self._lock = ForkLock()  # a counter has one set of launch arguments

    def counts(
        self, level: Sequence[Any], levels: int, dtype: str
    ) -> tuple[list[Any], int]:
        """Return counts by id on the rank that holds the graph; see ``PathFinder``."""
        for counter in self._counters:
            with self._lock, level[0].device:
                counts, passed = counter.counts(level[0], levels, dtype)
            return [counts], passed
        return [], 0

    def dependencies(
        self,
        level: Sequence[Any],  # noqa: ARG002
    ) -> list[Any]:
        """Raise UsageError: this needs a graph in several parts."""
        raise UsageError(
            "betweenness by parts needs a graph in several parts; use --divide sources"
        )

    def predecessors(self, level: Sequence[Any], target: int) -> Ids:
        """Return the edges of shortest paths to an id; see ``PathFinder``."""
        tables = [NO_EDGES[:, :2]]
        for graph in self._graphs:
            with level[0].device:
                number: Any = graph.device_numbers(np.array([target]))
                rows = graph.into, graph.vertices, level[0]
                tables.extend(edges_back(*rows, target, number))
        return gathered(self._world, np.concatenate(tables))

    def edges_within(self, level: Sequence[Any], hops: int | None) -> Ids:
        """Return the edges up to a level, on the graph's rank; see ``PathFinder``."""
        tables = [NO_EDGES]
        for graph in self._graphs:
            with level[0].device:
                tables.extend(edge_tables(graph, level[0], hops))
        return np.concatenate(tables)


def edge_tables(graph: Share, level: DeviceArray, hops: int | None) -> Iterator[Ids]:
    """Yield the edges between vertices of levels 0 … hops in blocks, int64 [k, 4]."""
    by_number = level[graph.vertices].astype(np.int32)
    out = graph.out
    for some in runs(out, cuda.cupy().flatnonzero(within(by_number, 0, hops))):
        index, columns = out.edges_of(some)
        kept = within(by_number[columns], 0, hops)
        u, v = some[index[kept]], columns[kept]
        ends = graph.vertices[u], graph.vertices[v], by_number[u], by_number[v]
        yield chosen_ends(table_of(ends), directed=graph.directed)
