"""A store that goes to the device while it is read, against host memory."""

import shutil
import sys
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
import scipy.sparse as sp
from directed_between import check_parts
from directed_graphs import check, check_arrays, matrix_of
from directed_graphs import stored as directed_store
from directed_hosts import arcs_of
from emulated_device import DeviceArray
from graphs import (
    Tuples,
    build,
    check_search,
    kronecker,
    random_tuples,
    some_roots,
    without_repeats,
)

import distbfs
from distbfs import bfs
from distbfs.build.cuda import chunks
from distbfs.build.cuda import graph as device_build
from distbfs.build.cuda.graph_of_rows import graph_of_part
from distbfs.cli import graphs as storing
from distbfs.device import cuda
from distbfs.errors import InputError, StoreError, UsageError
from distbfs.generate.hashing import Permutation
from distbfs.options import BuildOptions, SearchOptions
from distbfs.progress import Sum
from distbfs.ranks.world import SoloWorld
from distbfs.search import graph as library
from distbfs.search import graph_input as arrays
from distbfs.search.graph import Graph
from distbfs.store import schema
from distbfs.store.cuda_files import TupleEnds
from distbfs.store.cuda_graph import graph_of_store
from distbfs.store.cuda_part import part_of_store
from distbfs.store.cuda_rows import StoreRows
from distbfs.store.hdf5 import Store, open_store
from distbfs.store.verify import verify_store
from distbfs.store.write import write_graph

sys.path.append(str(Path(__file__).parents[2] / "store"))
sys.path.append(str(Path(__file__).parents[2] / "cli"))

import test_store_refusals as refusals
from commands import here
from store_graphs import OF_DIRECTED, make_parts, reconcile, write_store
from store_graphs import random_tuples as random_tuples_of_stores

pytestmark = pytest.mark.usefixtures("device")
HUBS = Tuples(300, [0] * 200 + [7] * 90, [*range(1, 201), *range(100, 190)])
GRAPHS = {
    "kronecker": kronecker(8),
    "random": random_tuples(411, 1200, seed=3),
    "hubs": HUBS,
    "one edge": Tuples(5, [4], [1]),
    "no edge": Tuples(3, [], []),
}
ARRAYS = ("vertices", "numbers", "out.offsets", "out.columns", "at_least")
SEED = 7  # of the permutation that the stores of these tests name


def stored(folder, source, parts, threshold):
    """A store of a graph whose vertices were permuted."""
    ends = [np.array(x, np.int64) for x in (source.u, source.v)]
    if source.n > 1:
        ends = [Permutation(source.n, SEED).forward(x) for x in ends]
    made = make_parts(source.n, parts, threshold, ends)
    return open_store(write_store(folder / "graph", made, ends))


def same(found, source):
    """Compare a graph with that of tuples."""
    wanted = device_build.build(without_repeats(source))
    assert (found.n, found.m, found.active) == (wanted.n, wanted.m, wanted.active)
    assert found.tuples == source.tuples
    for array in ARRAYS:
        here, there = attrgetter(array)(found), attrgetter(array)(wanted)
        np.testing.assert_array_equal(np.asarray(here), np.asarray(there), array)
    np.testing.assert_array_equal(np.asarray(found.tuple_degrees), source.ends)


@pytest.mark.parametrize("threshold", [0, 6, 1 << 30])
@pytest.mark.parametrize("parts", [1, 2, 3])
@pytest.mark.parametrize("name", GRAPHS)
def test_the_graph_is_that_of_the_tuples(tmp_path, name, parts, threshold):
    source = GRAPHS[name]
    store = stored(tmp_path, source, parts, threshold)
    same(graph_of_store(store), source)


def test_columns_are_read_again_where_keys_do_not_fit(tmp_path, monkeypatch):
    monkeypatch.setattr(schema, "SLICE_BYTES", 1000)
    source = GRAPHS["kronecker"]
    store = stored(tmp_path, source, 2, 6)
    size = sum(store.part_bytes(part) for part in range(2))
    for buffer_bytes in (None, 1 << 13):
        told = []
        done = Sum(lambda *x, told=told: told.append(x))
        same(graph_of_store(store, buffer_bytes=buffer_bytes, done=done), source)
        total = max(x[1] for x in told if len(x) == 2)
        assert told[-1] == (total,)
        assert total == size or (buffer_bytes and total > size + 4 * store.manifest.m)


