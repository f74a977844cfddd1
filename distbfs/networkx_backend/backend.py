"""The functions of NetworkX that this backend has; NetworkX loads the module.

Each takes a ``BackendGraph`` where NetworkX takes a graph, and gives and raises what
NetworkX gives and raises.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

import networkx as nx
import numpy as np

from distbfs.errors import InputError
from distbfs.networkx_backend.graph import BackendGraph
from distbfs.search.graph import Graph

SMALL = 256  # nodes below which a conversion takes longer than NetworkX
CHEAP = (  # what NetworkX does faster than a conversion
    *("has_path", "descendants_at_distance"),
)
MANY_SEARCHES = ("all_pairs_shortest_path_length", "diameter", "eccentricity")
READ = (  # of a graph by NetworkX's functions and, as NetworkX has it, by a conversion
    *("__contains__", "__getitem__", "__iter__", "__len__", "adj", "nbunch_iter"),
    *("neighbors", "order", "pred", "predecessors", "succ", "successors"),
)
OURS_ONLY_WITHOUT = {
    "bfs_edges": {"sort_neighbors": 4},
    "bfs_predecessors": {"sort_neighbors": 3},
    "bfs_successors": {"sort_neighbors": 3},
    "bfs_tree": {"sort_neighbors": 4},
    "diameter": {"e": 1, "usebounds": 2, "weight": 3},
    "eccentricity": {"sp": 2, "weight": 3},
    "generic_bfs_edges": {"neighbors": 2},
}


def convert_from_nx(graph: Any, **_: Any) -> BackendGraph:
    """Return a NetworkX graph for the functions below; NetworkX keeps it.

    It keeps none of a view, which does not learn that its original has changed.
    """
    if isinstance(graph, BackendGraph):
        return graph
    if hasattr(graph, "_graph"):
        graph.__networkx_cache__ = None
    try:
        converted = Graph.from_networkx(graph)
    except InputError as error:
        raise NotImplementedError(str(error)) from error
    return BackendGraph(converted, multigraph=graph.is_multigraph())


def convert_to_nx(result: Any, **_: Any) -> Any:
    """Return results as they are, and a converted graph as NetworkX's."""
    if not isinstance(result, BackendGraph):
        return result
    made = nx.DiGraph() if result.is_directed() else nx.Graph()
    made.add_nodes_from(result)
    rows = result.graph.part.nn
    ends = (result.names(x) for x in (rows.sources(), rows.columns))
    made.add_edges_from(zip(*ends, strict=True))
    return made


def can_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """Return whether a call can be answered here, or why not."""
    for option, place in OURS_ONLY_WITHOUT.get(name, {}).items():
        value = kwargs.get(option, args[place] if len(args) > place else None)
        if value is not None and value is not False:
            return f"{option} is given"
    for kind in type(args[0] if args else kwargs.get("G")).__mro__:
        if kind is BackendGraph or kind.__module__.startswith("networkx.classes."):
            break
        for attribute in READ:
            if attribute in vars(kind):
                return f"{kind.__name__} has its own {attribute}"
    return True


