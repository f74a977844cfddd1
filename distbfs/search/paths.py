"""Shortest paths, from the levels of a search, in a graph that one rank holds whole.

The sources of a search are not needed: they are the vertices on level 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import numpy as np

from distbfs.device.arrays import array_module, device_of, host_array
from distbfs.errors import UsageError
from distbfs.graph.csr import row_blocks
from distbfs.locks import ForkLock

if TYPE_CHECKING:
    from distbfs.engines.path_sums import PathCounter
    from distbfs.partition.part import Part
    from distbfs.types import AnyArray, Ids, World

NO_PAIRS = np.zeros((0, 2), dtype=np.int64)


class PathFinder(Protocol):
    """Finds shortest paths from the levels of a search; methods are collective.

    directed: whether the graph is directed, known only on ranks that hold edges
    refusal: why paths are not available, "" if they are; equal on all ranks

    level: levels of each shard of this rank by local id, as in ``Found``
    All ids are internal.
    """

    directed: bool
    refusal: str

    def counts(
        self, level: Sequence[Any], levels: int, dtype: str
    ) -> tuple[list[Any], int]:
        """Return (numbers of shortest paths of each shard by local id, overflow).

        levels: upper bound of ``level``; overflow: the first level on which a number of
        this rank exceeds uint64, 0 if none does
        """

    def dependencies(self, level: Sequence[Any]) -> list[Any]:
        """Return the dependencies of the source on the vertices of each shard, float64.

        Values are by local id, for one source: the sum, over all targets, of the share
        of shortest paths that pass through the vertex (Brandes 2001).
        """

    def predecessors(self, level: Sequence[Any], target: int) -> Ids:
        """Return the edges (u, v) on shortest paths to ``target``, int64 [k, 2].

        Each edge occurs once; the result is equal on all ranks.
        """

    def edges_within(self, level: Sequence[Any], hops: int | None) -> Ids:
        """Return this rank's edges between vertices of levels 0 … hops, int64 [k, 4].

        A row holds u, v and their levels. An undirected edge is listed once, from the
        end with the smaller level or, on one level, the smaller id. hops: None for all
        levels
        """


class NoPaths:
    """A ``PathFinder`` for graphs stored where paths are not supported."""

    directed = False

    def __init__(self, refusal: str) -> None:
        self.refusal = refusal

    def counts(self, *arguments: Any) -> NoReturn:  # noqa: ARG002
        """Raise UsageError, like the other methods."""
        raise UsageError(self.refusal)

    dependencies = predecessors = edges_within = counts


NO_PATHS = NoPaths(
    "counts and sets of shortest paths are not made by this engine; allowed: engine "
    "openmp, reference, or one device"
)

PATHS_OF_ALL = NoPaths(
    "counts and sets of shortest paths, and edges within hops, need a search that sees "
    "all vertices and edges; this one has a view"
)


class NeighbourRows(Protocol):
    """Rows of neighbours by number, in host or device memory (a ``graph.CSR``)."""

    @property
    def offsets(self) -> Any:
        """Start of each row, integers [rows + 1]."""

    def edges_of(self, rows: Any) -> tuple[Any, Any]:
        """Return (index into ``rows``, column) of every edge of ``rows`` [k]."""


@dataclass(frozen=True)
class WholeRows:
    """A whole graph by number.

    out, into: rows of outgoing and of incoming edges, the same if the graph is
    symmetric
    vertices: number -> id, uint32 [active]; number_of: function from the id of a vertex
    that has edges to its number
    """

    out: NeighbourRows
    into: NeighbourRows
    directed: bool
    vertices: Any
    number_of: Callable[[int], int]


def rows_of_part(part: Part) -> WholeRows:
    """Wrap a part that is a whole graph, in host memory."""
    return WholeRows(part.nn, part.pulled, part.directed, part.vertices, part.number_of)


class WholePaths:
    """A ``PathFinder`` of a graph in the memory of one rank.

    rows, counter: None on the other ranks
    """

    refusal = ""

    def __init__(
        self, world: World, rows: WholeRows | None, counter: PathCounter | None
    ) -> None:
        self._world, self._rows, self._counter = world, rows, counter
        self.directed = rows is not None and rows.directed
        self._lock = ForkLock()  # a counter has one set of launch arguments

    def counts(
        self, level: Sequence[Any], levels: int, dtype: str
    ) -> tuple[list[Any], int]:
        """Return counts by id on the rank that holds the graph; see ``PathFinder``."""
        if self._counter is None:
            return [], 0
        with self._lock, device_of(level[0]):
            counts, passed = self._counter.counts(level[0], levels, dtype)
        return [counts], passed

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
        pairs = NO_PAIRS
        if self._rows is not None:
            with device_of(level[0]):
                pairs = walk_back(self._rows, level[0], target)
        return gathered(self._world, pairs)

    def edges_within(self, level: Sequence[Any], hops: int | None) -> Ids:
        """Return the edges up to a level, on the graph's rank; see ``PathFinder``."""
        tables = [np.zeros((0, 4), dtype=np.int64)]
        if self._rows is not None:
            with device_of(level[0]):
                tables.extend(edge_tables(self._rows, level[0], hops))
        return np.concatenate(tables)