def one_way(folder, source, seed=SEED, parts=1, threshold=None):
    """A directed store."""
    options = BuildOptions(directed=True, permute_seed=seed, threshold=threshold)
    path = folder / "graph"
    write_graph(SoloWorld(), source, path, parts, options, overwrite=True)
    return open_store(path)


@pytest.mark.thorough
@pytest.mark.parametrize(("parts", "threshold"), [(1, None), (1, 6), (3, 6), (2, 0)])
@pytest.mark.parametrize("name", GRAPHS)
def test_parts_of_arcs_on_devices(tmp_path, monkeypatch, name, parts, threshold):
    """They are on devices what they are in host memory, with all edges."""
    monkeypatch.setattr(schema, "SLICE_BYTES", 1000)
    source = arcs_of(GRAPHS[name])
    store = one_way(tmp_path, source, None, parts, threshold)
    check_parts(source, [part_of_store(store, index) for index in range(parts)])


@pytest.mark.thorough
@pytest.mark.parametrize(("parts", "threshold"), [(1, 6), (3, 6), (2, 1 << 30)])
@pytest.mark.parametrize("name", GRAPHS)
def test_the_graph_of_directed_parts(tmp_path, name, parts, threshold):
    """It is that of one part."""
    source = GRAPHS[name]
    wanted = graph_of_store(one_way(tmp_path, source))
    made = graph_of_store(one_way(tmp_path, source, 3, parts, threshold))
    assert (made.n, made.m, made.active) == (wanted.n, wanted.m, wanted.active)
    for array in (*ARRAYS, "into.offsets", "into.columns", "tuple_degrees"):
        ours, theirs = attrgetter(array)(made), attrgetter(array)(wanted)
        np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs), array)


@pytest.mark.parametrize("buffer_bytes", [None, 1 << 12])
@pytest.mark.parametrize("seed", [None, SEED])
@pytest.mark.parametrize("name", GRAPHS)
def test_directed_stores(tmp_path, monkeypatch, name, seed, buffer_bytes):
    """The graph is that of rows in host memory, which the device does not ask for."""
    monkeypatch.setattr(schema, "SLICE_BYTES", 1000)
    source = GRAPHS[name]
    store = one_way(tmp_path, source, seed)
    part = store.load_part(0)
    if seed is not None and source.n > 1:
        ids = Permutation(source.n, seed).inverse(part.vertices.astype(np.int64))
        part = replace(part, vertices=ids)
    wanted = graph_of_part("xbfs-paper", part)
    monkeypatch.setattr(Store, "load_part", None)
    found = graph_of_store(store, buffer_bytes=buffer_bytes)
    assert found.directed
    for array in (*ARRAYS, "into.offsets", "into.columns", "tuple_degrees"):
        here, there = attrgetter(array)(found), attrgetter(array)(wanted)
        np.testing.assert_array_equal(np.asarray(here), np.asarray(there), array)
    numbers = ("n", "m", "active", "tuples", "loops")
    for number in numbers:
        assert getattr(found, number) == getattr(wanted, number), number
    matrix = matrix_of(source.n, source.u, source.v)
    with distbfs.open(store, engine="xbfs", devices=1) as session:
        assert session.edges == matrix.nnz
        for root in some_roots(source, 2):
            result = session.search(root)
            level, parent = result.to_numpy()
            check(matrix, root, SimpleNamespace(level=level, parent=parent))
            counted = np.isin(source.u, np.flatnonzero(level >= 0)).sum()
            assert result.nedge == counted


