"""NetworkX functions for shortest paths without weights, and for their lengths."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import networkx as nx

from distbfs.networkx_backend.graph import BackendGraph
from distbfs.networkx_backend.nodes import BEFORE_3_5, endpoint


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
) -> Any:
    """Return distances, see ``networkx.single_target_shortest_path_length``."""
    lengths = G.turned.distances(endpoint(G, target, "Target"), cutoff)
    return iter(lengths.items()) if BEFORE_3_5 else lengths


def all_pairs_shortest_path_length(
    G: BackendGraph,  # noqa: N803
    cutoff: float | None = None,
) -> Iterator[tuple[Any, dict[Any, int]]]:
    """Yield distances, see ``networkx.all_pairs_shortest_path_length``."""
    for node in G:
        yield node, G.distances(node, cutoff)


def extended(
    paths: dict[Any, list[Any]], edges: Iterable[tuple[Any, Any]]
) -> dict[Any, list[Any]]:
    """Add the paths along edges (parent, child) of a search to those there are."""
    for parent, child in edges:
        paths[child] = [*paths[parent], child]
    return paths


def single_source_shortest_path(
    G: BackendGraph,  # noqa: N803
    source: Any,
    cutoff: float | None = None,
) -> dict[Any, list[Any]]:
    """Return paths, see ``networkx.single_source_shortest_path``."""
    if source not in G:
        raise nx.NodeNotFound(f"Source {source} not in G")
    return extended({source: [source]}, G.tree_edges(source, cutoff))


def single_target_shortest_path(
    G: BackendGraph,  # noqa: N803
    target: Any,
    cutoff: float | None = None,
) -> dict[Any, list[Any]]:
    """Return paths, see ``networkx.single_target_shortest_path``."""
    if target not in G:
        raise nx.NodeNotFound(f"Target {target} not in G")
    paths = {target: [target]}
    for parent, child in G.turned.tree_edges(target, cutoff):
        paths[child] = [child, *paths[parent]]
    return paths


def all_pairs_shortest_path(
    G: BackendGraph,  # noqa: N803
    cutoff: float | None = None,
) -> Iterator[tuple[Any, dict[Any, list[Any]]]]:
    """Yield paths, see ``networkx.all_pairs_shortest_path``."""
    for node in G:
        yield node, single_source_shortest_path(G, node, cutoff)


def bidirectional_shortest_path(
    G: BackendGraph,  # noqa: N803
    source: Any,
    target: Any,
) -> list[Any]:
    """Return a path, see ``networkx.bidirectional_shortest_path``."""
    endpoint(G, source, "Source")
    path = G.path_between(source, endpoint(G, target, "Target"))
    if path is None:
        raise nx.NetworkXNoPath(f"No path between {source} and {target}.")
    return path


def sources_of(G: BackendGraph, sources: Any) -> list[Any]:  # noqa: N803
    """Return distinct sources; raise NetworkX's error if none or one is unknown."""
    if not sources:
        raise ValueError("sources must not be empty")
    for source in sources:
        if source not in G:
            raise nx.NodeNotFound(f"Node {source} not found in graph")
    return list(dict.fromkeys(sources))


def multi_source_dijkstra_path_length(
    G: BackendGraph,  # noqa: N803
    sources: Any,
    cutoff: float | None = None,
) -> dict[Any, int]:
    """Return distances, see ``networkx.multi_source_dijkstra_path_length``."""
    distances: dict[Any, int] = {}
    for level, nodes in enumerate(G.layers(sources_of(G, sources))):
        if level and cutoff is not None and level > cutoff:
            break
        distances.update(dict.fromkeys(nodes, level))
    return distances


def multi_source_dijkstra_path(
    G: BackendGraph,  # noqa: N803
    sources: Any,
    cutoff: float | None = None,
) -> dict[Any, list[Any]]:
    """Return paths, see ``networkx.multi_source_dijkstra_path``."""
    begun = sources_of(G, sources)
    paths = {source: [source] for source in sources}
    for level, ends in enumerate(G.spread(begun), 1):
        if cutoff is not None and level > cutoff:
            break
        extended(paths, zip(*map(G.names, ends), strict=True))
    return paths
