"""What graphs and results answer, tables of other libraries, files, and errors."""

import inspect
import pickle
import subprocess
import sys

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from graphs import sources
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import breadth_first_order

import distbfs
from distbfs import errors
from distbfs.device import cuda
from distbfs.formats.base import ReaderOptions
from distbfs.formats.tuples import open_tuples
from distbfs.options import BuildOptions
from distbfs.ranks.world import SoloWorld
from distbfs.search import frames
from distbfs.store.write import write_graph

Graph = distbfs.Graph
LIBRARIES = ("pandas", "polars", "pyarrow")


@pytest.fixture(autouse=True)
def no_device(monkeypatch):
    """What is tested here is the same on every machine."""

    def missing():
        raise errors.DeviceMissing("no CUDA device: hidden by a test")

    monkeypatch.setattr(cuda, "cupy", missing)


def networkx_of(source, directed):
    graph = nx.DiGraph() if directed else nx.Graph()
    graph.add_nodes_from(range(source.n))
    ends = zip(source.u.tolist(), source.v.tolist(), strict=True)
    graph.add_edges_from((u, v) for u, v in ends if u != v)
    return graph


def pairs_of(graph):
    return {tuple(pair) for pair in graph.edges().tolist()}


@pytest.mark.thorough
@pytest.mark.parametrize("directed", [False, True])
@settings(max_examples=20, deadline=None)
@given(source=sources(12, 40))
def test_what_a_graph_answers(directed, source):
    wanted = networkx_of(source, directed)
    graph = Graph.from_edges(source.u, source.v, source.n, directed=directed)
    assert (len(graph), list(graph)) == (source.n, list(range(source.n)))
    assert 0 in graph
    assert source.n not in graph
    degrees = [len(wanted.adj[v]) for v in wanted]
    assert graph.degrees.tolist() == degrees
    for v in wanted:
        assert graph.neighbors(v).tolist() == sorted(wanted.adj[v])
        assert graph.degree(v) == degrees[v]
    rising = {tuple(e) if directed else tuple(sorted(e)) for e in wanted.edges}
    assert graph.edges().tolist() == [list(e) for e in sorted(rising)]
    matrix = graph.to_scipy()
    assert matrix.has_sorted_indices
    wanted_matrix = nx.to_scipy_sparse_array(wanted, nodelist=range(source.n))
    assert (matrix != wanted_matrix).nnz == 0
    assert matrix.dtype == np.int64
    again = Graph.from_edges(graph.edges(), n=graph.n, directed=directed)
    assert graph == again == Graph.from_scipy(matrix, directed=directed)
    assert hash(graph) == hash(again)
    assert graph != Graph.from_edges(graph.edges(), n=graph.n + 1, directed=directed)
    assert graph != Graph.from_edges(graph.edges(), n=graph.n, directed=not directed)
    if rising:
        fewer = Graph.from_edges(graph.edges()[1:], n=graph.n, directed=directed)
        assert graph != fewer
    assert graph != matrix


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph])
def test_graphs_with_names_and_loops(kind):
    made = kind([("b", "a"), ("b", "c"), ("c", "c"), ("d", "b")])
    graph = Graph.from_networkx(made)
    assert list(graph) == list(made)
    assert "a" in graph
    assert 0 not in graph
    assert [] not in [*graph]
    for v in made:
        assert graph.neighbors(v).tolist() == list(made[v])
        assert graph.degree(v) == len(made[v])
    assert graph.by_name(graph.degrees) == {v: len(made[v]) for v in made}
    assert sorted(map(sorted, pairs_of(graph))) == sorted(map(sorted, made.edges))
    matrix = nx.to_scipy_sparse_array(made)
    assert (graph.to_scipy() != matrix).nnz == 0
    assert graph == Graph.from_networkx(made.copy())
    assert graph != Graph.from_networkx(nx.relabel_nodes(made, {"a": "z"}))
    with pytest.raises(errors.UsageError, match="'z' is not a node"):
        graph.neighbors("z")


