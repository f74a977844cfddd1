"""Random graphs with masks, and searches of them checked by NetworkX."""

import networkx as nx
import numpy as np
import pytest

import distbfs
from distbfs import Graph
from distbfs.errors import UsageError
from distbfs.search.graph_input import HeldTuples


def masked(seed, directed):
    """Return random (u, v, n, vertices, edges, source) and NetworkX's graph of them."""
    random = np.random.default_rng(seed)
    n = int(random.integers(2, 70))
    u, v = random.integers(0, n, (2, int(random.integers(0, 5 * n))))
    listed = Graph.from_edges(u, v, n, directed=directed).edges()
    vertices = random.random(n) < 0.8 if seed % 3 else None
    edges = random.random(len(listed)) < 0.6 if seed % 4 else None
    source = int(random.integers(n))
    if vertices is not None:
        vertices[source] = True
    kept = nx.DiGraph() if directed else nx.Graph()
    kept.add_nodes_from(np.flatnonzero(np.ones(n) if vertices is None else vertices))
    for k, (a, b) in enumerate(listed.tolist()):
        if a in kept and b in kept and (edges is None or edges[k]):
            kept.add_edge(a, b)
    return u, v, n, vertices, edges, source, kept


def seen_set(kept, source):
    """Return the source and some other vertices that are seen, int64 [k], k > 1."""
    several = np.union1d([source], np.array(kept)[source % 3 :: 5])
    return several if len(several) > 1 else np.array(kept)


def check(level, parent, nedge, source, kept):
    """Compare a result with NetworkX; source: a vertex, or several."""
    expected = np.full(len(level), -1)
    sources = set(np.atleast_1d(source).tolist())
    for vertex, depth in nx.multi_source_dijkstra_path_length(
        kept, sources, weight=None
    ).items():
        expected[vertex] = depth
    assert set(np.flatnonzero(parent == np.arange(len(level))).tolist()) == sources
    assert np.array_equal(level, expected)
    for vertex in np.flatnonzero(expected > 0).tolist():
        assert kept.has_edge(int(parent[vertex]), vertex)
        assert expected[parent[vertex]] == expected[vertex] - 1
    assert (parent[expected < 0] == -1).all()
    assert nedge == sum(expected[a] >= 0 for a, _ in kept.edges())


def search_parts(seed, comm=None, *, directed=False):
    """Search parts, of all ranks, with a mask."""
    u, v, n, vertices, edges, source, kept = masked(seed, directed)
    if vertices is None and edges is None:
        return
    count = 6 if comm is not None and comm.size == 3 else 4
    for k, engine in enumerate(("reference", "openmp")):
        session = distbfs.open(
            HeldTuples(u, v, n),
            comm=comm,
            engine=engine,
            parts=count if comm is not None or seed % 5 or directed else 1,
            threshold=(0, 4, 9)[(seed + k) % 3],
            directed=directed,
            direction=("auto", "push", "pull")[seed % 3],
            threads=1,
        )
        with session:
            session.see(session.view(vertices, edges))
            for _ in range(2):
                one = session.search(source)
                level, parent = one.at(np.arange(n))
                check(level, parent, one.nedge, source, kept)
            several = seen_set(kept, source)
            one = session.search(several)
            several_levels, parent = one.at(np.arange(n))
            check(several_levels, parent, one.nedge, several, kept)
            with pytest.raises(UsageError, match="this one has a view"):
                one.path_counts()
            hidden = None if vertices is None else np.flatnonzero(~vertices)[:1]
            if hidden is not None and len(hidden):
                with pytest.raises(UsageError, match=r"1 of \d+ sources are vertices"):
                    session.search(np.append(several, hidden))
                to = session.search(source, targets=hidden)
                assert np.array_equal(to.at(np.arange(n))[0], level)
