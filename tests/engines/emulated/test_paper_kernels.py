"""Engine ``xbfs-paper``, its kernels run on the CPU; directed graphs against SciPy."""

from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from device_graphs import HostGraph, hubs
from directed_graphs import check, directed, matrix_of, part_of, whole_search
from drawn_examples import examples
from graphs import Tuples, grid, kronecker, random_tuples
from hypothesis import given
from sessions import open_graph

import distbfs
from distbfs.build.cuda.graph_of_rows import graph_of_part
from distbfs.engines.cuda.papers.xbfs import search as paper
from distbfs.engines.cuda.papers.xbfs.engine import XbfsPaperEngine
from distbfs.engines.cuda.papers.xbfs.search import PaperSearch
from distbfs.options import SearchOptions

PAIRS = [(f, d) for d in paper.DIRECTIONS for f in paper.ALLOWED[d]]
SYMMETRIC = {
    "one-edge": Tuples(4, [1, 1], [3, 3]),
    "path": Tuples(40, range(39), range(1, 40)),
    "grid": grid(9),
    "random": random_tuples(700, 2000, 11),
    "hubs": hubs(2, 2100),
}


@cache
def large(name):
    """Directed graphs; many vertices have edges of one direction alone."""
    if name == "layers":  # a long way, and rows of more than a chunk in and out
        u = [*range(60), *[60] * 2500, *range(61, 2561)]
        v = [*range(1, 61), *range(61, 2561), *[2561] * 2500]
        return matrix_of(2600, u, v)
    source = kronecker(9) if name == "kronecker" else random_tuples(1500, 4000, 3)
    return matrix_of(source.n, source.u, source.v)


def whole(matrix, **options):
    options = SearchOptions.named(engine="xbfs-paper", **options)
    return whole_search(XbfsPaperEngine(options), part_of(matrix))


def roots_of(matrix, count=3):
    """A hub of each direction, and others."""
    out, into = np.diff(matrix.indptr), np.diff(matrix.tocsc().indptr)
    some = np.random.default_rng(3).integers(0, matrix.shape[0], count)
    return [int(out.argmax()), int(into.argmax()), *some.tolist()]


@pytest.mark.parametrize(("frontier", "direction"), PAIRS)
def test_directed_graphs(device, frontier, direction):
    form = {"frontier": frontier, "direction": direction}
    for k, name in enumerate(("kronecker", "random", "layers")):
        matrix = large(name)
        search = whole(matrix, **form, asynchronous=k % 2 == 0)
        for root in roots_of(matrix, 2):
            check(matrix, root, search.search(root))


@pytest.mark.thorough
@pytest.mark.parametrize("balance", paper.BALANCES)
@pytest.mark.parametrize("asynchronous", [True, False], ids=["async", "sync"])
def test_balances_of_pulls(device, balance, asynchronous):
    for name in ("kronecker", "layers"):
        matrix = large(name)
        for direction in ("auto", "pull"):
            form = {"balance": balance, "direction": direction}
            search = whole(matrix, **form, asynchronous=asynchronous)
            for root in roots_of(matrix, 2):
                check(matrix, root, search.search(root, records=True))


@examples(25)
@given(matrix=directed())
def test_any_directed_graph(device, matrix):
    for k, direction in enumerate(paper.DIRECTIONS):
        root = k % matrix.shape[0]
        check(matrix, root, whole(matrix, direction=direction).search(root))


def test_checks_of_pushes_and_pulls(device):
    """A push checks the edges out of its frontier, a pull edges in."""
    matrix = large("kronecker")
    out = np.diff(matrix.indptr)
    root = int(out.argmax())
    for direction in ("push", "pull"):
        form = {"direction": direction, "asynchronous": False, "balance": "static"}
        found = whole(matrix, **form).search(root, records=True)
        level = found.level
        for depth, record in enumerate(found.records):
            if direction == "push":
                assert record.checks == out[level == depth].sum()
                continue
            unvisited = (level < 0) | (level > depth)
            wanted = 0
            back = matrix.tocsc()
            for v in np.flatnonzero(unvisited):
                row = back.indices[back.indptr[v] : back.indptr[v + 1]]
                hit = level[row] == depth
                wanted += len(row) if not hit.any() else 1
            assert record.checks >= wanted  # rows are looked at in another order


def test_directions_follow_edges_out(device):
    """Also after a pull, which looks at edges in: many here where few lead out."""
    u = [*[0] * 30, 1, *[31] * 60]
    matrix = matrix_of(92, u, [*range(1, 31), 31, *range(32, 92)])
    found = whole(matrix, asynchronous=False).search(0, records=True)
    pulled = [record.direction == "pull" for record in found.records]
    assert pulled == [True, False, True, False]


@pytest.mark.thorough
@pytest.mark.parametrize("name", SYMMETRIC)
def test_symmetric_graphs(device, name):
    host = HostGraph(SYMMETRIC[name], wide=name == "random")
    for direction in paper.DIRECTIONS:
        search = PaperSearch(host.graph, direction=direction)
        for root in (0, host.active - 1):
            host.check(root, search.search(root, records=root == 0))


def test_a_session_counts_edges_that_leave(device):
    matrix = large("random")
    graph = graph_of_part("xbfs-paper", part_of(matrix))
    assert graph.directed
    assert graph.m == matrix.nnz == graph.tuples
    assert graph.nbytes > 8 * graph.m
    session = open_graph(graph, SearchOptions(engine="xbfs-paper"))
    for root in roots_of(matrix):
        found = session.search(root)
        level, parent = found.to_numpy()
        reached = level >= 0
        assert (found.reached, found.depth) == (reached.sum(), level.max())
        assert found.nedge == np.diff(matrix.indptr)[reached].sum()
        assert (parent >= 0).sum() == reached.sum()


@pytest.mark.parametrize("buffer_bytes", [None, 4000])
def test_rows_out_and_in(device, buffer_bytes):
    """Whatever the ranges of rows that are sorted together; some rows are empty."""
    part = part_of(large("random"))
    made = graph_of_part("xbfs-paper", part, buffer_bytes=buffer_bytes)
    ids = made.vertices.get()
    shape = (made.active, made.active)
    for rows, wanted in (
        (made.out, large("random")),
        (made.into, large("random").T),
    ):
        columns = rows.columns.get()[: made.m]
        held = (np.ones(made.m), columns, rows.offsets.get())
        found = sp.csr_matrix(held, shape=shape)
        assert found.has_sorted_indices
        assert (found != wanted.tocsr()[ids][:, ids]).nnz == 0


def test_the_python_interface(device):
    """Loops and repeats in rows, whose columns need not rise."""
    offsets, columns = [0, 3, 4, 4, 7], [2, 0, 2, 1, 3, 1, 0]
    for one_way in (True, False):
        matrix = sp.csr_matrix((np.ones(7), columns, offsets), shape=(4, 4))
        graph = distbfs.Graph.from_scipy(matrix, directed=one_way)
        for root in range(4):
            found = distbfs.bfs(graph, root)
            wanted = distbfs.bfs(graph, root, engine="reference")
            assert found.level.tolist() == wanted.level.tolist()
            assert found.engine == "xbfs"
    graph = distbfs.Graph.from_edges([0, 1, 1, 2], [1, 2, 1, 3], directed=True)
    assert distbfs.bfs(graph, 1, depth_limit=1).level.tolist() == [-1, 0, 1, -1]
    assert distbfs.bfs(graph.reversed(), 2).path_to(0) == [2, 1, 0]
