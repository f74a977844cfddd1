"""What every engine does with a whole graph, over the registry."""

from dataclasses import replace
from functools import cache

import networkx as nx
import numpy as np
import pytest
from directed_graphs import whole_search
from graphs import (
    NAMED,
    NO_VERTEX,
    Tuples,
    build,
    check_search,
    kronecker,
    random_tuples,
    some_roots,
    some_sets,
    sources,
    uniform,
)
from hypothesis import example, given, settings
from hypothesis import strategies as st
from variants import make_engine, on_a_device, variants, ways

from distbfs.device import cc
from distbfs.engines.base import Until
from distbfs.errors import ResourceError, UsageError
from distbfs.graph.csr import CSR, row_offsets
from distbfs.graph.trees import first_tree, tree_vertices
from distbfs.partition.layout import Layout
from distbfs.partition.part import Part
from distbfs.registry import ENGINES, lookup
from distbfs.search.graph_rows import part_of_rows

DIRECTIONS = ["auto", "push", "pull"]
EACH = pytest.mark.parametrize(("engine", "method"), variants())
EACH_WAY = pytest.mark.parametrize(("engine", "method", "direction"), ways(DIRECTIONS))


def whole(source):
    return build(source)[0][0]


def searcher(part, engine, method, **options):
    return whole_search(make_engine(engine, method, **options), part)


@cache
def in_core(source):
    """Return which vertices are in the 2-core, bool [n]."""
    graph = nx.Graph(zip(source.u.tolist(), source.v.tolist(), strict=True))
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    flags = np.zeros(source.n, np.bool_)
    flags[list(nx.k_core(graph, 2))] = True
    return flags


def check_result(source, root, result, *, records, engine="", method=""):
    """Check a result and its records; those of a device are told differently.

    Levels of method ``fast`` may be of the 2-core alone; trees are given theirs at the
    end.
    """
    level = check_search(source, root, result.level, result.parent)
    assert result.levels == level.max() + 1
    if not records:
        assert result.records == []
        return
    degrees = source.degrees
    sizes = np.bincount(level[level >= 0])
    if engine and on_a_device(engine):
        check_device_records(degrees, level, sizes, result.records)
        return
    assert [r.frontier for r in result.records] == sizes.tolist()
    assert [r.found for r in result.records] == [*sizes[1:].tolist(), 0]
    every = np.ones(source.n, np.bool_)
    pruning = (engine, method) == ("openmp", "fast")
    ways = [every, in_core(source)] if pruning else [every]
    assert any(fits(result.records, level, degrees, searched) for searched in ways)


def fits(records, level, degrees, searched):
    """Return whether records are those of a search of some vertices, bool [n]."""
    for depth, record in enumerate(records):
        frontier = (level == depth) & searched
        if record.direction == "trees":
            right = record.checks == 0 and not frontier.any()
        elif record.direction.startswith("push"):
            right = record.checks == degrees[frontier].sum()
        else:
            found = np.count_nonzero((level == depth + 1) & searched)
            unvisited = degrees[((level > depth) | (level < 0)) & searched]
            right = found <= record.checks <= unvisited.sum()
        if not right or record.seconds < 0:
            return False
    return True


def check_device_records(degrees, level, sizes, records):
    """A pull starts from unvisited vertices; one that finds the last ones is the last.

    What an asynchronous pull finds a level early may be counted there.
    """
    found = [r.found for r in records]
    assert sum(found) == sizes[1:].sum()
    assert found[len(sizes) - 1 :] in ([], [0], [0, 0])
    for depth, record in enumerate(records):
        assert record.seconds >= 0
        unvisited = (level > depth) | (level < 0)
        if record.direction.startswith("push"):
            before = records[depth - 1].extra if depth else {}
            repeated = before.get("repeats_missed", 0) * degrees.max()
            assert record.checks <= degrees[level == depth].sum() + repeated
        else:
            assert record.checks <= degrees[unvisited].sum()