def test_equal_edges_in_another_order_are_equal():
    graphs = [nx.Graph() for _ in range(2)]
    for graph, ends in zip(graphs, ([1, 2, 3], [3, 2, 1]), strict=True):
        graph.add_nodes_from(range(4))
        graph.add_edges_from((0, v) for v in ends)
    first, second = map(Graph.from_networkx, graphs)
    assert first == second
    assert first.neighbors(0).tolist() != second.neighbors(0).tolist()


def table_of(name, columns):
    library = pytest.importorskip(name)
    if name == "pyarrow":
        return library.table(columns)
    return library.DataFrame(columns)


def maker_of(name):
    return getattr(Graph, {"pyarrow": "from_arrow"}.get(name, f"from_{name}"))


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", LIBRARIES)
def test_graphs_of_tables(name, directed):
    rng = np.random.default_rng(5)
    u, v = rng.integers(0, 30, (2, 60))
    wanted = Graph.from_edges(u, v, 40, directed=directed)
    make = maker_of(name)
    for columns, named in (
        ({"src": u, "w": u / 2, "dst": v}, ()),
        ({"V": v, "w": u, "U": u}, ()),
        ({"x": u, "y": v}, ()),
        ({"dst": u, "src": v}, ("dst", "src")),
        ({"a": v, "b": u.astype(np.uint8), "c": v.astype(np.int16)}, ("b", "c")),
    ):
        table = table_of(name, columns)
        assert make(table, *named, n=40, directed=directed) == wanted


@pytest.mark.parametrize("name", LIBRARIES)
def test_ids_of_tables_are_read_without_a_copy(name):
    u = np.arange(5, dtype=np.int64)
    columns = {"src": u, "dst": u[::-1].copy()}
    table = table_of(name, columns)
    ends = frames.ends_in(table, None, None, relabel=False)
    if name == "pyarrow":
        column = np.frombuffer(table["src"].chunk(0).buffers()[1], np.int64)
    else:
        column = table["src"].to_numpy()
    assert np.shares_memory(ends[0], column)


@pytest.mark.parametrize("name", LIBRARIES)
def test_names_in_tables(name):
    words = ["ö", "b", "a", "b"], ["b", "c", "b", "x"]
    graph = maker_of(name)(
        table_of(name, {"from": words[0], "to": words[1]}), relabel=True
    )
    wanted = nx.Graph(zip(*words, strict=True))
    assert graph.nodes == sorted(wanted)
    for v in wanted:
        assert graph.neighbors(v).tolist() == sorted(wanted[v])
    result = distbfs.bfs(graph, "c")
    assert result.to_dict() == dict(
        sorted(nx.single_source_shortest_path_length(wanted, "c").items())
    )
    padded = {"u": ["00501", "0501"], "v": ["501", "7"]}
    graph = maker_of(name)(table_of(name, padded), relabel=True)
    assert graph.nodes == ["00501", "0501", "501", "7"]
    sparse = {"u": np.array([10**12, 5, 7]), "v": np.array([5, 7, 5])}
    graph = maker_of(name)(table_of(name, sparse), relabel=True)
    assert graph.nodes == [5, 7, 10**12]
    assert graph.neighbors(5).tolist() == [7, 10**12]


@pytest.mark.parametrize("lacking", ["", "pyarrow"])
@pytest.mark.parametrize("name", LIBRARIES)
def test_any_text_in_tables_names_vertices(name, lacking, monkeypatch):
    words = ["b\0", "", "é", "b", "漢😀", "b", "", "a" * 3000]
    table = table_of(name, {"u": words, "v": words[::-1]})
    library = frames.library
    if name == "pandas":  # in several chunks
        table = library(name).concat([table.iloc[:3], table.iloc[3:]])

    def partly(wanted):
        if wanted == "pyarrow.types" and lacking == "pyarrow" != name:
            raise errors.LibraryMissing(wanted)
        return library(wanted)

    monkeypatch.setattr(frames, "library", partly)
    u, v, names = frames.ends_in(table, None, None, relabel=True)
    assert names == sorted(set(words))
    assert [names[k] for k in u] == words
    assert [names[k] for k in v] == words[::-1]


