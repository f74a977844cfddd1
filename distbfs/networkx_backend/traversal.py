"""NetworkX functions that run one search: edges, levels, reachability, components."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from distbfs.networkx_backend.graph import BackendGraph
from distbfs.networkx_backend.nodes import (
    BEFORE_3_5,
    begun,
    endpoint,
    known,
    refuse_empty,
)
from distbfs.search import components
from distbfs.search.breadth_first import distances


def generic_bfs_edges(
    G: BackendGraph,  # noqa: N803
    source: Any,
    depth_limit: int | None = None,
) -> Iterator[tuple[Any, Any]]:
    """Yield the edges of a search, see ``networkx.generic_bfs_edges``."""
    yield from G.tree_edges(begun(G, source), depth_limit)


def bfs_edges(
    G: BackendGraph,  # noqa: N803
    source: Any,
    reverse: bool = False,
    depth_limit: int | None = None,
) -> Iterator[tuple[Any, Any]]:
    """Yield the edges of a search, see ``networkx.bfs_edges``."""
    start = begun(G, source)
    yield from (G.turned if reverse else G).tree_edges(start, depth_limit)


def bfs_layers(G: BackendGraph, sources: Any) -> Iterator[list[Any]]:  # noqa: N803
    """Yield the nodes of each level, see ``networkx.bfs_layers``."""
    if sources in G:
        sources = [sources]
    starts = list(sources)
    distinct = set(starts)  # TypeError for what is not a node
    layer = starts if BEFORE_3_5 else list(distinct)
    yield from G.layers([known(G, node) for node in layer])


def has_path(G: BackendGraph, source: Any, target: Any) -> bool:  # noqa: N803
    """Return whether a path exists, see ``networkx.has_path``."""
    endpoint(G, source, "Source")
    own = G.own(endpoint(G, target, "Target"))
    return bool(distances(G.graph, G.own(source), [own])[0] >= 0)


def descendants(G: BackendGraph, source: Any) -> set[Any]:  # noqa: N803
    """Return the nodes reached from a node, see ``networkx.descendants``."""
    return set(G.names(np.flatnonzero(G.levels(begun(G, source)) > 0)))


def ancestors(G: BackendGraph, source: Any) -> set[Any]:  # noqa: N803
    """Return the nodes that reach a node, see ``networkx.ancestors``."""
    level = G.turned.levels(begun(G, source))
    return set(G.names(np.flatnonzero(level > 0)))


def connected_components(G: BackendGraph) -> Iterator[set[Any]]:  # noqa: N803
    """Return an iterator of node sets, see ``networkx.connected_components``.

    Components are in the order of their first nodes.
    """
    label = components.connected_components(G.graph)
    order = np.argsort(label, kind="stable")
    cuts = np.flatnonzero(np.diff(label[order])) + 1
    names = G.names(order)
    bounds = [0, *cuts.tolist(), len(names)]
    return (set(names[low:high]) for low, high in pairwise(bounds) if high > low)


weakly_connected_components = connected_components


def is_connected(G: BackendGraph) -> bool:  # noqa: N803
    """Return whether all nodes reach all others, see ``networkx.is_connected``."""
    refuse_empty(G)
    return bool(G.all_reach_all())


is_strongly_connected = is_connected


def is_weakly_connected(G: BackendGraph) -> bool:  # noqa: N803
    """Return whether there is one component, see ``networkx.is_weakly_connected``."""
    refuse_empty(G)
    return not components.connected_components(G.graph).any()