@EACH_WAY
def test_named_graphs(engine, method, direction):
    told = {"engine": engine, "method": method}
    for name, source in NAMED.items():
        print(name)  # shown where it fails
        search = searcher(whole(source), direction=direction, threads=2, **told)
        for root in some_roots(source, 3):
            for records in (True, False):
                result = search.search(root, records=records)
                check_result(source, root, result, records=records, **told)


@pytest.mark.parametrize(
    ("engine", "method", "direction"),
    [w for w in ways(DIRECTIONS) if lookup(ENGINES, "engine", w.values[0]).sets],
)
def test_sets(engine, method, direction):
    """From several at once, and from one after them, of every graph."""
    for source in NAMED.values():
        search = searcher(whole(source), engine, method, direction=direction, threads=2)
        for roots in some_sets(source):
            for root in (roots, int(roots[-1])):
                result = search.search(root, records=root is roots)
                records = root is roots
                check_result(
                    source, root, result, records=records, engine=engine, method=method
                )


def check_recorded(source, root, search, engine, method=""):
    """Search with records and check."""
    result = search.search(root, records=True)
    check_result(source, root, result, records=True, engine=engine, method=method)


@EACH_WAY
@settings(max_examples=10, deadline=None)
@given(source=sources(), threads=st.sampled_from([1, 2, 4]), data=st.data())
def test_any_graph(engine, method, direction, source, threads, data):
    roots = data.draw(st.lists(st.integers(0, source.n - 1), min_size=1, max_size=4))
    options = {"direction": direction, "threads": threads}
    search = searcher(whole(source), engine, method, **options)
    for root in roots:
        check_recorded(source, root, search, engine, method)


@cache
def large(name):
    """A graph whose levels are shared by threads, and its part."""
    if name == "kronecker":
        source = kronecker(12)
    else:
        source = uniform(8000, 80_000, hub=5000 * (name == "hub"))
    return source, whole(source)


@pytest.mark.thorough
@EACH_WAY
def test_parallel_levels(engine, method, direction):
    """Each graph by each number of threads, in one direction or another."""
    turn = DIRECTIONS.index(direction)
    for k, name in enumerate(["kronecker", "uniform", "hub"]):
        threads = (1, 2, 4)[(k + turn) % 3]
        print(name, threads)  # shown where it fails
        source, part = large(name)
        options = {"direction": direction, "threads": threads}
        search = searcher(part, engine, method, **options)
        for root in some_roots(source, 2):
            check_recorded(source, root, search, engine, method)


def test_fast_comes_through_every_mode():
    """The parallel levels above are tests of all of them."""
    modes = set()
    for name in ("kronecker", "uniform"):
        source, part = large(name)
        for direction in DIRECTIONS:
            search = searcher(part, "openmp", "fast", direction=direction, threads=2)
            for root in some_roots(source, 4):
                records = search.search(root, records=True).records
                modes |= {record.direction for record in records}
    assert modes == {"push-serial", "push", "push-marking", "pull", "trees"}
    source, part = large("hub")
    records = (
        searcher(part, "openmp", "fast", threads=2).search(0, records=True).records
    )
    assert records[0].direction == "push-marking", "a row that is cut among threads"


@EACH
def test_searches_do_not_leak(engine, method):
    """Many roots one after the other, vertices without edges among them."""
    source = random_tuples(300, 260, seed=4)
    search = searcher(whole(source), engine, method, threads=2)
    assert (source.degrees == 0).sum() > 20
    for root in np.random.default_rng(1).permutation(300)[:150].tolist():
        result = search.search(root)
        np.testing.assert_array_equal(result.level, source.distances(root))
        assert result.parent[root] == root
        assert ((result.parent >= 0) == (result.level >= 0)).all()
    check_result(source, root, result, records=False)


@EACH
def test_levels_only(engine, method):
    source = NAMED["kronecker"]
    search = searcher(whole(source), engine, method, parents=False, threads=2)
    for root in some_roots(source, 6):
        result = search.search(root)
        assert result.parent is None
        check_search(source, root, result.level, None)


