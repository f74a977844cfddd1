"""Searches of a graph in device memory, from tuples and parts to input ids."""

import numpy as np
import pytest
from distbfs.search.device_session import DeviceSession, with_tuples
from graphs import (
    NAMED,
    Tuples,
    build,
    check_search,
    kronecker,
    random_tuples,
    some_roots,
)

from distbfs.device import cuda
from distbfs.engines.cuda.memory import graph_bytes, search_bytes
from distbfs.errors import ResourceError, UsageError
from distbfs.exchange.world import SoloWorld
from distbfs.generate.cuda import device_tuples
from distbfs.generate.hashing import Permutation
from distbfs.generate.kronecker import Kronecker
from distbfs.graph import device_build
from distbfs.graph500.device_validate import validate_on_device
from distbfs.options import SearchOptions
from distbfs.registry import ENGINES, lookup

SEARCHING = ["xbfs", "xbfs-paper"]
NAMES = ["one-loop", "isolated", "star", "path", "two-components", "complete", "grid"]
SWITCHES = ["", "parents", "internal_ids", "stepwise", "internal_ids,parents"]
PAPER = [
    {"frontier": frontier, "balance": balance, "asynchronous": later}
    for frontier, balance, later in [
        ("scan-free", "static", True),
        ("single-scan", "thread", False),
        ("no-queue", "warp", True),
        ("double-scan", "donation", False),
    ]
]


def options_of(engine, switches="", **more):
    changed = {name: name != "parents" for name in switches.split(",") if name}
    return SearchOptions(engine=engine, **changed, **more)


def engine_of(options):
    return lookup(ENGINES, "engine", options.engine)(options)


def session_of(graph, options):
    engine = engine_of(options)
    if not hasattr(graph, "active"):
        graph = device_build.build(graph)
    return DeviceSession(SoloWorld(), engine, graph, options)


def check(session, source, root, *, records=False):
    """Search and hold everything that is told against the tuples."""
    outcome = session.search(root, records=records)
    level, parent = session.block(outcome)
    assert level.dtype == np.int32
    assert level.shape == (session.extent,)
    vertices = session.vertices()
    if vertices is not None:
        by_id = np.full(source.n, -1, np.int32)
        by_id[vertices] = level
        assert sorted(vertices) == np.flatnonzero(source.degrees).tolist()
        if parent is not None:
            above = np.where(parent < 0, -1, vertices[parent])
            parent = np.full(source.n, -1, np.int64)
            parent[vertices] = above
        level = by_id
    wanted = check_search(source, root, level, parent)
    assert (parent is None) == (not session.options.parents)
    assert outcome.levels == wanted.max() + 1
    assert 0 < outcome.seconds < outcome.wall
    assert session.reached(outcome) == ((wanted >= 0).sum(), wanted.max())
    assert session.traversed(outcome) == (wanted[source.u] >= 0).sum()
    found, above = session.in_ids(outcome)
    answer = validate_on_device(device_tuples(source), root, found, above)
    assert answer.valid, answer.errors
    if records:
        check_records(outcome.records, wanted)
    return outcome


def check_records(records, level):
    """Levels in order, and what each found."""
    deepest = level.max()
    assert len(records) >= deepest
    assert [record["level"] for record in records] == [*range(1, len(records) + 1)]
    for record in records:
        keys = {"level", "direction", "frontier", "checks", "found", "seconds"}
        assert keys <= set(record)  # methods add counts of their own
        assert record["direction"]
        assert record["seconds"] >= 0
    assert sum(record["found"] for record in records) == (level > 0).sum()


@pytest.mark.parametrize("engine", SEARCHING)
@pytest.mark.parametrize("switches", SWITCHES)
def test_kronecker_graph(engine, switches):
    source = kronecker(11)
    session = session_of(source, options_of(engine, switches))
    roots = [root for root in some_roots(source, 6) if source.degrees[root]]
    for root in roots:
        check(session, source, root, records=False)
        check(session, source, root, records=True)
    assert session.mode == ("stepwise" if switches == "stepwise" else "resident")
    told = session.describe()
    assert told["engine"] == engine
    assert told["graph"]["m"] == source.matrix.nnz
    assert session.notes()["device"] == told["device"]


@pytest.mark.parametrize("engine", SEARCHING)
@pytest.mark.parametrize("name", NAMES)
def test_named_graphs(engine, name):
    source = NAMED[name]
    session = session_of(source, options_of(engine))
    for root in [*some_roots(source, 2), source.n - 1]:
        check(session, source, root)


@pytest.mark.parametrize("strategy", PAPER)
def test_strategies_of_the_paper(strategy):
    source = kronecker(10)
    session = session_of(source, options_of("xbfs-paper", **strategy))
    for root in some_roots(source, 3):
        check(session, source, root, records=True)


