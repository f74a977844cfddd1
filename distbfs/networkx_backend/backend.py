"""The NetworkX functions of this backend; NetworkX loads this module.

Each function takes a ``BackendGraph`` where NetworkX takes a graph; results and
exceptions are those of NetworkX.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache, wraps
from typing import Any

import networkx as nx

from distbfs.errors import InputError
from distbfs.networkx_backend import measures, paths, traversal
from distbfs.networkx_backend.graph import BackendGraph
from distbfs.networkx_backend.info import FUNCTIONS, MANY
from distbfs.networkx_backend.nodes import BEFORE_3_5, VERSION, uncollected
from distbfs.search.graph import Graph

HOMES = (measures, paths, traversal)
SMALL = 256  # below this number of nodes a conversion takes longer than NetworkX
CHEAP = (  # NetworkX runs these faster than a conversion
    "bidirectional_shortest_path",
    "descendants_at_distance",
    "has_path",
)
BETWEEN_TWO = ("shortest_path", "shortest_path_length")  # with both ends given
ALL_PAIRS = "all_pairs"
MANY_SEARCHES = tuple(
    name for name, text in FUNCTIONS.items() if ALL_PAIRS in name or MANY in text
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
COMPOSED = (  # NetworkX's own functions, which call others of this backend
    "bfs_predecessors",
    "bfs_successors",
    "bfs_tree",
    "descendants_at_distance",
    "periphery",
    "shortest_path",
    "shortest_path_length",
)
NOT_COMPOSED = {
    "e",
    "sort_neighbors",
    "usebounds",
    "weight",
}  # their options that stay with NetworkX
UNWEIGHTED = ("method", "unweighted")
ENDS = ("source", "target")


def __getattr__(name: str) -> Any:
    if name not in FUNCTIONS:
        raise AttributeError(f"the backend has no function '{name}'")
    function = own(name)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        values, (_, taken) = arguments(name, args, kwargs), signatures(name)
        with uncollected():
            return function(**{key: x for key, x in values.items() if key in taken})

    return call


def own(name: str) -> Callable[..., Any]:
    """Return the function that answers for one of NetworkX."""
    if name in COMPOSED:
        composed: Callable[..., Any] = getattr(nx, name).orig_func
        return composed
    return next(getattr(home, name) for home in HOMES if hasattr(home, name))


@cache
def signatures(name: str) -> tuple[inspect.Signature, set[str]]:
    """Return the signature of NetworkX's function, and what this backend's takes."""
    theirs = inspect.signature(getattr(nx, name).orig_func)
    taken = {*inspect.signature(own(name)).parameters}
    return theirs, taken - NOT_COMPOSED if name in COMPOSED else taken


def arguments(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Return the arguments of a call by name, with the defaults of NetworkX."""
    theirs, _ = signatures(name)
    bound = theirs.bind_partial(*args, **kwargs)
    bound.apply_defaults()
    return bound.arguments


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
    """Return True if this backend supports a call, else the reason why not.

    What the backend's function does not take must be None.
    """
    if VERSION < (3, 4):
        return "NetworkX is older than 3.4"
    values, (_, taken) = arguments(name, args, kwargs), signatures(name)
    if BEFORE_3_5 and name == "betweenness_centrality":
        taken = taken - {"k"}  # samples are scaled in another way
    for option in values.keys() - taken:
        value = values[option]
        without = value is None or value is False
        if not without and (option, value) != UNWEIGHTED:
            return f"{option} is not None"
    for kind in type(values.get("G")).__mro__:
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
    values = arguments(name, args, kwargs)
    graph = values.get("G", ())
    if len(graph) < SMALL:
        return f"fewer than {SMALL} nodes"
    if name not in MANY_SEARCHES and not isinstance(getattr(graph, "_adj", {}), dict):
        return "a filtered view is converted again for each call"
    both = all(values.get(end) is not None for end in ENDS)
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
