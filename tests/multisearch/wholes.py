"""Whole graphs for many searches, and what NetworkX says of them."""

import networkx as nx
import numpy as np
from graphs import build

from distbfs.multisearch.input_graph import NO_DELEGATES

HOSTS = ("reference", "openmp")


def whole(source, directed=False):
    """Return tuples as one part without delegates."""
    options = {"directed": True} if directed else {}
    [part], _ = build(source, 1, threshold=NO_DELEGATES, **options)
    return part


def by_networkx(source, directed=False):
    """Return tuples as a graph of NetworkX, loops included."""
    graph = nx.DiGraph() if directed else nx.Graph()
    graph.add_nodes_from(range(source.n))
    graph.add_edges_from(zip(source.u.tolist(), source.v.tolist(), strict=True))
    return graph


def all_levels(source, directed=False):
    """Return levels from every vertex by NetworkX, int32 [n, n], -1 = unreached."""
    out = np.full((source.n, source.n), -1, dtype=np.int32)
    lengths = nx.all_pairs_shortest_path_length(by_networkx(source, directed))
    for u, result in lengths:
        out[u, list(result)] = list(result.values())
    return out
