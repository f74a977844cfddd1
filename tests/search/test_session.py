"""Searches over the parts of one process, from tuples to results in input ids."""

import numpy as np
import pytest
from covering import covered
from graphs import (
    NAMED,
    NO_VERTEX,
    Tuples,
    build,
    check_search,
    kronecker,
    random_tuples,
    some_roots,
    sources,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from sessions import open_parts

from distbfs.device import cc, compiler
from distbfs.engines.base import on_device
from distbfs.errors import CompilerMissing, DeviceMissing, UsageError
from distbfs.exchange.traffic import KINDS
from distbfs.generate.hashing import Permutation
from distbfs.options import Factors, Knobs, SearchOptions
from distbfs.ranks.world import SoloWorld
from distbfs.registry import ENGINES, lookup
from distbfs.search.device_opening import warm_up

PARTS = [1, 2, 3, 8]
THRESHOLDS = [0, 3, 10**9]
DIRECTIONS = ["auto", "push", "pull"]
HOSTED = [x for x in ENGINES if not on_device(lookup(ENGINES, "engine", x))]
RESTLESS = {name: Factors(0.01, 0.009) for name in ("dd", "dn", "nd")}


def session_of(source, parts=1, *, threshold=None, seed=None, block=1 << 15, **options):
    """A session over freshly built parts."""
    made, _ = build(
        source, parts, threshold=threshold, permute_seed=seed, order_block=block
    )
    permutation = None if seed is None else Permutation(source.n, seed)
    return open_parts(SoloWorld(), made, SearchOptions.named(**options), permutation)


def check(session, source, root, *, records=False):
    """Search and hold everything that is told against the tuples."""
    outcome = session.search(root, records=records)
    level, parent = outcome.to_numpy()
    wanted = check_search(source, root, level, parent)
    assert outcome.root == root
    assert outcome.depth + 1 == wanted.max() + 1
    assert outcome.seconds > 0
    reached = (wanted[source.u] >= 0).sum()
    assert outcome.nedge == reached
    if records:
        assert len(outcome.records) == outcome.depth + 1
        assert [r["level"] for r in outcome.records] == [
            *range(1, outcome.depth + 1 + 1)
        ]
    return outcome, wanted


@pytest.mark.parametrize(
    ("name", "parts", "direction"), covered(list(NAMED), [1, 3, 8], DIRECTIONS)
)
def test_named_graphs(name, parts, direction):
    source = NAMED[name]
    for threshold in THRESHOLDS:
        options = {"stepwise": True, "threads": 2, "direction": direction}
        session = session_of(source, parts, threshold=threshold, **options)
        for root in some_roots(source, 2):
            check(session, source, root, records=True)
        session.close()


@settings(max_examples=50, deadline=None)
@given(sources(), st.data())
def test_any_graph(source, data):
    def draw(*values):
        return data.draw(st.sampled_from(values))

    options = {
        "engine": draw(*HOSTED),
        "direction": draw(*DIRECTIONS),
        "stepwise": draw(True, False),
        "threads": draw(1, 2),
        "parents": draw(True, True, False),
    }
    if options["engine"] == "reference":
        options |= draw({}, RESTLESS)
    building = {
        "threshold": draw(None, 0, 1, 2, 5, 10**9),
        "seed": draw(None, 3),
        "block": draw(4, 1 << 15),
    }
    session = session_of(source, draw(*PARTS), **building, **options)
    for root in data.draw(
        st.lists(st.integers(0, source.n - 1), min_size=1, max_size=3)
    ):
        check(session, source, root, records=draw(True, False))


@pytest.mark.parametrize("engine", HOSTED)
@pytest.mark.parametrize("parts", [1, 4])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_larger_graph(engine, parts, direction):
    source = kronecker(12)
    options = {"engine": engine, "direction": direction, "stepwise": True, "threads": 2}
    session = session_of(source, parts, threshold=16, seed=9, **options)
    for root in some_roots(source, 4):
        check(session, source, root, records=True)


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("engine", HOSTED)
def test_searches_do_not_leak(parts, engine):
    source = random_tuples(60, 55, seed=1)
    session = session_of(source, parts, threshold=3, engine=engine, threads=2)
    for root in np.random.default_rng(0).permutation(60)[:25].tolist():
        check(session, source, root)


@pytest.mark.parametrize("parts", PARTS)
def test_levels_only(parts):
    source = NAMED["kronecker"]
    session = session_of(source, parts, parents=False)
    outcome, _ = check(session, source, 1)
    assert outcome.parent is None
    assert [parent for _, parent in outcome.shards] == [None] * parts


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8])
@pytest.mark.parametrize("seed", [None, 5])
def test_fewer_vertices_than_parts(n, seed):
    """Results of several parts are put together even where they are in order."""
    source = Tuples(n, range(n - 1), range(1, n))
    session = session_of(source, 8, threshold=1, seed=seed, stepwise=True)
    for root in range(n):
        check(session, source, root)


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("stepwise", [True, False])
def test_results_in_input_ids(parts, stepwise):
    """Parents too: the permutation is undone in both."""
    source = random_tuples(250, 600, seed=3)
    plain = session_of(source, parts, stepwise=stepwise)
    mixed = session_of(source, parts, seed=11, stepwise=stepwise)
    for root in some_roots(source, 8):
        one, _ = plain.search(root).to_numpy()
        one = one.copy()
        other, parent = mixed.search(root).to_numpy()
        np.testing.assert_array_equal(one, other)
        assert parent[root] == root
        assert parent.dtype == np.int64
        check(mixed, source, root)


