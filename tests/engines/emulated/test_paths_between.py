"""Paths between two vertices on devices: by edge lookups, else by a search."""

import networkx as nx
import numpy as np
import pytest
from device_graphs import HostGraph, hubs
from directed_graphs import directed, distances, matrix_of, part_of
from drawn_examples import examples
from fast_graphs import path
from graphs import Tuples, kronecker, last_in_common, uniform
from hypothesis import given
from hypothesis import strategies as st
from masked import masked
from shortest_paths import check_path
from thread_peers import ThreadPeers

import distbfs
from distbfs import Graph
from distbfs.build.cuda.graph_of_rows import graph_of_part
from distbfs.engines.cuda.xbfs.lookups import SOURCES, STEPS, DeviceLookups, has_hubs
from distbfs.engines.cuda.xbfs.search import FastSearch
from distbfs.errors import SearchStopped, UsageError
from distbfs.ranks.signals import StopFlag
from distbfs.search import choose as choosing
from distbfs.search import device_opening, domain_group
from distbfs.service.rank_calls import ServiceRank

GRAPHS = {"hubs": hubs(3, 700), "kronecker": kronecker(8), "chain": path(60)}


def check_lookups(lookups, matrix, steps):
    """Of all pairs, and from sets; the levels that lookups cannot find stay open."""
    n = matrix.shape[0]
    for source in range(n):
        levels = distances(matrix, source)
        for target in range(n):
            shortest = lookups.path(np.array([source]), target)
            if shortest is None:
                assert steps < STEPS or levels[target] > 5 or levels[target] < 0
                continue
            check_path(shortest.vertices.tolist() or None, matrix, [source], target)
    several = np.arange(0, n, 2)
    for target in range(n):
        shortest = lookups.path(several, target)
        if shortest is not None:
            vertices = shortest.vertices.tolist() or None
            check_path(vertices, matrix, several.tolist(), target)


@examples(30)
@given(matrix=directed(14), steps=st.sampled_from((0, 2, STEPS)), wide=st.booleans())
def test_any_directed_graph(device, matrix, steps, wide):
    graph = graph_of_part("xbfs", part_of(matrix))
    if not graph.active:
        assert not has_hubs(graph)
        return
    if wide:
        for side in graph.sides:
            widened = side.offsets.astype(np.uint64)
            object.__setattr__(side, "offsets", widened)
    for rows, edges in ((graph, matrix), (graph.turned(), matrix.T.tocsr())):
        lookups = DeviceLookups(rows)
        lookups.pairs.lookups = steps
        check_lookups(lookups, edges, steps)


def test_paths_of_every_length(device):
    """Up to five edges; one more is left to a search."""
    lookups = DeviceLookups(HostGraph(path(8)).graph)
    for target in range(6):
        vertices = lookups.path(np.array([0]), target).vertices
        assert vertices.tolist() == [*range(target + 1)]
        back = lookups.path(np.array([target]), 0).vertices
        assert back.tolist() == [*range(target, -1, -1)]
    assert lookups.path(np.array([0]), 6) is None
    assert lookups.path(np.array([0, 2]), 6) is None
    assert lookups.path(np.array([1, 2]), 6).vertices.tolist() == [2, 3, 4, 5, 6]
    assert lookups.path(np.zeros(SOURCES + 1, np.int64), 1) is None
    common = DeviceLookups(HostGraph(last_in_common(50)).graph)
    assert len(common.path(np.array([2]), 3).vertices) == 5


def test_graphs_with_hubs(device):
    """Where few pairs have short paths, a search begins at once."""
    for name, source in GRAPHS.items():
        assert has_hubs(HostGraph(source).graph) == (name != "chain")
    assert not has_hubs(HostGraph(uniform(2000, 9000)).graph)