@pytest.mark.parametrize("engine", SEARCHING)
@pytest.mark.parametrize("records", [True, False])
def test_a_source_without_edges(engine, records):
    source = NAMED["isolated"]
    session = session_of(source, options_of(engine))
    for root in (0, 6):
        check(session, source, root, records=records)
    by_number = session_of(source, options_of(engine, "internal_ids"))
    with pytest.raises(UsageError, match="source 6 has no edges and so no internal id"):
        by_number.search(6)
    with pytest.raises(UsageError, match="source 0 has no edges"):
        by_number.check(np.array([4, 0]))
    check(by_number, source, 4)


@pytest.mark.parametrize("root", [-1, 20, 1 << 40])
def test_sources_that_are_no_vertex(root):
    session = session_of(NAMED["two-components"], options_of("xbfs"))
    with pytest.raises(UsageError, match=f"source {root} is .* allowed: 0 to 19"):
        session.search(root)


def test_connected():
    source = random_tuples(120, 70, seed=2)
    session = session_of(source, options_of("xbfs"))
    ids = np.random.default_rng(0).permutation(120)[:90]
    found = session.connected(ids)
    assert found.dtype == bool
    np.testing.assert_array_equal(found, source.degrees[ids] > 0)


def test_kept_results_outlast_the_next_search():
    source = kronecker(10)
    session = session_of(source, options_of("xbfs"))
    first, second = np.argsort(source.degrees)[-2:].tolist()
    kept = session.keep(session.search(first))
    level = session.block(kept)[0].copy()
    session.search(second)
    np.testing.assert_array_equal(session.block(kept)[0], level)
    assert session.room(1 << 20) == 1 << 20
    assert session.room(1 << 60) < 1 << 40


@pytest.mark.parametrize("seed", [None, 7])
@pytest.mark.parametrize("engine", SEARCHING)
def test_graph_of_a_part(seed, engine):
    """Ids are the input's where the part is permuted."""
    source = random_tuples(300, 700, seed=4)
    [part], _ = build(source, 1, threshold=10**9, permute_seed=seed)
    permutation = None if seed is None else Permutation(source.n, seed)
    options = options_of(engine)
    graph = engine_of(options).graph_of(part, {"a": 1}, permutation)
    assert (graph.tuples, graph.source) == (source.tuples, {"a": 1})
    np.testing.assert_array_equal(graph.tuple_degrees.get(), source.ends)
    session = session_of(graph, options)
    for root in some_roots(source, 5):
        check(session, source, root)


def test_a_graph_of_other_tuples():
    """Built from edges in both directions, it counts the input's tuples."""
    source = random_tuples(200, 500, seed=8)
    edges = Tuples(source.n, *source.edges.T)
    graph = with_tuples(device_build.build(edges), source.tuples, source.ends)
    assert graph.tuples == source.tuples
    session = session_of(graph, options_of("xbfs"))
    for root in some_roots(source, 4):
        check(session, source, root)


def held():
    cuda.release()
    return cuda.cupy().get_default_memory_pool().used_bytes()


@pytest.mark.parametrize("parents", [True, False])
@pytest.mark.parametrize("internal", [True, False])
def test_memory_is_estimated(internal, parents):
    graph = device_build.build(Kronecker(21))
    counts = (graph.n, graph.active, graph.m)
    assert graph_bytes(*counts) == pytest.approx(graph.nbytes, rel=0.01)
    options = options_of("xbfs", parents=parents, internal_ids=internal)
    before = held()
    session = session_of(graph, options)
    root = int(graph.vertices[0])
    session.search(root)
    used = held() - before
    told = {"parents": parents, "in_ids": not internal}
    listed = int(graph.at_least[2:9].sum())
    need = search_bytes(*counts, listed=listed, **told)
    assert used <= need <= 1.3 * used + (64 << 20)
    assert need <= search_bytes(*counts, **told) <= 2 * need


def test_out_of_memory_is_one_line():
    graph = device_build.build(Kronecker(16))
    pool = cuda.cupy().cuda.MemoryPool()
    pool.set_limit(1 << 16)
    with cuda.cupy().cuda.using_allocator(pool.malloc):
        for engine in SEARCHING:
            with pytest.raises(ResourceError, match=r"bytes are free$"):
                session_of(graph, options_of(engine))


def test_a_search_that_cannot_fit_is_refused_before(monkeypatch):
    graph = device_build.build(Kronecker(10))
    monkeypatch.setattr(cuda, "free_bytes", lambda: 1000)
    for engine in SEARCHING:
        with pytest.raises(ResourceError, match=r"needs \d+ bytes .*; 1000 are free"):
            session_of(graph, options_of(engine))