def test_records_of_a_stepwise_search():
    source = kronecker(11)
    degrees = source.degrees
    session = session_of(source, 4, threshold=20)
    outcome, level = check(session, source, int(degrees.argmax()), records=True)
    turned = set()
    for depth, record in enumerate(outcome.records):
        here = level == depth
        assert record["normals"] == (here & (degrees <= 20)).sum()
        assert record["delegates"] == (here & (degrees > 20)).sum()
        assert set(record["directions"]) == {"outer", "inner"}
        for sent in ("bytes_sent", "messages_sent"):
            assert record[sent] == dict.fromkeys(KINDS, 0)
        assert all(seconds >= 0 for seconds in record["seconds"].values())
        turned |= set(record["directions"].values())
    assert turned == {"push", "pull"}


def test_checks_of_pushes_are_the_edges_of_the_frontier():
    source = NAMED["kronecker"]
    degrees = source.degrees
    session = session_of(source, 3, threshold=8, direction="push")
    outcome, level = check(session, source, 3, records=True)
    for depth, record in enumerate(outcome.records):
        assert sum(record["checks"].values()) == degrees[level == depth].sum()


def test_pulls_save_checks():
    source = kronecker(12)
    root = int(source.degrees.argmax())
    checks = {}
    for direction in ("auto", "push"):
        session = session_of(source, 2, threshold=16, direction=direction)
        outcome, _ = check(session, source, root, records=True)
        checks[direction] = sum(sum(r["checks"].values()) for r in outcome.records)
    assert checks["auto"] < checks["push"] / 2


@pytest.mark.parametrize("parts", [1, 4])
@pytest.mark.parametrize("root", [-1, 14, 1 << 40])
def test_sources_that_are_no_vertex(parts, root):
    source = Tuples(14, [0], [1])
    session = session_of(source, parts)
    with pytest.raises(UsageError, match=f"source {root} is .* allowed: 0 to 13"):
        session.search(root)
    check(session, source, 13)


