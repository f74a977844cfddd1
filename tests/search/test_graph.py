"""The Python interface: graphs from every source against SciPy."""

import copy
import os
import pickle
import subprocess
import sys
from itertools import pairwise
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from graphs import NAMED, sources
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import shortest_path

import distbfs
from distbfs.device import cuda
from distbfs.errors import DeviceMissing, InputError, UsageError, WrongTypeError
from distbfs.generate.cuda import LentTuples, device_tuples
from distbfs.registry import ENGINES, lookup
from distbfs.search.graph_input import scipy_rows


@pytest.fixture(autouse=True)
def no_device(monkeypatch):
    """What is tested here is the same on every machine."""

    def missing():
        raise DeviceMissing("no CUDA device: hidden by a test; use another machine")

    monkeypatch.setattr(cuda, "cupy", missing)


def distances(matrix, root, directed):
    values = shortest_path(matrix, unweighted=True, indices=root, directed=directed)
    return np.where(np.isinf(values), -1, values).astype(np.int32)


def matrix_of(source):
    ones = np.ones(source.tuples)
    return sp.csr_array((ones, (source.u, source.v)), shape=(source.n, source.n))


def check(graph, matrix, root, directed, **options):
    result = distbfs.bfs(graph, root, **options)
    wanted = distances(matrix, root, directed)
    np.testing.assert_array_equal(result.level, wanted)
    assert result.parent.dtype in (np.int32, np.int64)
    level, parent = result.to_numpy()
    assert (level.dtype, parent.dtype) == (np.int32, np.int64)
    assert result.reached == (wanted >= 0).sum()
    assert result.depth == wanted.max()
    both = matrix if directed else matrix + matrix.T
    for v in np.flatnonzero(wanted >= 0).tolist():
        path = result.path_to(v)
        assert (path[0], path[-1], len(path)) == (root, v, wanted[v] + 1)
        assert all(both[a, b] for a, b in pairwise(path))
    for k in range(result.depth + 2):
        assert result.frontier(k).tolist() == np.flatnonzero(wanted == k).tolist()
    tree = result.tree()
    assert tree.shape == (result.reached - 1, 2)
    assert sorted(tree[:, 1].tolist()) == np.flatnonzero(wanted > 0).tolist()
    np.testing.assert_array_equal(result.parent[tree[:, 1]], tree[:, 0])
    assert (np.diff(wanted[tree[:, 1]]) >= 0).all()


MAKERS = {
    "edges": lambda s, d: distbfs.Graph.from_edges(s.u, s.v, s.n, directed=d),
    "lists": lambda s, d: distbfs.Graph.from_edges(
        s.u.tolist(), s.v.tolist(), s.n, directed=d
    ),
    "small-integers": lambda s, d: distbfs.Graph.from_edges(
        s.u.astype(np.uint8), s.v.astype(np.int16), s.n, directed=d
    ),
    "dlpack": lambda s, d: distbfs.Graph.from_dlpack(s.u, s.v, s.n, directed=d),
    "pairs": lambda s, d: distbfs.Graph.from_edges(
        np.stack([s.u, s.v], axis=1), n=s.n, directed=d
    ),
    "tuples": lambda s, d: distbfs.Graph.from_edges(
        list(zip(s.u.tolist(), s.v.tolist(), strict=True)), n=s.n, directed=d
    ),
    "an-iterator": lambda s, d: distbfs.Graph.from_edges(
        zip(s.u.tolist(), s.v.tolist(), strict=True), n=s.n, directed=d
    ),
    "scipy": lambda s, d: distbfs.Graph.from_scipy(matrix_of(s), directed=d),
    "scipy-coo": lambda s, d: distbfs.Graph.from_scipy(
        sp.coo_matrix(matrix_of(s)), directed=d
    ),
}


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("maker", MAKERS)
@settings(max_examples=8, deadline=None)
@given(source=sources(20, 40), data=st.data())
def test_graphs_from_arrays(maker, directed, source, data):
    graph = MAKERS[maker](source, directed)
    assert (graph.n, graph.directed, graph.nodes) == (source.n, directed, None)
    for engine in ("auto", "reference"):
        root = data.draw(st.integers(0, source.n - 1))
        check(graph, matrix_of(source), root, directed, engine=engine)


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiDiGraph])
@settings(max_examples=10, deadline=None)
@given(source=sources(15, 40), data=st.data())
def test_graphs_from_networkx(kind, source, data):
    names = data.draw(st.permutations([("node", k) for k in range(source.n)]))
    given_graph = kind()
    given_graph.add_nodes_from(names)
    ends = zip(source.u.tolist(), source.v.tolist(), strict=True)
    given_graph.add_edges_from((names[a], names[b]) for a, b in ends)
    graph = distbfs.Graph.from_networkx(given_graph)
    assert graph.nodes == list(given_graph)
    root = data.draw(st.sampled_from(names))
    wanted = nx.single_source_shortest_path_length(given_graph, root)
    result = distbfs.bfs(graph, root)
    levels = zip(graph.nodes, result.level.tolist(), strict=True)
    assert {v: k for v, k in levels if k >= 0} == wanted
    for v, k in wanted.items():
        path = result.path_to(v)
        assert (path[0], path[-1], len(path)) == (root, v, k + 1)
        assert nx.is_path(given_graph, path)
        assert v in result.frontier(k).tolist()
    ordered = distbfs.bfs(graph, root, "openmp", method="ordered")
    assert list(map(tuple, ordered.tree())) == list(nx.bfs_edges(given_graph, root))


