"""The abstraction on CPUs: the same problem on every runner, and what is refused."""

import numpy as np
import pytest
from graphs import NAMED, grid, random_tuples, sources
from hypothesis import given, settings
from hypothesis import strategies as st
from wholes import HOSTS, all_levels, whole

from distbfs.errors import SearchStopped, UsageError
from distbfs.graph import csr
from distbfs.multisearch.base import KEPT, RunOptions
from distbfs.multisearch.problem import FUNCTIONS, Problem, State
from distbfs.ranks.world import SoloWorld
from distbfs.registry import SEARCHERS
from distbfs.search.choose import choose_searcher

DTYPES = {
    "level": "int16",
    "reachable": "bool",
    "harmonic": "float64",
    "reached_from": "int32",
    "harmonic_from": "float64",
}
EVERY = Problem(
    "every",
    tuple(
        State(name, DTYPES.get(name, "int64"), per) for name, (per, _) in KEPT.items()
    ),
    bits=True,
)


def run(name, problem, source, roots, directed=False, **options):
    kind, _ = choose_searcher(name)
    on = kind(SoloWorld(), whole(source, directed), RunOptions(**options))
    return on.run(problem, np.asarray(roots, dtype=np.int64))


def check_kept(results, wanted):
    """What the traversal keeps must agree with levels [k, n]."""
    reached = wanted >= 0
    np.testing.assert_array_equal(results["level"], wanted)
    np.testing.assert_array_equal(results["reachable"], reached)
    np.testing.assert_array_equal(results["reached"], reached.sum(axis=1))
    np.testing.assert_array_equal(results["depth"], wanted.max(axis=1, initial=0))
    total = np.where(reached, wanted, 0).sum(axis=1)
    np.testing.assert_array_equal(results["distance"], total)
    np.testing.assert_array_equal(results["reached_from"], reached.sum(axis=0))
    total = np.where(reached, wanted, 0).sum(axis=0)
    np.testing.assert_array_equal(results["distance_from"], total)
    near = np.where(wanted > 0, 1 / np.where(wanted > 0, wanted, 1), 0)
    np.testing.assert_allclose(results["harmonic"], near.sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(results["harmonic_from"], near.sum(axis=0), rtol=1e-12)
    for k, row in enumerate(wanted):
        counts = results["count"][k]
        np.testing.assert_array_equal(
            np.bincount(row[row >= 0], minlength=len(counts)), counts
        )


@settings(max_examples=60, deadline=None)
@given(sources(max_n=25), st.sampled_from(HOSTS), st.data())
def test_what_the_traversal_keeps(source, name, data):
    directed = data.draw(st.booleans())
    roots = data.draw(st.lists(st.integers(0, source.n - 1), max_size=12))
    results = run(
        name,
        EVERY,
        source,
        roots,
        directed,
        method=data.draw(st.sampled_from(["", choose_searcher(name)[0].methods[-1]])),
        batch=data.draw(st.sampled_from([0, 1, 5])),
        depth=(depth := data.draw(st.sampled_from([None, 0, 2]))),
    )
    wanted = all_levels(source, directed)[roots].reshape(len(roots), source.n)
    if depth is not None:
        wanted = np.where(wanted > depth, -1, wanted)
    check_kept(results, wanted)
    assert results["level"].dtype == np.int16


class Seen:
    """A problem that notes what it is told."""

    def __init__(self):
        self.edges, self.prior, self.post, self.order = [], [], [], []
        functions = {
            "prior": self.note_prior,
            "visit_vertex": self.visit,
            "post": self.note_post,
            "end": self.note_order,
        }
        self.problem = Problem("seen", (State("level", "int32", "pair"),), functions)

    def note_prior(self, s, i):
        self.prior += [(s.first + k, s.depth_now) for k in i.tolist()]

    def note_post(self, s, i):
        self.post += [(s.first + k, s.depth_now) for k in i.tolist()]

    def visit(self, s, i, u, v):
        assert not {(s.first + k, s.depth_now) for k in i.tolist()} & set(self.post)
        assert (s.level[i, u] == s.depth_now).all()
        down = s.level[i, v] - s.depth_now
        assert ((down <= 1) & (s.level[i, v] >= 0)).all()
        self.edges += zip((s.first + i).tolist(), u.tolist(), v.tolist(), strict=True)

    def note_order(self, s, i):
        for depth, (row, v) in enumerate(s.frontiers):
            assert (s.level[row, v] == depth).all()
            self.order += zip((s.first + row).tolist(), v.tolist(), strict=True)
        back = [s.depth_now for _ in s.backwards()]
        assert back == sorted(back, reverse=True)


@pytest.mark.parametrize("name", HOSTS)
@pytest.mark.parametrize("graph", ["isolated", "loops", "two-components", "grid"])
@pytest.mark.parametrize("batch", [0, 3])
def test_each_edge_is_seen_once(name, graph, batch, monkeypatch):
    monkeypatch.setattr(csr, "SLICE", 7)
    source, seen = NAMED[graph], Seen()
    roots = [source.n - 1, 0, 0, 3]
    results = run(name, seen.problem, source, roots, batch=batch)
    wanted = [
        (k, u, v)
        for k, root in enumerate(roots)
        for u, v in source.edges.tolist()
        if source.distances(root)[u] >= 0
    ]
    assert sorted(seen.edges) == sorted(wanted)
    levels = source.levels_from(roots)
    np.testing.assert_array_equal(results["level"], levels)
    assert sorted(seen.order) == list(map(tuple, np.argwhere(levels >= 0).tolist()))
    frontiers = {(k, d) for k, row in enumerate(levels.tolist()) for d in row if d >= 0}
    assert set(seen.prior) == frontiers
    assert len(seen.prior) == len(frontiers)
    assert seen.post == seen.prior


@pytest.mark.parametrize("name", HOSTS)
def test_state_of_every_kind(name):
    """Per-search and per-pair state begins anew; per-vertex state is shared."""

    def init(s, i):
        assert (s.mine == 7).all()
        assert (s.pair == -1).all()
        s.mine[i] = s.sources[i]

    def visit(s, i, u, v):
        np.add.at(s.visits, v, 1)
        s.pair[i, v] = s.first + i

    def finalize(s):
        s.visits *= 10
        assert s.mine.tolist() == s.sources.tolist()

    problem = Problem(
        "kinds",
        (
            State("mine", "int32", "search", 7),
            State("pair", "int8", "pair", -1),
            State("visits", "int64", "vertex"),
            State("hidden", "float32", "pair", result=False),
        ),
        {"init": init, "visit_vertex": visit, "finalize": finalize},
    )
    source = NAMED["star"]
    results = run(name, problem, source, range(5), batch=2)
    assert results["mine"].tolist() == list(range(5))
    assert results["visits"].tolist() == [39 * 5 * 10] + [50] * 39
    for k in range(5):
        assert set(results["pair"][k]) == {k}
    with pytest.raises(UsageError, match="no result 'hidden'; there are: mine, pair"):
        _ = results["hidden"]


def test_no_searches_and_no_vertices():
    for name in HOSTS:
        results = run(name, EVERY, NAMED["grid"], [])
        assert results["level"].shape == (0, 144)
        assert results["count"].shape[0] == 0
        with pytest.raises(UsageError, match="source 9 is not a vertex; allowed: 0 to"):
            run(name, EVERY, NAMED["loops"], [9])


@pytest.mark.parametrize("name", HOSTS)
@pytest.mark.parametrize("which", FUNCTIONS)
def test_an_error_names_the_function_and_the_line(name, which):
    def broken(*_):
        raise ZeroDivisionError("by\nnothing")

    line = broken.__code__.co_firstlineno + 1
    problem = Problem("mine", (), {which: broken})
    text = (
        rf"^problem mine: {which} failed: .*test_problems.py:{line}: ZeroDivisionError"
    )
    with pytest.raises(UsageError, match=text) as caught:
        run(name, problem, NAMED["grid"], [0])
    assert "by nothing" in str(caught.value)


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (Problem("p", (), {"visit": print}), "function 'visit'; allowed: init, prior"),
        (Problem("p", (), {"init": 3}), "init is a int"),
        (Problem("p", (State("a b", "i4", "pair"),)), "cannot be the name of a state"),
        (Problem("p", (State("frontiers", "i4", "pair"),)), "cannot be the name"),
        (Problem("p", (State("a", "i4", "pair"),) * 2), "a is declared twice"),
        (Problem("p", (State("a", "int5", "pair"),)), "'int5' is not a dtype"),
        (Problem("p", (State("a", "object", "pair"),)), "allowed: numbers and bool"),
        (Problem("p", (State("a", "i4", "edge"),)), "per 'edge'; allowed: search"),
        (Problem("p", (State("a", "i4", "level"),)), "per 'level'; allowed"),
        (Problem("p", (State("depth", "i4", "pair"),)), "kept by the traversal"),
        (Problem("p", (State("level", "i8", "pair"),)), "allowed: int8, int16, int32"),
        (Problem("p", (State("a", "i4", "pair"),), bits=True), "bits is for problems"),
        (Problem("p", (), {"init": print}, bits=True), "bits is for problems"),
        (Problem("p", (State("a", "i4", "search", "x"),)), "'x' is not of dtype i4"),
    ],
)
def test_problems_that_are_refused(problem, text):
    for name in HOSTS:
        with pytest.raises(UsageError, match=text):
            run(name, problem, NAMED["grid"], [0])


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"threshold": "some"}, "threshold is 'some'; allowed: auto, 0 or more"),
        ({"threshold": -1}, "threshold is -1"),
        ({"batch": -1}, "batch is -1"),
        ({"depth": -2}, "depth is -2"),
        (
            {"method": "hybrid"},
            "method 'hybrid' of engine openmp; allowed: bits, arrays",
        ),
    ],
)
def test_options_that_are_refused(options, text):
    with pytest.raises(UsageError, match=text):
        run("openmp", EVERY, NAMED["grid"], [0], **options)