@EACH
def test_permuted_blocks(engine, method):
    """Numbers that are far from ids."""
    source = random_tuples(200, 500, seed=6)
    part = build(source, order_block=7)[0][0]
    assert not np.array_equal(part.vertices, np.arange(200))
    search = searcher(part, engine, method, threads=2)
    for root in some_roots(source, 10):
        check_result(source, root, search.search(root), records=False)


@EACH_WAY
def test_rows_longer_than_a_thread_takes(engine, method, direction):
    """Hubs with 9000 neighbours are cut among the threads."""
    leaves = np.arange(2, 9002)
    u = np.concatenate([np.zeros(9000), np.ones(9000), [0]])
    v = np.concatenate([leaves, leaves[::-1] + 5000, [1]])
    source = Tuples(14_002, u, v, size=1 << 20)
    options = {"direction": direction, "threads": 4}
    search = searcher(whole(source), engine, method, **options)
    for root in (0, 1, 2, 14_001):
        check_recorded(source, root, search, engine, method)


@cache
def bipartite(left, right):
    """A complete bipartite graph as one part, made directly, and checked."""
    rows = np.concatenate([np.full(left, right), np.full(right, left)])
    ends = np.tile(np.arange(left, left + right), left), np.tile(np.arange(left), right)
    columns = np.concatenate(ends).astype(np.uint32)
    none = CSR.empty(0)
    no_ids = np.zeros(0, np.int64)
    n = left + right
    ids = np.arange(n, dtype=np.uint32)
    graphs = CSR(row_offsets(rows), columns), CSR.empty(n), none, none
    layout = Layout(n, 1)
    part = Part(layout, 0, right, no_ids, no_ids, *graphs, ids, rows, rows, n)
    part.check()
    return part


@pytest.mark.thorough
@EACH
def test_more_long_rows_than_are_set_aside(engine, method):
    left, right = 1100, 4100
    part = bipartite(left, right)
    search = searcher(part, engine, method, direction="push", threads=4)
    level = np.full(left + right, 1)
    level[left:] = 2
    level[left + 3], level[:left] = 0, 1
    result = search.search(left + 3)
    np.testing.assert_array_equal(result.level, level)
    assert (result.level[result.parent[level > 0]] == level[level > 0] - 1).all()


@pytest.mark.thorough
@pytest.mark.parametrize("method", lookup(ENGINES, "engine", "openmp").methods)
def test_every_level_is_recorded(method):
    n = 66_000
    source = Tuples(n, range(n - 1), range(1, n), size=n)
    search = searcher(whole(source), "openmp", method, direction="push", threads=1)
    result = search.search(0, records=True)
    assert result.levels == n
    np.testing.assert_array_equal(result.level, np.arange(n))
    assert [r.frontier for r in result.records] == [1] * len(result.records)
    assert len(result.records) == n
    assert {r.direction == "trees" for r in result.records} == {method == "fast"}


@settings(max_examples=40, deadline=None)
@given(source=sources())
def test_trees_are_outside_the_core(source):
    """Each hangs on what is before it; without a compiler, none is told apart."""
    rows = whole(source).nn
    offsets, degrees = rows.offsets.astype(np.int64), rows.degrees().astype(np.int64)
    trees = tree_vertices(offsets, degrees, rows.columns)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cc, "load_or_none", lambda *_, **__: None)
        assert not len(tree_vertices(offsets, degrees, rows.columns))
    part = whole(source)
    core = first_tree(part.nn.offsets, part.nn.columns, part.active)
    inside = in_core(source)
    assert inside[part.vertices[:core]].all()
    assert not inside[part.vertices[core:]].any()
    assert len(trees) == part.active - core


HUNG = Tuples(5, [4, 3, 3, 0, 1], [3, 0, 1, 2, 2])  # 4 on the cycle 3 0 2 1


