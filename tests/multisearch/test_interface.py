"""The Python interface of many searches."""

import pickle
import tracemalloc

import networkx as nx
import numpy as np
import pytest

import distbfs
from distbfs.errors import OutOfMemory, UsageError
from distbfs.multisearch import searchers
from distbfs.plan import memory


@pytest.mark.parametrize("engine", ["reference", "openmp"])
def test_limits_beyond_all_levels(engine):
    """They are none: nothing is as large as the limit, and nothing wraps."""
    graph = distbfs.Graph.from_edges([0, 1, 2, 4], [1, 2, 3, 5])
    for hops in (6, 1 << 31, 1 << 63, (1 << 64) + 1, np.uint64(1 << 63)):
        assert distbfs.within_hops(graph, [0], hops, engine).tolist() == [[1, 2, 3, 4]]
        levels = distbfs.search_many(
            graph,
            distbfs.Problem("levels", (distbfs.State("level", "int32", "pair"),)),
            [0],
            engine,
            depth=hops,
        )["level"]
        assert levels.tolist() == [[0, 1, 2, 3, -1, -1]]
    assert distbfs.within_hops(graph, [0], 5, engine).shape == (1, 6)


@pytest.mark.parametrize("limit", [-1, 1.5, "2", True])
def test_limits_that_are_refused(limit):
    graph = distbfs.Graph.from_edges([0], [1])
    with pytest.raises(UsageError, match=rf"hops is '?{limit}'?; allowed: (0|an int)"):
        distbfs.within_hops(graph, [0], limit)
    problem = distbfs.Problem("levels", (distbfs.State("level", "int32", "pair"),))
    with pytest.raises(UsageError, match=rf"depth is '?{limit}'?; allowed: (0|an int)"):
        distbfs.search_many(graph, problem, [0], depth=limit)


@pytest.mark.parametrize("pairs", [[(0, 1, 1)], [(0, 1), (1,)], [()]])
def test_pairs_are_two_vertices(pairs):
    graph = distbfs.Graph.from_edges([0], [1])
    with pytest.raises(UsageError, match=r"pair \d has \d vertices; allowed: 2"):
        distbfs.reachable(graph, pairs)


@pytest.mark.parametrize("engine", ["reference", "openmp"])
def test_graphs_of_networkx(engine):
    graph = nx.relabel_nodes(nx.karate_club_graph(), lambda k: f"member {k}")
    held, nodes = distbfs.Graph.from_networkx(graph), list(graph)
    wanted = nx.betweenness_centrality(graph)
    np.testing.assert_allclose(
        distbfs.betweenness(held, engine=engine), list(wanted.values()), rtol=1e-9
    )
    close = nx.closeness_centrality(graph)
    values = distbfs.closeness(held, ["member 3", "member 3"], engine=engine)
    assert values[3] == pytest.approx(close["member 3"])
    assert np.isnan(values[4])
    assert distbfs.eccentricity(held, engine=engine).tolist() == list(
        nx.eccentricity(graph).values()
    )
    assert distbfs.diameter(held, engine=engine) == nx.diameter(graph)
    lengths = distbfs.path_lengths(held, ["member 5"], engine=engine)
    for v, level in nx.single_source_shortest_path_length(graph, "member 5").items():
        assert lengths[0, nodes.index(v)] == level
    assert distbfs.reachable(held, [("member 1", "member 2")], engine=engine).all()
    hops = distbfs.within_hops(held, ["member 0"], 1, engine=engine)
    assert hops.tolist() == [[1, 1 + graph.degree["member 0"]]]


def test_every_name_is_there_and_bfs_goes_on():
    for name in ("Problem", "State", "search_many"):
        assert name in dir(distbfs)
    graph = distbfs.Graph.from_edges([0, 1, 5], [1, 2, 6])
    assert distbfs.path_lengths(graph).shape == (7, 7)
    assert distbfs.bfs(graph, 0).depth == 2
    again = pickle.loads(pickle.dumps(graph))
    assert distbfs.diameter(again) == 2
    with pytest.raises(UsageError, match="9 is not a vertex"):
        distbfs.path_lengths(graph, [9])
    with pytest.raises(UsageError, match="unknown engine 'gpu'"):
        distbfs.path_lengths(graph, [0], engine="gpu")


def test_directed_graphs_and_graphs_without_vertices():
    chain = distbfs.Graph.from_edges([0, 1], [1, 2], directed=True)
    assert distbfs.path_lengths(chain, [1], "int32").tolist() == [[-1, 0, 1]]
    assert distbfs.closeness(chain).tolist() == [0, 0.5, pytest.approx(2 / 3)]
    none = distbfs.Graph.from_edges([], [])
    assert distbfs.path_lengths(none).shape == (0, 0)
    with pytest.raises(UsageError, match="no vertices, and so no diameter"):
        distbfs.diameter(none)


def test_results_that_do_not_fit_are_refused_before_a_search(monkeypatch):
    graph = distbfs.Graph.from_edges([0], [1], n=1000)
    monkeypatch.setattr(memory, "machine_memory", lambda: (1_200_000, "physical"))
    problem = distbfs.Problem("levels", (distbfs.State("level", "int16", "pair"),))
    for ask in (
        lambda: distbfs.path_lengths(graph),
        lambda: distbfs.search_many(graph, "apsp", None),
        lambda: distbfs.search_many(graph, problem, range(500), "reference"),
        lambda: distbfs.search_many(graph, problem, range(500), "openmp"),
    ):
        with pytest.raises(
            OutOfMemory, match=r"take 976\.6 KiB, and results may fill 9"
        ):
            ask()
    assert distbfs.path_lengths(graph, range(900)).shape == (900, 1000)


def test_lengths_are_there_once(monkeypatch):
    """Their rows are put where they stay, some searches at a time."""
    graph = distbfs.Graph.from_edges(np.arange(999), np.arange(1, 1000))
    wanted = np.abs(np.subtract.outer(np.arange(1000), np.arange(1000)))
    monkeypatch.setattr(searchers, "ROWS_BYTES", 1 << 17)
    distbfs.path_lengths(graph, [0])
    tracemalloc.start()
    got = distbfs.path_lengths(graph, engine="openmp")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_array_equal(got, wanted)
    assert got.nbytes < peak < 1.5 * got.nbytes
