"""One search of a graph, as a program asks for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from distbfs.errors import UsageError, WrongTypeError
from distbfs.options import SearchOptions, type_name
from distbfs.search.edge_table import EdgeTable
from distbfs.search.graph import Graph
from distbfs.search.result import Result
from distbfs.search.sources import read_once, read_targets
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
    levels: bool = True,
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

    Parameters
    ----------
    graph : Graph
        The graph; it stays prepared for the next search.
    source : vertex or iterable of vertices
        A vertex id, or the name of a node.  A list, set, range, array or tuple is a
        set: levels are hops from the nearest of its vertices, and each of them is its
        own parent.  Repeats are allowed.  A text, and a tuple that is the name of a
        node, is that node.  Sets are for engines "auto", "openmp", "reference" and
        "xbfs".
    engine : str, default "auto"
        "auto" takes a CUDA device where there is one, else the CPU.  On CPUs: "openmp",
        "reference".  On a device: "xbfs", "xbfs-paper", "bfs4k", "layer", "frontier",
        "harish", "edge-parallel", "virtual-warp".
    depth_limit : int, optional
        The last level that is searched, 0 or more; by default all are.
    targets : iterable of vertices, optional
        The search ends with the level that finds the last of them.
    levels, parents : bool, default True
        What the result has, one of them at least.
    method : str, optional
        Variant of the engine, "" for its default.
    direction : {"auto", "push", "pull"}
        Direction of the search; "auto" changes it from level to level.
    threads : int, default 0
        Threads of engine "openmp"; 0 takes all cores.
    vertices : array_like of bool, shape (n,), optional
        The vertices that the search sees, by id.
    edges : array_like of bool, shape (edges,), optional
        The edges that the search sees, in the order of ``graph.edges()``.
    where : str, optional
        A predicate over attributes that the graph keeps, as ``"weight < 3"``.
    view : View, optional
        The same three in one, made by ``Graph.view``, for many searches.

    Returns
    -------
    Result
        Levels and parents, where they were found: NumPy arrays, or CuPy arrays on a
        device.  It stays valid when the graph is searched again.

    Raises
    ------
    UsageError
        ``source`` or a target is no vertex, a source is not seen, an option is outside
        its allowed set, or the engine cannot do what is asked.
    WrongTypeError
        ``graph`` is no Graph, or an argument is of another wrong type.
    InputError
        ``vertices`` or ``edges`` has another length than the graph, or an array has
        masked or null values.
    ResourceError
        Memory does not last, or the named engine finds no device or compiler.

    See Also
    --------
    open : Search a store, or a graph on several devices or ranks.
    search_many : Make many searches at once.

    Notes
    -----
    A search sees an edge if ``vertices``, ``edges`` and ``where`` all allow it.
    Engines "openmp", "reference" and "xbfs" can do this.  Shortest paths of such a
    search are not counted or listed.  ``nedge`` and GTEPS follow Graph500; see
    ``Result.nedge``.

    Examples
    --------
    >>> import distbfs
    >>> graph = distbfs.Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4])
    >>> result = distbfs.bfs(graph, 0)
    >>> result.level
    array([0, 1, 2, 3, 4], dtype=int32)
    >>> result.path_to(3)
    [0, 1, 2, 3]
    >>> distbfs.bfs(graph, 0, depth_limit=2).level
    array([ 0,  1,  2, -1, -1], dtype=int32)
    >>> distbfs.bfs(graph, 2, targets=[1]).reached
    3
    >>> distbfs.bfs(graph, 0, levels=False).parent
    array([0, 0, 1, 2, 3], dtype=int32)
    >>> distbfs.bfs(graph, [0, 4]).level
    array([0, 1, 2, 1, 0], dtype=int32)
    >>> distbfs.bfs(graph, 0, "openmp", vertices=[True, True, True, False, True]).level
    array([ 0,  1,  2, -1, -1], dtype=int32)
    """
    check_graph(graph)
    options = SearchOptions(
        engine=engine,
        method=method,
        threads=threads,
        levels=levels,
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
    names = None if graph.nodes is None else graph
    source, wished = read_once(source, names), read_targets(targets)
    with graph.lock:
        masked = view is not None and not view.whole
        session = graph.session(options, masked=masked)
        session.see(view)
        result = session.search(source, depth_limit=depth_limit, targets=wished)
        return result.keep()


def k_hop_subgraph(
    graph: Graph, source: Any, hops: int | None = None, engine: str = "auto"
) -> EdgeTable:
    """Return the edges between the vertices within some hops of a source.

    NetworkX calls the graph of these edges an ego graph.

    Parameters
    ----------
    graph : Graph
        The graph.
    source : vertex or iterable of vertices
        As of ``bfs``.
    hops : int, optional
        0 or more; by default all that is reached.
    engine : str, default "auto"
        As of ``bfs``.

    Returns
    -------
    EdgeTable
        The edges with the levels of both ends; ``Result.edges_within`` says in which
        order.

    Raises
    ------
    UsageError
        ``source`` is no vertex, or ``hops`` is negative.
    ResourceError
        As of ``bfs``.

    Examples
    --------
    >>> import distbfs
    >>> graph = distbfs.Graph.from_edges([(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)])
    >>> distbfs.k_hop_subgraph(graph, 1, 1).edges.tolist()
    [[1, 0], [1, 2], [0, 2]]
    """
    result = bfs(graph, source, engine, depth_limit=hops, parents=False)
    return result.edges_within(hops)
