"""Applications against NetworkX, on one rank."""

from contextlib import nullcontext

import networkx as nx
import numpy as np
import pytest
from graphs import (
    NAMED,
    NO_VERTEX,
    Tuples,
    build,
    grid,
    kronecker,
    random_tuples,
    sources,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import shortest_path
from sessions import open_parts
from wholes import (
    HOSTS,
    all_levels,
    betweenness,
    by_networkx,
    check_applications,
    closeness,
    eccentricity,
    harmonic,
    levels,
    of_component,
    whole,
)

import distbfs
from distbfs.errors import TooDeep, UsageError
from distbfs.multisearch import searchers as sharing
from distbfs.multisearch.application import Task
from distbfs.multisearch.apps import betweenness as between
from distbfs.multisearch.apps import components
from distbfs.multisearch.apps.diameter import Bounds, diameter
from distbfs.multisearch.apps.khop import khop
from distbfs.multisearch.apps.paths import stream
from distbfs.multisearch.apps.reachability import reachability
from distbfs.multisearch.base import RunOptions
from distbfs.multisearch.searchers import WholeSearcher
from distbfs.options import SearchOptions
from distbfs.ranks.world import SoloWorld
from distbfs.search.choose import choose_searcher

SMALL = [name for name in NAMED if name not in ("kronecker", "path")]


def searcher(source, name="openmp", directed=False, **options):
    kind, _ = choose_searcher(name)
    part = whole(source, directed)
    return kind(SoloWorld(), part, RunOptions(**options))


def in_parts(source):
    """The same interface over a session of four parts."""
    parts, _ = build(source, 4, threshold=2)
    ways = SearchOptions.named(engine="openmp", exchange="host", parents=False)
    session = open_parts(SoloWorld(), parts, ways)
    return sharing.PartsSearcher(session, RunOptions())


WAYS = {
    **{name: lambda source, name=name: searcher(source, name) for name in HOSTS},
    "parts": in_parts,
}


@pytest.fixture(params=WAYS)
def way(request, monkeypatch):
    monkeypatch.setattr(sharing, "ROWS_BYTES", 4096)  # several pieces
    return WAYS[request.param]


@pytest.mark.thorough
@pytest.mark.parametrize("name", SMALL)
def test_small_graphs(name, way):
    source = NAMED[name]
    check_applications(way(source), source)


@settings(max_examples=40, deadline=None)
@given(sources(max_n=30), st.data())
def test_any_graph(source, data):
    name, directed = data.draw(st.sampled_from(HOSTS)), data.draw(st.booleans())
    on, graph = searcher(source, name, directed), by_networkx(source, directed)
    roots = data.draw(
        st.lists(st.integers(0, source.n - 1), unique=True, max_size=source.n)
    )
    some = np.array(roots, dtype=np.int64)
    others = np.setdiff1d(np.arange(source.n), some)
    wanted = all_levels(source, directed)
    result = levels(on, some, "int16")
    np.testing.assert_array_equal(result, wanted[some].reshape(-1, source.n))
    close = closeness(on, some)
    expected = nx.closeness_centrality(graph)
    np.testing.assert_allclose(close[some], [expected[v] for v in roots], rtol=1e-12)
    assert np.isnan(close[others]).all()
    near, expected = harmonic(on, some), nx.harmonic_centrality(graph)
    np.testing.assert_allclose(near[some], [expected[v] for v in roots], rtol=1e-12)
    assert np.isnan(near[others]).all()
    value, facts = eccentricity(on, some)
    np.testing.assert_array_equal(value[some], wanted[some].max(axis=1, initial=0))
    assert (value[others] == -1).all()
    assert bool(facts) == (len(roots) == source.n)
    pairs = np.array(
        data.draw(st.lists(st.tuples(*[st.integers(0, source.n - 1)] * 2)))
    )
    pairs = pairs.reshape(-1, 2).astype(np.int64)
    reached = wanted[pairs[:, 0], pairs[:, 1]] >= 0
    np.testing.assert_array_equal(reachability(on, pairs), reached)
    inside = graph.subgraph(of_component(source, directed))
    result = diameter(on)
    assert result["diameter"] == nx.diameter(inside)
    assert result["radius"] == nx.radius(inside)


def test_directed_graphs():
    ring = Tuples(5, range(5), [1, 2, 3, 4, 0])
    on = searcher(ring, directed=True)
    value, facts = eccentricity(on, np.arange(5))
    assert value.tolist() == [4] * 5
    assert (facts["radius"], facts["diameter"], facts["connected"]) == (4, 4, True)
    chain = Tuples(3, [0, 1], [1, 2])
    on = searcher(chain, directed=True)
    value, facts = eccentricity(on, np.arange(3))
    assert value.tolist() == [2, 1, 0]
    assert facts["connected"] is False
    assert facts["diameter"] is None
    told = diameter(on)
    assert (told["vertices"], told["diameter"], told["connected"]) == (1, 0, False)


def test_strong_components(monkeypatch):
    """The largest is found from its first vertices; others are then too small.

    The rest, 170 vertices, is the chain, which is reached, and 89 that are not.
    """
    ring, chain = np.arange(100), np.arange(100, 180)
    u = np.concatenate([ring, chain[:-1], [5, 179]])
    v = np.concatenate([np.roll(ring, -1), chain[1:], [100, 180]])
    on, sizes = searcher(Tuples(270, u, v), directed=True), []
    monkeypatch.setattr(components, "LANE", 2)
    run = WholeSearcher.run
    counted = lambda *x: sizes.append(len(x[2])) or run(*x)  # noqa: E731
    monkeypatch.setattr(WholeSearcher, "run", counted)
    found = components.largest_component(on, None, on.turned())
    np.testing.assert_array_equal(found, ring)
    assert sizes == [2, 2], "one traversal forward, one back"


@pytest.mark.parametrize(
    "source", [grid(35), kronecker(11), random_tuples(900, 1000, seed=2)]
)
def test_diameter_takes_few_searches(source):
    ends = diameter(searcher(source))
    component = of_component(source)
    hops = shortest_path(source.matrix, unweighted=True, indices=component)
    far = hops[:, component].max(axis=1)
    assert ends["diameter"] == far.max()
    assert ends["radius"] == far.min()
    assert ends["searches"] < ends["vertices"] / 2


def test_what_a_search_tells_of_others():
    """A path of five vertices, searched from one end, then from the middle."""
    bounds = Bounds(5)
    assert bounds.diameter == (1, 4)
    bounds.high[:] = 9
    level = np.arange(5, dtype=np.int32)
    bounds.learn(0, level, level)
    assert bounds.low.tolist() == [4, 3, 2, 3, 4]
    assert bounds.high.tolist() == [4, 5, 6, 7, 8]
    assert (bounds.diameter, bounds.radius) == ((4, 8), (2, 4))
    assert 0 not in bounds.next(9)
    level = np.array([2, 1, 0, 1, 2], dtype=np.int32)
    bounds.learn(2, level, level)
    assert (bounds.diameter, bounds.radius) == ((4, 4), (2, 2))
    assert not len(bounds.next(9))


def test_levels_widen_and_refuse():
    source = Tuples(200, range(199), range(1, 200))
    on = searcher(source)
    assert levels(on, np.array([100])).dtype == np.int8
    rows = levels(on, np.array([0, 100]))
    assert rows.dtype == np.int16
    assert rows[0, 199] == 199
    with pytest.raises(TooDeep, match="level 199 does not fit int8"):
        levels(on, np.array([0]), "int8")
    assert levels(on, np.zeros(0, dtype=np.int64)).shape == (0, 200)


def test_rows_are_streamed(monkeypatch):
    monkeypatch.setattr(sharing, "ROWS_BYTES", 144 * 10)
    rows, done = [], []
    source = NAMED["grid"]
    every = np.arange(25)
    take = lambda first, level: rows.append((first, level.shape))  # noqa: E731
    progress = lambda *_: nullcontext(done.append)  # noqa: E731
    rows_of = lambda _: nullcontext(take)  # noqa: E731
    facts = stream(
        Task(searcher(source), every, rows=rows_of, progress=progress), "int8"
    )
    wanted = source.levels_from(every)
    assert facts["pairs_reached"] == (wanted >= 0).sum()
    assert facts["largest_level"] == wanted.max()
    assert rows == [(0, (10, 144)), (10, (10, 144)), (20, (5, 144))]
    assert done == [10, 20, 25]


def test_graphs_without_vertices():
    on = searcher(NO_VERTEX)
    none = np.zeros(0, dtype=np.int64)
    assert levels(on, none).shape == (0, 0)
    assert betweenness(on, none).shape == closeness(on, none).shape == (0,)
    assert eccentricity(on, none)[0].shape == (0,)
    assert diameter(on)["diameter"] is None
    assert reachability(on, none.reshape(0, 2)).shape == (0,)
    assert khop(on, none, 2).shape == (0, 0), "2 is no limit here"


@pytest.mark.parametrize("name", ["two-hubs", "two-components", "isolated", "loops"])
def test_betweenness_by_parts(name):
    source = NAMED[name]
    on, alone = in_parts(source), searcher(source)
    every = np.arange(source.n)[: 40 if source.n > 100 else None]
    for some in (every, every[::3], every[:1], every[:0]):
        for endpoints in (False, True):
            value = betweenness(on, some, endpoints=endpoints)
            wanted = betweenness(alone, some, endpoints=endpoints)
            np.testing.assert_allclose(value, wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("directed", [False, True])
def test_betweenness_of_one_part(directed):
    source = NAMED["two-hubs"]
    graph = distbfs.Graph.from_edges(source.u, source.v, source.n, directed=directed)
    session = distbfs.open(graph, engine="openmp", stepwise=True)
    on = sharing.PartsSearcher(session, RunOptions(), directed=directed)
    wanted = nx.betweenness_centrality(graph.to_networkx())
    value = betweenness(on, np.arange(source.n))
    np.testing.assert_allclose(value, list(wanted.values()), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", HOSTS)
def test_betweenness_by_searchers(name, monkeypatch):
    source = NAMED["two-hubs"]
    wanted = list(nx.betweenness_centrality(by_networkx(source)).values())
    called = []
    kernel = between.dependencies
    monkeypatch.setattr(
        between, "dependencies", lambda *x: called.append(1) or kernel(*x)
    )
    got = betweenness(searcher(source, name), np.arange(source.n))
    np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-14)
    assert bool(called) == (name == "openmp")
    with pytest.raises(UsageError, match="cannot run over parts"):
        in_parts(source).run(between.PROBLEM, np.arange(3))
