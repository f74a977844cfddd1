"""Searches that see some vertices and edges, against NetworkX on the rest."""

import networkx as nx
import numpy as np
import pytest
from masked import check, masked, search_parts, seen_set

import distbfs
from distbfs import Graph, bfs, k_hop_subgraph
from distbfs.errors import DistbfsError

HOST = (
    {"engine": "reference"},
    {"engine": "reference", "direction": "pull"},
    {"engine": "openmp", "threads": 2},
    {"engine": "openmp", "direction": "push"},
    {"engine": "openmp", "direction": "pull", "threads": 2},
    {"engine": "openmp", "method": "hybrid", "direction": "pull"},
    {"engine": "openmp", "method": "push"},
    {"engine": "openmp", "method": "ordered"},
)


@pytest.mark.thorough
@pytest.mark.parametrize("directed", [False, True])
def test_whole_graphs(directed):
    for seed in range(1, 24):
        u, v, n, vertices, edges, source, kept = masked(seed, directed)
        graph = Graph.from_edges(u, v, n, directed=directed)
        if vertices is None and edges is None:
            continue
        for options in HOST:
            all_of_it = bfs(graph, source, **options).level
            one = bfs(graph, source, vertices=vertices, edges=edges, **options)
            check(one.level, one.parent, one.nedge, source, kept)
            several = seen_set(kept, source)
            one = bfs(graph, several, vertices=vertices, edges=edges, **options)
            check(one.level, one.parent, one.nedge, several, kept)
            assert np.array_equal(bfs(graph, source, **options).level, all_of_it)


def test_views_that_close_vertices():
    """What the search before reached has no level where no seen edge enters it."""
    graph = Graph.from_edges([0, 1, 2], [1, 2, 3], directed=True)
    with distbfs.open(graph, engine="openmp") as session:
        assert session.search(0).level.tolist() == [0, 1, 2, 3]
        session.see(session.view(edges=[True, False, True]))
        assert session.search(0).level.tolist() == [0, 1, -1, -1]


def test_parts():
    for seed in range(1, 13):
        search_parts(seed)


def test_attributes():
    pandas = pytest.importorskip("pandas")
    random = np.random.default_rng(5)
    for directed in (False, True):
        u, v, weight = random.integers(0, 30, (3, 200))
        frame = pandas.DataFrame({"u": u, "v": v, "weight": weight})
        frame["kind"] = np.array(["air", "rail", "road"])[u % 3]
        frame["rate"] = np.where(weight % 5, weight / 7, np.nan)
        graph = Graph.from_pandas(
            frame, n=30, directed=directed, keep=["weight", "kind", "rate"]
        )
        kinds = {"weight": "int64", "kind": "text", "rate": "float64"}
        assert graph.attributes == kinds
        for where in (
            "weight < 9 and not 2 <= weight < 4",
            "kind == 'air' or kind in ('rail', 'x')",
            "1.5 >= rate",
        ):
            least = {}
            for a, b, *values in frame.itertuples(index=False):
                edge = (a, b) if directed else (min(a, b), max(a, b))
                if a != b:
                    least.setdefault(edge, []).append(values)
            kept = nx.DiGraph() if directed else nx.Graph()
            kept.add_nodes_from(range(30))
            for edge, rows in least.items():
                weights, texts, rates = zip(*rows, strict=True)
                names = {"weight": min(weights), "kind": min(texts)}
                names["rate"] = min((x for x in rates if x == x), default=np.nan)
                if eval(where, {}, names):
                    kept.add_edge(*edge)
            for engine in ("reference", "openmp"):
                one = bfs(graph, 3, engine, where=where)
                check(one.level, one.parent, one.nedge, 3, kept)


def test_views_are_kept_and_do_not_change():
    graph = Graph.from_edges([0, 1, 2], [1, 2, 3])
    flags = np.array([True, True, False, True])
    view = graph.view(flags)
    flags[:] = True
    assert graph.view([True, True, False, True]) is view
    assert bfs(graph, 0, view=view).reached == 2
    assert repr(view) == "<distbfs.View of 3 of 4 vertices>"


def test_the_same_flags_of_vertices_and_of_edges():
    """They make other views, which resumed runs tell apart as well."""
    graph = Graph.from_edges([0, 1, 2, 0], [1, 2, 3, 3])
    flags = [True, True, False, True]
    views = graph.view(vertices=flags), graph.view(edges=flags)
    assert views[0].facts() != views[1].facts()
    levels = [bfs(graph, 0, "reference", view=view).level.tolist() for view in views]
    assert levels == [[0, 1, -1, 1], [0, 1, 2, 1]]


def test_all_is_seen_after_a_view_that_is_refused():
    graph = Graph.from_edges([0, 1, 2], [1, 2, 3])
    with distbfs.open(graph, engine="reference") as session:
        view = session.view([True, True, False, True])
        session.see(view)
        with pytest.raises(DistbfsError, match="edges has 1 flags"):
            session.see(session.view(edges=[True]))
        assert session.search(2).reached == 4
        session.see(view)
        assert session.search(0).reached == 2


@pytest.mark.parametrize("engine", ["reference", "openmp"])
def test_paths_are_of_all_edges(engine):
    graph = Graph.from_edges([0, 0, 1, 2], [1, 2, 3, 3])
    whole = bfs(graph, 0, engine)
    one = bfs(graph, 0, engine, edges=[True, True, True, False])
    assert one.path_to(3) == [0, 1, 3]
    for call in (
        one.path_counts,
        one.edges_within,
        lambda: one.predecessors_to(3),
        lambda: one.path_count_to(3),
        lambda: one.all_paths_to(3),
    ):
        with pytest.raises(DistbfsError, match="this one has a view"):
            call()
    assert whole.path_counts().tolist() == [1, 1, 1, 2]
    assert bfs(graph, 0, engine).path_count_to(3) == 2
    assert len(k_hop_subgraph(graph, 0, engine=engine).edges) == 4


def test_hidden_sources_by_name():
    graph = Graph.from_networkx(nx.Graph([("a", "b"), ("b", "c")]))
    with pytest.raises(DistbfsError, match=r"1 of 2 sources .* the first is 'c'"):
        bfs(graph, ["a", "c"], "reference", vertices=[True, True, False])


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        ({"vertices": [True]}, "vertices has 1 flags"),
        ({"vertices": [1, 1, 1, 1]}, "values of int64; allowed: bool"),
        ({"edges": [True] * 4}, "edges has 4 flags; allowed: one for each of 3"),
        ({"edges": [[True] * 3]}, "shape"),
        ({"where": "weight < 3"}, "'weight' was not kept"),
        ({"where": "__import__('os')"}, "is not allowed; only comparisons"),
        ({"where": "weight <"}, "does not parse"),
        ({"where": 3}, "where is of type int"),
        ({"view": 3}, "view is of type int"),
        ({"vertices": [False, True, True, True]}, "source 0 is a vertex that is not"),
    ],
)
def test_refusals(asked, line):
    graph = Graph.from_edges([0, 1, 2], [1, 2, 3])
    with pytest.raises(DistbfsError) as caught:
        bfs(graph, 0, "reference", **asked)
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)