@pytest.mark.thorough
@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.text(max_size=9) | st.text("ab\0\udc80", max_size=9))
    | st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3))
    | st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 9))
    | st.lists(st.integers(0, 255)).map(lambda x: np.array(x, np.uint8))
    | st.lists(st.booleans() | st.integers(0, 3) | st.floats(0, 3)),
)
def test_any_ids_are_numbered_in_their_order(ids):
    texts = len(ids) > 0 and isinstance(ids[0], str)
    ids = np.array(ids, dtype=object if texts else None)
    u, v, names = frames.renumbered(ids[1:], ids[:1])
    assert names == sorted(set(ids.tolist()))
    assert [names[k] for k in (*v, *u)] == ids.tolist()


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize(
    ("columns", "options", "kind", "text"),
    [
        ({"u": [0.5], "v": [1.0]}, {}, errors.WrongTypeError, "column u has values of"),
        ({"u": [0], "v": ["a"]}, {}, errors.WrongTypeError, "column v .*relabel=True"),
        ({"u": [0, None], "v": [1, 2]}, {}, errors.InputError, "column u has a null"),
        ({"a": [0], "b": [1], "c": [2]}, {}, errors.InputError, "the table: columns a"),
        ({"u": [0], "v": [1]}, {"src": "u"}, errors.UsageError, "one column is named"),
        (
            {"u": [0], "v": [1]},
            {"n": 3, "relabel": True},
            errors.UsageError,
            "leave out",
        ),
        ({"u": [0], "v": [7]}, {"n": 3}, errors.InputError, "the end 7; allowed"),
    ],
)
def test_tables_that_are_refused(name, columns, options, kind, text):
    table = table_of(name, columns)
    with pytest.raises(kind, match=text):
        maker_of(name)(table, **options)


@pytest.mark.parametrize("name", LIBRARIES)
def test_what_is_no_table_and_no_library(name, monkeypatch):
    pytest.importorskip(name)
    with pytest.raises(
        errors.WrongTypeError, match="the table is of type dict; allowed"
    ):
        maker_of(name)({"u": [0], "v": [1]})
    result = distbfs.bfs(Graph.from_edges([(0, 1)]), 0)
    monkeypatch.setitem(sys.modules, name, None)
    write = {"pyarrow": "to_arrow"}.get(name, f"to_{name}")
    with pytest.raises(errors.LibraryMissing, match=f"{name} is missing; pip") as e:
        getattr(result, write)()
    assert isinstance(e.value, ImportError)


NAMED = {
    "ids": [(0, 1), (1, 2), (4, 5)],
    "numbers": nx.Graph([(7, 3), (3, 9), (1, 2)]),
    "words": nx.Graph([("x", "y"), ("y", "z"), ("a", "b")]),
}


@pytest.mark.parametrize("parents", [True, False])
@pytest.mark.parametrize("names", NAMED)
@pytest.mark.parametrize("name", LIBRARIES)
def test_results_as_tables(name, names, parents):
    pytest.importorskip(name)
    make = Graph.from_edges if names == "ids" else Graph.from_networkx
    graph = make(NAMED[names])
    source = next(iter(graph))
    result = distbfs.bfs(graph, source, parents=parents)
    write = {"pyarrow": "to_arrow"}.get(name, f"to_{name}")
    table = getattr(result, write)()
    columns = {k: list(table[k]) for k in ("vertex", "level")}
    columns = table.to_pydict() if name == "pyarrow" else columns
    assert columns["vertex"] == list(graph)
    assert columns["level"] == result.level.tolist()
    if not parents:
        assert "parent" not in columns
        return
    parent = table["parent"]
    found = parent.to_pylist() if name == "pyarrow" else parent.to_list()
    for vertex, level, before in zip(graph, result.level, found, strict=True):
        if level > 0:
            assert before == result.path_to(vertex)[-2]
        elif level == 0:
            assert before == vertex
        elif names == "words":
            assert before is None or before != before  # NaN of pandas
        else:
            assert before == -1
    assert result.to_dict() == {
        v: k for v, k in zip(graph, result.level.tolist(), strict=True) if k >= 0
    }


