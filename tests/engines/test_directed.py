"""Whole graphs whose edges lead one way, and searches that end early."""

from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from directed_graphs import (
    check,
    check_arrays,
    csr,
    directed,
    distances,
    matrix_of,
    part_of,
    whole_search,
)
from graphs import NAMED, Tuples, build, kronecker, random_tuples
from hypothesis import given, settings
from hypothesis import strategies as st
from sessions import open_parts
from variants import make_engine, on_a_device, variants, ways

from distbfs.engines.base import WHOLE, Until, Work
from distbfs.engines.openmp.part import OpenMPPart
from distbfs.errors import InputError
from distbfs.graph.csr import CSR
from distbfs.options import SearchOptions
from distbfs.partition.layout import Layout
from distbfs.partition.part import INTO, Part
from distbfs.ranks.world import SoloWorld

HOSTED = [v for v in variants() if not on_a_device(v.values[0])]
EACH = pytest.mark.parametrize(("engine", "method"), HOSTED)
EACH_WAY = pytest.mark.parametrize(
    ("engine", "method", "direction"),
    [w for w in ways(["auto", "push", "pull"]) if not on_a_device(w.values[0])],
)


@EACH_WAY
@settings(max_examples=15, deadline=None)
@given(matrix=directed(), threads=st.sampled_from([1, 3]), data=st.data())
def test_any_directed_graph(engine, method, direction, matrix, threads, data):
    n = matrix.shape[0]
    part = part_of(matrix)
    part.check()
    made = make_engine(engine, method, direction=direction, threads=threads)
    search = whole_search(made, part)
    for root in data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=4)):
        check(matrix, root, search.search(root))


@EACH_WAY
def test_roots_that_no_edge_enters(engine, method, direction):
    """They have no level in the next search, which gives none to the like of them."""
    matrix = matrix_of(7, [0, 0, 1, 3, 3], [1, 2, 2, 2, 5])
    made = make_engine(engine, method, direction=direction, threads=2)
    search = whole_search(made, part_of(matrix))
    for root in (0, 1, 3, 0, 6, 2):
        check(matrix, root, search.search(root))
    for roots in ([3, 6], [0, 3]):
        levels = search.search(np.array(roots)).level
        wanted = np.array([distances(matrix, root) for root in roots])
        wanted[wanted < 0] = 9
        lowest = wanted.min(axis=0)
        np.testing.assert_array_equal(levels, np.where(lowest == 9, -1, lowest))
        check(matrix, 1, search.search(1))


@cache
def large(name):
    source = kronecker(12) if name == "kronecker" else random_tuples(9000, 60_000, 3)
    return matrix_of(source.n, source.u, source.v)


@pytest.mark.thorough
@EACH_WAY
@pytest.mark.parametrize("name", ["kronecker", "random"])
@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
def test_large_directed_graphs(engine, method, direction, name, dtype):
    matrix = large(name)
    made = make_engine(engine, method, direction=direction, threads=2)
    search = whole_search(made, part_of(matrix, dtype=dtype))
    unreached = 0
    degrees = np.diff(matrix.indptr)
    for root in np.random.default_rng(4).permutation(matrix.shape[0])[:4].tolist():
        result = search.search(root, records=True)
        check(matrix, root, result)
        level = result.level
        unreached += int((level < 0).sum())
        for depth, record in enumerate(result.records):
            assert record.checks >= 0
            if record.direction.startswith("push"):
                assert record.checks == degrees[level == depth].sum()
    assert unreached > 100


def test_direction_auto_pulls_in_directed_graphs():
    search = make_engine("openmp", "fast", threads=2).whole(part_of(large("kronecker")))
    root = int(np.argmax(np.diff(large("kronecker").indptr)))
    modes = {r.direction for r in search.search(root, records=True).records}
    assert "pull" in modes


@EACH_WAY
@settings(max_examples=15, deadline=None)
@given(matrix=directed(), data=st.data())
def test_searches_that_end_early(engine, method, direction, matrix, data):
    n = matrix.shape[0]
    made = make_engine(engine, method, direction=direction, threads=2)
    search = whole_search(made, part_of(matrix))
    vertex = st.integers(0, n - 1)
    for _ in range(3):
        depth = data.draw(st.none() | st.integers(0, 6))
        targets = data.draw(st.none() | st.lists(vertex, max_size=4))
        if targets is not None:
            targets = np.array(targets, dtype=np.int64)
        root = data.draw(vertex)
        until = Until(depth, targets)
        check(matrix, root, search.search(root, until=until), until)