@pytest.mark.parametrize("owners", [1, 2, 5])
def test_ends_of_the_vertices_of_each_owner(tmp_path, owners):
    source = GRAPHS["random"]
    store = stored(tmp_path, source, 3, 6)
    cupy = cuda.cupy()
    for owner in range(owners):
        wanted = source.ends[owner::owners]
        ends = cupy.zeros(len(wanted), np.uint32)
        StoreRows(store, [], ends=[TupleEnds(owners, owner, ends)])
        np.testing.assert_array_equal(np.asarray(ends), wanted)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The folder of a store of two parts with edges in every subgraph."""
    tuples = random_tuples_of_stores(90, 400, seed=1)
    folder = tmp_path_factory.mktemp("written") / "graph"
    return write_store(folder, make_parts(90, 2, 12, tuples), tuples)


@pytest.fixture
def store(tmp_path, written):
    """A copy of that store, which a test may alter."""
    return open_store(shutil.copytree(written, tmp_path / "graph"))


def all_parts(store):
    """All parts as they are on devices."""
    return [part_of_store(store, index) for index in range(store.manifest.parts)]


@pytest.fixture(params=[graph_of_store, all_parts])
def refuses(request, monkeypatch):
    """The tests of refusals, by the device: of the whole graph, and of parts."""
    monkeypatch.setattr(
        refusals, "load_all", lambda folder: request.param(open_store(folder))
    )
    return refusals


@pytest.mark.pairs
@pytest.mark.parametrize("case", refusals.CONTENTS)
def test_forged_contents(store, refuses, case):
    refuses.test_forged_contents(store, case)


def test_rows_that_are_not_active(store, refuses):
    refuses.test_rows_that_are_not_active(store)


@pytest.mark.parametrize("name", schema.DATASETS)
def test_altered_arrays(store, refuses, name):
    refuses.test_flipped_byte_in_each_dataset(store, name)


FORGED = {
    "beyond": (lambda x: x["incoming/columns"], -1, 90, "a column is not below 90"),
    "falls": (lambda x: x["incoming/offsets"], 1, 1 << 20, "row offsets do not rise"),
    "start": (lambda x: x["incoming/offsets"], 0, 1, "offsets do not start at 0"),
}
FORGED_PARTS = {
    "owner": (lambda x: x["incoming/columns"], 0, 45, "is beyond the vertices of its"),
    "rank": (lambda x: x["incoming/columns"], 0, 2 << 32, "a column is not below 8589"),
    "delegate": (lambda x: x["incoming_nd/columns"], 0, 77, "a column is not below"),
    "number": (lambda x: x["incoming_dn/columns"], 0, 45, "a column is not below 45"),
    "passive": (
        lambda x: x["incoming_nd/offsets"],
        44,
        0,
        "row offsets do not rise|at",
    ),
    "falls": (lambda x: x["incoming_dd/offsets"], 1, 999, "row offsets do not rise"),
}


def load_each(store):
    """Load all parts to host memory."""
    return [store.load_part(index) for index in range(store.manifest.parts)]


@pytest.mark.thorough
@pytest.mark.parametrize("load", [graph_of_store, all_parts, load_each])
@pytest.mark.parametrize(
    ("case", "parts"),
    [
        *((case, 1) for case in (*OF_DIRECTED[:2], *FORGED)),
        *((case, 2) for case in (*OF_DIRECTED, *FORGED_PARTS)),
    ],
)
def test_altered_edges_in(tmp_path, case, parts, load):
    u, v = random_tuples_of_stores(90, 400, seed=1)
    store = one_way(tmp_path, Tuples(90, u, v), SEED, parts, [None, 9][parts - 1])
    path = store.folder / "part-00000.h5"
    forged = FORGED if parts == 1 else FORGED_PARTS
    if case in forged:
        array, place, value, text = forged[case]

        def change(file):
            array(file)[place] = value

        reconcile(store, change, [0])
    else:
        text = "is altered: its digest is not the manifest's"
        with h5py.File(path, "r+", libver=("v110", "v110")) as file:
            file[case][3] = file[case][3] ^ 1
    name = "" if case in forged and load is load_each else "incoming.*"
    with pytest.raises(StoreError, match=f"part-00000.h5: .*{name}{text}") as error:
        load(open_store(store.folder))
    assert "\n" not in str(error.value)


@pytest.mark.thorough
def test_flipped_bytes(tmp_path):
    """Anywhere in a part: refused, or it makes no difference at all."""
    source = GRAPHS["random"]
    store = stored(tmp_path, source, 2, 6)
    path = store.folder / "part-00001.h5"
    data = path.read_bytes()
    rng, refusals = np.random.default_rng(5), 0
    for place in rng.choice(len(data), 30, replace=False):
        flipped = bytearray(data)
        flipped[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(flipped)
        try:
            found = graph_of_store(open_store(store.folder))
        except StoreError:
            refusals += 1
            continue
        same(found, source)
    assert refusals > 10


def test_arrays_of_many_edges_go_to_the_device(monkeypatch):
    source = GRAPHS["kronecker"]
    monkeypatch.setattr(arrays, "MANY", 100)
    graph = Graph.from_edges(source.u, source.v, source.n)
    assert graph._part is None
    [part] = build(source, 1)[0]
    assert (graph.n, graph._stored_edges) == (source.n, part.nn.edges)
    for root in some_roots(source, 4):
        check_search(source, root, *bfs(graph, root).to_numpy())
        check_search(source, root, *bfs(graph, root, "openmp").to_numpy())
    other = Graph.from_edges(source.u, source.v, source.n)
    with monkeypatch.context() as patch:
        patch.setattr(library.os, "getpid", lambda: -1)
        with pytest.raises(UsageError, match="no forked process can use"):
            bfs(other, 0, "openmp")


def searched(graph, source, matrix, count=3):
    """Compare searches by the device and by threads with SciPy's."""
    for root in some_roots(source, count):
        first, second = bfs(graph, root), bfs(graph, root, "openmp")
        assert (first.nedge, first.reached) == (second.nedge, second.reached)
        for found in (first, second):
            level, parent = found.to_numpy()
            check(matrix, root, SimpleNamespace(level=level, parent=parent))