@pytest.mark.parametrize("name", ["polars", "pyarrow"])
def test_names_that_make_no_column(name):
    pytest.importorskip(name)
    graph = Graph.from_networkx(nx.Graph([(("a", 1), 5), (5, "x")]))
    result = distbfs.bfs(graph, 5)
    write = {"pyarrow": "to_arrow"}.get(name, f"to_{name}")
    with pytest.raises(errors.WrongTypeError, match="no column can hold the names"):
        getattr(result, write)()


@pytest.mark.parametrize("directed", [False, True])
@settings(max_examples=40, deadline=None)
@given(source=sources(15, 40), data=st.data())
def test_results_as_scipy_has_them(directed, source, data):
    root = data.draw(st.integers(0, source.n - 1))
    matrix = sp.csr_array(
        (np.ones(source.tuples), (source.u, source.v)), shape=(source.n, source.n)
    )
    matrix = matrix if directed else (matrix + matrix.T).tocsr()
    matrix.sort_indices()
    graph = Graph.from_scipy(matrix, directed=directed)
    order, before = breadth_first_order(matrix, root, directed=directed)
    found = distbfs.bfs(graph, root, "openmp", method="ordered").to_scipy()
    np.testing.assert_array_equal(found[0], order)
    np.testing.assert_array_equal(found[1], before)
    assert [x.dtype for x in found] == [order.dtype, before.dtype]
    result = distbfs.bfs(graph, root, "reference")
    order_2, before_2 = result.to_scipy()
    assert sorted(order_2.tolist()) == sorted(order.tolist())
    assert (np.diff(result.level[order_2]) >= 0).all()
    np.testing.assert_array_equal(before_2 < 0, before < 0)
    reached = np.flatnonzero(before_2 >= 0)
    assert matrix.toarray()[before_2[reached], reached].all()


def test_results_say_what_was_reached():
    graph = Graph.from_edges([(0, 1), (1, 2), (4, 5)])
    result = distbfs.bfs(graph, 0, "reference")
    text = "<distbfs.Result from 0, reached 3, depth 2, engine reference>"
    assert repr(result) == text
    html = result._repr_html_()
    for words in ("search from 0", "reached", "3", "depth", "2", "reference"):
        assert words in html
    with distbfs.open(graph, engine="reference") as session:
        first, second = session.search(0), None
        second = session.search(5)
        assert "gone as the session has searched again" in repr(first)
        assert "reached 2, depth 1" in repr(second)
        assert "gone" in first._repr_html_()
    assert "undirected graph" in graph._repr_html_()
    named = Graph.from_networkx(nx.path_graph(["<b>", "c"]))
    assert "&lt;b&gt;" in distbfs.bfs(named, "<b>")._repr_html_()


EDGES = "0 1\n1 2\n5 2\n"


def test_graphs_of_files(tmp_path):
    path = tmp_path / "graph.el"
    path.write_text(EDGES)
    wanted = [(0, 1), (1, 2), (5, 2)]
    for directed in (False, True):
        made = Graph.from_file(path, directed=directed)
        assert made == Graph.from_edges(wanted, directed=directed)
    assert Graph.from_file(str(path), n=9).n == 9
    assert Graph.from_file(path, one_based=False, format="edge-list").n == 6
    named = Graph.from_file(path, relabel=True)
    assert named.nodes == [0, 1, 2, 5]
    assert named.neighbors(5).tolist() == [2]
    path = tmp_path / "words.csv"
    path.write_text("a,b,c\nx,1,y\ny,1,z\n")
    with pytest.warns(UserWarning, match="ids are taken as text"):
        named = Graph.from_file(path, relabel=True, src="a", dst="c")
    assert named.nodes == ["x", "y", "z"]
    assert distbfs.bfs(named, "z").path_to("x") == ["z", "y", "x"]
    for wrong, why in (({"src": "a"}, "both src and dst"), ({"m": 3}, ".*dst.*src")):
        with pytest.raises(errors.UsageError, match=f"allowed: {why}"):
            Graph.from_file(path, relabel=True, **wrong)