BEYOND = [1 << 31, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) + 1, np.uint64(1 << 63)]


@settings(max_examples=40, deadline=None)
@given(source=sources(20, 40), data=st.data())
def test_depth_limits_and_targets(source, data):
    graph = distbfs.Graph.from_edges(source.u, source.v, source.n)
    vertex = st.integers(0, source.n - 1)
    root, targets = data.draw(vertex), data.draw(st.lists(vertex, max_size=3))
    limit = data.draw(st.none() | st.integers(0, 5) | st.sampled_from(BEYOND))
    wanted = source.distances(root).copy()
    ends = wanted[targets]
    if targets and (ends >= 0).all():
        wanted[wanted > ends.max()] = -1
    if limit is not None:
        wanted[wanted > limit] = -1
    ways = ({}, {"method": "ordered"}, {"parents": False}, {"engine": "reference"})
    for way in ways:
        options = {"engine": "openmp", "depth_limit": limit, "targets": targets, **way}
        result = distbfs.bfs(graph, root, **options)
        np.testing.assert_array_equal(result.level, wanted)
        if result.parent is not None:
            np.testing.assert_array_equal(result.parent >= 0, wanted >= 0)


def test_results_are_the_callers():
    graph = distbfs.Graph.from_edges([0, 1], [1, 2])
    first = distbfs.bfs(graph, 0)
    second = distbfs.bfs(graph, 2)
    assert first.level.tolist() == [0, 1, 2]
    assert second.level.tolist() == [2, 1, 0]


def test_matrices_are_not_copied():
    wide = matrix_of(NAMED["binary-tree"])
    assert scipy_rows(wide).columns.dtype == np.uint32
    narrow = (x.astype(np.int32) for x in (wide.indices, wide.indptr))
    matrix = sp.csr_matrix((wide.data, *narrow), shape=wide.shape)
    assert matrix.indices.dtype == np.int32
    for one, directed in ((matrix, True), ((matrix + matrix.T).tocsr(), False)):
        part = distbfs.Graph.from_scipy(one, directed=directed)._host_part
        assert np.shares_memory(part.nn.columns, one.indices)
        assert np.shares_memory(part.nn.offsets, one.indptr)


def test_entries_that_would_cancel_are_edges():
    matrix = sp.csr_array(np.array([[0, 1.0, 5], [-1.0, 0, 0], [0, 0, 0]]))
    graph = distbfs.Graph.from_scipy(matrix)
    assert distbfs.bfs(graph, 1).level.tolist() == [1, 0, 2]
    assert graph.num_edges == 2


@pytest.mark.parametrize("engine", ["openmp", "reference"])
def test_engines_by_name(engine):
    graph = distbfs.Graph.from_edges([0, 1], [1, 2])
    assert distbfs.bfs(graph, 0, engine).engine == engine