@EACH_WAY
@settings(max_examples=15, deadline=None)
@given(source=st.just(HUNG) | sources(), seed=st.integers(0, 99))
@example(source=HUNG, seed=-1)
def test_rows_in_any_order(engine, method, direction, source, seed):
    """As programs give them; seed -1: falling, so that leaves come first."""
    rows, rng = source.matrix, np.random.default_rng(max(seed, 0))
    offsets = rows.indptr.astype(np.uint32)
    pieces = np.split(rows.indices.astype(np.uint32), offsets[1:-1])
    mixed = [x[::-1] if seed < 0 else rng.permutation(x) for x in pieces]
    part = part_of_rows(offsets, np.concatenate(mixed), None)
    search = searcher(part, engine, method, direction=direction, threads=1)
    for root in some_roots(source, 4):
        result = search.search(root)
        check_search(source, root, result.level, result.parent)


def test_fast_searches_the_core_alone():
    """A cycle with a path on it: levels that the core has no vertex in come last."""
    ring, tail = np.arange(9), np.arange(9, 15)
    source = Tuples(15, [*ring, *(tail - 1)], [*np.roll(ring, -1), *tail])
    search = searcher(whole(source), "openmp", "fast", direction="pull")
    for root in range(source.n):
        records = search.search(root, records=True).records
        distances = source.distances(root)
        with_core = set(distances[:9].tolist())
        hung = np.bincount(distances[9:], minlength=len(records) + 1)[1:].tolist()
        assert [record.extra["pruned"] for record in records] == hung
        named = [record.direction for record in records]
        assert named == [
            "pull" if depth in with_core else "trees" for depth in range(len(records))
        ]
        limited = search.search(root, records=True, until=Until(depth=20)).records
        assert {record.direction for record in limited} == {"pull"}
        assert not any(record.extra for record in limited)


@pytest.mark.thorough
@EACH_WAY
def test_offsets_of_64_bits(engine, method, direction):
    """As a part with 2^32 edges or more has them."""
    source = kronecker(11)
    part = whole(source)
    nn = CSR(part.nn.offsets.astype(np.uint64), part.nn.columns)
    options = {"direction": direction, "threads": 2}
    search = searcher(replace(part, nn=nn), engine, method, **options)
    for root in some_roots(source, 3):
        check_recorded(source, root, search, engine, method)


@EACH
def test_no_vertex_can_be_prepared(engine, method):
    assert searcher(whole(NO_VERTEX), engine, method) is not None


@EACH
def test_networkx_agrees(engine, method):
    source = random_tuples(150, 300, seed=8)
    graph = nx.Graph(zip(source.u.tolist(), source.v.tolist(), strict=True))
    search = searcher(whole(source), engine, method, threads=2)
    for root in (0, 1, 2, 3):
        found = search.search(root)
        wanted = nx.single_source_shortest_path_length(graph, root)
        reached = np.flatnonzero(found.level >= 0).tolist()
        assert {v: int(found.level[v]) for v in reached} == wanted


@pytest.mark.parametrize("method", ["push", "hybrid"])
def test_no_memory_for_queues(method, monkeypatch):
    search = searcher(whole(NAMED["star"]), "openmp", method)
    monkeypatch.setattr(search, "_function", lambda *_: -1)
    with pytest.raises(ResourceError, match="no memory"):
        search.search(0)


@EACH
def test_unknown_methods_are_refused(engine, method):
    with pytest.raises(UsageError, match=f"method is 'none'; allowed: .*{method}"):
        make_engine(engine, "none")


@EACH
def test_description(engine, method):
    told = make_engine(engine, method, threads=3).describe()
    assert (told["engine"], told["method"]) == (engine, method)
    assert told["threads"] in (1, 3)


def test_threads_that_are_used(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7,2")
    assert make_engine("openmp").describe()["threads"] == 7
    assert make_engine("openmp", threads=2).describe()["threads"] == 2
    monkeypatch.setenv("OMP_NUM_THREADS", "many")
    assert make_engine("openmp").describe()["threads"] == cc.thread_count()


def test_a_method_that_cannot_pull_says_so():
    with pytest.raises(UsageError, match="'push' cannot pull"):
        make_engine("openmp", "push", direction="pull")