def path_from_1(folder):
    """A file of the path 1 2 3 and of vertex 4, in which ids begin at 1."""
    path = folder / "path.mtx"
    head = "%%MatrixMarket matrix coordinate pattern general\n4 4 2\n"
    path.write_text(f"{head}1 2\n2 3\n")
    return path


def test_a_file_that_counts_from_1_names_vertices(tmp_path):
    graph = Graph.from_file(path_from_1(tmp_path))
    assert (graph.nodes, graph.first_id, graph.id_of(4)) == (range(1, 5), 1, 3)
    assert list(graph) == list(range(1, 5))
    assert [x in graph for x in (0, 1, 4, 5, "1", [1])] == [0, 1, 1, 0, 0, 0]
    assert graph.neighbors(2).tolist() == [1, 3]
    assert graph.edges().tolist() == [[1, 2], [2, 3]]
    assert pickle.loads(pickle.dumps(graph)) == graph != Graph.from_edges(graph.edges())
    for wrong in (0, 5, True, 1.0, "1"):
        with pytest.raises(errors.UsageError, match="is not a vertex; allowed: 1 to 4"):
            distbfs.bfs(graph, wrong)
    many = distbfs.search_many(graph, "reachability", [(1, 3), (3, 4)], "reference")
    assert many["reachable"].tolist() == [True, False]
    assert distbfs.path_lengths(graph, [3]).tolist() == [[2, 1, 0, -1]]
    central = distbfs.search_many(graph, "betweenness", None, "reference")
    assert central.facts["largest"][0] == [2, central["value"][1]]
    other = Graph.from_file(path_from_1(tmp_path), first_id=0)
    assert (other.nodes, other.neighbors(1).tolist()) == (None, [0, 2])


@pytest.mark.parametrize("stored", [False, True])
def test_results_of_a_file_that_counts_from_1(tmp_path, stored):
    path = path_from_1(tmp_path)
    graph = Graph.from_file(path)
    if stored:
        tuples = open_tuples(SoloWorld(), path)
        graph = tmp_path / "store"
        write_graph(SoloWorld(), tuples, graph, 2, BuildOptions(), ids=tuples.ids)
    with distbfs.open(graph, engine="reference") as session:
        assert session.connected(np.array([1, 4])).tolist() == [True, False]
        with pytest.raises(errors.UsageError, match="allowed: 1 to 4"):
            session.search(0)
        found = session.search(np.array([3]), targets=[1])
        assert found.level.tolist() == [2, 1, 0, -1]
        assert found.parent.tolist() == [1, 2, 2, -1]
        assert found.sources.tolist() == [3]
        assert repr(found.path_to(1)) == "[3, 2, 1]"
        assert list(found.all_paths_to(1)) == [[3, 2, 1]]
        assert found.to_dict() == {1: 2, 2: 1, 3: 0}
        assert found.tree().tolist() == [[3, 2], [2, 1]]
        assert found.frontier(1).tolist() == [2]
        assert found.edges_within(1).edges.tolist() == [[3, 2]]
        assert found.to_pandas().to_numpy().tolist()[2:] == [[3, 0, 3], [4, -1, -1]]
        level, parent = found.at([1, 4])
        assert (level.tolist(), parent.tolist()) == ([2, -1], [2, -1])
        with pytest.raises(errors.UsageError, match="0 is not a vertex; allowed"):
            found.at([0])
        with pytest.raises(errors.UsageError, match="4 was not reached from"):
            found.path_to(4)
        session.see(session.view(vertices=[True, True, True, False]))
        with pytest.raises(errors.UsageError, match="source 4 is a vertex that is not"):
            session.search(4)
    if stored:
        with distbfs.open(graph, engine="reference", first_id=0) as session:
            assert session.search(0).to_dict() == {0: 0, 1: 1, 2: 2}


