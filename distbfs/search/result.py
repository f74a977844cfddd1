"""The result of one search."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, cast

import numpy as np

from distbfs.errors import UsageError
from distbfs.options import (
    COUNT_DTYPES,
    check_choice,
    check_integer,
    check_range,
    depth_limit,
)
from distbfs.search.edge_table import EdgeTable
from distbfs.search.frames import Tabular, whole_names
from distbfs.search.result_arrays import ResultArrays, reading
from distbfs.search.result_paths import (
    before_each,
    count_back,
    no_way_back,
    paths_back,
)
from distbfs.types import Array, Ids

NO_PREDECESSOR = -9999  # of SciPy


class Result(ResultArrays, Tabular):
    """Levels and parents of one search, or only levels or only parents.

    Made by ``bfs`` and ``Session.search``.  Arrays are indexed by vertex id, from 0,
    and hold -1 for vertices that were not reached.  Each source is its own parent, at
    level 0.

    Attributes
    ----------
    source : vertex or iterable of vertices
        The source, as the caller named it.
    roots : ndarray of int64, shape (k,)
        Ids of the sources, ascending, each once.
    root : int
        The first of ``roots``.
    seconds : float
        Time of the search: device time of the slowest device, else wall time of the
        slowest rank.
    wall_seconds : float or None
        Wall time of the slowest rank, None if it is ``seconds``.
    engine : str
        Name of the engine that searched.
    has_levels, has_parents : bool
        Whether the search was made with them.
    order : ndarray of int64, shape (reached,), or None
        Ids in the order in which a queue finds them; only by method "ordered".
    records : list of dict
        One entry per level, after ``Session.search(records=True)``, else empty.
    phases : dict of str to float
        Seconds of this rank by phase.

    Notes
    -----
    Where vertices have names, or a file counts them from 1, arrays are still indexed by
    id, from 0, and ``parent``, ``order``, ``roots`` and ``root`` contain ids; ``named``
    returns their names.  Everything else takes and returns names.

    Results of ``bfs`` stay valid.  Those of a session are overwritten by the next
    search of their thread, unless ``keep`` has copied them.  On several ranks,
    properties and methods other than ``keep`` and ``shards`` are collective, and equal
    on all ranks unless stated otherwise.  A pickled result has its arrays in host
    memory, and the names of the vertices, but no graph: the only shortest paths that it
    knows are those of its parents.  Results on several ranks cannot be pickled.

    Examples
    --------
    >>> import distbfs
    >>> graph = distbfs.Graph.from_edges([0, 0, 1, 2], [1, 2, 3, 3])
    >>> result = distbfs.bfs(graph, 0)
    >>> result.level
    array([0, 1, 1, 2], dtype=int32)
    >>> result.reached, result.depth, result.nedge
    (4, 2, 4)
    >>> result.path_to(3) in ([0, 1, 3], [0, 2, 3])
    True
    """

    def _level_block(self) -> Array:
        """Return levels as ``to_numpy`` does; UsageError if there are none."""
        self._need_levels()
        return self.to_numpy()[0]

    def _parent_block(self) -> Ids:
        """Return parents as ``to_numpy`` does; UsageError if there are none."""
        self._need_parents()
        return cast("Ids", self.to_numpy()[1])

    def frontier(self, k: int) -> Array:
        """Return the vertices on a level, ascending by id.

        Parameters
        ----------
        k : int
            The level, 0 or more; levels beyond the last have no vertices.

        Returns
        -------
        ndarray
            Ids, or names as objects.  On several ranks, those of this rank's block.

        Raises
        ------
        UsageError
            ``k`` is negative, or the search was made without levels.

        Examples
        --------
        >>> import distbfs
        >>> star = distbfs.Graph.from_edges([0, 0, 0], [1, 2, 3])
        >>> distbfs.bfs(star, 1).frontier(2)
        array([2, 3])
        """
        if k < 0:
            raise UsageError(f"level is {k}; allowed: 0 or more")
        first, _ = self._vertices.own_block
        return self.named(first + np.flatnonzero(self._level_block() == k))

    @reading
    def path_to(self, vertex: Any) -> list[Any]:
        """Return a shortest path from the nearest source to a vertex.

        Parameters
        ----------
        vertex : vertex
            An id, or the name of a node.

        Returns
        -------
        list
            Vertices from the source to ``vertex``, both included.

        Raises
        ------
        UsageError
            ``vertex`` is not a vertex or was not reached, or the search was made
            without parents.
        ValidationError
            Parents do not lead to a source.

        Examples
        --------
        >>> import distbfs
        >>> path = distbfs.Graph.from_edges([0, 1, 2], [1, 2, 3])
        >>> distbfs.bfs(path, 3).path_to(0)
        [3, 2, 1, 0]
        """
        at = vertex if self._names is None else self._names.id_of(vertex)
        self._vertices.check(np.array([at]))
        self._need_parents()
        return self._called(self._walk_back(int(at))[::-1])

    @reading
    def _walk_back(self, at: int, ask: Callable[[], object] = bool) -> list[int]:
        """Return the vertices from ``at`` back to a source (collective).

        at: vertex id; ask: called before each step, may raise an error. Raises
        UsageError and ValidationError as ``path_to`` does.
        """
        steps, above = [at], self._parent_of(at)
        if above < 0:
            raise UsageError(
                f"{self._called(steps)[0]} was not reached from {self._origin()}"
            )
        most = self._vertices.layout.n
        if self.has_levels:
            most = int(self._at(np.array(steps))[0][0])
        while above != steps[-1]:
            # where there are no levels, Brent's search finds a cycle early: by the step
            # at the last power of two
            again = steps[(1 << len(steps).bit_length() - 1) - 1]
            if above < 0 or above == again or len(steps) > most:
                raise no_way_back(self._called(steps)[0])
            ask()
            steps.append(above)
            above = self._parent_of(above)
        return steps

    def _parent_of(self, vertex: int) -> int:
        vertices = self._vertices
        if vertices.whole_here and not vertices.on_devices:
            return int(self._arrays()[1][0][vertex])
        _, parent = self._at(np.array([vertex]))
        return -1 if parent is None else int(parent[0])

    def tree(self) -> Array:
        """Return the edges of the search trees, one tree for each of k sources.

        Returns
        -------
        ndarray, shape (reached - k, 2)
            Rows (parent, child), sorted by the level of the child, if levels were
            requested, and its id, or in the order of the queue where it is known.  On
            several ranks, the children in this rank's block.

        Raises
        ------
        UsageError
            The search was made without parents.

        Examples
        --------
        >>> import distbfs
        >>> star = distbfs.Graph.from_edges([0, 0, 0], [1, 2, 3])
        >>> distbfs.bfs(star, 1).tree()
        array([[1, 0],
               [0, 2],
               [0, 3]])
        """
        level, parent = self.to_numpy()[0], self._parent_block()
        if self.order is not None:
            child = self.order[len(self.roots) :]
        else:
            own = np.arange(*self._vertices.own_block)
            child = np.flatnonzero((parent >= 0) & (parent != own))
            if level is not None:
                child = child[np.argsort(level[child], kind="stable")]
        pairs = [parent[child], self._vertices.own_block[0] + child]
        return self.named(np.stack(pairs, axis=1))

    def _columns(self) -> dict[str, Array]:
        """Return vertex, level and parent, [block] each, of this rank's vertices.

        Names are int64 if all are integers, else objects, with None for no parent.
        """
        level, parent = self.to_numpy()
        names = whole_names(self.named(np.arange(*self._vertices.own_block)))
        columns = {"vertex": names}
        if level is not None:
            columns["level"] = level
        if parent is not None:
            columns["parent"] = self._named_parents(parent, names.dtype)
        return columns

    def to_dict(self) -> dict[Any, int]:
        """Return the level of each vertex that was reached, by name.

        Returns
        -------
        dict
            The level of each vertex, in order of id.  On several ranks, for the
            vertices of this rank's block.

        Raises
        ------
        UsageError
            The search was made without levels.

        Examples
        --------
        >>> import distbfs
        >>> path = distbfs.Graph.from_edges([(0, 1), (1, 2)], n=9)
        >>> distbfs.bfs(path, 1).to_dict()
        {0: 1, 1: 0, 2: 1}
        """
        level = self._level_block()
        reached = np.flatnonzero(level >= 0)
        names = self.named(self._vertices.own_block[0] + reached).tolist()
        return dict(zip(names, level[reached].tolist(), strict=True))

    def to_scipy(self) -> tuple[Array, Array]:
        """Return order and predecessors like SciPy's ``breadth_first_order``.

        Returns
        -------
        order : ndarray of int32, shape (reached,)
            Ids by level; with method "ordered" in the order of the queue, which is
            SciPy's.
        predecessors : ndarray of int32, shape (n,)
            Parents; -9999 for sources and for unreached vertices.

        Raises
        ------
        UsageError
            The search was made without levels or without parents, or the result lies on
            several ranks.

        Notes
        -----
        Both arrays are int64 if n does not fit int32.

        Examples
        --------
        >>> import distbfs
        >>> star = distbfs.Graph.from_edges([0, 0, 0], [1, 2, 3])
        >>> order, predecessors = distbfs.bfs(star, 1).to_scipy()
        >>> order.tolist(), predecessors.tolist()
        ([1, 0, 2, 3], [1, -9999, 0, 0])
        """
        level, parent = self._level_block(), self._parent_block()
        if self._vertices.world.size > 1:
            raise UsageError("the result lies on several ranks; allowed: to_numpy()")
        order = self.order
        if order is None:
            reached = np.flatnonzero(level >= 0)
            order = reached[np.argsort(level[reached], kind="stable")]
        kind = np.int32 if len(level) < 1 << 31 else np.int64
        before = np.where(level > 0, parent, NO_PREDECESSOR)
        return order.astype(kind), before.astype(kind)

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
        check_choice("dtype", dtype, COUNT_DTYPES)
        counts, own = self._paths.counts(level, levels, dtype)
        passed = int(vertices.world.allreduce(np.array([own]), "max")[0])
        if passed:
            raise UsageError(
                f"more than 2^64 - 1 shortest paths lead to a vertex on level {passed}"
                "; float64 holds their number, rounded"
            )
        if vertices.whole_here:
            return counts[0]
        return vertices.block(counts, np.uint64 if dtype == "uint64" else np.float64)

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


def bytes_of(result: Result) -> int:
    """Return the number of bytes of a result's arrays on this rank."""
    return sum(int(x.nbytes) for pair in result.shards for x in pair if x is not None)