def test_no_vertices_and_no_edges():
    empty = distbfs.Graph.from_edges([], [])
    assert (empty.n, empty.num_edges) == (0, 0)
    with pytest.raises(UsageError, match="0 is not a vertex; the graph has none"):
        distbfs.bfs(empty, 0)
    alone = distbfs.Graph.from_edges([], [], n=2)
    assert distbfs.bfs(alone, 1).level.tolist() == [-1, 0]
    assert distbfs.bfs(alone, 1).tree().shape == (0, 2)
    none = distbfs.Graph.from_networkx(nx.Graph())
    assert (none.n, none.num_edges) == (0, 0)


@pytest.mark.parametrize(
    ("src", "dst", "text"),
    [
        ([0.5], [1.0], "src has 1 dimensions of float64; allowed: one dim"),
        ([0], ["a"], "dst has 1 dimensions of <U1"),
        ([0, np.nan], [1, 2], "src has 1 dimensions of float64"),
        ([True], [0], "src has 1 dimensions of bool"),
        ([1 << 70], [0], "src has 1 dimensions of object"),
        ([("a", "b")], None, "edges array has 2 dimensions of <U1; allowed: pairs"),
        ("ab", None, "edges array has 0 dimensions of <U2; allowed: pairs"),
        (np.ones((2, 2)), None, "edges array has 2 dimensions of float64"),
    ],
)
def test_edges_of_other_types(src, dst, text):
    with pytest.raises(WrongTypeError, match=text) as caught:
        distbfs.Graph.from_edges(src, dst)
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize(
    ("src", "dst", "n", "text"),
    [
        ([[0]], [1], None, "src has 2 dimensions"),
        ([0, 1], [1], None, "2 sources and 1 targets"),
        ([0], [-1], None, "an edge has the end -1; allowed: 0 to 0"),
        ([0], [7], 7, "an edge has the end 7; allowed: 0 to 6"),
        ([[0], [1, 2]], [0, 1], None, "src is not an array"),
        (np.array([1 << 63], np.uint64), [0], 5, "the end 9223372036854775808"),
        ([0, 1], None, None, "edges array has 1 dimensions of int64; allowed: pairs"),
        ([(0, 1, 2)], None, None, r"edges have shape \(1, 3\); allowed: pairs"),
        ([(0, 1), (2,)], None, None, "edges array is not an array"),
        ([(0, 7)], None, 7, "an edge has the end 7; allowed: 0 to 6"),
    ],
)
def test_edges_that_are_refused(src, dst, n, text):
    with pytest.raises(InputError, match=text) as caught:
        distbfs.Graph.from_edges(src, dst, n)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("n", [5.0, "5", True, -1, 1 << 63])
def test_sizes_that_are_refused(n):
    for make in (distbfs.Graph.from_edges, distbfs.Graph.from_dlpack):
        with pytest.raises(UsageError, match=rf"{n}'? *(; allowed:|vertices)"):
            make(np.array([0]), np.array([0]), n)


@pytest.mark.parametrize("n", [np.int64(5), np.uint8(5), np.array(5)])
def test_sizes_of_any_integer(n):
    for make in (distbfs.Graph.from_edges, distbfs.Graph.from_dlpack):
        graph = make(np.array([0]), np.array([1]), n=n)
        assert (graph.n, type(graph.n)) == (5, int)
        assert distbfs.bfs(graph, 0).level.tolist() == [0, 1, -1, -1, -1]


def test_what_has_no_dlpack_is_refused():
    with pytest.raises(WrongTypeError, match="type list, which has no DLPack"):
        distbfs.Graph.from_dlpack([0], [1])
    with pytest.raises(WrongTypeError, match="src has 1 dimensions of float64"):
        distbfs.Graph.from_cupy(np.array([0.0]), np.array([1.0]))


class Lent(np.ndarray):
    """What CuPy's arrays have and NumPy's do not."""

    def get(self):
        return np.asarray(self)

    def __dlpack_device__(self):
        return (2, 0)


