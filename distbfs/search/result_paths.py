"""All shortest paths of a result, not only those along its parents."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from itertools import islice
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from distbfs.engines.path_sums import check_dtype
from distbfs.errors import UsageError, ValidationError
from distbfs.options import check_integer, check_range, depth_limit
from distbfs.search.edge_table import EdgeTable

if TYPE_CHECKING:
    from distbfs.locks import ForkLock
    from distbfs.search.paths import PathFinder
    from distbfs.search.runners.base import Found
    from distbfs.search.store_names import VertexNames
    from distbfs.search.vertices import VertexMap
    from distbfs.types import Array, Ids


Self = TypeVar("Self", bound="ResultPaths")
Arguments = ParamSpec("Arguments")
Value = TypeVar("Value")


def reading(
    method: Callable[Concatenate[Self, Arguments], Value],
) -> Callable[Concatenate[Self, Arguments], Value]:
    """Hold the session's lock in a method that reads the session's arrays."""

    @wraps(method)
    def call(
        result: Self, /, *args: Arguments.args, **named: Arguments.kwargs
    ) -> Value:
        lock = result._lock
        if lock is None:
            return method(result, *args, **named)
        with lock:
            return method(result, *args, **named)

    return call


class ResultPaths(ABC):
    """Methods of ``Result`` that need levels, and the graph that was searched.

    They are collective, like those of ``Result``, and raise UsageError if the graph
    lies on several devices, or the search saw only a part of it or was made without
    levels.
    """

    _vertices: VertexMap
    _outcome: Found
    _names: VertexNames | None
    _lock: ForkLock | None
    _paths: PathFinder

    @abstractmethod
    def _arrays(self) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return (levels, parents) of the shards of this rank."""

    @abstractmethod
    def _need_levels(self) -> None:
        """Raise UsageError if the search was made without levels."""

    @abstractmethod
    def _origin(self) -> str:
        """Return the sources as messages name them."""

    @abstractmethod
    def _at(self, ids: Ids) -> tuple[Array | Any, Ids | None]:
        """Return (level int32 [k], …) of ids."""

    @abstractmethod
    def named(self, ids: Array) -> Array:
        """Return the names of vertices."""

    @reading
    def path_counts(self, dtype: str = "uint64") -> Any:
        """Return the number of shortest paths to each vertex.

        Parameters
        ----------
        dtype : {"uint64", "float64"}
            "uint64" is exact; "float64" is rounded, and infinite beyond 1.8e308.

        Returns
        -------
        ndarray, shape (n,)
            By vertex id: 0 for unreached, 1 for a source; a repeated edge counts once.
            A CuPy array if one device holds all; on several ranks, this rank's block.

        Raises
        ------
        UsageError
            A number exceeds 2^64 - 1 and ``dtype`` is "uint64", or the graph lies on
            several devices, or the search saw only a part of it.

        Notes
        -----
        Source: Brandes, *A faster algorithm for betweenness centrality*, 2001, Section
        3.

        Examples
        --------
        >>> import distbfs
        >>> square = distbfs.Graph.from_edges([(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)])
        >>> distbfs.bfs(square, 0).path_counts()
        array([1, 1, 1, 2, 2], dtype=uint64)
        """
        self._need_levels()
        level, _ = self._arrays()
        vertices = self._vertices
        levels = self._outcome.levels
        counts, own = self._paths.counts(level, levels, check_dtype(dtype))
        passed = int(vertices.world.allreduce(np.array([own]), "max")[0])
        if passed:
            raise UsageError(
                f"more than 2^64 - 1 shortest paths lead to a vertex on level {passed}"
                "; float64 holds their number, rounded"
            )
        if vertices.whole_here:
            return counts[0]
        return vertices.block(counts, np.uint64 if dtype == "uint64" else np.float64)

    def _reached(self, target: Any) -> int:
        """Return the id of a vertex that was reached; UsageError for others."""
        self._need_levels()
        at = target if self._names is None else self._names.id_of(target)
        self._vertices.check(np.array([at]), "target ")
        if self._at(np.array([at]))[0][0] < 0:
            raise UsageError(f"{target} was not reached from {self._origin()}")
        return int(at)

    @reading
    def _edges_to(self, target: int) -> Ids:
        """Return the edges (u, v) of shortest paths to an id, sorted by v, then u."""
        inside = self._vertices.one_inside(target)
        pairs = self._paths.predecessors(self._arrays()[0], inside)
        ends = [self._vertices.outside(np.ascontiguousarray(x)) for x in pairs.T]
        return np.stack(ends, axis=1)[np.lexsort(ends)]

    def predecessors_to(self, target: Any) -> Array:
        """Return the edges on all shortest paths to a vertex.

        These edges form a directed acyclic graph from the source to the vertex.

        Parameters
        ----------
        target : vertex
            An id, or the name of a node.

        Returns
        -------
        ndarray, shape (k, 2)
            Rows (u, v), where u is one level nearer to the source than v; each edge
            once, sorted by v, then by u; equal on all ranks.

        Raises
        ------
        UsageError
            ``target`` is not a vertex or was not reached.

        Examples
        --------
        >>> import distbfs
        >>> square = distbfs.Graph.from_edges([(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)])
        >>> distbfs.bfs(square, 0).predecessors_to(3).tolist()
        [[0, 1], [0, 2], [1, 3], [2, 3]]
        """
        pairs = self._edges_to(self._reached(target))
        return self.named(pairs.ravel()).reshape(-1, 2)

    def path_count_to(self, target: Any) -> int:
        """Return the number of shortest paths to a vertex, exact, however large.

        Parameters
        ----------
        target : vertex
            An id, or the name of a node.

        Returns
        -------
        int
            The number of paths.

        Raises
        ------
        UsageError
            ``target`` is not a vertex or was not reached.

        Examples
        --------
        >>> import distbfs
        >>> square = distbfs.Graph.from_edges([(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)])
        >>> distbfs.bfs(square, 0).path_count_to(4)
        2
        """
        vertex = self._reached(target)
        return count_back(self._edges_to(vertex), vertex)

    def all_paths_to(
        self, target: Any, limit: int | None = None
    ) -> Iterator[list[Any]]:
        """Return an iterator over all shortest paths to a vertex, each once.

        Parameters
        ----------
        target : vertex
            An id, or the name of a node.
        limit : int, optional
            The largest number of paths; by default all, which may be very many.

        Returns
        -------
        iterator of list
            Each path from a source to ``target``, both included.  All ranks make the
            call; iteration is local.

        Raises
        ------
        UsageError
            ``target`` is not a vertex or was not reached.

        Examples
        --------
        >>> import distbfs
        >>> square = distbfs.Graph.from_edges([(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)])
        >>> list(distbfs.bfs(square, 0).all_paths_to(4))
        [[0, 1, 3, 4], [0, 2, 3, 4]]
        """
        if limit is not None:
            check_range("limit", check_integer("limit", limit), 0)
        vertex = self._reached(target)
        paths = paths_back(before_each(self._edges_to(vertex)), vertex)
        return islice((self._called(path) for path in paths), limit)

    def _called(self, path: list[int]) -> list[Any]:
        return path if self._names is None else self.named(np.array(path)).tolist()

    @reading
    def edges_within(self, hops: int | None = None) -> EdgeTable:
        """Return the edges between the vertices within some hops of the source.

        Parameters
        ----------
        hops : int, optional
            Largest distance from the source, 0 or more; unlimited by default.

        Returns
        -------
        EdgeTable
            The subgraph that these vertices induce, without loops.  An undirected edge
            occurs once: u is the end with the smaller level or, on the same level, the
            smaller id. On several ranks, each has a share of the edges.

        Raises
        ------
        UsageError
            ``hops`` is negative.

        Examples
        --------
        >>> import distbfs
        >>> path = distbfs.Graph.from_edges([(0, 1), (1, 2), (2, 3)])
        >>> distbfs.bfs(path, 3).edges_within(2).edges.tolist()
        [[3, 2], [2, 1]]
        """
        self._need_levels()
        most = depth_limit("hops", hops)
        table = self._paths.edges_within(self._arrays()[0], most)
        u, v = (self._vertices.outside(np.ascontiguousarray(x)) for x in table.T[:2])
        above, below = table.T[2:].astype(np.int32)
        if not self._paths.directed:  # ids inside may be in another order
            turned = (above == below) & (u > v)
            u, v = np.where(turned, v, u), np.where(turned, u, v)
        order = np.lexsort((v, u, above))
        u, v = (self.named(x[order]) for x in (u, v))
        return EdgeTable(u, v, above[order], below[order])


