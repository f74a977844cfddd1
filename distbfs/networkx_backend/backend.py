"""The NetworkX functions of this backend; NetworkX loads this module.

Each function takes a ``BackendGraph`` where NetworkX takes a graph; results and
exceptions are those of NetworkX.
"""

from __future__ import annotations

from typing import Any

import networkx as nx

from distbfs.errors import InputError
from distbfs.networkx_backend import measures, paths, traversal
from distbfs.networkx_backend.graph import BackendGraph
from distbfs.networkx_backend.info import FUNCTIONS
from distbfs.networkx_backend.nodes import BEFORE_3_5, VERSION
from distbfs.search.graph import Graph

HOMES = (measures, paths, traversal)
SMALL = 256  # below this number of nodes a conversion takes longer than NetworkX
CHEAP = (  # NetworkX runs these faster than a conversion
    "bidirectional_shortest_path",
    "descendants_at_distance",
    "has_path",
)
BETWEEN_TWO = ("shortest_path", "shortest_path_length")  # with both ends given
MANY_SEARCHES = (
    "all_pairs_shortest_path",
    "all_pairs_shortest_path_length",
    "average_shortest_path_length",
    "betweenness_centrality",
    "center",
    "closeness_centrality",
    "diameter",
    "eccentricity",
    "harmonic_centrality",
    "periphery",
    "radius",
)
READ = (  # attributes of a graph that NetworkX's functions, and conversions, read
    "__contains__",
    "__getitem__",
    "__iter__",
    "__len__",
    "adj",
    "nbunch_iter",
    "neighbors",
    "order",
    "pred",
    "predecessors",
    "succ",
    "successors",
)
MEASURE = {"e": 1, "usebounds": 2, "weight": 3}
WEIGHTED = ("multi_source_dijkstra_path", "multi_source_dijkstra_path_length")
OURS_ONLY_WITHOUT = {
    "average_shortest_path_length": {"weight": 1, "method": 2},
    "betweenness_centrality": {"weight": 3},
    "bfs_edges": {"sort_neighbors": 4},
    "bfs_predecessors": {"sort_neighbors": 3},
    "bfs_successors": {"sort_neighbors": 3},
    "bfs_tree": {"sort_neighbors": 4},
    "center": MEASURE,
    "closeness_centrality": {"distance": 2, "sp": 4},
    "diameter": MEASURE,
    "eccentricity": {"sp": 2, "weight": 3},
    "generic_bfs_edges": {"neighbors": 2},
    "harmonic_centrality": {"distance": 2},
    "periphery": MEASURE,
    "radius": MEASURE,
    "shortest_path": {"weight": 3},
    "shortest_path_length": {"weight": 3},
}
if BEFORE_3_5:  # NetworkX 3.4 scales samples in another way
    OURS_ONLY_WITHOUT["betweenness_centrality"]["k"] = 1

UNWEIGHTED = ("method", "unweighted")
ENDS = ((1, "source"), (2, "target"))


def __getattr__(name: str) -> Any:
    if name not in FUNCTIONS:
        raise AttributeError(f"the backend has no function '{name}'")
    return next(getattr(home, name) for home in HOMES if hasattr(home, name))


def argument(
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    place: int,
    name: str,
    default: Any = None,
) -> Any:
    """Return an argument of a call, passed by position or by name."""
    return args[place] if len(args) > place else kwargs.get(name, default)


def convert_from_nx(graph: Any, **_: Any) -> BackendGraph:
    """Convert a NetworkX graph; NetworkX caches the result.

    The conversion of a view is not cached, since a view does not notice changes.
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
    """Return a converted graph as a NetworkX graph, and other results unchanged."""
    if not isinstance(result, BackendGraph):
        return result
    made = nx.DiGraph() if result.is_directed() else nx.Graph()
    made.add_nodes_from(result)
    rows = result.graph._host_part.nn
    ends = (result.names(x) for x in (rows.sources(), rows.columns))
    made.add_edges_from(zip(*ends, strict=True))
    return made


def can_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """Return True if this backend supports a call, else the reason why not."""
    if VERSION < (3, 4):
        return "NetworkX is older than 3.4"
    for option, place in OURS_ONLY_WITHOUT.get(name, {}).items():
        value = argument(args, kwargs, place, option)
        without = value is None or value is False
        if not without and (option, value) != UNWEIGHTED:
            return f"{option} is given"
    if name in WEIGHTED and argument(args, kwargs, 3, "weight", "weight") is not None:
        return "weight is not None"
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
    """Return True if a call is worth the conversion, else the reason why not."""
    graph = args[0] if args else kwargs.get("G", ())
    if len(graph) < SMALL:
        return f"fewer than {SMALL} nodes"
    if name not in MANY_SEARCHES and not isinstance(getattr(graph, "_adj", {}), dict):
        return "a filtered view is converted again for each call"
    both = all(argument(args, kwargs, k, x) is not None for k, x in ENDS)
    cheap = name in CHEAP or (name in BETWEEN_TWO and both)
    if cheap and not converted(graph):
        return "converting the graph takes longer"
    return True


def converted(graph: Any) -> bool:
    """Return whether NetworkX has cached a conversion of a graph."""
    if isinstance(graph, BackendGraph):
        return True
    kept = getattr(graph, "__networkx_cache__", None) or {}
    return bool(kept.get("backends", {}).get("distbfs"))
