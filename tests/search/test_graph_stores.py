"""Graphs of programs that are saved as stores, opened again, and handed on."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from graphs import NAMED

import distbfs
from distbfs import Graph
from distbfs.options import BuildOptions
from distbfs.ranks.world import SoloWorld
from distbfs.store.write import write_graph

NUMBERED = nx.relabel_nodes(nx.path_graph(5), {0: 7, 1: 3, 2: 9, 3: 1, 4: 0})


def graphs():
    for source in NAMED.values():
        for directed in (False, True):
            yield Graph.from_edges(source.u, source.v, source.n, directed=directed)
    yield Graph.from_networkx(nx.karate_club_graph())
    yield Graph.from_edges([("b", "a"), ("a", "é"), ("c", "é")], relabel=True)


@pytest.mark.thorough
def test_a_saved_graph_is_the_same_when_it_is_opened(tmp_path):
    for k, graph in enumerate(graphs()):
        place = tmp_path / f"{k}"
        graph.save(place)
        opened = Graph.open(place)
        assert opened == graph
        assert (opened.nodes, opened.num_edges) == (graph.nodes, len(graph.edges()))
        if graph.n:
            source = next(iter(graph))
            found = graph.bfs(source).to_dict()
            assert opened.bfs(source).to_dict() == found
            with distbfs.open(place) as session:
                assert session.search(source).to_dict() == found


def test_names_that_do_not_rise_are_sorted_and_edges_go_with_them(tmp_path):
    Graph.from_networkx(NUMBERED).save(tmp_path / "store")
    opened = Graph.open(tmp_path / "store")
    assert opened.nodes == [0, 1, 3, 7, 9]
    assert nx.utils.graphs_equal(opened.to_networkx(), NUMBERED)


@pytest.mark.parametrize("directed", [False, True])
def test_attributes_and_names_go_along(tmp_path, directed):
    pandas = pytest.importorskip("pandas")
    table = {"u": list("abcd"), "v": list("bcda"), "w": [3, 1, 2, 5], "k": list("xyxy")}
    frame, kind = pandas.DataFrame(table), nx.DiGraph if directed else nx.Graph
    ways = {"relabel": True, "directed": directed}
    graph = Graph.from_pandas(frame, "u", "v", keep=["w", "k"], **ways)
    graph.save(tmp_path / "store")
    wanted = nx.from_pandas_edgelist(frame, "u", "v", ["w", "k"], kind)
    for one in (graph, Graph.open(tmp_path / "store")):
        assert nx.utils.graphs_equal(one.to_networkx(), wanted)
        assert one.bfs("a", "openmp", where="w < 5").depth == 3


def test_a_store_of_several_parts_is_opened_whole(tmp_path):
    store = tmp_path / "store"
    options = BuildOptions(threshold=9, permute_seed=4)
    write_graph(SoloWorld(), NAMED["kronecker"], store, 3, options)
    graph = Graph.open(store)
    with distbfs.open(store) as session:
        for source in (0, 5, 9):
            wanted, found = session.search(source), graph.bfs(source)
            assert found.level.tolist() == wanted.to_numpy()[0].tolist()
            assert found.nedge == wanted.nedge
    assert graph.num_edges == len(graph.edges())


def test_first_ids(tmp_path):
    (tmp_path / "a.mtx").write_text(
        "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 2\n"
    )
    graph = Graph.from_file(tmp_path / "a.mtx")
    graph.save(tmp_path / "store")
    assert Graph.open(tmp_path / "store").nodes == range(1, 4) == graph.nodes
    assert Graph.open(tmp_path / "store", first_id=0).nodes is None


def test_what_is_no_name_and_no_folder_is_refused(tmp_path):
    store, graph = tmp_path / "store", Graph.from_edges([0], [1])
    for nodes, why in (
        ([1, "a"], "names of type int, str; allowed in a store"),
        ([(0, 1), (1, 1)], "names of type tuple; allowed in a store"),
        ([-1, 1], "a negative id; allowed: integers from 0"),
        ([0, 1 << 70], "allowed: integers from 0"),
        (["", "a"], "allowed: integers from 0 to 2.63 - 1, or text that is not empty"),
    ):
        with pytest.raises(distbfs.UsageError, match=why):
            Graph.from_networkx(nx.path_graph(nodes)).save(store)
    assert not store.exists()
    graph.save(store)
    with pytest.raises(distbfs.StoreError, match="exists; overwrite=True replaces it"):
        graph.save(store)
    Graph.from_edges([1], [2]).save(store, overwrite=True)
    assert Graph.open(store).num_vertices == 3
    with pytest.raises(distbfs.FileError, match="a folder, not a file; Graph"):
        Graph.from_file(store)


@pytest.mark.parametrize("directed", [False, True])
def test_graphs_of_igraph(directed):
    pytest.importorskip("igraph")
    edges = [("b", "a"), ("a", "d"), ("c", "d")]
    graph = Graph.from_edges(edges, relabel=True, directed=directed)
    made = graph.to_igraph()
    assert (made.vcount(), made.is_directed()) == (4, directed)
    hops = made.distances("b", mode="out")[0]
    assert [-1 if x == float("inf") else x for x in hops] == graph.bfs(
        "b"
    ).level.tolist()


def test_text_names_edges_by_relabel():
    edges = [("Rome", "Oslo"), ("Oslo", "Bern"), ("Bern", "Rome")]
    wanted = Graph.from_edges([[2, 1], [1, 0], [0, 2]])
    src, dst = zip(*edges, strict=True)
    for data in ((edges,), (src, dst), (np.array(edges),), map(np.array, (src, dst))):
        graph = Graph.from_edges(*data, relabel=True)
        assert graph.nodes == ["Bern", "Oslo", "Rome"]
        assert np.array_equal(graph.degrees, wanted.degrees)
        assert graph.bfs("Rome").path_to("Bern") == ["Rome", "Bern"]
    for wrong in ([("a", 1)], [(1.5, 2)], [(None, "a")], [("a", b"b")]):
        with pytest.raises(distbfs.WrongTypeError):
            Graph.from_edges(wrong, relabel=True)
    for wrong in (["ab", "cd"], [("a", "b", "c")]):
        with pytest.raises(distbfs.InputError, match="allowed: pairs"):
            Graph.from_edges(wrong, relabel=True)


@pytest.mark.parametrize("directed", [False, True])
def test_rows_and_columns_of_a_rectangle_are_two_sets(directed):
    matrix = sp.random_array((5, 9), density=0.3, rng=np.random.default_rng(1))
    graph = Graph.from_scipy(matrix, directed=directed, bipartite=True)
    wanted = nx.bipartite.from_biadjacency_matrix(matrix)
    assert graph.num_vertices == len(wanted) == 14
    ends = {frozenset(pair) for pair in graph.edges().tolist()}
    assert ends == set(map(frozenset, wanted.edges))
    assert graph.bfs(0).to_dict() == (
        {0: 0} | dict.fromkeys(wanted[0], 1)
        if directed
        else nx.single_source_shortest_path_length(wanted, 0)
    )
    with pytest.raises(distbfs.UsageError, match="square; with bipartite=True any"):
        Graph.from_scipy(matrix)


def test_sizes_are_counted_as_users_do():
    graph = Graph.from_networkx(nx.Graph([(0, 0), (0, 1), (1, 2)]))
    assert repr(graph) == "<distbfs.Graph, undirected, 3 vertices, 3 edges>"
    assert (graph.num_vertices, graph.num_edges) == (3, 3)
    assert Graph.from_networkx(nx.DiGraph([(0, 0), (0, 1), (1, 0)])).num_edges == 3
    with distbfs.open(graph, engine="reference") as session:
        assert repr(session) == "<distbfs.Session, 3 vertices, engine reference>"
    assert repr(session).endswith("reference, closed>")