@pytest.mark.parametrize("engine", HOSTED)
@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("stepwise", [True, False])
@pytest.mark.parametrize("seed", [None, 1])
def test_a_graph_without_vertices(engine, parts, stepwise, seed):
    session = session_of(NO_VERTEX, parts, seed=seed, engine=engine, stepwise=stepwise)
    with pytest.raises(
        UsageError, match="source 0 is not a vertex; the graph has none"
    ):
        session.search(0)
    assert session.connected(np.zeros(0, np.int64)).shape == (0,)
    session.close()


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("seed", [None, 4])
def test_connected(parts, seed):
    source = random_tuples(120, 70, seed=2)
    session = session_of(source, parts, threshold=2, seed=seed)
    ids = np.random.default_rng(0).permutation(120)[:90]
    connected = session.connected(ids)
    assert connected.dtype == bool
    np.testing.assert_array_equal(connected, source.degrees[ids] > 0)


@pytest.mark.parametrize(
    ("parts", "threshold", "stepwise", "mode"),
    [
        (1, None, False, "resident"),
        (1, None, True, "stepwise"),
        (1, 2, False, "stepwise"),
        (2, None, False, "stepwise"),
    ],
)
def test_modes(parts, threshold, stepwise, mode):
    session = session_of(NAMED["star"], parts, threshold=threshold, stepwise=stepwise)
    assert session.describe()["mode"] == mode
    facts = session.describe()
    assert facts["mode"] == mode
    assert facts["exchange"] == ("none" if mode == "resident" else "host")


def test_auto_takes_the_compiled_engine():
    session = session_of(NAMED["star"], engine="auto")
    assert session.describe()["engine"] == "openmp"


def test_auto_without_a_compiler_says_so(monkeypatch):
    def missing():
        raise CompilerMissing("no C compiler here")

    monkeypatch.setattr(cc, "load", lambda *_, **__: missing())
    made, _ = build(NAMED["star"])
    said = []
    options = SearchOptions(engine="auto", method="fast")
    session = open_parts(SoloWorld(), made, options, say=said.append)
    assert session.describe()["engine"] == "reference"
    assert said == ["engine reference: no C compiler here"]
    check(session, NAMED["star"], 3)
    with pytest.raises(CompilerMissing):
        open_parts(SoloWorld(), made, SearchOptions(engine="openmp"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "gpu"}, "unknown engine 'gpu'; allowed: bfs4k"),
        ({"method": "none"}, "method is 'none'; allowed: fast"),
        ({"exchange": "none"}, "unknown exchange 'none'; allowed: cuda_aware, host"),
        ({"direction": "up"}, "direction is 'up'; allowed: auto, push, pull"),
        ({"threads": -1}, "threads is -1; allowed: 0 to 4096"),
        ({"mask_reduce": "no"}, "mask_reduce is 'no'; allowed: blocking"),
        ({"chunk_elements": 0}, "chunk_elements is 0; allowed: 1 to"),
    ],
)
def test_options_that_are_refused(options, message):
    with pytest.raises(UsageError, match=message):
        session_of(NAMED["star"], 2, **options)


@pytest.mark.parametrize("engine", [*HOSTED, "auto"])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("frontier", "no-queue"),
        ("balance", "static"),
        ("asynchronous", False),
        ("internal_ids", True),
    ],
)
def test_options_of_a_device_are_refused_on_the_host(engine, name, value):
    kind, text = UsageError, f"{name} is not an option of engine"
    if engine == "auto":
        kind, text = DeviceMissing, "no CUDA device"
    with pytest.raises(kind, match=text):
        session_of(NAMED["star"], engine=engine, **{name: value})


@pytest.mark.parametrize("parts", [1, 3])
def test_what_was_reached(parts):
    source = NAMED["two-components"]
    session = session_of(source, parts)
    outcome, level = check(session, source, 12)
    assert (outcome.reached, outcome.depth) == ((level >= 0).sum(), level.max())
    assert (outcome.wall_seconds, session.notes()) == (None, {})