@pytest.mark.parametrize("name", ["kronecker", "random", "hubs", "one edge"])
def test_directed_arrays_of_many_edges(monkeypatch, name):
    """The rows are those of the host's, and a tuple counts where it begins."""
    monkeypatch.setattr(arrays, "MANY", 1)
    source = GRAPHS[name]
    graph = Graph.from_edges(source.u, source.v, source.n, directed=True)
    assert graph._part is None
    matrix = matrix_of(source.n, source.u, source.v)
    assert (graph.n, graph._stored_edges, graph.directed) == (
        source.n,
        matrix.nnz,
        True,
    )
    searched(graph, source, matrix)
    held = graph._session(SearchOptions(engine="auto")).held.shares[0]
    ends = 2 * np.bincount(source.u, minlength=source.n)
    np.testing.assert_array_equal(held.tuple_degrees, ends)
    ids = np.asarray(held.vertices)
    for side, wanted in (
        (held.out, matrix),
        (held.into, matrix.T),
    ):
        ones, shape = np.ones(held.m), (held.active, held.active)
        rows = sp.csr_matrix((ones, side.columns[: held.m], side.offsets), shape=shape)
        assert rows.has_sorted_indices
        assert (rows != wanted.tocsr()[ids][:, ids]).nnz == 0
    back = graph.reversed()
    for root in some_roots(source, 1):
        level, parent = bfs(back, root).to_numpy()
        found = SimpleNamespace(level=level, parent=parent)
        check(matrix.T.tocsr(), root, found)


@pytest.mark.parametrize("name", ["kronecker", "random", "hubs", "one edge"])
def test_a_directed_store_turned_round(tmp_path, name):
    source = GRAPHS[name]
    directed_store(tmp_path / "graph", source.n, source.u, source.v)
    matrix = matrix_of(source.n, source.u, source.v)
    inside = np.diff(matrix.tocsc().indptr)
    with distbfs.open(tmp_path / "graph", reverse=True) as session:
        assert session.options.engine == "xbfs"
        for root in some_roots(source, 2):
            result = session.search(root)
            level, parent = result.to_numpy()
            check_arrays(matrix.T.tocsr(), root, level, parent)
            assert result.nedge == inside[level >= 0].sum()


@pytest.mark.parametrize("buffer_bytes", [None, 1 << 12])
def test_directed_tuples_in_passes(monkeypatch, buffer_bytes):
    """Whatever is sorted at once, and however few tuples are held."""
    monkeypatch.setattr(chunks, "CHUNK", 100)
    source = GRAPHS["random"]
    matrix = matrix_of(source.n, source.u, source.v)
    made = device_build.build(source, directed=True, buffer_bytes=buffer_bytes)
    assert (made.m, made.tuples) == (matrix.nnz, source.tuples)
    assert made.loops == np.count_nonzero(source.u == source.v)
    held = np.ones(made.m), made.into.columns[: made.m], made.into.offsets
    found = sp.csr_matrix(held, shape=(made.active, made.active))
    ids = np.asarray(made.vertices)
    assert (found != matrix.T.tocsr()[ids][:, ids]).nnz == 0


def repeated(matrix):
    """A matrix that stores each entry 256 times."""
    indices, indptr = np.repeat(matrix.indices, 256), 256 * matrix.indptr
    return sp.csr_matrix((np.ones(len(indices)), indices, indptr), matrix.shape)


MATRICES = {
    "one way": lambda m: m,
    "both ways": lambda m: (m + m.T).tocsr(),
    "loops": lambda m: (m + sp.identity(m.shape[0], format="csr")).tocsr(),
    "columns": lambda m: m.tocsc(),
    "repeats": repeated,
}