def test_values_of_named_vertices():
    found = distbfs.bfs(Graph.from_networkx(nx.path_graph("abc")), "a", depth_limit=1)
    level, parent = found.at(["c", "b"])
    assert (level.tolist(), parent.tolist()) == ([-1, 1], [None, "a"])
    with pytest.raises(errors.UsageError, match="0 is not a node of the graph"):
        found.at([0])


def test_what_is_said_of_a_file_is_a_warning(tmp_path):
    path = tmp_path / "graph.mtx"
    path.write_text(
        "%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n2 1 0.5\n3 2 1.5\n"
    )
    with pytest.warns(UserWarning, match="values are ignored") as seen:
        graph = Graph.from_file(path)
    assert graph.edges().tolist() == [[1, 2], [2, 3]]
    assert seen[0].filename == __file__


def test_files_that_are_refused(tmp_path):
    path = tmp_path / "graph.el"
    with pytest.raises(errors.FileError, match="No such file") as caught:
        Graph.from_file(path)
    assert isinstance(caught.value, OSError)
    path.write_text("0 x\n")
    with pytest.raises(errors.InputError, match=r"graph\.el:1:"):
        Graph.from_file(path)
    with pytest.raises(
        errors.UsageError, match="option 'vertices'; allowed: bipartite"
    ):
        Graph.from_file(path, vertices=3)
    with pytest.raises(errors.UsageError, match="unknown format 'x'"):
        Graph.from_file(path, format="x")


def stored(path, text, ids):
    """A store of a file of lines, with the ids of the file."""
    path.with_suffix(".el").write_text(text)
    options = ReaderOptions(relabel=ids)
    with open_tuples(SoloWorld(), path.with_suffix(".el"), options=options) as source:
        write_graph(SoloWorld(), source, path, 2, BuildOptions(), ids=source.ids)
    return path


@pytest.mark.parametrize(
    ("ids", "text", "names"),
    [
        ("numbers", "70 30\n30 900\n5 6\n", [5, 6, 30, 70, 900]),
        ("text", "ö b\nb c\nx y\n", ["b", "c", "x", "y", "ö"]),
    ],
)
def test_stores_with_ids_of_their_own(tmp_path, ids, text, names):
    path = stored(tmp_path / "graph", text, ids)
    kind = int if ids == "numbers" else str
    source, middle, _, far, *_ = map(kind, text.split())
    with distbfs.open(path, engine="reference") as session:
        result = session.search(source, targets=[far])
        assert result.path_to(far) == [source, middle, far]
        assert result.tree().tolist()[-1] == [middle, far]
        levels = {source: 0, middle: 1, far: 2}
        assert list(result.to_dict().items()) == [
            (v, levels[v]) for v in names if v in levels
        ]
        assert result.frontier(2).tolist() == [far]
        for wrong in (3.0, None, True, -1, "nobody", 1 << 70):
            with pytest.raises(errors.UsageError, match="is not an id of the graph"):
                session.search(wrong)


