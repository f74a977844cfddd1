"""Checks of nodes that raise NetworkX's exceptions."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import networkx as nx

from distbfs.networkx_backend.graph import BackendGraph

VERSION = tuple(map(int, re.findall(r"\d+", nx.__version__)[:2]))
BEFORE_3_5 = VERSION < (3, 5)  # Python 3.10 has no newer one than 3.4


@contextmanager
def uncollected() -> Iterator[None]:
    """Suspend garbage collection while many permanent objects are created.

    Otherwise the collector scans all objects of the program again and again.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def known(G: BackendGraph, node: Any) -> Any:  # noqa: N803
    """Return a node; raise NetworkXError if it is unknown."""
    if node not in G:
        raise nx.NetworkXError(f"The node {node} is not in the graph.")
    return node


def begun(G: BackendGraph, node: Any) -> Any:  # noqa: N803
    """Return a node whose neighbours are requested; NetworkXError if it is unknown."""
    if node not in G:
        hash(node)  # NetworkX raises TypeError for unhashable objects
        kind = "digraph" if G.is_directed() else "graph"
        raise nx.NetworkXError(f"The node {node} is not in the {kind}.")
    return node


def endpoint(G: BackendGraph, node: Any, what: str) -> Any:  # noqa: N803
    """Return a node; raise NodeNotFound if it is unknown."""
    if node not in G:
        raise nx.NodeNotFound(f"{what} {node} is not in G")
    return node


def refuse_empty(G: BackendGraph) -> None:  # noqa: N803
    """Raise NetworkX's exception for the connectivity of no nodes."""
    if not len(G):
        raise nx.NetworkXPointlessConcept(
            "Connectivity is undefined for the null graph."
        )


def members(G: BackendGraph, nodes: Any) -> Iterator[Any]:  # noqa: N803
    """Return an iterator of nodes, see ``networkx.Graph.nbunch_iter``."""
    chosen: Iterator[Any] = nx.Graph.nbunch_iter(G, nodes)
    return chosen