@pytest.fixture
def searches(monkeypatch):
    """The roots from which devices have searched."""
    roots, answer = [], FastSearch.answer

    def counted(self, root, query):
        roots.append(root)
        return answer(self, root, query)

    monkeypatch.setattr(FastSearch, "answer", counted)
    return roots


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("one_way", "form"),
    [(x, form) for x in (False, True) for form in ("ids", "internal")]
    + [(True, "reverse")],
)
@pytest.mark.parametrize("name", GRAPHS)
def test_paths_on_one_device(device, searches, name, one_way, form):
    """Few pairs of a graph with hubs need a search."""
    source = GRAPHS[name]
    matrix = matrix_of(source.n, source.u, source.v)
    if form == "reverse":
        matrix = matrix.T.tocsr()
    whole = matrix if one_way else matrix + matrix.T
    options = {"internal_ids": form == "internal", "reverse": form == "reverse"}
    rng = np.random.default_rng(5)
    with distbfs.open(
        source, engine="xbfs", directed=one_way, devices=1, **options
    ) as session:
        assert session.both_ends == (name != "chain")
        searches.clear()
        for a, b in rng.integers(0, source.n, (20, 2)).tolist():
            check_path(session.path(a, b), whole, [a], b)
        if not one_way and session.both_ends:
            assert len(searches) < 3
        some = rng.integers(0, source.n, 5).tolist()
        check_path(session.path(some, some[2]), whole, some, some[2])
        check_path(session.path(some, b), whole, some, b)


@pytest.mark.parametrize("one_way", [False, True])
def test_masks(device, one_way):
    for seed in range(1, 9):
        u, v, n, vertices, edges, source, kept = masked(seed, one_way)
        graph = Graph.from_edges(u, v, n, directed=one_way)
        with distbfs.open(graph, engine="xbfs") as session:
            session.see(session.view(vertices, edges))
            levels = nx.multi_source_dijkstra_path_length(kept, {source}, weight=None)
            for target in range(0, n, 3):
                vertices_of = session.path(source, target)
                assert len(vertices_of or ()) - 1 == levels.get(target, -1)
                if vertices_of:
                    assert nx.is_path(kept, vertices_of)


def test_ends_of_paths(device):
    star = Tuples(9, np.zeros(8, int), np.arange(1, 9))
    with distbfs.open(star, engine="xbfs", directed=True) as session:
        assert session.path(0, 3) == [0, 3]
        assert session.path(3, 0) is None
        assert session.path([3, 0], 5) == [0, 5]
        with pytest.raises(SearchStopped):
            session.path(0, 1, stop=lambda: True)
        with pytest.raises(UsageError, match="target 9"):
            session.path(0, 9)
    with distbfs.open(star, engine="xbfs", parents=False) as session:
        assert not session.both_ends


@pytest.mark.thorough
@pytest.mark.parametrize("domain", [None, 1])
@pytest.mark.parametrize("one_way", [False, True])
def test_paths_on_several_devices(device, monkeypatch, domain, one_way):
    """A domain, or several, and rows with tails: a search ends at the target."""
    monkeypatch.setattr(choosing, "take_devices", lambda *_, **__: [0, 0])
    monkeypatch.setattr(choosing, "ONE_DEVICE_BELOW", 1)
    monkeypatch.setattr("distbfs.exchange.peer_memory.peer_problem", lambda *_: "")
    monkeypatch.setattr(device_opening, "PeerGroup", ThreadPeers)
    monkeypatch.setattr(domain_group, "PeerGroup", ThreadPeers)
    source = GRAPHS["kronecker"]
    matrix = matrix_of(source.n, source.u, source.v)
    whole, rng = matrix if one_way else matrix + matrix.T, np.random.default_rng(1)
    with distbfs.open(
        source, engine="xbfs", directed=one_way, domain=domain
    ) as session:
        assert not session.both_ends
        for a, b in rng.integers(0, source.n, (6, 2)).tolist():
            check_path(session.path(a, b), whole, [a], b)


@pytest.mark.parametrize("one_way", [False, True])
def test_requests_of_a_service(device, one_way):
    """A path, and the distance of one target; searches serve what lookups do not."""
    source = GRAPHS["kronecker"]
    matrix = matrix_of(source.n, source.u, source.v)
    whole, rng = matrix if one_way else matrix + matrix.T, np.random.default_rng(1)
    with distbfs.open(source, engine="xbfs", directed=one_way, devices=1) as session:
        ranks = ServiceRank(session, StopFlag())
        for a, b in rng.integers(0, source.n, (9, 2)).tolist():
            wanted = int(distances(whole, a)[b])
            for steps in ([["path", b, 99]], [["at", [b]]]):
                _, [answer] = ranks.search(a, steps, lambda: False)
                if steps[0][0] == "at":
                    assert answer == [wanted]
                    continue
                assert answer[0] == wanted
                check_path(answer[1], whole, [a], b)
