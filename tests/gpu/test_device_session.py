"""Sessions of one device: from tuples, stores and parts to results by input id."""

import gc

import numpy as np
import pytest
from device_parts import check_result, checked_searches
from graphs import (
    NAMED,
    build,
    kronecker,
    random_tuples,
    some_roots,
)
from sessions import open_graph, open_tuples

import distbfs
from distbfs.benchmark.graph500 import validation_of
from distbfs.build.cuda import graph as device_build
from distbfs.build.cuda.graph_of_rows import graph_of_part
from distbfs.device import cuda
from distbfs.device.array_table import total_bytes
from distbfs.engines.cuda.xbfs.memory import search_bytes
from distbfs.engines.cuda.xbfs.search_table import expected_shape
from distbfs.errors import ResourceError, SearchStopped, UsageError
from distbfs.generate.kronecker import Kronecker
from distbfs.graph.device_graph import graph_table
from distbfs.options import BuildOptions, SearchOptions
from distbfs.ranks.world import SoloWorld
from distbfs.search.choose import Request
from distbfs.search.holding import Source
from distbfs.search.open import open_source
from distbfs.store.hdf5 import open_store
from distbfs.store.write import write_graph

SEARCHING = ["xbfs", "xbfs-paper"]
NAMES = ["one-loop", "isolated", "star", "path", "two-components", "complete", "grid"]
SWITCHES = ["", "parents", "internal_ids", "internal_ids,parents"]
PAPER = [
    {"frontier": frontier, "balance": balance, "asynchronous": later}
    for frontier, balance, later in [
        ("scan-free", "static", True),
        ("single-scan", "thread", False),
        ("no-queue", "warp", True),
        ("double-scan", "donation", False),
    ]
]
STORES = {
    "one": (1, {"threshold": 10**9}),
    "permuted": (1, {"threshold": 10**9, "permute_seed": 3}),
    "delegates": (1, {"threshold": 3}),
    "parts": (3, {"threshold": 4}),
    "permuted-parts": (2, {"threshold": 4, "permute_seed": 9}),
}
ONE = Request(devices=1)


def options_of(engine, switches="", **more):
    changed = {name: name != "parents" for name in switches.split(",") if name}
    return SearchOptions.named(engine=engine, **changed, **more)


def session_of(source, options):
    """From tuples, or from a graph that is on the device."""
    if hasattr(source, "active"):
        return open_graph(source, options)
    made = Source(source.n, 1, tuples=source)
    return open_source(SoloWorld(), made, options, ONE)


def check(session, source, root, *, records=False):
    """Search and hold all that a result tells against the tuples."""
    found = session.search(root, records=records)
    wanted = check_result(found, source)
    assert found.has_parents == session.options.parents
    assert hasattr(found.level, "get")
    assert found.level.dtype in (np.int8, np.int32)
    if session.options.parents:
        assert found.parent.dtype == np.int32
    assert 0 < found.seconds < found.wall_seconds
    answer = validation_of(session, source)(found)
    assert answer.valid, answer.errors
    if records:
        check_records(found.records, wanted)
    return found


def check_records(records, level):
    """Levels in order, and what each found."""
    assert len(records) >= level.max()
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
    for root in some_roots(source, 6):
        check(session, source, root, records=False)
        check(session, source, root, records=True)
    about = session.describe()
    assert about["mode"] == "resident"
    assert (about["engine"], about["exchange"]) == (engine, "none")
    assert about["internal_ids"] == ("internal_ids" in switches)
    assert about["graph"]["m"] == source.matrix.nnz == session.edges
    assert session.notes()["device"] == about["device"]
    session.close()


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
@pytest.mark.parametrize("switches", ["", "internal_ids"])
@pytest.mark.parametrize("records", [True, False])
def test_a_source_without_edges(engine, switches, records):
    """It reaches itself, also where the graph has no number for it."""
    source = NAMED["isolated"]
    session = session_of(source, options_of(engine, switches))
    for root in (0, 6, 4):
        found = check(session, source, root, records=records)
        assert found.path_to(root) == [root]


@pytest.mark.parametrize("root", [-1, 20, 1 << 40])
def test_sources_that_are_no_vertex(root):
    session = session_of(NAMED["two-components"], options_of("xbfs"))
    with pytest.raises(UsageError, match=f"source {root} is .* allowed: 0 to 19"):
        session.search(root)
    with pytest.raises(UsageError, match=f"{root} is .* allowed: 0 to 19"):
        session.check(np.array([4, root]))


def test_everything_that_is_told():
    source = kronecker(10)
    session = open_tuples(source, request=ONE)
    assert "auto: there is a CUDA device" in session.why
    for found in checked_searches(session, source):
        assert found.engine == "xbfs"


@pytest.mark.parametrize("engine", SEARCHING)
@pytest.mark.parametrize("switches", ["", "internal_ids"])
def test_limits_targets_and_a_stop(engine, switches):
    source = kronecker(10)
    session = session_of(source, options_of(engine, switches))
    root = int(source.degrees.argmax())
    wanted = source.distances(root)
    far = int(wanted.argmax())
    for words, last in (
        ({"depth_limit": 1}, 1),
        ({"targets": [root, far]}, wanted.max()),
        ({"targets": [far], "depth_limit": 0}, 0),
    ):
        found = session.search(root, **words)
        level, parent = found.to_numpy()
        cut = np.where(wanted <= last, wanted, -1)
        np.testing.assert_array_equal(level, cut)
        np.testing.assert_array_equal(parent >= 0, cut >= 0)
        assert found.depth == last
    with pytest.raises(SearchStopped):
        session.search(root, stop=lambda: True)
    check(session, source, root)