def test_arrays_in_device_memory(monkeypatch):
    """They are taken as they are, and copied where an engine of the host needs them."""
    monkeypatch.setattr(cuda, "cupy", lambda: SimpleNamespace(from_dlpack=lambda x: x))
    u, v = (np.array(x).view(Lent) for x in ([0, 1, 2], [1, 2, 3]))
    graph = distbfs.Graph.from_cupy(u, v)
    held = graph._tuples
    assert held.u is u
    filled = [np.zeros(4, dtype=np.uint32) for _ in range(2)]
    tuples = device_tuples(held)
    assert type(tuples) is LentTuples
    tuples.fill(1, 3, *filled)
    assert [x.tolist() for x in filled] == [[1, 2, 0, 0], [2, 3, 0, 0]]
    assert distbfs.bfs(graph, 0, "openmp").level.tolist() == [0, 1, 2, 3]


def test_matrices_that_are_refused():
    with pytest.raises(UsageError, match=r"shape \(2, 3\); allowed: square"):
        distbfs.Graph.from_scipy(sp.csr_array((2, 3)))
    for other in (None, np.eye(3)):
        with pytest.raises(WrongTypeError, match=r"allowed: a sparse SciPy matrix"):
            distbfs.Graph.from_scipy(other)


def int32(*values):
    return np.array(values, dtype=np.int32)


@pytest.mark.thorough
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(
    ("form", "change"),
    [
        ("csr", {"indices": int32(1, 2, 99999)}),
        ("csr", {"indices": int32(1, 2, -5)}),
        ("csr", {"indices": np.array([1.5, 2, 0])}),
        ("csr", {"indices": np.array([1, 2, 1 << 63], dtype=np.uint64)}),
        ("csr", {"indptr": int32(0, 5, 2, 3)}),
        ("csr", {"indptr": int32(0, 1, 2, 99)}),
        ("csr", {"indptr": int32(-7, 1, 2, 3)}),
        ("csr", {"indptr": int32(0, 1)}),
        ("csr", {"data": int32(1)}),
        ("csc", {"indices": int32(1, 2, 99999)}),
        ("csc", {"indptr": int32(0, 5, 2, 3)}),
        ("bsr", {"indices": int32(1, 2, 99999)}),
        ("coo", {"row": int32(0, 1, 99999)}),
        ("coo", {"col": int32(0, 1, -9)}),
        ("coo", {"row": int32(0, 1)}),
        ("dia", {"offsets": int32(1, -2, 3, 4)}),
        ("lil", {"rows": np.array([[1], [99], [0]], dtype=object).reshape(3)}),
    ],
)
def test_matrices_whose_arrays_do_not_fit(form, change, directed):
    """In a process of its own: it would be killed, at once or later."""
    matrix = sp.csr_matrix(np.roll(np.eye(3, dtype=np.int32), 1, axis=1)).asformat(form)
    for name, array in change.items():
        setattr(matrix, name, array)
    child = os.fork()
    if child == 0:
        try:
            distbfs.Graph.from_scipy(matrix, directed=directed)
        except InputError as error:
            os._exit(0 if str(error).startswith("the arrays of the matrix are") else 3)
        finally:
            os._exit(4)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("form", ["csr", "csc", "bsr", "coo", "dia", "dok", "lil"])
def test_matrices_of_any_format(form):
    matrix = sp.csr_matrix(np.roll(np.eye(4, dtype=np.int32), 1, axis=1)).asformat(form)
    graph = distbfs.Graph.from_scipy(matrix, directed=True)
    assert distbfs.bfs(graph, 1).level.tolist() == [3, 0, 1, 2]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ({"source": 3}, "3 is not a vertex; allowed: 0 to 2"),
        ({"source": -1}, "-1 is not a vertex"),
        ({"source": 1.0}, "1.0 is not a vertex"),
        ({"source": "x"}, "'x' is not a vertex"),
        ({"source": 0, "depth_limit": -1}, "depth_limit is -1; allowed: 0 or more"),
        ({"source": 0, "depth_limit": 1.5}, "depth_limit is 1.5; allowed: an integer"),
        ({"source": 0, "depth_limit": "2"}, "depth_limit is '2'; allowed: an integer"),
        ({"source": 0, "depth_limit": True}, "depth_limit is True; allowed: an int"),
        ({"source": 0, "targets": [9]}, "target 9 is not a vertex"),
        ({"source": 0, "engine": "gpu"}, "unknown engine 'gpu'; allowed: bfs4k"),
        ({"source": 0, "engine": "openmp", "method": "x"}, "allowed: fast, push"),
        ({"source": 0, "direction": "up"}, "direction is 'up'"),
    ],
)
def test_searches_that_are_refused(call, text):
    graph = distbfs.Graph.from_edges([0, 1], [1, 2])
    with pytest.raises(UsageError, match=text):
        distbfs.bfs(graph, **call)


