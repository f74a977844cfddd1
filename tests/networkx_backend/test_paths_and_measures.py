"""The backend's paths, distances and centralities against NetworkX's."""

import math
import random

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_backend import ERRORS, KINDS, LIMITS, check_types, graphs, made, outcome, same

from distbfs.device import cuda
from distbfs.errors import DeviceMissing
from distbfs.networkx_backend import backend
from distbfs.networkx_backend.graph import BackendGraph
from distbfs.networkx_backend.nodes import BEFORE_3_5

needs_3_5 = pytest.mark.skipif(BEFORE_3_5, reason="NetworkX 3.4 scales samples its way")


@pytest.fixture(autouse=True)
def no_device(monkeypatch):
    def missing():
        raise DeviceMissing("no CUDA device: hidden by a test")

    monkeypatch.setattr(cuda, "cupy", missing)


def some_node(graph):
    return st.sampled_from([*graph, "nobody"])


@settings(max_examples=20, deadline=None)
@given(graph=graphs(most=7), cutoff=LIMITS)
def test_all_paths(graph, cutoff):
    same("all_pairs_shortest_path", graph, cutoff)


@pytest.mark.parametrize("name", ["shortest_path", "shortest_path_length"])
@settings(max_examples=40, deadline=None)
@given(graph=graphs(), data=st.data())
def test_shortest_paths(name, graph, data):
    ends = {
        end: data.draw(some_node(graph))
        for end in ("source", "target")
        if data.draw(st.booleans())
    }
    method = data.draw(st.sampled_from(["dijkstra", "bellman-ford", "other"]))
    same(name, graph, **ends, method=method)
    same(name, graph, **ends)


@settings(max_examples=50, deadline=None)
@given(graph=graphs(most=14), data=st.data())
def test_paths_between_two(graph, data):
    ends = [data.draw(some_node(graph)) for _ in range(2)]
    same("bidirectional_shortest_path", graph, *ends)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("edges", [60, 120, 400])
def test_paths_of_larger_graphs(kind, edges):
    directed = kind().is_directed()
    graph = kind(nx.gnm_random_graph(80, edges, seed=edges, directed=directed))
    converted = BackendGraph(*made(graph))
    for source in range(0, 80, 9):
        for target in graph:
            results = [
                outcome(lambda: home.bidirectional_shortest_path(g, source, target))  # noqa: B023
                for home, g in ((backend, converted), (nx, graph))
            ]
            assert results[0] == results[1]


def test_ends_of_paths_are_as_they_were_given():
    graph = nx.path_graph(5)
    converted = BackendGraph(*made(graph))
    for ends in ((0.0, 4.0), (np.int64(1), 2.0), (True, 1), (3, True), (0.0, 1)):
        for one, other in (ends, ends[::-1]):
            found = backend.bidirectional_shortest_path(converted, one, other)
            wanted = nx.bidirectional_shortest_path(graph, one, other)
            assert list(map(repr, found)) == list(map(repr, wanted))


@settings(max_examples=26, deadline=None)
@given(graph=graphs(most=6))
def test_mean_length(graph):
    same("average_shortest_path_length", graph)
    same("average_shortest_path_length", graph, method="unweighted")


@pytest.mark.parametrize(
    "name", ["multi_source_dijkstra_path", "multi_source_dijkstra_path_length"]
)
@settings(max_examples=26, deadline=None)
@given(graph=graphs(), data=st.data())
def test_from_several_nodes(name, graph, data):
    chosen = data.draw(st.lists(some_node(graph), max_size=3))
    same(name, graph, chosen, data.draw(LIMITS), weight=None)
    if chosen:
        same(name, graph, set(chosen), weight=None)


MEASURES = ("center", "diameter", "periphery", "radius")


@pytest.mark.parametrize("name", MEASURES)
@settings(max_examples=26, deadline=None)
@given(graph=graphs(most=6))
def test_measures(name, graph):
    same(name, graph)


@pytest.mark.parametrize("name", [*MEASURES, "eccentricity"])
@pytest.mark.parametrize("directed", [False, True])
def test_measures_of_larger_graphs(name, directed):
    for edges in (150, 300, 900):
        graph = nx.gnm_random_graph(90, edges, seed=edges, directed=directed)
        same(name, graph)
        if directed:
            nx.add_cycle(graph, random.Random(edges).sample(range(90), 90))
        else:
            nx.add_path(graph, random.Random(edges).sample(range(90), 90))
        same(name, graph)
    same(name, nx.random_labeled_tree(60, seed=4))


@settings(max_examples=26, deadline=None)
@given(graph=graphs(), data=st.data())
def test_closeness(graph, data):
    improved = data.draw(st.booleans())
    same("closeness_centrality", graph, wf_improved=improved)
    same("closeness_centrality", graph, data.draw(some_node(graph)))