def test_kept_results_outlast_the_next_search():
    source = kronecker(10)
    for switches in ("", "internal_ids"):
        session = session_of(source, options_of("xbfs", switches))
        first, second = np.argsort(source.degrees)[-2:].tolist()
        found = session.search(first)
        kept = found.keep()
        session.search(second)
        with pytest.raises(UsageError, match="keep"):
            found.to_numpy()
        assert hasattr(kept.level, "get")
        check_result(kept, source)
        assert session.room(1 << 20) == 1 << 20
        assert session.room(1 << 60) < 1 << 40


def test_validation_finds_what_is_wrong():
    source = kronecker(9)
    session = session_of(source, options_of("xbfs"))
    found = session.search(1).keep()
    found.level[1] = 3
    answer = validation_of(session, source)(found)
    assert not answer.valid


@pytest.mark.parametrize("engine", SEARCHING)
@pytest.mark.parametrize("switches", ["", "internal_ids"])
@pytest.mark.parametrize("name", STORES)
def test_stores(tmp_path, engine, switches, name):
    """Of one part or more, permuted or not, in input ids."""
    source = random_tuples(300, 700, seed=4)
    parts, building = STORES[name]
    target = tmp_path / "graph"
    write_graph(SoloWorld(), source, target, parts, BuildOptions(**building))
    stored = Source(source.n, parts, store=open_store(target))
    options = options_of(engine, switches)
    session = open_source(SoloWorld(), stored, options, ONE)
    assert session.layout.parts == 1
    for root in some_roots(source, 5):
        check(session, source, root)


@pytest.mark.parametrize("engine", SEARCHING)
def test_graph_of_a_part(engine):
    source = random_tuples(300, 700, seed=4)
    [part], _ = build(source, 1, threshold=10**9)
    graph = graph_of_part(engine, part)
    assert graph.tuples == source.tuples
    np.testing.assert_array_equal(graph.tuple_degrees.get(), source.ends)
    session = session_of(graph, options_of(engine))
    for root in some_roots(source, 5):
        check(session, source, root)


def test_graphs_of_a_program():
    """Results stay on the device and outlast other searches."""
    cp, source = cuda.cupy(), kronecker(9)
    for graph in (
        distbfs.Graph.from_edges(source.u, source.v, source.n),
        distbfs.Graph.from_cupy(cp.asarray(source.u), cp.asarray(source.v), source.n),
    ):
        first, second = distbfs.bfs(graph, 1), distbfs.bfs(graph, 2, depth_limit=1)
        for found, root, last in ((first, 1, 99), (second, 2, 1)):
            assert found.engine == "xbfs"
            assert isinstance(found.level, cp.ndarray)
            assert isinstance(found.parent, cp.ndarray)
            assert found.level.dtype in (np.int8, np.int32)
            assert found.parent.dtype == np.int32
            wanted = source.distances(root)
            cut = np.where(wanted <= last, wanted, -1)
            np.testing.assert_array_equal(found.to_numpy()[0], cut)
        check_result(first, source)
    one_way = distbfs.Graph.from_edges([0, 1, 2], [1, 2, 0], directed=True)
    found = distbfs.bfs(one_way, 1)
    assert found.engine == "xbfs"
    assert found.to_numpy()[0].tolist() == [2, 0, 1]


def test_opened_by_a_program():
    source = kronecker(10)
    with distbfs.open(Kronecker(10), devices=[0], engine="bfs4k") as session:
        check_result(session.search(3), source)
    with pytest.raises(UsageError, match="device is 77; allowed: 0 to "):
        distbfs.open(Kronecker(10), devices=[77])


def held():
    gc.collect()  # what earlier tests have left
    cuda.release()
    return cuda.cupy().get_default_memory_pool().used_bytes()


@pytest.mark.parametrize("parents", [True, False])
@pytest.mark.parametrize("internal", [True, False])
def test_memory_is_estimated(internal, parents):
    graph = device_build.build(Kronecker(21))
    counts = (graph.n, graph.active, graph.m)
    assert total_bytes(graph_table(*counts)) == pytest.approx(graph.nbytes, rel=0.01)
    options = options_of("xbfs", parents=parents, internal_ids=internal)
    before = held()
    session = session_of(graph, options)
    root = int(graph.vertices[0])
    session.search(root)
    used = held() - before
    told = {"parents": parents, "in_ids": not internal}
    listed = int(graph.at_least[2:9].sum())
    need = search_bytes(*counts, listed=listed, **told)
    # how many rows are cut is known up to a bound only
    cut = expected_shape(*counts, cuda.multiprocessors()).table["split"].nbytes
    assert used <= need <= 1.3 * used + (64 << 20) + cut
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


@pytest.mark.parametrize("engine", SEARCHING)
@pytest.mark.parametrize("name", ["kronecker", "path"])
def test_levels_of_a_few_vertices(engine, name):
    """Also where the search before wrote elsewhere, and where a result was kept."""
    source = kronecker(14) if name == "kronecker" else NAMED[name]
    ids = np.array([0, source.n - 1, 1, 0])
    with open_tuples(source, engine=engine) as session:
        kept = []
        for k, root in enumerate([*some_roots(source, 6), 0, 0, 1]):
            limit = 1 if k == 3 else None
            result = session.search(root, parents=k % 2 == 0, depth_limit=limit)
            levels = source.distances(root)
            levels = np.where(levels > (limit or source.n), -1, levels)
            for some in (ids, ids[:1], ids):
                assert result.at(some)[0].tolist() == levels[some].tolist()
            if k % 3 == 0:
                kept.append((result.keep(), levels))
        for result, levels in kept:
            assert result.at(ids)[0].tolist() == levels[ids].tolist()