def test_results_that_are_refused():
    graph = distbfs.Graph.from_networkx(nx.Graph([("a", "b"), ("c", "d")]))
    result = distbfs.bfs(graph, "a")
    with pytest.raises(UsageError, match="c was not reached from a"):
        result.path_to("c")
    with pytest.raises(UsageError, match="'e' is not a node of the graph"):
        result.path_to("e")
    with pytest.raises(UsageError, match="level is -1"):
        result.frontier(-1)
    with pytest.raises(UsageError, match="without parents"):
        distbfs.bfs(graph, "a", parents=False).tree()


def test_a_named_device_engine_says_what_is_missing():
    graph = distbfs.Graph.from_edges([0], [1])
    with pytest.raises(DeviceMissing, match="no CUDA device"):
        distbfs.bfs(graph, 0, "xbfs")


def test_copies_search_too():
    graph = distbfs.Graph.from_networkx(nx.path_graph("abc"))
    distbfs.bfs(graph, "a")
    for again in (pickle.loads(pickle.dumps(graph)), copy.deepcopy(graph)):
        assert distbfs.bfs(again, "c").path_to("a") == ["c", "b", "a"]


def test_names_come_when_they_are_asked_for():
    code = (
        "import sys, distbfs\n"
        "assert 'numpy' not in sys.modules\n"
        "assert {'Graph', 'bfs', 'Result'} < set(dir(distbfs))\n"
        "distbfs.bfs\nassert 'distbfs.search.graph' in sys.modules\n"
        "assert not {'cupy', 'mpi4py', 'networkx', 'scipy'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    name = "nothing"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        getattr(distbfs, name)


def test_every_engine_of_the_registry_is_told():
    for name in ENGINES:
        if not lookup(ENGINES, "engine", name).whole_graphs:
            with pytest.raises(UsageError, match=f"engine {name} searches parts"):
                distbfs.bfs(distbfs.Graph.from_scipy(sp.eye_array(2)), 0, engine=name)
            continue
        assert f'"{name}"' in distbfs.bfs.__doc__


@pytest.mark.parametrize("maker", ["edges", "scipy", "networkx"])
def test_reversed_graphs_count_the_tuples_that_leave(maker):
    """Loops and repeats too, where they are known."""
    rng = np.random.default_rng(4)
    u, v = rng.integers(0, 30, (2, 70))
    if maker != "edges":
        u, v = np.unique([u, v], axis=1)
    if maker == "scipy":
        u, v = u[u != v], v[u != v]
    pairs = list(zip(u.tolist(), v.tolist(), strict=True))
    graph = nx.DiGraph()
    graph.add_nodes_from(range(30))
    graph.add_edges_from(pairs)
    matrix = sp.csr_matrix((np.ones(len(u)), (u, v)), shape=(30, 30))
    made = {
        "edges": lambda: distbfs.Graph.from_edges(u, v, 30, directed=True),
        "scipy": lambda: distbfs.Graph.from_scipy(matrix, directed=True),
        "networkx": lambda: distbfs.Graph.from_networkx(graph),
    }[maker]()
    turned = distbfs.Graph.from_edges(v, u, 30, directed=True)
    for source in range(30):
        one = distbfs.bfs(made.reversed(), source, engine="reference")
        other = distbfs.bfs(turned, source, engine="reference")
        np.testing.assert_array_equal(one.level, other.level)
        assert one.nedge == other.nedge
