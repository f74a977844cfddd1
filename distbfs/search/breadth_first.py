"""Searches of a graph, as a program asks for them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from distbfs.errors import UsageError
from distbfs.search.edge_table import EdgeTable
from distbfs.search.graph import Graph, check_graph
from distbfs.search.program_arrays import each_of
from distbfs.types import EngineName, Levels

bfs = Graph.bfs


def shortest_path(
    graph: Graph, source: Any, target: Any, engine: EngineName = "auto"
) -> list[Any]:
    """Return a shortest path from one vertex to another.

    Parameters
    ----------
    graph : Graph
        The graph.
    source : vertex or iterable of vertices
        See ``bfs``; from a set, the path begins at the nearest.
    target : vertex
        The last vertex of the path.
    engine : str, default "auto"
        See ``bfs``.

    Returns
    -------
    list
        Vertices from the source to ``target``, both included.

    Raises
    ------
    UsageError
        Either end is not a vertex, or there is no path between them.
    ResourceError
        See ``bfs``.

    Examples
    --------
    >>> import distbfs
    >>> graph = distbfs.Graph.from_edges([(0, 1), (1, 2), (2, 3), (0, 2)])
    >>> distbfs.shortest_path(graph, 0, 3)
    [0, 2, 3]
    """
    check_graph(graph)
    with graph._searching(source, engine=engine) as (session, start):
        path = session.path(start, target)
    if path is None:
        raise UsageError(f"no path leads to {target!r:.60}")
    return path


def distances(
    graph: Graph,
    source: Any,
    targets: Iterable[Any] | None = None,
    engine: EngineName = "auto",
) -> Levels:
    """Return the number of hops from a source to all vertices, or to some.

    ``path_lengths`` returns the distances from many sources.  The distance of one
    target is found from both ends where ``Session.both_ends`` says so.

    Parameters
    ----------
    graph : Graph
        The graph.
    source : vertex or iterable of vertices
        See ``bfs``; from a set, hops count from the nearest.
    targets : iterable of vertices, optional
        The vertices to return distances of; by default all, by vertex id.
    engine : str, default "auto"
        See ``bfs``.

    Returns
    -------
    ndarray of int32, shape (n,) or (targets,)
        Hops; -1 for a vertex that is not reached.

    Raises
    ------
    UsageError
        ``source`` or a target is not a vertex.
    ResourceError
        See ``bfs``.

    Examples
    --------
    >>> import distbfs
    >>> graph = distbfs.Graph.from_edges([(0, 1), (1, 2)], n=4)
    >>> distbfs.distances(graph, 0)
    array([ 0,  1,  2, -1], dtype=int32)
    >>> distbfs.distances(graph, 0, [2, 3])
    array([ 2, -1], dtype=int32)
    """
    wanted = None if targets is None else list(each_of(targets, "targets"))
    check_graph(graph)
    if wanted is not None and len(wanted) == 1:
        with graph._searching(source, engine=engine) as (session, start):
            source = start
            if session.both_ends:
                path = session.path(source, wanted[0])
                return np.array([len(path or ()) - 1], dtype=np.int32)
    result = bfs(graph, source, engine, targets=wanted, parents=False)
    return result.to_numpy()[0] if wanted is None else result.at(wanted)[0]


def k_hop_subgraph(
    graph: Graph, source: Any, hops: int | None = None, engine: EngineName = "auto"
) -> EdgeTable:
    """Return the edges between the vertices within some hops of a source.

    NetworkX calls the graph of these edges an ego graph.

    Parameters
    ----------
    graph : Graph
        The graph.
    source : vertex or iterable of vertices
        See ``bfs``.
    hops : int, optional
        Largest distance from the source, 0 or more; unlimited by default.
    engine : str, default "auto"
        See ``bfs``.

    Returns
    -------
    EdgeTable
        The edges with the levels of both ends; ``Result.edges_within`` says in which
        order.

    Raises
    ------
    UsageError
        ``source`` is not a vertex, or ``hops`` is negative.
    ResourceError
        See ``bfs``.

    Examples
    --------
    >>> import distbfs
    >>> graph = distbfs.Graph.from_edges([(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)])
    >>> distbfs.k_hop_subgraph(graph, 1, 1).edges.tolist()
    [[1, 0], [1, 2], [0, 2]]
    """
    result = bfs(graph, source, engine, depth_limit=hops, parents=False)
    return result.edges_within(hops)