@EACH_WAY
def test_an_early_end_saves_levels(engine, method, direction):
    part = build(NAMED["path"])[0][0]
    search = whole_search(make_engine(engine, method, direction=direction), part)
    for until, levels in [
        (Until(5), 5),
        (Until(0), 0),
        (Until(targets=np.array([60, 70])), 10),
        (Until(3, np.array([70])), 3),
        (WHOLE, 70),
    ]:
        found = search.search(60, records=True, until=until)
        assert found.levels == levels == len(found.records)


def queue_order(rows, root):
    """A textbook search: (order, parents) with neighbours from left to right."""
    order, parent = [root], {root: root}
    for u in order:
        for v in rows[u]:
            if v not in parent:
                parent[v] = u
                order.append(v)
    return order, parent


@pytest.mark.parametrize(
    ("engine", "method"), [("reference", ""), ("openmp", "ordered")]
)
@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.lists(st.integers(0, 11), unique=True), min_size=12, max_size=12)
)
def test_order_and_parents_of_a_queue(engine, method, rows):
    """Rows in any order, empty ones among them, numbers that are ids."""
    columns = np.array([v for row in rows for v in row], dtype=np.uint32)
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.uint32)
    matrix = sp.csr_matrix((np.ones(len(columns)), columns, offsets), shape=(12, 12))
    none, ids = CSR.empty(0), np.zeros(0, np.int64)
    part = Part(
        Layout(12, 1),
        0,
        12,
        ids,
        ids,
        CSR(offsets, columns),
        CSR.empty(12),
        none,
        none,
        np.arange(12, dtype=np.uint32),
        np.zeros(12, np.int64),
        np.zeros(12, np.int64),
        12,
        {"nn": csr(matrix.T.tocsr())},
    )
    search = make_engine(engine, method).whole(part)
    for root in range(12):
        found = search.search(root)
        order, parent = queue_order(rows, root)
        assert found.order.tolist() == order
        assert {v: int(found.parent[v]) for v in order} == parent


def test_order_of_an_isolated_root():
    part = build(NAMED["isolated"])[0][0]
    search = make_engine("openmp", "ordered").whole(part)
    assert search.search(0).order.tolist() == [0]
    assert sorted(search.search(4).order.tolist()) == [2, 4, 5]


@pytest.mark.parametrize("engine", ["openmp", "reference"])
def test_a_whole_graph_step_by_step(engine):
    part, matrix = part_of(large("random")), large("random")
    options = SearchOptions.named(engine=engine, stepwise=True)
    with open_parts(SoloWorld(), [part], options) as session:
        for root in (0, 5, 8999):
            check_arrays(matrix, root, *session.search(root).to_numpy())


def test_edges_in_that_do_not_fit():
    part = part_of(matrix_of(3, [0, 1], [1, 2]))
    part.incoming["nn"] = CSR.empty(3)
    with pytest.raises(InputError, match="differ in number"):
        part.check()
    for name in ("nn", "dd"):
        owner = build(NAMED["star"], 2, directed=True, threshold=1)[0][0]
        owner.incoming[name] = CSR.empty(3)
        with pytest.raises(InputError, match=f"{INTO[name]} has 3 rows instead of"):
            owner.check()


@pytest.mark.parametrize("masked", [False, True])
def test_questions_of_arcs(monkeypatch, masked):
    """Unvisited vertices with outer edges in, where others have those out."""
    work, totals = OpenMPPart.work, []

    def counted(search):
        values = Work._make(work(search).tolist())
        held, visited = search._state.held, search._state.graph.visited
        bits = [held[f"graph.{name}"] for name in ("visited", "next")]
        (now,) = [x for x in bits if x.ctypes.data == visited]
        asking = held["may_ask"] & ~now
        assert values.open == sum(x.bit_count() for x in asking.tolist())
        totals.append(values.open)
        return np.array(values)

    monkeypatch.setattr(OpenMPPart, "work", counted)
    graph = large("random").tocoo()
    source = Tuples(graph.shape[0], graph.row, graph.col)
    parts = build(source, 3, directed=True, threshold=40)[0]
    for direction in ("auto", "push", "pull"):
        options = SearchOptions.named(engine="openmp", direction=direction, threads=2)
        with open_parts(SoloWorld(), parts, options) as session:
            if masked:
                seen = np.random.default_rng(3).random(session.n) < 0.9
                seen[:9] = True
                session.see(session.view(vertices=seen))
            for root in range(9):
                session.search(root)
    assert len({*totals}) > 20
