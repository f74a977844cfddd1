"""Numbers of shortest paths with the kernel run on the CPU, against products."""

import numpy as np
import pytest
from device_graphs import HostGraph, hubs
from directed_graphs import directed, matrix_of, part_of
from drawn_examples import examples
from graphs import NAMED, Tuples, random_tuples
from hypothesis import given
from scipy.sparse.csgraph import shortest_path
from shortest_paths import diamonds, path_counts

import distbfs
from distbfs.build.cuda.graph_of_rows import graph_of_part
from distbfs.device import cuda
from distbfs.engines.cuda.common import paths
from distbfs.engines.cuda.common.paths import DeviceCounter
from distbfs.errors import UsageError


def layers(*sizes):
    """A vertex, then layers whose vertices are joined to all of the next."""
    ends = np.cumsum([1, *sizes])
    starts = [0, *ends[:-1]]
    pairs = [
        (a, b)
        for k in range(len(sizes))
        for a in range(starts[k], ends[k])
        for b in range(ends[k], ends[k + 1])
    ]
    return Tuples(int(ends[-1]), *np.array(pairs).T)


GRAPHS = {
    **{x: NAMED[x] for x in ("one-vertex", "loops", "two-components", "kronecker")},
    "long-rows": layers(2, 218, 2),
    "large-counts": layers(16, 17, 3, 20),
    "deep": diamonds(63),
    "deeper": Tuples(400, range(399), range(1, 400)),
    "some-hubs": hubs(3, 300),
}


def counted(graph, level, dtype="uint64"):
    cp = cuda.cupy()
    counter = DeviceCounter(graph)
    for _ in range(2):  # the second time arrays hold the first
        counts, passed = counter.counts(cp.asarray(level), int(level.max()), dtype)
    assert passed == 0
    return counts.get()


WAYS = [("i1", "uint64", False), ("i4", "uint64", True), ("i4", "float64", False)]


@pytest.mark.thorough
@pytest.mark.full_blocks(levels="i1")
@pytest.mark.parametrize(("levels", "dtype", "wide"), WAYS)
def test_counts(device, levels, dtype, wide, monkeypatch):
    for k, (name, source) in enumerate(GRAPHS.items()):
        monkeypatch.setattr(paths, "HUB_DEGREE", (2048, 12)[k % 3 == 2])
        made = HostGraph(source, wide)
        for root in {int(source.degrees.argmax()), 0}:
            level = source.distances(root)
            if level.max() > 126 and levels == "i1":
                continue
            level = level.astype(levels)
            counts = counted(made.graph, level, dtype)
            assert counts.dtype == dtype
            wanted = path_counts(source.matrix, level)
            np.testing.assert_array_equal(counts, wanted, f"{name} from {root}")


def test_several_sources(device):
    source = random_tuples(200, 500, seed=3)
    each = [source.distances(root) for root in (3, 9, 11)]
    level = np.min(np.where(np.less(each, 0), 1 << 30, each), axis=0)
    level = np.where(level == 1 << 30, -1, level).astype(np.int32)
    counts = counted(HostGraph(source).graph, level)
    np.testing.assert_array_equal(counts, path_counts(source.matrix, level))


@examples(25)
@given(matrix=directed())
def test_any_directed_graph(device, matrix):
    level = shortest_path(matrix, unweighted=True, indices=0)
    level = np.where(np.isinf(level), -1, level).astype(np.int32)
    counts = counted(graph_of_part("xbfs-paper", part_of(matrix)), level)
    np.testing.assert_array_equal(counts, path_counts(matrix, level))


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
def test_long_rows_of_edges_in_alone(device, dtype):
    """Of a directed graph: a row of edges in is long where no row of edges out is."""
    wide = 20 * 10  # grandchildren, each with an edge to one vertex
    u = [*[0] * 20, *np.repeat(range(1, 21), 10), *range(21, 21 + wide)]
    matrix = matrix_of(22 + wide, u, [*range(1, 21 + wide), *[21 + wide] * wide])
    level = np.repeat([0, 1, 2, 3], [1, 20, wide, 1]).astype(np.int32)
    graph = graph_of_part("xbfs-paper", part_of(matrix, dtype=dtype))
    assert wide > 9 * np.diff(matrix.indptr).max()
    np.testing.assert_array_equal(counted(graph, level), path_counts(matrix, level))


@pytest.mark.parametrize("leaves", [0, 9])
def test_counts_beyond_64_bits(device, leaves, monkeypatch):
    """By a warp, and by a block for a vertex that has many edges to leaves."""
    monkeypatch.setattr(paths, "HUB_DEGREE", 10)
    chain, end = diamonds(64), 3 * 64
    u = [*chain.u, *[end] * leaves]
    source = Tuples(end + 1 + leaves, u, [*chain.v, *range(end + 1, end + 1 + leaves)])
    level = source.distances(0).astype(np.int32)
    counter = DeviceCounter(HostGraph(source).graph)
    for now in (level, np.minimum(level, 127) * (level < 128) - (level > 127)):
        passed = counter.counts(cuda.cupy().asarray(now), int(now.max()), "uint64")[1]
        assert passed == (128 if now is level else 0)
    counts, passed = counter.counts(cuda.cupy().asarray(level), 129, "float64")
    assert passed == 0
    assert counts.get().max() == 2.0**64


def test_results_of_searches(device):
    """Counts stay on the device; edges are found there; directed graphs as well."""
    source = random_tuples(90, 150, seed=5)
    host = distbfs.Graph.from_edges(source.u, source.v, n=source.n)
    expected = distbfs.bfs(host, 7, "reference")
    graph = distbfs.Graph.from_edges(source.u, source.v, n=source.n)
    result = distbfs.bfs(graph, 7, "xbfs")
    np.testing.assert_array_equal(result.path_counts().get(), expected.path_counts())
    far = int(expected.level.argmax())
    for call in ("predecessors_to", "path_count_to"):
        np.testing.assert_array_equal(
            getattr(result, call)(far), getattr(expected, call)(far)
        )
    for hops in (0, 2, None):
        tables = [x.edges_within(hops).columns() for x in (result, expected)]
        for name, column in tables[0].items():
            np.testing.assert_array_equal(column, tables[1][name])
    u, v = np.random.default_rng(2).integers(0, 120, (2, 300))
    matrix = matrix_of(120, u, v)
    one_way = distbfs.Graph.from_scipy(matrix, directed=True)
    pair = [distbfs.bfs(one_way, 0, x) for x in ("xbfs", "reference")]
    counts = [np.asarray(x.path_counts()) for x in pair]
    np.testing.assert_array_equal(*counts)
    ladder = diamonds(70)
    deep = distbfs.bfs(distbfs.Graph.from_edges(ladder.u, ladder.v), 0, "xbfs")
    with pytest.raises(UsageError, match="level 128; float64 holds"):
        deep.path_counts()
