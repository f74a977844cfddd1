"""Searches from both ends: their paths, and how many edges they look at."""

import networkx as nx
import numpy as np
import pytest
from directed_graphs import directed, distances, matrix_of, tuples
from graphs import NAMED, kronecker
from hypothesis import given, settings
from hypothesis import strategies as st
from masked import masked, seen_set
from shortest_paths import check_path

import distbfs
from distbfs import Graph
from distbfs.errors import SearchStopped, UsageError
from distbfs.generate.road import Road

METHODS = ("fast", "push", "hybrid", "ordered")


def opened(matrix, one_way, **options):
    u, v = matrix.nonzero()
    graph = Graph.from_edges(u, v, matrix.shape[0], directed=one_way)
    return distbfs.open(graph, threads=2, **options)


@settings(max_examples=60, deadline=None)
@given(directed(), st.booleans(), st.sampled_from([*METHODS, ""]), st.data())
def test_any_graph(matrix, one_way, method, data):
    """Searches between them give what they gave before."""
    n = matrix.shape[0]
    whole = matrix if one_way else matrix + matrix.T
    vertex = st.integers(0, n - 1)
    engine = {"engine": "openmp", "method": method} if method else {}
    with opened(matrix, one_way, **engine or {"engine": "reference"}) as session:
        assert session.both_ends == bool(method)
        for _ in range(4):
            source, target = data.draw(vertex), data.draw(vertex)
            check_path(session.path(source, target), whole, [source], target)
            several = data.draw(st.sets(vertex, min_size=1))
            check_path(session.path(several, target), whole, several, target)
            found = session.search(source)
            wanted = distances(whole, source)
            np.testing.assert_array_equal(found.level, wanted)
            np.testing.assert_array_equal(found.parent >= 0, wanted >= 0)
            check_path(session.path(target, source), whole, [target], source)


@pytest.mark.parametrize("engine", ["openmp", "reference"])
@pytest.mark.parametrize("seed", range(8))
def test_random_directed_graphs(engine, seed):
    n, u, v = tuples(seed)
    matrix, rng = matrix_of(n, u, v), np.random.default_rng(seed)
    graph = Graph.from_edges(u, v, n, directed=True)
    for reverse in (False, True):
        with distbfs.open(graph, engine=engine, reverse=reverse) as session:
            for source, target in rng.integers(0, n, (20, 2)).tolist():
                path = session.path(source, target)
                check_path(
                    path, matrix.T.tocsr() if reverse else matrix, [source], target
                )


@pytest.mark.parametrize("name", NAMED)
def test_named_graphs(name):
    """Trees, paths, hubs, vertices without edges."""
    source = NAMED[name]
    matrix = matrix_of(source.n, source.u, source.v)
    graph = Graph.from_edges(source.u, source.v, source.n)
    rng = np.random.default_rng(1)
    with distbfs.open(graph, engine="openmp") as session:
        for a, b in rng.integers(0, source.n, (12, 2)).tolist():
            check_path(session.path(a, b), matrix + matrix.T, [a], b)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("engine", ["openmp", "reference"])
def test_masks(engine, directed):
    for seed in range(1, 20):
        u, v, n, vertices, edges, source, kept = masked(seed, directed)
        graph = Graph.from_edges(u, v, n, directed=directed)
        with distbfs.open(graph, engine=engine, threads=1) as session:
            session.see(session.view(vertices, edges))
            levels = nx.multi_source_dijkstra_path_length(kept, {source}, weight=None)
            for target in range(n):
                path = session.path(source, target)
                assert len(path or ()) - 1 == levels.get(target, -1)
                if path:
                    assert nx.is_path(kept, path)
            several = seen_set(kept, source).tolist()
            assert session.path(several, several[-1]) == [several[-1]]
            hidden = set(range(n)) - set(kept)
            for vertex in sorted(hidden)[:1]:
                with pytest.raises(UsageError):
                    session.path(vertex, source)


def checks_of(session, source, target):
    """Edges looked at from both ends, and by a search that ends with its target."""
    records = session.search(source, targets=[target], records=True).records
    ends = session.vertices.inside(np.array([source, target])).tolist()
    return session._runner.path(*ends).checks, sum(x["checks"] for x in records)


@pytest.mark.parametrize("one_way", [False, True])
@pytest.mark.parametrize(
    ("source", "most"), [(kronecker(12), 0.02), (Road(2500), 0.8)], ids=["hubs", "road"]
)
def test_edges_that_are_looked_at(source, most, one_way):
    """Median over pairs, of those that a search looks at."""
    u, v = (
        np.concatenate(x) for x in zip(*source.chunks(0, source.tuples), strict=True)
    )
    if one_way and source.n < 4000:
        u, v = np.append(u, v), np.append(v, u)
    graph = Graph.from_edges(u, v, source.n, directed=one_way)
    rng, shares = np.random.default_rng(2), []
    with distbfs.open(graph, engine="openmp", threads=1) as session:
        while len(shares) < 60:
            pair = rng.integers(0, source.n, 2)
            if pair[0] != pair[1] and session.connected(pair).all():
                both, one = checks_of(session, *pair.tolist())
                shares.append(both / max(one, 1))
    assert np.median(shares) < most


def test_the_end_with_fewer_edges_goes_on():
    """Two stars whose hubs are joined: from a leaf of each, the larger is not read."""
    small, large = np.arange(2, 10), np.arange(10, 1000)
    u = np.concatenate([[0], np.zeros(8, int), np.ones(990, int)])
    v = np.concatenate([[1], small, large])
    with distbfs.open(Graph.from_edges(u, v), engine="openmp") as session:
        for pair in ((5, 500), (500, 5)):
            assert checks_of(session, *pair)[0] <= 2 + 9
            assert len(session.path(*pair)) == 4


def test_names_and_refusals():
    graph = Graph.from_networkx(nx.DiGraph([("a", "b"), ("b", "c"), ("d", "c")]))
    for engine in ("openmp", "reference"):
        with distbfs.open(graph, engine=engine) as session:
            assert session.path("a", "c") == ["a", "b", "c"]
            assert session.path({"a", "d"}, "c") == ["d", "c"]
            assert session.path("c", "a") is None
            assert session.path("c", "c") == ["c"]
            with pytest.raises(UsageError):
                session.path("a", "e")
    with distbfs.open(Graph.from_edges([0], [1]), engine="openmp") as session:
        with pytest.raises(UsageError, match="target 2"):
            session.path(0, 2)
        with pytest.raises(SearchStopped):
            session.path(0, 1, stop=lambda: True)
        assert session.path(0, 1, stop=lambda: False) == [0, 1]
        found = session.search(0)
        session.path(1, 0)
        with pytest.raises(UsageError):
            found.to_numpy()


def test_where_searches_are_of_one_end():
    """Parts have no search from both."""
    source = NAMED["kronecker"]
    matrix = matrix_of(source.n, source.u, source.v)
    with distbfs.open(source, parts=3, engine="openmp") as session:
        assert not session.both_ends
        for a, b in ((0, 1), (5, 9)):
            check_path(session.path(a, b), matrix + matrix.T, [a], b)
