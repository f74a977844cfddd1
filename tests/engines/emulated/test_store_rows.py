"""A store that goes to the device while it is read, against host memory."""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
from directed_graphs import check, matrix_of
from emulated_device import at_address
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
from distbfs.cli import storing
from distbfs.device import cuda
from distbfs.engines.cuda.whole import graph_of_part
from distbfs.errors import StoreError, UsageError
from distbfs.exchange.world import SoloWorld
from distbfs.generate.hashing import Permutation
from distbfs.graph import device_build
from distbfs.options import BuildOptions
from distbfs.search import arrays, library, shared_tuples
from distbfs.search.library import Graph
from distbfs.store import schema
from distbfs.store.device_graph import graph_of_store
from distbfs.store.device_rows import Ends, StoreRows
from distbfs.store.hdf5 import Store, open_store
from distbfs.store.write import write_graph

sys.path.append(str(Path(__file__).parents[2] / "store"))
sys.path.append(str(Path(__file__).parents[2] / "faults"))
sys.path.append(str(Path(__file__).parents[2] / "cli"))

import test_store_refusals as refusals
from commands import here
from store_graphs import make_parts, reconcile, write_store
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
ARRAYS = ("vertices", "numbers", "offsets", "columns", "at_least")
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
        here, there = getattr(found, array), getattr(wanted, array)
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
    said = []
    found = graph_of_store(store, buffer_bytes=1 << 13, say=said.append)
    assert "in 1 ranges" not in said[0]
    same(found, source)


def one_way(folder, source, seed=SEED):
    """A directed store."""
    options = BuildOptions(directed=True, permute_seed=seed)
    write_graph(SoloWorld(), source, folder / "graph", 1, options)
    return open_store(folder / "graph")


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
    for array in (*ARRAYS, "in_offsets", "in_columns", "tuple_degrees"):
        here, there = getattr(found, array), getattr(wanted, array)
        np.testing.assert_array_equal(np.asarray(here), np.asarray(there), array)
    numbers = ("n", "m", "active", "tuples", "loops")
    for number in numbers:
        assert getattr(found, number) == getattr(wanted, number), number
    matrix = matrix_of(source.n, source.u, source.v)
    with distbfs.open(store, engine="xbfs-paper", devices=1) as session:
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
        StoreRows(store, [], ends=[Ends(owners, owner, ends)])
        np.testing.assert_array_equal(np.asarray(ends), wanted)


@pytest.fixture
def store(tmp_path):
    """A store of two parts with edges in every subgraph."""
    tuples = random_tuples_of_stores(90, 400, seed=1)
    return open_store(
        write_store(tmp_path / "graph", make_parts(90, 2, 12, tuples), tuples)
    )


@pytest.fixture
def refuses(monkeypatch):
    """The tests of refusals, by the device."""
    monkeypatch.setattr(
        refusals, "load_all", lambda folder: graph_of_store(open_store(folder))
    )
    return refusals


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


@pytest.mark.parametrize("case", [*schema.INCOMING, *FORGED])
def test_altered_edges_in(tmp_path, case):
    u, v = random_tuples_of_stores(90, 400, seed=1)
    store = one_way(tmp_path, Tuples(90, u, v))
    path = store.folder / "part-00000.h5"
    if case in FORGED:
        array, place, value, text = FORGED[case]

        def change(file):
            array(file)[place] = value

        reconcile(store, change, [0])
    else:
        text = "is altered: its digest is not the manifest's"
        with h5py.File(path, "r+", libver=("v110", "v110")) as file:
            file[case][3] = file[case][3] ^ 1
    with pytest.raises(StoreError, match=f"part-00000.h5: .*incoming.*{text}") as error:
        graph_of_store(open_store(store.folder))
    assert "\n" not in str(error.value)


def test_flipped_bytes(tmp_path):
    """Anywhere in a part: refused, or it makes no difference at all."""
    source = GRAPHS["random"]
    store = stored(tmp_path, source, 2, 6)
    path = store.folder / "part-00001.h5"
    data = path.read_bytes()
    rng, refusals = np.random.default_rng(5), 0
    for place in rng.choice(len(data), 60, replace=False):
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
    assert (graph.n, graph.m) == (source.n, part.nn.edges)
    for root in some_roots(source, 4):
        check_search(source, root, *bfs(graph, root).to_numpy())
        check_search(source, root, *bfs(graph, root, "openmp").to_numpy())
    other = Graph.from_edges(source.u, source.v, source.n)
    with monkeypatch.context() as patch:
        patch.setattr(library.os, "getpid", lambda: -1)
        with pytest.raises(UsageError, match="no forked process can use"):
            bfs(other, 0, "openmp")
    one_way = Graph.from_edges(source.u, source.v, source.n, directed=True)
    assert one_way._part is not None


@pytest.mark.parametrize("again", ["convert", "partition"])
def test_stores_that_devices_build(tmp_path, monkeypatch, again):
    """From a file, and from a store in other parts; searched by the reference."""
    monkeypatch.setattr(shared_tuples, "foreign_array", at_address)
    monkeypatch.setattr(storing, "take_devices", lambda *_, **__: [0])
    source = GRAPHS["random"]
    edges, folder = tmp_path / "edges.npy", tmp_path / "graph"
    np.save(edges, np.stack([source.u, source.v], axis=1))
    words = ["convert", edges, "--vertices", source.n, "--on-devices", "-o", folder]
    assert here(*words, "--parts", 3, "--threshold", 6).code == 0
    if again == "partition":
        words = ["partition", folder, "--on-devices", "-o", tmp_path / "other"]
        assert here(*words, "--parts", 2, "--threshold", 9).code == 0
        folder = tmp_path / "other"
    store = open_store(folder)
    assert store.manifest.tuples == source.tuples
    same(graph_of_store(store), source)
    with distbfs.open(store, engine="reference") as session:
        for root in some_roots(source, 2):
            found = session.search(root)
            check_search(source, root, *found.to_numpy())
            reached = found.to_numpy()[0] >= 0
            assert found.nedge == source.ends[reached].sum() // 2