def no_way_back(vertex: Any) -> ValidationError:
    """Return the error of a walk from a vertex that ends at no source."""
    return ValidationError(
        f"the way back from {vertex} ends at no source: the search is wrong; 'distbfs "
        "verify' shows whether the store was altered"
    )


def before_each(pairs: Ids) -> dict[int, list[int]]:
    """Return the predecessors of each v; pairs: edges (u, v), [k, 2], sorted by v."""
    before: dict[int, list[int]] = {}
    for u, v in pairs.tolist():
        before.setdefault(v, []).append(u)
    return before


def count_back(pairs: Ids, target: int) -> int:
    """Return the number of paths to a vertex along its edges of ``predecessors_to``.

    Raises ValidationError if they form a cycle.
    """
    before = before_each(pairs)
    numbers: dict[int, int] = {}
    waiting = [target]
    while waiting:
        at = waiting[-1]
        missing = [u for u in before.get(at, ()) if u not in numbers]
        if missing:
            if len(waiting) > len(pairs):  # each edge waits once, where there is none
                raise no_way_back(target)
            waiting.extend(missing)
            continue
        waiting.pop()
        numbers[at] = sum(numbers[u] for u in before[at]) if at in before else 1
    return numbers[target]


def paths_back(before: dict[int, list[int]], target: int) -> Iterator[list[int]]:
    """Yield all paths to a vertex, from a vertex without predecessors.

    Raises ValidationError if they form a cycle.
    """
    steps, choices = [target], [iter(before.get(target, ()))]
    if target not in before:
        yield [target]
    while choices:
        u = next(choices[-1], None)
        if u is None:
            choices.pop()
            steps.pop()
        elif u in before:
            if len(steps) == len(before):
                raise no_way_back(target)
            steps.append(u)
            choices.append(iter(before[u]))
        else:
            yield [u, *reversed(steps)]