def test_kept_results_outlast_the_next_search():
    source = NAMED["path"]
    session = session_of(source)
    kept = session.search(3).keep()
    level = kept.to_numpy()[0].copy()
    session.search(90)
    np.testing.assert_array_equal(kept.to_numpy()[0], level)
    assert session.room(1000) == 1000


def test_options_as_json_values():
    values = SearchOptions.named(dd=Factors(2, 1), knobs=Knobs(k1=4)).as_dict()
    assert values["dd"] == {"to_pull": 2, "to_push": 1}
    assert values["knobs"] == {"k1": 4}
    rest = {k: v for k, v in values.items() if k not in ("dd", "dn", "nd", "knobs")}
    assert rest["exchange"] == "auto"
    assert SearchOptions.named(**rest) == SearchOptions()


@pytest.mark.parametrize("choice", [{"stepwise": True}, {"parts": 2, "threshold": 1}])
def test_a_method_of_whole_graphs_is_refused_for_parts(choice):
    with pytest.raises(UsageError, match="leave out --method"):
        session_of(NAMED["star"], engine="openmp", method="push", **choice)


def test_auto_with_a_compiler_that_cannot_compile(monkeypatch, tmp_path):
    monkeypatch.setenv("DISTBFS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("DISTBFS_CC", "false")
    cached = (compiler.compiler_command, compiler.compiler_version, cc._load)
    for function in cached:
        function.cache_clear()
    made, _ = build(NAMED["star"])
    said = []
    session = open_parts(
        SoloWorld(), made, SearchOptions(engine="auto"), say=said.append
    )
    for function in cached:
        function.cache_clear()
    assert session.describe()["engine"] == "reference"
    assert "cannot compile fast.c" in said[0]


@pytest.mark.parametrize("parts", [1, 3])
def test_the_next_search_ends_a_result(parts):
    session = session_of(NAMED["path"], parts)
    result = session.search(3)
    reached = result.reached
    kept = result.keep()
    session.search(4)
    for ask in (result.to_numpy, lambda: result.level, result.keep):
        with pytest.raises(UsageError, match="this result is gone; call keep"):
            ask()
    assert result.reached == reached, "what was requested before stays"
    assert kept.reached == reached
    assert kept.level[3] == 0


@pytest.mark.parametrize("engine", HOSTED)
@pytest.mark.parametrize("seed", [None, 3])
def test_targets_and_depth(engine, seed):
    source = kronecker(9)
    session = session_of(source, seed=seed, engine=engine)
    root = some_roots(source, 1)[0]
    wanted = source.distances(root)
    near, far = (int(np.flatnonzero(wanted == k)[0]) for k in (1, wanted.max()))
    for words, last in (
        ({"depth_limit": 1}, 1),
        ({"targets": [near]}, 1),
        ({"targets": [near, far]}, wanted.max()),
        ({"targets": [far], "depth_limit": 2}, min(2, wanted.max())),
        ({"targets": []}, wanted.max()),
    ):
        level, parent = session.search(root, **words).to_numpy()
        cut = np.where(wanted <= last, wanted, -1)
        np.testing.assert_array_equal(level, cut)
        np.testing.assert_array_equal(parent >= 0, cut >= 0)
    with pytest.raises(UsageError, match="is not a vertex"):
        session.search(root, targets=[source.n])


class Recording:
    """Takes the place of a runner; keeps the roots of searches."""

    def __init__(self):
        self.roots = []

    def search(self, root):
        self.roots.append(root)


@pytest.mark.parametrize("edges", [0, 3, 500])
def test_a_session_warms_up_from_a_vertex_with_edges(edges):
    source = Tuples(1000, np.arange(edges), np.arange(edges) + 1)
    session, runner = session_of(source, 3, seed=5), Recording()
    warm_up(runner, session)
    roots = session.vertices.outside(np.array(runner.roots, dtype=np.int64))
    assert session.connected(roots).all()
    assert len(roots) <= 1
    if edges in (0, 500):
        assert len(roots) == bool(edges)