def should_run(
    name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> bool | str:
    """Return whether a call is worth the conversion, or why not."""
    graph = args[0] if args else kwargs.get("G", ())
    if len(graph) < SMALL:
        return f"fewer than {SMALL} nodes"
    if name not in MANY_SEARCHES and not isinstance(getattr(graph, "_adj", {}), dict):
        return "a view that filters is converted again for each call"
    if name in CHEAP and not converted(graph):
        return "a conversion takes longer"
    return True


@contextmanager
def uncollected() -> Iterator[None]:
    """Let no garbage be collected while many objects are made that are all kept.

    Else all objects of the program are looked at again and again.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def converted(graph: Any) -> bool:
    """Return whether NetworkX has kept a conversion of a graph."""
    if isinstance(graph, BackendGraph):
        return True
    kept = getattr(graph, "__networkx_cache__", None) or {}
    return bool(kept.get("backends", {}).get("distbfs"))


def known(G: BackendGraph, node: Any) -> Any:  # noqa: N803
    """Return a node; NetworkXError where it is none."""
    if node not in G:
        raise nx.NetworkXError(f"The node {node} is not in the graph.")
    return node


def begun(G: BackendGraph, node: Any) -> Any:  # noqa: N803
    """Return a node whose neighbours are asked for; NetworkXError where it is none."""
    if node not in G:
        hash(node)  # NetworkX raises TypeError for what cannot be a node
        kind = "digraph" if G.is_directed() else "graph"
        raise nx.NetworkXError(f"The node {node} is not in the {kind}.")
    return node


def endpoint(G: BackendGraph, node: Any, what: str) -> Any:  # noqa: N803
    """Return a node; NodeNotFound where it is none."""
    if node not in G:
        raise nx.NodeNotFound(f"{what} {node} is not in G")
    return node


def generic_bfs_edges(
    G: BackendGraph,  # noqa: N803
    source: Any,
    neighbors: None = None,  # noqa: ARG001
    depth_limit: int | None = None,
) -> Iterator[tuple[Any, Any]]:
    """Yield the edges of a search, see ``networkx.generic_bfs_edges``."""
    yield from G.tree_edges(begun(G, source), depth_limit)


def bfs_edges(
    G: BackendGraph,  # noqa: N803
    source: Any,
    reverse: bool = False,
    depth_limit: int | None = None,
    sort_neighbors: None = None,  # noqa: ARG001
) -> Iterator[tuple[Any, Any]]:
    """Yield the edges of a search, see ``networkx.bfs_edges``."""
    yield from G.tree_edges(begun(G, source), depth_limit, reverse=reverse)


def bfs_tree(
    G: BackendGraph,  # noqa: N803
    source: Any,
    reverse: bool = False,
    depth_limit: int | None = None,
    sort_neighbors: None = None,  # noqa: ARG001
) -> Any:
    """Return the tree of a search, see ``networkx.bfs_tree``."""
    tree = nx.DiGraph()
    tree.add_node(source)
    with uncollected():
        tree.add_edges_from(bfs_edges(G, source, reverse, depth_limit))
    return tree


def bfs_predecessors(
    G: BackendGraph,  # noqa: N803
    source: Any,
    depth_limit: int | None = None,
    sort_neighbors: None = None,  # noqa: ARG001
) -> Iterator[tuple[Any, Any]]:
    """Yield (node, predecessor), see ``networkx.bfs_predecessors``."""
    for parent, child in bfs_edges(G, source, depth_limit=depth_limit):
        yield child, parent


def bfs_successors(
    G: BackendGraph,  # noqa: N803
    source: Any,
    depth_limit: int | None = None,
    sort_neighbors: None = None,  # noqa: ARG001
) -> Iterator[tuple[Any, list[Any]]]:
    """Yield (node, successors), see ``networkx.bfs_successors``."""
    edges = list(bfs_edges(G, source, depth_limit=depth_limit))
    if not edges:
        yield source, []
    for parent, pairs in groupby(edges, key=itemgetter(0)):
        yield parent, [child for _, child in pairs]


def bfs_layers(G: BackendGraph, sources: Any) -> Iterator[list[Any]]:  # noqa: N803
    """Yield the nodes of each level, see ``networkx.bfs_layers``."""
    if sources in G:
        sources = [sources]
    yield from G.layers([known(G, node) for node in set(sources)])


def descendants_at_distance(
    G: BackendGraph,  # noqa: N803
    source: Any,
    distance: float,
) -> set[Any]:
    """Return the nodes of one level, see ``networkx.descendants_at_distance``."""
    known(G, source)
    if distance not in range(len(G)):
        return set()
    if distance == 0:
        return {source}
    level = G.levels(source, limit=distance)
    return set(G.names(np.flatnonzero(level == distance)))


def single_source_shortest_path_length(
    G: BackendGraph,  # noqa: N803
    source: Any,
    cutoff: float | None = None,
) -> dict[Any, int]:
    """Return distances, see ``networkx.single_source_shortest_path_length``."""
    return G.distances(endpoint(G, source, "Source"), cutoff)


def single_target_shortest_path_length(
    G: BackendGraph,  # noqa: N803
    target: Any,
    cutoff: float | None = None,
) -> dict[Any, int]:
    """Return distances, see ``networkx.single_target_shortest_path_length``."""
    return G.distances(endpoint(G, target, "Target"), cutoff, reverse=True)


def all_pairs_shortest_path_length(
    G: BackendGraph,  # noqa: N803
    cutoff: float | None = None,
) -> Iterator[tuple[Any, dict[Any, int]]]:
    """Yield distances, see ``networkx.all_pairs_shortest_path_length``."""
    for node in G:
        yield node, G.distances(node, cutoff)


def single_source_shortest_path(
    G: BackendGraph,  # noqa: N803
    source: Any,
    cutoff: float | None = None,
) -> dict[Any, list[Any]]:
    """Return paths, see ``networkx.single_source_shortest_path``."""
    if source not in G:
        raise nx.NodeNotFound(f"Source {source} not in G")
    paths = {source: [source]}
    with uncollected():
        for parent, child in G.tree_edges(source, cutoff):
            paths[child] = [*paths[parent], child]
    return paths


def single_target_shortest_path(
    G: BackendGraph,  # noqa: N803
    target: Any,
    cutoff: float | None = None,
) -> dict[Any, list[Any]]:
    """Return paths, see ``networkx.single_target_shortest_path``."""
    if target not in G:
        raise nx.NodeNotFound(f"Target {target} not in G")
    paths = {target: [target]}
    with uncollected():
        for parent, child in G.tree_edges(target, cutoff, reverse=True):
            paths[child] = [child, *paths[parent]]
    return paths


def has_path(G: BackendGraph, source: Any, target: Any) -> bool:  # noqa: N803
    """Return whether a path leads there, see ``networkx.has_path``."""
    return G.joined(endpoint(G, source, "Source"), endpoint(G, target, "Target"))


def descendants(G: BackendGraph, source: Any) -> set[Any]:  # noqa: N803
    """Return the nodes that are reached, see ``networkx.descendants``."""
    return set(G.names(np.flatnonzero(G.levels(begun(G, source)) > 0)))


def ancestors(G: BackendGraph, source: Any) -> set[Any]:  # noqa: N803
    """Return the nodes that reach a node, see ``networkx.ancestors``."""
    level = G.levels(begun(G, source), reverse=True)
    return set(G.names(np.flatnonzero(level > 0)))


def refuse_directed(G: BackendGraph) -> None:  # noqa: N803
    """Raise what NetworkX raises for directed graphs."""
    if G.is_directed():
        raise nx.NetworkXNotImplemented("not implemented for directed type")


def connected_components(G: BackendGraph) -> Iterator[set[Any]]:  # noqa: N803
    """Return an iterator of node sets, see ``networkx.connected_components``."""
    refuse_directed(G)
    label = G.components()
    order = np.argsort(label, kind="stable")
    cuts = np.flatnonzero(np.diff(label[order])) + 1
    names = G.names(order)
    bounds = [0, *cuts.tolist(), len(names)]
    return (set(names[low:high]) for low, high in pairwise(bounds) if high > low)


def is_connected(G: BackendGraph) -> bool:  # noqa: N803
    """Return whether there is one component, see ``networkx.is_connected``."""
    refuse_directed(G)
    if not len(G):
        raise nx.NetworkXPointlessConcept(
            "Connectivity is undefined for the null graph."
        )
    return bool((G.levels(G.nodes[0]) >= 0).all())


def eccentricity(
    G: BackendGraph,  # noqa: N803
    v: Any = None,
    sp: None = None,  # noqa: ARG001
    weight: None = None,  # noqa: ARG001
) -> Any:
    """Return largest distances, see ``networkx.eccentricity``."""
    if v in G:
        return farthest(G, v)
    wanted = G.nodes if v is None else members(G, v)
    return {node: farthest(G, node) for node in wanted}


def members(G: BackendGraph, nodes: Any) -> Iterator[Any]:  # noqa: N803
    """Yield the nodes of a container, as ``Graph.nbunch_iter`` does."""
    try:
        container = iter(nodes)
    except TypeError as error:
        raise nx.NetworkXError(f"Node {nodes} is not in the graph.") from error
    for node in container:
        try:
            hash(node)
        except TypeError as error:
            raise nx.NetworkXError(
                f"Node {node} in sequence nbunch is not a valid node."
            ) from error
        if node in G:
            yield node


def farthest(G: BackendGraph, node: Any) -> int:  # noqa: N803
    """Return the largest distance from a node that reaches all others."""
    level = G.levels(node)
    if (level < 0).any():
        kind = "digraph is not strongly" if G.is_directed() else "graph is not"
        raise nx.NetworkXError(
            f"Found infinite path length because the {kind} connected"
        )
    return int(level.max())


def diameter(
    G: BackendGraph,  # noqa: N803
    e: None = None,  # noqa: ARG001
    usebounds: bool = False,  # noqa: ARG001
    weight: None = None,  # noqa: ARG001
) -> int:
    """Return the largest distance, see ``networkx.diameter``."""
    return max(eccentricity(G).values())
