"""Stores that go to devices while they are read, against the graph of their tuples."""

from operator import attrgetter
from types import SimpleNamespace

import numpy as np
import pytest
from directed_graphs import check, matrix_of
from graphs import (
    check_search,
    kronecker,
    random_tuples,
    some_roots,
    without_repeats,
)
from numbered_graphs import check as check_graph
from numbered_graphs import expected

import distbfs
from distbfs.build.cuda import graph as device_build
from distbfs.build.cuda.graph_of_rows import graph_of_part
from distbfs.device import cuda
from distbfs.generate.kronecker import Kronecker
from distbfs.options import BuildOptions
from distbfs.progress import Sum
from distbfs.ranks.world import SoloWorld
from distbfs.search import graph_input as arrays
from distbfs.store import schema
from distbfs.store.cuda_graph import graph_of_store
from distbfs.store.cuda_part import part_of_store
from distbfs.store.hdf5 import open_store
from distbfs.store.write import write_graph
from distbfs.types import SUBGRAPHS

pytestmark = pytest.mark.emulated

ARRAYS = ("vertices", "numbers", "out.offsets", "out.columns", "at_least")


def stored(folder, source, parts, threshold, devices=None):
    seed = 3 if parts > 1 else None
    options = BuildOptions(threshold=threshold, permute_seed=seed)
    write_graph(SoloWorld(), source, folder, parts, options, devices=devices)
    return open_store(folder)


def same(found, source):
    """Stores know no links, so that trees are not set apart."""
    wanted = expected(without_repeats(source), trees=False)
    wanted |= {"tuples": source.tuples, "tuple_degrees": source.ends}
    check_graph(found, wanted | {"source": found.source})


@pytest.mark.parametrize("threshold", [0, 12, 1 << 30])
@pytest.mark.parametrize("parts", [1, 2, 5])
@pytest.mark.parametrize("source", [kronecker(9), random_tuples(701, 2000, 5)])
def test_the_graph_is_that_of_the_tuples(
    tmp_path, monkeypatch, source, parts, threshold
):
    monkeypatch.setattr(schema, "SLICE_BYTES", 1 << 11)  # many slices in flight
    store = stored(tmp_path / "graph", source, parts, threshold)
    same(graph_of_store(store), source)
    told = []
    done = Sum(lambda *x: told.append(x))
    same(graph_of_store(store, buffer_bytes=1 << 15, done=done), source)
    assert max(x[1] for x in told if len(x) == 2) > 0  # columns are read again


@pytest.mark.parametrize("buffer_bytes", [None, 1 << 18])
@pytest.mark.parametrize("source", [kronecker(12), random_tuples(3001, 9000, 5)])
def test_directed_stores(tmp_path, monkeypatch, source, buffer_bytes):
    """The graph is that of rows in host memory."""
    monkeypatch.setattr(schema, "SLICE_BYTES", 1 << 14)
    options = BuildOptions(directed=True)
    write_graph(SoloWorld(), source, tmp_path / "graph", 1, options)
    store = open_store(tmp_path / "graph")
    found = graph_of_store(store, buffer_bytes=buffer_bytes)
    wanted = graph_of_part("xbfs-paper", store.load_part(0))
    for name in (*ARRAYS, "into.offsets", "into.columns", "tuple_degrees"):
        here, there = attrgetter(name)(found), attrgetter(name)(wanted)
        host = [x.get() if hasattr(x, "get") else x for x in (here, there)]
        np.testing.assert_array_equal(host[0], host[1], name)


@pytest.mark.parametrize("threshold", [0, 12, 1 << 30])
@pytest.mark.parametrize("parts", [1, 3])
def test_parts_are_those_of_the_host(tmp_path, monkeypatch, parts, threshold):
    monkeypatch.setattr(schema, "SLICE_BYTES", 1 << 14)  # many slices in flight
    store = stored(tmp_path / "graph", kronecker(12), parts, threshold)
    for index in range(parts):
        found, wanted = part_of_store(store, index), store.load_part(index)
        assert found.active == wanted.active
        np.testing.assert_array_equal(found.delegates, wanted.delegates)
        for name in ("vertices", "numbers", "tuple_degrees"):
            here = getattr(found, name).get()
            np.testing.assert_array_equal(here, getattr(wanted, name))
        for name in SUBGRAPHS:
            rows, other = getattr(found, name), getattr(wanted, name)
            np.testing.assert_array_equal(rows.offsets.get(), other.offsets)
            columns = rows.columns.get()
            np.testing.assert_array_equal(columns[: rows.edges], other.columns)
            assert not columns[rows.edges :].any()


@pytest.mark.thorough
@pytest.mark.parametrize("parts", [1, 3])
def test_devices_build_and_search_stores(tmp_path, parts):
    source = kronecker(12)
    stored(tmp_path / "graph", source, parts, 20, devices=[0])
    with distbfs.open(tmp_path / "graph") as session:
        for root in some_roots(source, 4):
            found = session.search(root)
            level, parent = found.to_numpy()
            check_search(source, root, level, parent)
            assert found.nedge == source.ends[level >= 0].sum() // 2


def test_all_devices_together(tmp_path):
    """One domain; each device reads some of the parts."""
    source = Kronecker(14)
    stored(tmp_path / "graph", source, 4, 40)
    with distbfs.open(source, devices=1) as session:
        wanted = [session.search(root).level_counts().tolist() for root in range(8)]
    count = cuda.cupy().cuda.runtime.getDeviceCount()
    with distbfs.open(tmp_path / "graph", domain=count) as session:
        for root, counts in enumerate(wanted):
            assert session.search(root).level_counts().tolist() == counts


def test_arrays_of_many_edges(monkeypatch):
    monkeypatch.setattr(arrays, "MANY", 100)
    source = kronecker(12)
    graph = distbfs.Graph.from_edges(source.u, source.v, source.n)
    assert graph._part is None
    for root in some_roots(source, 4):
        check_search(source, root, *distbfs.bfs(graph, root).to_numpy())
    assert 2 * graph.num_edges == device_build.build(source).m


@pytest.mark.thorough
def test_directed_arrays_and_matrices_of_many_edges(monkeypatch):
    monkeypatch.setattr(arrays, "MANY", 100)
    source = kronecker(12)
    matrix = matrix_of(source.n, source.u, source.v)
    for graph, wanted in (
        (distbfs.Graph.from_edges(source.u, source.v, source.n, directed=True), matrix),
        (distbfs.Graph.from_scipy(matrix), source.matrix),
        (distbfs.Graph.from_scipy(matrix, directed=True), matrix),
    ):
        assert (graph._part, graph._stored_edges) == (None, wanted.nnz)
        for root in some_roots(source, 4):
            level, parent = distbfs.bfs(graph, root).to_numpy()
            check(wanted, root, SimpleNamespace(level=level, parent=parent))


@pytest.mark.gpu
@pytest.mark.parametrize("directed", [False, True])
def test_lent_arrays_stay_on_the_device(monkeypatch, directed):
    """No call of a search copies arrays of this size to the host."""
    source, cp = kronecker(12), cuda.cupy()
    u, v = cp.asarray(source.u), cp.asarray(source.v)
    graph = distbfs.Graph.from_dlpack(u, v, source.n, directed=directed)
    assert graph._tuples.u.data.ptr == u.data.ptr
    monkeypatch.setattr(arrays, "on_host", None)
    matrix = matrix_of(source.n, source.u, source.v) if directed else source.matrix
    for root in some_roots(source, 2):
        level, parent = distbfs.bfs(graph, root).to_numpy()
        check(matrix, root, SimpleNamespace(level=level, parent=parent))
