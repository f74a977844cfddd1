"""The NetworkX backend: values, order and errors of NetworkX itself."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import networkx as nx
import numpy as np

from trials.checker import Wrong
from trials.shapes import draw_graph
from trials.trial import Trial

LIMITS = (None, None, 0, 1, 2, 3, 1.5, math.inf, -1, 10**6)
FROM_ONE = {
    "ancestors": (),
    "bfs_edges": ("depth_limit", "reverse"),
    "bfs_layers": (),
    "bfs_predecessors": ("depth_limit",),
    "bfs_successors": ("depth_limit",),
    "bfs_tree": ("depth_limit", "reverse"),
    "descendants": (),
    "generic_bfs_edges": ("depth_limit",),
    "single_source_shortest_path": ("cutoff",),
    "single_source_shortest_path_length": ("cutoff",),
    "single_target_shortest_path": ("cutoff",),
    "single_target_shortest_path_length": ("cutoff",),
}
WHOLE = (
    *("connected_components", "is_connected", "eccentricity", "diameter"),
    *("weakly_connected_components", "is_weakly_connected", "is_strongly_connected"),
)
NEAREST = ("single_source_shortest_path_length", "single_target_shortest_path_length")
nx.config.warnings_to_ignore.add("cache")
ERRORS = (nx.NetworkXException, TypeError, ValueError, KeyError)


def run(trial: Trial) -> None:
    """Make a NetworkX graph, call functions of it, change it, call again."""
    truth = draw_graph(trial, most=trial.choose(9, 9, 40, 300))
    kinds = (
        (nx.DiGraph, nx.MultiDiGraph) if truth.directed else (nx.Graph, nx.MultiGraph)
    )
    made = trial.choose(*kinds)()
    names = named(trial, truth.n)
    made.add_nodes_from(names[k] for k in trial.rng.permutation(truth.n))
    made.add_edges_from((names[u], names[v]) for u, v in truth.pairs.tolist())
    graph = made
    for _ in range(2 + trial.below(5)):
        if trial.chance(0.25):
            change(trial, made)
        if trial.chance(0.2):
            graph = view(trial, made)
        elif trial.chance(0.3):
            graph = made
        call(trial, graph)


def named(trial: Trial, n: int) -> list[Any]:
    """Return n names of nodes: numbers, words, tuples."""
    naming = trial.below(4)
    if naming == 0:
        return list(range(n))
    if naming == 1:
        return [f"n{k}" for k in range(n)]
    if naming == 2:
        return [(k if k % 3 else (k, "x")) if k % 2 else f"{k}" for k in range(n)]
    return [k + 0.5 if k % 2 else -k for k in range(n)]


def change(trial: Trial, graph: Any) -> None:
    """Add or remove a node or an edge."""
    nodes = list(graph)
    what = trial.below(4)
    trial.note(f"change {what}")
    if what == 0:
        graph.add_edge(trial.choose(*nodes, "new"), trial.choose(*nodes, "new too"))
    elif what == 1 and nodes:
        graph.remove_node(trial.choose(*nodes))
    elif what == 2 and graph.size():
        graph.remove_edge(*trial.choose(*graph.edges())[:2])
    else:
        graph.add_node(f"more{trial.below(99)}")


def view(trial: Trial, graph: Any) -> Any:
    """Return a view of a graph, which changes with it."""
    nodes = [node for node in graph if trial.chance(0.8)]
    kind = trial.below(6)
    trial.note(f"view {kind}")
    if kind == 0:
        return graph.subgraph(nodes)
    if kind == 1:
        edges = graph.edges(keys=True) if graph.is_multigraph() else graph.edges()
        return graph.edge_subgraph([edge for edge in edges if trial.chance(0.8)])
    if kind == 2 and graph.is_directed():
        return graph.reverse(copy=False)
    if kind == 3:
        return graph.to_undirected(as_view=True)
    if kind == 4:
        return graph.to_directed(as_view=True)
    return nx.restricted_view(graph, nodes[:2], [])


def call(trial: Trial, graph: Any) -> None:
    """Call a function by the backend and by NetworkX and compare the two."""
    nodes = list(graph)
    node = trial.choose(*nodes, *(["nobody"] if not nodes or trial.chance(0.1) else []))
    name = trial.choose(*FROM_ONE, *WHOLE, "has_path", "layers", "distance", "pairs")
    arguments: tuple[Any, ...] = (node,)
    options: dict[str, Any] = {}
    if name in FROM_ONE:
        for option in FROM_ONE[name]:
            if trial.chance(0.5):
                reverse = option == "reverse"
                options[option] = (
                    trial.chance(0.5) if reverse else trial.choose(*LIMITS)
                )
    elif name == "has_path":
        arguments = node, trial.choose(*nodes, "nobody")
    elif name == "layers":
        name, several = "bfs_layers", [trial.choose(*nodes, node) for _ in range(3)]
        arguments = (several[: trial.below(4)],)
    elif name == "distance":
        name = "descendants_at_distance"
        arguments = node, trial.choose(0, 1, 2, 5, 99, -1, 1.0, 1.5)
    elif name == "pairs":
        name, arguments = "all_pairs_shortest_path_length", ()
        options = {"cutoff": trial.choose(*LIMITS)}
    else:
        arguments = ()
        if name == "eccentricity" and trial.chance(0.5):
            arguments = (node,)
    trial.note(f"{name}{arguments!r:.200} {options}")
    function = getattr(nx, name)

    def by(backend: str) -> Callable[[], Any]:
        return lambda: function(graph, *arguments, **options, backend=backend)

    compare(name, outcome(by("distbfs")), outcome(by("networkx")))
    trial.searches += 1


def outcome(call: Callable[[], Any]) -> Any:
    """Return what a call gives, iterators as lists, or the class of its error."""
    try:
        with warnings.catch_warnings():
            # NetworkX 3.4 tells of results that 3.5 changes
            warnings.simplefilter("ignore", FutureWarning)
            result = call()
        result = list(result) if isinstance(result, Iterator) else result
    except ERRORS as error:
        return type(error)
    if isinstance(result, nx.Graph):
        return list(result), list(result.edges)
    return result


def compare(name: str, actual: Any, expected: Any) -> None:
    """Raise Wrong unless results are the same, in order, of Python's types."""
    if actual != expected:
        raise Wrong("value", f"{name}: {actual!r:.300}, not {expected!r:.300}")
    if isinstance(expected, dict):
        if name in NEAREST:  # nodes of one level in any order
            same = list(actual.values()) == list(expected.values())
        else:
            same = list(actual) == list(expected)
        if not same:
            raise Wrong("order", f"{name}: {actual!r:.300}, not {expected!r:.300}")
    if any(isinstance(value, np.generic) for value in leaves(actual)):
        raise Wrong("form", f"{name}: NumPy's numbers in {actual!r:.300}")


def leaves(value: Any) -> Iterator[Any]:
    """Yield what containers hold."""
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, (list, tuple, set)):
        for item in value:
            yield from leaves(item)
    else:
        yield value