def test_methods_of_openmp():
    source = random_tuples(60, 120, seed=3)
    results = run("openmp", EVERY, source, [1, 2])
    assert results.facts["method"] == "bits"
    again = run("openmp", EVERY, source, [1, 2], method="arrays")
    assert again.facts["method"] == "arrays"
    for name, value in results.values.items():
        np.testing.assert_allclose(value, again[name], rtol=1e-12)
    with pytest.raises(UsageError, match="problem seen cannot run with method bits"):
        run("openmp", Seen().problem, source, [1], method="bits")


@pytest.mark.parametrize("name", HOSTS)
def test_runs_that_are_stopped(name):
    calls = []

    def stop():
        calls.append(1)
        return len(calls) > 4

    for problem in (EVERY, Seen().problem):
        calls.clear()
        with pytest.raises(SearchStopped):
            run(name, problem, grid(20), [0], stop=stop)


def test_more_searches_than_a_word_has_bits():
    source = NAMED["binary-tree"]
    roots = np.arange(2000) % source.n
    wanted = source.levels_from(range(source.n))[roots]
    for memory in (1, 1 << 30):
        results = run("openmp", EVERY, source, roots, memory=memory)
        check_kept(results, wanted)
        assert results.facts["batches"] == (32 if memory == 1 else 4)


def test_names_of_runners():
    assert set(SEARCHERS) == {"reference", "openmp", "xbfs"}
    with pytest.raises(UsageError, match="unknown engine 'gpu'; allowed: openmp, ref"):
        choose_searcher("gpu")