@pytest.mark.thorough
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("case", MATRICES)
@pytest.mark.parametrize("name", ["random", "one edge"])
def test_matrices_of_many_entries_go_to_the_device(monkeypatch, name, case, directed):
    """They give what they give in host memory: edges, each once, and no loops."""
    source = GRAPHS[name]
    matrix = MATRICES[case](matrix_of(source.n, source.u, source.v))
    plain = matrix.tocoo()
    simple = matrix_of(source.n, plain.row, plain.col) if directed else source.matrix
    wanted = Graph.from_scipy(matrix, directed=directed)
    assert wanted._part is not None
    monkeypatch.setattr(arrays, "MANY", 1)
    graph = Graph.from_scipy(matrix, directed=directed)
    assert graph._part is None
    assert (graph.n, graph.num_edges) == (source.n, wanted.num_edges)
    assert wanted._stored_edges == simple.nnz
    graph._process = -1  # any process has the matrix
    searched(graph, source, simple)
    degrees = np.diff(simple.indptr)
    for root in some_roots(source, 2):
        found = bfs(graph, root)
        reached = found.to_numpy()[0] >= 0
        assert found.nedge == bfs(wanted, root, "openmp").nedge
        assert found.nedge == degrees[reached].sum() // (1 if directed else 2)


def test_matrices_that_do_not_fit_are_refused_before_they_are_sent(monkeypatch):
    monkeypatch.setattr(arrays, "MANY", 1)
    monkeypatch.setattr(arrays, "to_device", None)
    matrix = matrix_of(4, [0, 1, 2], [1, 2, 3])
    matrix.indices[1] = 99
    with pytest.raises(InputError, match="the arrays of the matrix are inconsistent"):
        Graph.from_scipy(matrix)


class Lent(DeviceArray):
    """An array of another program in device memory, which no host may ask for."""

    def __dlpack_device__(self):
        return (2, 0)

    def get(self, *_, **__):
        raise AssertionError("lent arrays went to the host")


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint32])
@pytest.mark.parametrize("directed", [False, True])
def test_lent_arrays_stay_on_the_device(monkeypatch, directed, dtype):
    source, cupy = GRAPHS["random"], cuda.cupy()
    u, v = (cupy.asarray(x.astype(dtype)).view(Lent) for x in (source.u, source.v))
    monkeypatch.setattr(type(cupy), "from_dlpack", lambda _, x: x, raising=False)
    graph = Graph.from_dlpack(u, v, directed=directed)
    assert graph._tuples.u is u
    matrix = source.matrix
    if directed:
        matrix = matrix_of(source.n, source.u, source.v)
    matrix = matrix[: graph.n, : graph.n]
    for root in (0, 7, 200):
        found = bfs(graph, root)
        assert isinstance(found.level, DeviceArray)
        level, parent = found.to_numpy()
        check(matrix, root, SimpleNamespace(level=level, parent=parent))
    assert graph._stored_edges == matrix.nnz
    with pytest.raises(InputError, match="an edge has the end"):
        Graph.from_dlpack(u, v, n=200, directed=directed)


@pytest.mark.thorough
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("again", ["convert", "partition"])
def test_stores_that_devices_build(tmp_path, monkeypatch, again, directed):
    """From a file, and from a store in other parts; searched by the reference."""
    monkeypatch.setattr(storing, "take_devices", lambda *_, **__: [0])
    source = arcs_of(GRAPHS["random"]) if directed else GRAPHS["random"]
    edges, folder = tmp_path / "edges.npy", tmp_path / "graph"
    np.save(edges, np.stack([source.u, source.v], axis=1))
    words = ["convert", edges, "--vertices", source.n, "--on-devices", "-o", folder]
    words += ["--directed"] * directed
    assert here(*words, "--parts", 3, "--threshold", 6).code == 0
    if again == "partition":
        words = ["partition", folder, "--on-devices", "-o", tmp_path / "other"]
        assert here(*words, "--parts", 2, "--threshold", 9).code == 0
        folder = tmp_path / "other"
    store = open_store(folder)
    assert store.manifest.tuples == source.tuples
    assert verify_store(store).findings == []
    if not directed:
        same(graph_of_store(store), source)
    with distbfs.open(store, engine="reference") as session:
        for root in some_roots(source, 2):
            found = session.search(root)
            check_arrays(source.matrix, root, *found.to_numpy())
            reached = found.to_numpy()[0] >= 0
            assert found.nedge == source.ends[reached].sum() // 2
