"""Graphs built on the device against the same rules in NumPy."""

from types import SimpleNamespace

import numpy as np
import pytest
from numbered_graphs import check, expected
from test_device_tuples import Tuples

from distbfs.build.cuda import chunks
from distbfs.build.cuda import graph as device_build
from distbfs.build.cuda import rows as device_rows
from distbfs.build.cuda.graph import build
from distbfs.build.cuda.graph_of_rows import graph_of_part
from distbfs.device import cuda
from distbfs.errors import InputError, ResourceError, UsageError
from distbfs.generate.kronecker import Kronecker
from distbfs.graph.csr import CSR
from distbfs.partition.layout import Layout
from distbfs.progress import Sum

pytestmark = pytest.mark.emulated


def held(source):
    u, v = source.tuples_at(np.arange(source.tuples))
    return Tuples(source.n, u, v)


def random_tuples(n, count, seed, hubs=3):
    rng = np.random.default_rng(seed)
    u, v = rng.integers(0, n, (2, count))
    v[: count // 3] = rng.integers(0, hubs, count // 3)
    u[::11] = v[::11]
    return Tuples(n, u, v)


none = np.zeros(0, np.int64)
GRAPHS = {
    "nothing": Tuples(0, none, none),
    "one-vertex": Tuples(1, none, none),
    "no-edges": Tuples(3000, none, none),
    "loops": Tuples(5, [0, 3, 3], [0, 3, 3]),
    "one-edge-repeated": Tuples(4, [1, 3, 1, 1, 2], [3, 1, 3, 1, 2]),
    "star": Tuples(5000, [1234] * 4999, np.delete(np.arange(5000), 1234)),
    "path": Tuples(130, range(129), range(1, 130)),
    "complete": Tuples(60, *np.triu_indices(60, 1)),
    "sparse": random_tuples(100_000, 9000, 1),
    "dense": random_tuples(300, 20_000, 2),
    "middle": random_tuples(20_000, 50_000, 3),
    "kronecker-9": held(Kronecker(9, 16)),
    "kronecker-13": held(Kronecker(13, 16, 7)),
}


def rows_of(source, dtype=np.int64, seed=5):
    """The same graph as rows in a random numbering."""
    n = source.n
    vertices = np.random.default_rng(seed).permutation(n)
    numbers = np.argsort(vertices)
    other = source.u != source.v
    u, v = numbers[source.u[other]], numbers[source.v[other]]
    keys = np.unique(np.r_[u << 32 | v, v << 32 | u].astype(np.int64))
    lengths = np.bincount(keys >> 32, minlength=n)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    nn = CSR(offsets.astype(dtype), (keys & (1 << 32) - 1).astype(dtype))
    ends = np.bincount(np.r_[source.u, source.v].astype(np.int64), minlength=n)
    return SimpleNamespace(
        layout=Layout(n, 1),
        delegate_count=0,
        sides=[{"nn": nn}],
        nn=nn,
        vertices=vertices.astype(dtype),
        tuple_degrees=ends[vertices].astype(dtype),
    )


@pytest.mark.parametrize("buffer_bytes", [None, 100_000, 0])
@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_follow_the_rules(name, buffer_bytes):
    check(build(GRAPHS[name], buffer_bytes=buffer_bytes), expected(GRAPHS[name]))


@pytest.mark.parametrize("name", ["nothing", "loops", "kronecker-13"])
@pytest.mark.parametrize("buffer_bytes", [None, 0])
def test_offsets_of_64_bits(name, buffer_bytes):
    graph = build(GRAPHS[name], buffer_bytes=buffer_bytes, wide=True)
    check(graph, expected(GRAPHS[name]), wide=True)


@pytest.mark.thorough
def test_offsets_are_narrow_where_repeats_made_them_wide(monkeypatch):
    wanted = expected(GRAPHS["kronecker-13"])
    monkeypatch.setattr(device_rows, "WIDE", wanted["m"] + 1)
    check(build(GRAPHS["kronecker-13"]), wanted)
    monkeypatch.setattr(device_rows, "WIDE", wanted["m"])
    check(build(GRAPHS["kronecker-13"], buffer_bytes=0), wanted, wide=True)


@pytest.mark.parametrize("buffer_bytes", [None, 0])
def test_several_chunks(monkeypatch, buffer_bytes):
    monkeypatch.setattr(chunks, "CHUNK", 1000)
    source = Kronecker(10, 13)
    check(build(source, buffer_bytes=buffer_bytes), expected_of(source))


def expected_of(source):
    return expected(held(source)) | {"source": source.describe()}


def test_many_ranges_are_told():
    told, source = [], Kronecker(13)
    build(source, buffer_bytes=1 << 17, done=Sum(lambda *x: told.append(x)))
    passes = told[-1][0] // source.tuples
    assert passes > 10
    assert told[-1][0] == max(x[1] for x in told if len(x) == 2)


@pytest.mark.thorough
@pytest.mark.parametrize("buffer_bytes", [None, 50_000])
@pytest.mark.parametrize("dtype", [np.int64, np.uint32])
@pytest.mark.parametrize("name", GRAPHS)
def test_rows_of_another_numbering(name, dtype, buffer_bytes):
    source = GRAPHS[name]
    wanted = expected(simple(source), trees=False) | {"source": {}}
    for key in ("tuples", "tuple_degrees"):
        wanted[key] = expected(source)[key]
    part = rows_of(source, dtype)
    check(graph_of_part("xbfs", part, buffer_bytes=buffer_bytes), wanted)


def simple(source):
    """The source with each edge once."""
    low, high = np.minimum(source.u, source.v), np.maximum(source.u, source.v)
    keys = np.unique((low << 32 | high)[low != high].astype(np.int64))
    return Tuples(source.n, keys >> 32, keys & (1 << 32) - 1)


@pytest.mark.thorough
def test_rows_give_the_graph_of_their_tuples(monkeypatch):
    monkeypatch.setattr(chunks, "CHUNK", 777)
    source = simple(GRAPHS["kronecker-13"])
    wanted = expected(source, trees=False) | {"source": {}}
    check(graph_of_part("xbfs", rows_of(source), buffer_bytes=1 << 18), wanted)


class Changing(Tuples):
    """Other tuples at each pass."""

    def chunks(self, start, stop):
        self.v = np.roll(self.v, 1)
        yield self.u[start:stop], self.v[start:stop]


def test_tuples_that_change(monkeypatch):
    class Forgetful(chunks.Chunks):
        def __init__(self, pairs, count, **options):
            super().__init__(pairs, count, **{**options, "hold": False})

    monkeypatch.setattr(device_build, "Chunks", Forgetful)
    source = Changing(6, [0, 0, 1, 2], [0, 1, 2, 5])
    with pytest.raises(InputError, match="changed while the graph was built"):
        build(source)


def test_more_vertices_than_a_device_numbers():
    with pytest.raises(UsageError, match="4294967296 vertices do not fit one device"):
        build(Kronecker(32))


@pytest.mark.parametrize("free", [1000, 28 << 16 | 8 << 20])
def test_graphs_that_do_not_fit(monkeypatch, free):
    monkeypatch.setattr(cuda, "free_bytes", lambda: free)
    wanted = rf"needs \d+ bytes of device memory; {free} are free"
    with pytest.raises(ResourceError, match=wanted):
        build(Kronecker(16))


@pytest.mark.gpu
def test_memory_is_given_back():
    pool = cuda.cupy().get_default_memory_pool()
    pool.free_all_blocks()
    before = pool.total_bytes()
    graph = build(Kronecker(18))
    assert pool.total_bytes() - before < 1.5 * graph.nbytes
