"""Shortest paths from the levels of a search: the contract, and what both kinds share.

The sources of a search are not needed: they are the vertices on level 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import numpy as np

from distbfs.device.arrays import array_module, host_array
from distbfs.errors import UsageError
from distbfs.graph.csr import row_blocks, row_offsets

if TYPE_CHECKING:
    from distbfs.graph.csr import CSR
    from distbfs.types import AnyArray, Ids, World

NO_EDGES = np.zeros((0, 4), dtype=np.int64)


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


def gathered(world: World, table: Ids) -> Ids:
    """Concatenate the tables [k, w] of all ranks, in rank order (collective)."""
    flat = np.concatenate(world.allgather(np.ascontiguousarray(table).ravel()))
    return flat.reshape(-1, table.shape[1])


def table_of(columns: Iterable[AnyArray]) -> Ids:
    """Return columns of integers [k], in host or device memory, as int64 [k, w]."""
    return np.stack([host_array(x).astype(np.int64) for x in columns], axis=1)


def edges_back(
    into: CSR, vertices: Any, level: AnyArray, target: int, number: Any
) -> Iterator[Ids]:
    """Yield the edges (u, v) on all shortest paths in a whole graph, ids int64 [k, 2].

    into: rows of edges in by number; vertices: number -> id; level: by id; target: an
    id; number: its number, [1]. All arrays are in one memory, of the host or a device.
    """
    xp, by_number, current = array_module(level), level[vertices], number
    for above in range(int(level[target]) - 1, -1, -1):
        index, columns = into.edges_of(current)
        # mutant: == above -> <= above : test_as_networkx
        one_up = by_number[columns] == above
        before, after = columns[one_up], current[index[one_up]]
        yield table_of(vertices[x] for x in (before, after))
        current = xp.unique(before)


def runs(rows: CSR, some: Any) -> Iterator[Any]:
    """Cut a list of rows, integers [k], into runs with a limited number of edges."""
    lengths = host_array(rows.offsets[some + 1] - rows.offsets[some])
    for first, last in row_blocks(row_offsets(lengths)):
        yield some[first:last]


def within(levels: Any, low: int, high: int | None) -> Any:
    """Return which levels are in low … high, bool [k]; None sets no limit."""
    reached = levels >= low
    return reached if high is None else reached & (levels <= high)


def chosen_ends(table: Ids, *, directed: bool) -> Ids:
    """Drop loops from edges [k, 4]; keep each undirected one from its nearer end."""
    u, v, above, below = table.T
    kept = u != v
    if not directed:
        kept &= (above < below) | ((above == below) & (u < v))
    return table[kept]
