"""Connected components of graphs, numbered by their first vertices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from distbfs.graph.components import component_labels
from distbfs.options import check_choice
from distbfs.search.breadth_first import bfs
from distbfs.search.frames import library
from distbfs.search.graph import Graph, check_graph
from distbfs.search.graph_rows import edges_by_id

if TYPE_CHECKING:
    from distbfs.types import Connection, Ids


def connected_components(
    graph: Graph, connection: Connection = "weak", *, threads: int = 0
) -> Ids:
    """Return the component of each vertex.

    Parameters
    ----------
    graph : Graph
        The graph.
    connection : {"weak", "strong"}
        In a directed graph: "weak" ignores directions, "strong" requires paths both
        ways.  In an undirected graph both are the same.
    threads : int, default 0
        See ``bfs``.

    Returns
    -------
    ndarray of int64, shape (n,)
        The component number of each vertex, by vertex id.  Components are numbered from
        0 on, in the order of their first vertices.

    Raises
    ------
    UsageError
        ``connection`` is neither "weak" nor "strong".
    LibraryMissing
        Strong components of a directed graph need SciPy, which is not installed.
    ResourceError
        See ``bfs``.

    Notes
    -----
    One search finds the component of the vertex with the most neighbours; the edges of
    the remaining vertices give the others.  Weak components of directed graphs come
    from all edges, strong ones from SciPy.

    Examples
    --------
    >>> import distbfs
    >>> graph = distbfs.Graph.from_edges([(0, 1), (1, 2), (4, 5)])
    >>> distbfs.connected_components(graph)
    array([0, 0, 0, 1, 2, 2])
    >>> graph = distbfs.Graph.from_edges([(0, 1), (1, 0), (1, 2)], directed=True)
    >>> distbfs.connected_components(graph, "strong")
    array([0, 0, 1])
    """
    check_graph(graph)
    check_choice("connection", connection, ("weak", "strong"))
    if not graph.directed:
        label = components_of(graph, threads)
    elif connection == "weak":
        ends = [edges_by_id(graph._host_part)]
        label = component_labels(graph.n, lambda: ends)
    else:
        graphs = library("scipy.sparse.csgraph")
        _, label = graphs.connected_components(graph.to_scipy(), connection="strong")
    _, first, numbers = np.unique(label, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[numbers]


def components_of(graph: Graph, threads: int) -> Ids:
    """Return the component number of each vertex of an undirected graph, int64 [n].

    threads: number of threads of the search, 0 for all cores
    """
    part = graph._host_part
    label = np.zeros(graph.n, dtype=np.int64)
    if not graph.n:
        return label
    ids = part.vertices.astype(np.int64)
    hub = ids[int(np.argmax(part.nn.degrees()))]
    name = graph.named(np.array([hub]))[0]
    result = bfs(graph, name, parents=False, threads=threads)
    reached = result.to_numpy()[0][ids] >= 0
    label[ids[reached]] = -1
    rest = np.flatnonzero(~reached)
    place = np.cumsum(~reached) - 1
    index, columns = part.nn.edges_of(rest)
    ends = index, place[columns]
    label[ids[rest]] = component_labels(len(rest), lambda: [ends])
    return label
