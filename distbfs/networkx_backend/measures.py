"""NetworkX functions that run many searches: distances, centralities, bipartiteness."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import networkx as nx
import numpy as np

from distbfs.graph.components import component_labels
from distbfs.multisearch import library
from distbfs.multisearch.apps.distances import PROBLEM
from distbfs.multisearch.apps.harmonic import NEARNESS
from distbfs.networkx_backend.graph import BackendGraph
from distbfs.networkx_backend.nodes import endpoint, members


def infinite(G: BackendGraph) -> nx.NetworkXError:  # noqa: N803
    """Return the error for a node that does not reach all others."""
    kind = "digraph is not strongly" if G.is_directed() else "graph is not"
    return nx.NetworkXError(f"Found infinite path length because the {kind} connected")


def average_shortest_path_length(G: BackendGraph) -> float:  # noqa: N803
    """Return the mean length, see ``networkx.average_shortest_path_length``."""
    n = len(G)
    if n == 0:
        raise nx.NetworkXPointlessConcept(
            "the null graph has no paths, thus there is no average shortest path length"
        )
    if n == 1:
        return 0
    if not G.all_reach_all():
        kind = "strongly connected" if G.is_directed() else "connected"
        raise nx.NetworkXError(f"Graph is not {kind}.")
    sums = library.search_many(G.graph, PROBLEM, None)
    return int(sums["distance"].sum()) / (n * (n - 1))


def depths(G: BackendGraph, nodes: Sequence[Any]) -> list[int]:  # noqa: N803
    """Return the largest distance from each node; NetworkXError if it is infinite."""
    if not G.is_directed() and nodes and not G.all_reach_all():
        raise infinite(G)
    sums = library.search_many(G.graph, PROBLEM, map(G.own, nodes))
    if (sums["reached"] < len(G)).any():
        raise infinite(G)
    largest: list[int] = sums["depth"].tolist()
    return largest


def of_nothing(name: str, G: BackendGraph, *args: Any) -> Any:  # noqa: N803
    """Return what NetworkX itself returns for a graph without nodes.

    Versions of NetworkX differ here.
    """
    empty = nx.DiGraph() if G.is_directed() else nx.Graph()
    return getattr(nx, name).orig_func(empty, *args)


def eccentricity(
    G: BackendGraph,  # noqa: N803
    v: Any = None,
) -> Any:
    """Return largest distances, see ``networkx.eccentricity``."""
    if not len(G):
        return of_nothing("eccentricity", G, v)
    if v in G:
        return depths(G, [v])[0]
    nodes: list[Any] = []
    fault: nx.NetworkXError | None = None
    try:
        for node in members(G, v):
            nodes.append(node)  # noqa: PERF402 - those before an error are kept
    except nx.NetworkXError as error:
        fault = error
    largest = depths(G, nodes)  # NetworkX computes it node by node
    if fault is not None:
        raise fault
    return dict(zip(nodes, largest, strict=True))


def bounds(G: BackendGraph) -> dict[str, Any]:  # noqa: N803
    """Return the radius and diameter of an undirected graph, from few searches."""
    facts = library.search_many(G.graph, "diameter", None).facts
    if not facts["connected"]:
        raise infinite(G)
    return facts


def diameter(G: BackendGraph) -> int:  # noqa: N803
    """Return the largest distance, see ``networkx.diameter``."""
    if len(G) and not G.is_directed():
        return int(bounds(G)["diameter"])
    return max(eccentricity(G).values())


def radius(G: BackendGraph) -> int:  # noqa: N803
    """Return the smallest eccentricity, see ``networkx.radius``."""
    if len(G) and not G.is_directed():
        return int(bounds(G)["radius"])
    return min(eccentricity(G).values())


def center(G: BackendGraph) -> list[Any]:  # noqa: N803
    """Return the nodes of smallest eccentricity, see ``networkx.center``."""
    if not len(G):
        return list(of_nothing("center", G))
    return list(nx.center.orig_func(G, e=eccentricity(G)))


def closeness_centrality(
    G: BackendGraph,  # noqa: N803
    u: Any = None,
    wf_improved: bool = True,
) -> Any:
    """Return closeness, see ``networkx.closeness_centrality``."""
    if u is None:
        values = library.closeness(G.graph, normalized=wf_improved)
        return G.by_node(values)
    node = G.own(endpoint(G, u, "Source"))
    value = library.closeness(G.graph, [node], normalized=wf_improved)
    return float(value[G.id_of(u)])


def harmonic_centrality(
    G: BackendGraph,  # noqa: N803
    nbunch: Any = None,
    sources: Any = None,
) -> dict[Any, float]:
    """Return harmonic centrality, see ``networkx.harmonic_centrality``."""
    nodes = set(members(G, nbunch))
    if sources is None:
        values = library.harmonic(G.graph, map(G.own, nodes))
    else:
        begun = map(G.own, set(members(G, sources)))
        values = library.search_many(G.graph, NEARNESS, begun)["harmonic_from"]
    return {node: float(values[G.id_of(node)]) or 0 for node in nodes}


def betweenness_centrality(
    G: BackendGraph,  # noqa: N803
    k: int | None = None,
    normalized: bool = True,
    endpoints: bool = False,
    seed: Any = None,
) -> dict[Any, float]:
    """Return betweenness, see ``networkx.betweenness_centrality``.

    A seed draws the same nodes as in NetworkX; values are summed in another order.
    """
    nodes: list[Any] | None = None
    if k is not None and k != len(G):
        nodes = nx.utils.create_py_random_state(seed).sample(list(G), k)
        if not nodes and len(G) > 1 + (not endpoints):
            raise ZeroDivisionError("division by zero")  # as in NetworkX's scale
    values = library.betweenness(
        G.graph, nodes, normalized=bool(normalized), endpoints=bool(endpoints)
    )
    return G.by_node(values)


def is_bipartite(G: BackendGraph) -> bool:  # noqa: N803
    """Return whether two colours suffice, see ``networkx.is_bipartite``.

    A graph of twice the size has each node in both colours, and edges lead from each
    colour to the other. Two colours suffice if no path there joins the two copies of a
    node.
    """
    n, rows = len(G), G.graph._host_part.nn
    u, v = rows.sources(), rows.columns.astype(np.int64)
    label = component_labels(2 * n, lambda: [(u, v + n), (u + n, v)])
    return not (label[:n] == label[n:]).any()