GRAPH = nx.path_graph(3)
LINE = Graph.from_edges([(0, 1), (1, 2)])


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: distbfs.bfs(GRAPH, 0), "of type networkx.Graph; allowed: a distbfs"),
        (lambda: distbfs.path_lengths(GRAPH, [0]), "of type networkx.Graph"),
        (lambda: distbfs.search_many(5, "khop", [0]), "of type int; allowed"),
        (lambda: distbfs.diameter("x"), "of type str; allowed"),
        (lambda: distbfs.path_lengths(LINE, 0), "sources is 0; allowed: several"),
        (lambda: distbfs.path_lengths(LINE, "01"), "sources is '01'; allowed: several"),
        (lambda: distbfs.reachable(LINE, 5), "pairs is 5; allowed: several"),
        (lambda: distbfs.reachable(LINE, [0, 1]), "a pair is 0; allowed: several"),
        (lambda: distbfs.bfs(LINE, 0, targets=1), "targets is 1; allowed: several"),
        (lambda: distbfs.open(GRAPH), "source is of type networkx.Graph; allowed"),
        (
            lambda: Graph.from_scipy(np.eye(4)),
            "of type numpy.ndarray; allowed: a sparse",
        ),
        (lambda: Graph.from_networkx(LINE), "of type distbfs.Graph; allowed: NetworkX"),
        (lambda: Graph.from_edges([(0, 1)], n="x"), "n is 'x'; allowed: an integer"),
    ],
)
def test_wrong_types_get_one_sentence(call, text):
    with pytest.raises(errors.WrongTypeError, match=text) as caught:
        call()
    assert isinstance(caught.value, TypeError)
    assert "\n" not in str(caught.value)


ALSO = {
    errors.UsageError: ValueError,
    errors.WrongTypeError: TypeError,
    errors.InputError: ValueError,
    errors.FileError: OSError,
    errors.StoreError: OSError,
    errors.ServiceError: OSError,
    errors.OutOfMemory: MemoryError,
    errors.DiskFull: OSError,
    errors.LibraryMissing: ImportError,
    errors.CompilerMissing: OSError,
    errors.DeviceMissing: OSError,
}


def test_errors_are_of_the_kind_that_python_has():
    for kind, builtin in ALSO.items():
        assert issubclass(kind, builtin)
        assert issubclass(kind, errors.DistbfsError)
        assert str(kind("a b") if kind is not errors.ServiceError else "a b") == "a b"
    assert str(errors.ServiceError("busy", "a b")) == "a b"
    every = {
        name
        for name, kind in vars(errors).items()
        if inspect.isclass(kind) and issubclass(kind, errors.DistbfsError)
    }
    every -= {"PeerFailed", "TooDeep"}  # of which users know StoreError, UsageError
    assert every <= set(distbfs.__all__)
    for name in every:
        assert getattr(distbfs, name) is getattr(errors, name)


def test_the_package_shows_its_api_and_nothing_else():
    code = (
        "import distbfs\n"
        "assert dir(distbfs) == sorted([*distbfs.__all__, '__version__'])\n"
        "names = {}\n"
        "exec('from distbfs import *', names)\n"
        "assert set(names) - {'__builtins__'} == set(distbfs.__all__)\n"
        "assert dir(distbfs) == sorted([*distbfs.__all__, '__version__'])\n"
        "import pydoc\n"
        "text = pydoc.plain(pydoc.render_doc(distbfs))\n"
        "shown = text.partition('CLASSES')[2]\n"
        "assert 'from_pandas' in shown and 'bfs(graph' in shown\n"
        "assert '_HOMES' not in text and 'import_module' not in text\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_values_of_some_vertices():
    graph = distbfs.Graph.from_edges([0, 1, 2], [1, 2, 3], n=6)
    found = distbfs.bfs(graph, 0, engine="reference")
    for ids in ([3, 0, 5], (3, 0, 5), np.array([3, 0, 5]), np.uint8([3, 0, 5])):
        level, parent = found.at(ids)
        assert (level.tolist(), parent.tolist()) == ([3, 0, -1], [2, 0, -1])
    assert [len(x) for x in found.at([])] == [0, 0]
    with pytest.raises(errors.WrongTypeError, match="given by ids, integers"):
        found.at(["a"])
    with pytest.raises(errors.UsageError, match=r"^6 is not a vertex; allowed: 0 to 5"):
        found.at([0, 6])
