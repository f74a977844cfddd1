"""One search of a graph, as a program asks for it.

>>> import distbfs
>>> graph = distbfs.Graph.from_edges([0, 0, 1, 2], [1, 2, 3, 3])
>>> result = distbfs.bfs(graph, 0)
>>> result.level
array([0, 1, 1, 2], dtype=int32)
>>> result.path_to(3) in ([0, 1, 3], [0, 2, 3])
True
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from distbfs.errors import UsageError, WrongTypeError
from distbfs.options import SearchOptions, type_name
from distbfs.search.edge_table import EdgeTable
from distbfs.search.graph import Graph
from distbfs.search.result import Result
from distbfs.search.view import View


def check_graph(graph: Any) -> None:
    """Raise WrongTypeError for what is no ``Graph``."""
    if not isinstance(graph, Graph):
        raise WrongTypeError(
            f"the graph is of type {type_name(graph)}; allowed: a distbfs.Graph, as "
            "Graph.from_networkx, from_scipy, from_edges and others make it"
        )


def bfs(
    graph: Graph,
    source: Any,
    engine: str = "auto",
    *,
    depth_limit: int | None = None,
    targets: Iterable[Any] | None = None,
    parents: bool = True,
    method: str = "",
    direction: str = "auto",
    threads: int = 0,
    vertices: Any = None,
    edges: Any = None,
    where: str | None = None,
    view: View | None = None,
) -> Result:
    """Search a graph breadth-first from a vertex, or from all of a set at once.

    source: a vertex id, or the name of a node; or several of them in a list, a set, a
        range, an array or a tuple, repeats allowed: levels are hops from the nearest,
        and each of them is a root, its own parent.  A text, and a tuple that is the
        name of a node, is that node.  Engines "auto", "openmp", "reference" and "xbfs"
        search from a set
    engine: "auto" (a CUDA device where there is one, else the CPU), "openmp",
        "reference", or on a device "xbfs", "xbfs-paper", "bfs4k", "layer", "frontier",
        "harish", "edge-parallel", "virtual-warp"; method: its variant
    depth_limit: the last level that is searched, an integer of 0 or more
    targets: vertices; the search ends with the level that finds the last of them
    parents: whether parents are found too; direction: "auto", "push" or "pull"
    threads: threads of engine openmp, 0 for all cores
    vertices: bool [n], the vertices that are seen; edges: bool [edges], in the order of
        ``graph.edges()``; where: a predicate over attributes that the graph keeps, as
        "weight < 3"; a search sees an edge if all three say so.  Engines "openmp",
        "reference" and "xbfs" take them, and "auto" one of these; shortest paths are
        then not counted nor listed
    view: the same, of ``graph.view``, where many searches see it

    Results of devices stay there, in CuPy arrays; ``to_numpy()`` brings them to the
    host.  Raises UsageError for what is no vertex or no option, DeviceMissing and
    CompilerMissing (both ResourceError) where the engine that is named cannot run.

    >>> graph = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4])
    >>> bfs(graph, 0, depth_limit=2).level
    array([ 0,  1,  2, -1, -1], dtype=int32)
    >>> bfs(graph, 2, targets=[1]).reached
    3
    >>> bfs(graph, 0, "openmp", vertices=[True, True, True, False, True]).level
    array([ 0,  1,  2, -1, -1], dtype=int32)
    >>> bfs(graph, [0, 4]).level
    array([0, 1, 2, 1, 0], dtype=int32)
    """
    check_graph(graph)
    options = SearchOptions(
        engine=engine,
        method=method,
        threads=threads,
        parents=parents,
        direction=direction,
    )
    if view is not None and not isinstance(view, View):
        raise WrongTypeError(
            f"the view is of type {type_name(view)}; allowed: what graph.view returns"
        )
    if vertices is not None or edges is not None or where is not None:
        if view is not None:
            raise UsageError("a view stands for vertices, edges and where; give one")
        view = graph.view(vertices, edges, where)
    with graph.lock:
        masked = view is not None and not view.whole
        session = graph.session(options, masked=masked)
        session.see(view)
        result = session.search(source, depth_limit=depth_limit, targets=targets)
        return result.keep()


def k_hop_subgraph(
    graph: Graph, source: Any, hops: int | None = None, engine: str = "auto"
) -> EdgeTable:
    """Return the edges between the vertices within some hops of a source.

    source, engine: as of ``bfs``; hops: an integer of 0 or more, None for all that is
    reached.  NetworkX calls the graph of these edges an ego graph.  See
    ``Result.edges_within`` for the order of the rows, and for errors.

    >>> graph = Graph.from_edges([(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)])
    >>> k_hop_subgraph(graph, 1, 1).edges.tolist()
    [[1, 0], [1, 2], [0, 2]]
    """
    result = bfs(graph, source, engine, depth_limit=hops, parents=False)
    return result.edges_within(hops)
