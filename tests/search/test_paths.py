"""Shortest paths, their numbers and neighbourhoods, against NetworkX and products."""

from dataclasses import replace
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from graphs import NAMED, build, random_tuples
from sessions import open_parts
from shortest_paths import diamonds, path_counts
from worlds import on_ranks

import distbfs
from distbfs import registry
from distbfs.errors import UsageError
from distbfs.generate.hashing import Permutation
from distbfs.options import SearchOptions

ENGINES = ["reference", "openmp"]
OPTIONS = SearchOptions.named(engine="reference", exchange="threads", threads=1)


@pytest.fixture(autouse=True)
def threads_exchange(monkeypatch):
    monkeypatch.setitem(registry.EXCHANGES, "threads", "worlds:ThreadExchange")


def some_network(seed):
    rng = np.random.default_rng(seed)
    kind = (nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph)[seed % 4]
    graph = kind(nx.gnm_random_graph(18, 30, seed=seed, directed=bool(seed % 2)))
    graph.add_edges_from([(4, 4), (5, 6), (5, 6)])
    if seed % 3 == 0:
        graph = nx.relabel_nodes(graph, {v: f"v{v}" for v in graph})
    return graph, list(graph)[rng.integers(len(graph))]


def all_paths(network, source):
    """Every shortest path to each vertex that is reached."""
    return {
        target: list(nx.all_shortest_paths(network, source, target))
        for target in nx.single_source_shortest_path_length(network, source)
    }


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", range(12))
def test_as_networkx(engine, seed):
    network, source = some_network(seed)
    graph = distbfs.Graph.from_networkx(network)
    result = distbfs.bfs(graph, source, engine)
    wanted = all_paths(network, source)
    for dtype in ("uint64", "float64"):
        counts = result.path_counts(dtype)
        assert counts.dtype == dtype
        every = {v: len(wanted.get(v, ())) for v in network}
        assert graph.by_name(counts) == every
    for target, paths in wanted.items():
        assert result.path_count_to(target) == len(paths)
        assert sorted(result.all_paths_to(target)) == sorted(paths)
        edges = {edge for path in paths for edge in pairwise(path)}
        pairs = [tuple(pair) for pair in result.predecessors_to(target).tolist()]
        assert (len(pairs), set(pairs)) == (len(edges), edges)
    for hops in (0, 1, 2, None):
        near = nx.ego_graph(network, source, radius=18 if hops is None else hops)
        plain = nx.DiGraph(near) if network.is_directed() else nx.Graph(near)
        plain.remove_edges_from(list(nx.selfloop_edges(plain)))
        table = result.edges_within(hops)
        assert len(table) == plain.number_of_edges()
        assert all(plain.has_edge(u, v) for u, v in table.edges.tolist())
        level = graph.by_name(result.level)
        for name, of in (("u", table.level_u), ("v", table.level_v)):
            ends = getattr(table, name).tolist()
            assert [level[x] for x in ends] == of.tolist()
        if not network.is_directed():
            assert (table.level_u <= table.level_v).all()
        made = distbfs.k_hop_subgraph(graph, source, hops, engine=engine)
        assert made.edges.tolist() == table.edges.tolist()


@pytest.mark.parametrize("engine", ENGINES)
def test_counts_beyond_64_bits(engine):
    for count, fits in ((63, True), (64, False), (90, False)):
        source = diamonds(count)
        graph = distbfs.Graph.from_edges(source.u, source.v)
        result = distbfs.bfs(graph, 0, engine)
        assert result.path_count_to(3 * count) == 2**count
        assert result.path_counts("float64").max() == 2.0**count
        if fits:
            assert int(result.path_counts().max()) == 2**count
            continue
        with pytest.raises(UsageError, match="level 128; float64 holds"):
            result.path_counts()


