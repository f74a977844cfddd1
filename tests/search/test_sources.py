"""Where a search begins, as programs say it: one vertex, or a set."""

import networkx as nx
import numpy as np
import pytest

import distbfs
from distbfs.errors import UsageError, WrongTypeError

ENGINES = [
    ("reference", ""),
    ("openmp", ""),
    ("openmp", "hybrid"),
    ("openmp", "ordered"),
]


def random_graph(rng, directed):
    n = int(rng.integers(2, 50))
    edges = rng.integers(0, n, (int(rng.integers(0, 2 * n)), 2))
    graph = (nx.DiGraph if directed else nx.Graph)()
    graph.add_nodes_from(range(n))
    graph.add_edges_from(edges.tolist())
    return graph


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(("engine", "method"), ENGINES)
def test_the_nearest_source_as_networkx_finds_it(engine, method, directed):
    rng = np.random.default_rng(7)
    for _ in range(12):
        graph = random_graph(rng, directed)
        n = len(graph)
        held = distbfs.Graph.from_networkx(graph)
        for count in (2, n // 2 + 1, n):
            roots = np.unique(rng.integers(0, n, count))
            wanted = nx.multi_source_dijkstra_path_length(graph, set(roots.tolist()))
            result = distbfs.bfs(held, roots, engine=engine, method=method)
            level, parent = result.to_numpy()
            assert result.to_dict() == wanted
            assert result.sources.tolist() == roots.tolist() == result.roots.tolist()
            own = np.flatnonzero(parent == np.arange(n))
            np.testing.assert_array_equal(own, roots)
            tree = result.tree()
            assert len(tree) == result.reached - len(roots)
            assert all(graph.has_edge(u, v) for u, v in tree.tolist())
            np.testing.assert_array_equal(level[tree[:, 1]], level[tree[:, 0]] + 1)
            order, before = result.to_scipy()
            assert sorted(order.tolist()) == np.flatnonzero(level >= 0).tolist()
            assert (before[roots] == -9999).all()
            far = int(level.argmax())
            assert len(result.path_to(far)) == level[far] + 1


PATH = distbfs.Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4])
LEVELS = [0, 1, 2, 1, 0]


@pytest.mark.parametrize(
    "several",
    [
        [0, 4],
        (4, 0),
        {0, 4},
        range(0, 5, 4),
        np.array([4, 0, 4], np.uint8),
        {0: 1, 4: 2},
    ],
)
def test_what_is_a_set(several):
    result = distbfs.bfs(PATH, several)
    assert result.level.tolist() == LEVELS
    assert result.source is several
    assert repr(result).startswith("<distbfs.Result from 2 sources [0, 4], reached 5")


def test_sets_of_one_and_targets_among_the_sources():
    one = distbfs.bfs(PATH, [2, 2])
    assert (one.root, one.roots.tolist(), one.depth) == (2, [2], 2)
    assert distbfs.bfs(PATH, [0, 4], targets=[0]).depth == 0
    assert distbfs.bfs(PATH, [0, 4], targets=[0, 1]).depth == 1
    assert distbfs.bfs(PATH, [0, 4], depth_limit=0).reached == 2


def test_a_name_wins_over_a_set():
    graph = nx.Graph([((0, 1), "ab"), ("ab", 0), (0, 1), (1, "a")])
    held = distbfs.Graph.from_networkx(graph)
    assert distbfs.bfs(held, (0, 1)).to_dict()[0] == 2
    assert distbfs.bfs(held, [0, 1]).to_dict()[(0, 1)] == 2
    assert distbfs.bfs(held, [(0, 1), 1]).to_dict()[0] == 1
    assert distbfs.bfs(held, "ab").reached == 5
    assert distbfs.bfs(held, ("ab", "a")).sources.tolist() == ["ab", "a"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ([], "the set of sources is empty"),
        (np.array([]), "the set of sources is empty"),
        ([0, 5], "source 5 is not a vertex; allowed: 0 to 4"),
        (np.array([0, -1]), "source -1 is not a vertex; allowed: 0 to 4"),
        ([[0]], r"source \[0\] is not a vertex"),
        ("01", "source '01' is not a vertex"),
        ([True], "source True is not a vertex"),
        (np.zeros((2, 2), int), "sources are an array of 2 dimensions"),
        (np.array([0.5]), "of dtype float64; allowed: one dimension, of integers"),
    ],
)
def test_what_is_no_set(source, message):
    with pytest.raises((UsageError, WrongTypeError), match=message):
        distbfs.bfs(PATH, source)