@settings(max_examples=26, deadline=None)
@given(graph=graphs(), data=st.data())
def test_harmonic(graph, data):
    nodes = some_node(graph) | st.lists(some_node(graph), max_size=4)
    ways = {
        name: data.draw(nodes)
        for name in ("nbunch", "sources")
        if data.draw(st.booleans())
    }
    converted = BackendGraph(*made(graph))
    sums, wanted = (
        outcome(lambda: home.harmonic_centrality(g, **ways))  # noqa: B023
        for home, g in ((backend, converted), (nx, graph))
    )
    if isinstance(wanted, dict):
        check_types(sums)
        assert list(sums) == list(wanted)
        wanted = pytest.approx(wanted, rel=1e-12)
    assert sums == wanted


@settings(max_examples=40, deadline=None)
@given(graph=graphs(), data=st.data())
def test_betweenness(graph, data):
    k = None if BEFORE_3_5 else data.draw(st.none() | st.integers(0, len(graph) + 1))
    seed = data.draw(st.integers(0, 9))
    ways = {x: data.draw(st.booleans()) for x in ("normalized", "endpoints")}
    converted = BackendGraph(*made(graph))

    def of(home, taken):
        try:
            return home.betweenness_centrality(taken, k, seed=seed, **ways)
        except (*ERRORS, ZeroDivisionError) as error:
            return type(error), str(error)

    found, wanted = of(backend, converted), of(nx, graph)
    if isinstance(wanted, tuple):
        assert found == wanted
        return
    assert list(found) == list(wanted)
    check_types(found)
    for node, value in wanted.items():
        assert found[node] == pytest.approx(value, rel=1e-12, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(
    "k", [None, *(pytest.param(k, marks=needs_3_5) for k in (1, 17))]
)
def test_betweenness_of_a_larger_graph(directed, k):
    graph = nx.gnm_random_graph(120, 400, seed=3, directed=directed)
    converted = BackendGraph(*made(graph))
    for endpoints in (False, True):
        found, wanted = (
            home.betweenness_centrality(g, k, endpoints=endpoints, seed=11)
            for home, g in ((backend, converted), (nx, graph))
        )
        assert found == pytest.approx(wanted, rel=1e-9, nan_ok=True)
        assert any(map(math.isnan, wanted.values())) == (k == 1 and not endpoints)


@settings(max_examples=100, deadline=None)
@given(graph=graphs(most=12))
def test_two_colours(graph):
    same("is_bipartite", graph)


@pytest.mark.parametrize("kind", KINDS)
def test_two_colours_of_larger_graphs(kind):
    graph = kind(nx.bipartite.gnmk_random_graph(40, 50, 110, seed=2))
    graph = nx.relabel_nodes(graph, {k: (7 * k) % 90 for k in range(90)})
    assert nx.is_bipartite(graph)
    same("is_bipartite", graph)
    graph.add_edge(100, 101)
    graph.add_edge(101, 102)
    same("is_bipartite", graph)
    graph.add_edge(102, 100)
    assert not nx.is_bipartite(graph)
    same("is_bipartite", graph)
    graph.remove_edge(102, 100)
    graph.add_edge(7, 14 if nx.bipartite.color(graph)[7] == 1 else 7)
    same("is_bipartite", graph)


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "answer"),
    [
        ("shortest_path", (0, 1, 2), {}, True),
        ("shortest_path", (0, 1, 2, "w"), {}, "weight is not None"),
        ("shortest_path_length", (0,), {"weight": "w"}, "weight is not None"),
        pytest.param(
            *("betweenness_centrality", (0, 3), {"seed": 5}, True), marks=needs_3_5
        ),
        ("betweenness_centrality", (0, 3, True, "w"), {}, "weight is not None"),
        ("closeness_centrality", (0,), {"distance": "w"}, "distance is not None"),
        ("closeness_centrality", (0, 1), {"wf_improved": False}, True),
        ("harmonic_centrality", (0, None, "w"), {}, "distance is not None"),
        ("harmonic_centrality", (0, [1]), {"sources": [2]}, True),
        ("average_shortest_path_length", (0, None, "unweighted"), {}, True),
        (
            "average_shortest_path_length",
            (0,),
            {"method": "dijkstra"},
            "method is not None",
        ),
        ("center", (0,), {"usebounds": True}, "usebounds is not None"),
        ("radius", (0, {1: 2}), {}, "e is not None"),
        ("multi_source_dijkstra_path", (0, [1]), {}, "weight is not None"),
        ("multi_source_dijkstra_path", (0, [1], 2, None), {}, True),
        ("multi_source_dijkstra_path_length", (0, [1]), {"weight": None}, True),
    ],
)
def test_what_is_left_to_networkx(name, args, kwargs, answer):
    assert backend.can_run(name, args, kwargs) == answer


def test_paths_between_two_are_left_to_networkx_until_converted():
    graph, reason = nx.path_graph(999), "converting the graph takes longer"
    for name in backend.BETWEEN_TWO:
        assert backend.should_run(name, (graph, 0, 3), {}) == reason
        assert backend.should_run(name, (graph, 0), {"target": 3}) == reason
        assert backend.should_run(name, (graph, 0), {}) is True
        ours = backend.convert_from_nx(graph)
        assert backend.should_run(name, (ours, 0, 3), {}) is True


def test_no_other_function():
    with pytest.raises(AttributeError, match="no function 'pagerank'"):
        backend.pagerank  # noqa: B018
    assert not hasattr(backend, "depths")