def test_wrong_use():
    graph = distbfs.Graph.from_edges([0, 1, 4], [1, 2, 5])
    result = distbfs.bfs(graph, 0)
    for call in (result.predecessors_to, result.all_paths_to, result.path_count_to):
        with pytest.raises(UsageError, match="4 was not reached from 0"):
            call(4)
        with pytest.raises(UsageError, match="target 9 is not a vertex"):
            call(9)
    with pytest.raises(UsageError, match=r"^9 is not a vertex; allowed: 0 to 5"):
        result.path_to(9)
    result = distbfs.bfs(distbfs.Graph.from_edges([0], [1], n=64), np.arange(40))
    for call in (result.path_to, result.all_paths_to):
        with pytest.raises(
            UsageError, match=r"50 was .* 40 sources \[0, 1, 2, 3, ...]$"
        ):
            call(50)
    result = distbfs.bfs(graph, 0)
    for limit in (-1, "many"):
        with pytest.raises(UsageError, match="limit is"):
            result.all_paths_to(2, limit=limit)
    assert list(result.all_paths_to(2, limit=0)) == []
    assert list(result.all_paths_to(0)) == [[0]]
    assert result.predecessors_to(0).shape == (0, 2)
    with pytest.raises(UsageError, match="dtype is 'int32'; allowed: uint64, float64"):
        result.path_counts("int32")
    with pytest.raises(UsageError, match="hops"):
        result.edges_within(-1)
    limited = distbfs.bfs(graph, 0, depth_limit=1)
    np.testing.assert_array_equal(limited.path_counts(), [1, 1, 0, 0, 0, 0])
    with distbfs.open(graph, engine="reference") as session:
        gone = session.search(0)
        kept = session.search(1).keep()
        session.search(2)
        with pytest.raises(UsageError, match="has searched again"):
            gone.path_counts()
        assert kept.path_counts().tolist() == [1, 1, 1, 0, 0, 0]


def test_tables():
    pandas = pytest.importorskip("pandas")
    graph = distbfs.Graph.from_edges([0, 1], [1, 2])
    table = distbfs.k_hop_subgraph(graph, 1, 1)
    wanted = {"u": [1, 1], "v": [0, 2], "level_u": [0, 0], "level_v": [1, 1]}
    assert table.to_pandas().to_dict("list") == wanted
    assert isinstance(table.to_pandas(), pandas.DataFrame)
    assert repr(table) == "<distbfs.EdgeTable, 2 edges>"


CASES = [
    ("kronecker", 1, 2, 4),
    ("random", 2, 4, 6),
    ("two-hubs", 2, 2, 3),
    ("random", 1, 1, 3),
    ("kronecker", 2, 2, None),  # ranks own rows
    ("random", 3, 3, None),
]
SOURCES = {**NAMED, "random": random_tuples(150, 420, seed=8)}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("name", "ranks", "parts", "threshold"), CASES)
def test_parts_on_ranks(name, ranks, parts, threshold, engine):
    """Delegates and edges between parts and ranks, vertices renamed inside."""
    source, seed = SOURCES[name], 5
    options = replace(OPTIONS, engine=engine)
    ways = {"owned": True} if threshold is None else {"threshold": threshold}
    whole = distbfs.Graph.from_edges(source.u, source.v, n=source.n)

    def work(world):
        made, _ = build(source, parts, world, permute_seed=seed, **ways)
        session = open_parts(world, made, options, Permutation(source.n, seed))
        return answers(session.search(root), target)

    for root in (0, int(source.degrees.argmax())):
        expected = distbfs.bfs(whole, root, "openmp")
        target = int(expected.level.argmax())
        counts, floats, pairs, edges = zip(*on_ranks(ranks, work), strict=True)
        wanted = path_counts(source.matrix, expected.level)
        np.testing.assert_array_equal(np.concatenate(counts), wanted)
        np.testing.assert_array_equal(np.concatenate(floats), wanted)
        for own in pairs:
            np.testing.assert_array_equal(own, expected.predecessors_to(target))
        for hops, tables in enumerate(zip(*edges, strict=True)):
            rows = np.concatenate(tables)
            rows = rows[np.lexsort(rows.T[:3][::-1])]
            columns = expected.edges_within(hops or None).columns()
            by_ends = np.stack([columns[x] for x in ("u", "v", "level_u")], axis=1)
            order = np.lexsort(by_ends.T[::-1])
            np.testing.assert_array_equal(rows[:, :3], by_ends[order])


def answers(result, target):
    edges = [result.edges_within(hops or None) for hops in range(3)]
    return (
        result.path_counts(),
        result.path_counts("float64"),
        result.predecessors_to(target),
        [np.stack([*x.columns().values()], axis=1) for x in edges],
    )


def test_ranks_agree_on_counts_that_are_too_large():
    source = diamonds(66)

    def work(world):
        made, _ = build(source, 2, world, threshold=3)
        session = open_parts(world, made, OPTIONS)
        result = session.search(0)
        with pytest.raises(UsageError, match="on level 128; float64"):
            result.path_counts()
        return result.path_counts("float64").max()

    assert max(on_ranks(2, work)) == 2.0**66