def gathered(world: World, table: Ids) -> Ids:
    """Concatenate the tables [k, w] of all ranks, in rank order (collective)."""
    flat = np.concatenate(world.allgather(np.ascontiguousarray(table).ravel()))
    return flat.reshape(-1, table.shape[1])


def walk_back(rows: WholeRows, level: AnyArray, target: int) -> Ids:
    """Return the edges (u, v) on all shortest paths to ``target``, ids int64 [k, 2]."""
    tables, depth = [NO_PAIRS], int(level[target])
    if depth < 1:
        return NO_PAIRS
    xp, by_number = array_module(level), level[rows.vertices]
    current = xp.asarray([rows.number_of(target)])
    for above in range(depth - 1, -1, -1):
        index, columns = rows.into.edges_of(current)
        one_up = by_number[columns] == above
        before, after = columns[one_up], current[index[one_up]]
        ends = [host_array(rows.vertices[x]) for x in (before, after)]
        tables.append(np.stack(ends, axis=1).astype(np.int64))
        current = xp.unique(before)
    return np.concatenate(tables)


def edge_tables(rows: WholeRows, level: AnyArray, hops: int | None) -> Iterator[Ids]:
    """Yield the edges between vertices of levels 0 … hops in blocks, int64 [k, 4]."""
    xp, by_number = array_module(level), level[rows.vertices].astype(np.int32)
    near = xp.flatnonzero(within(by_number, hops))
    begins = rows.out.offsets.astype(np.int64)
    ends = np.zeros(len(near) + 1, dtype=np.int64)
    np.cumsum(host_array(begins[near + 1] - begins[near]), out=ends[1:])
    for first, last in row_blocks(ends):
        some = near[first:last]
        index, columns = rows.out.edges_of(some)
        kept = within(by_number[columns], hops)
        u, v = some[index[kept]], columns[kept]
        edges = [rows.vertices[u], rows.vertices[v], by_number[u], by_number[v]]
        table = np.stack([host_array(x).astype(np.int64) for x in edges], axis=1)
        yield chosen_ends(table, directed=rows.directed)


def within(levels: Any, hops: int | None) -> Any:
    """Return which levels are in 0 … hops, bool [k]; None selects all levels."""
    reached = levels >= 0
    return reached if hops is None else reached & (levels <= hops)


def chosen_ends(table: Ids, *, directed: bool) -> Ids:
    """Drop loops from edges [k, 4]; keep each undirected one from its nearer end."""
    u, v, above, below = table.T
    kept = u != v
    if not directed:
        kept &= (above < below) | ((above == below) & (u < v))
    return table[kept]
