"""Bit-parallel batches: levels, counts and reachability against distances."""

from dataclasses import replace

import numpy as np
import pytest
from graphs import NAMED, Tuples, grid, kronecker, random_tuples, sources
from hypothesis import given, settings
from hypothesis import strategies as st
from wholes import all_levels, host_searches, whole

from distbfs.errors import SearchStopped
from distbfs.multisearch.base import MOST, SUMS
from distbfs.multisearch.bits import LANE, width_for
from distbfs.multisearch.part_bits import bytes_needed
from distbfs.multisearch.part_loop import Wanted
from distbfs.ranks.world import SoloWorld

LEVELS = Wanted(levels=True, counts=False)
WAYS = ("auto", "push", "pull")
PUSH, PULL = 0, 1  # of records
LARGER = {
    "random": random_tuples(700, 1500, seed=4),
    "kronecker-12": kronecker(12),
    "grid-40": grid(40),
}


def searches_of(part, lanes, threads):
    return host_searches(SoloWorld(), [part], lanes, threads)


def levels_by_id(search, dtype="int32"):
    out = np.empty((search._count, search._parts[0].local_count), dtype)
    search.put_levels(out)
    return out


def check(search, wanted, rows, limit=None, direction="auto"):
    """Search from vertices ``rows``; everything must agree with levels [k, n]."""
    results = Wanted(True, True, (*SUMS,), limit, direction=direction)
    search.run(np.asarray(rows), results)
    sums, reached = {name: search.sum_by_id(name) for name in SUMS}, wanted >= 0
    total = np.where(reached, wanted, 0).sum(axis=0)
    near = np.where(wanted > 0, 1 / np.where(wanted > 0, wanted, 1), 0).sum(axis=0)
    np.testing.assert_array_equal(sums["reached_from"], reached.sum(axis=0))
    np.testing.assert_array_equal(sums["distance_from"], total)
    np.testing.assert_allclose(sums["harmonic_from"], near, rtol=1e-12)
    fitting = [name for name, most in MOST.items() if search.deepest <= most]
    for dtype in fitting:
        level = levels_by_id(search, dtype)
        np.testing.assert_array_equal(level, wanted.astype(dtype))
    np.testing.assert_array_equal(levels_by_id(search, "bool"), wanted >= 0)
    assert search.deepest == wanted.max(initial=0)
    for row, counts in zip(wanted, search.counts(), strict=True):
        width = search.deepest + 1
        np.testing.assert_array_equal(
            np.bincount(row[row >= 0], minlength=width), counts
        )


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("direction", WAYS)
def test_named_graphs(name, direction):
    source = NAMED[name]
    roots = np.arange(min(source.n, 200))
    wanted = source.levels_from(roots)
    search = searches_of(whole(source), width_for(len(roots)), threads=2)
    check(search, wanted, roots, direction=direction)
    search.run(roots, LEVELS)
    pairs = np.indices(wanted.shape).reshape(2, -1)
    np.testing.assert_array_equal(search.levels_at(*pairs), wanted.ravel())


@pytest.mark.thorough
@pytest.mark.parametrize("name", LARGER)
@pytest.mark.parametrize("width", [1, 2, 4, 8])
@pytest.mark.parametrize("threads", [1, 3])
def test_every_width(name, width, threads):
    source = LARGER[name]
    roots = np.random.default_rng(width).integers(0, source.n, LANE * width)
    wanted = source.levels_from(roots)
    search = searches_of(whole(source), width, threads)
    ways = set()
    for direction in WAYS:
        check(search, wanted, roots, direction=direction)
        ways |= {*search.records.direction}
    assert ways == {PUSH, PULL}
    check(search, wanted[:3], roots[:3])  # what the last batch left is forgotten


@settings(max_examples=60, deadline=None)
@given(sources(), st.data())
def test_any_graph(source, data):
    directed = data.draw(st.booleans())
    part = whole(source, directed)
    roots = data.draw(st.lists(st.integers(0, source.n - 1), max_size=70))
    search = searches_of(part, width_for(len(roots)), data.draw(st.integers(1, 2)))
    wanted = all_levels(source, directed)[roots]
    way = data.draw(st.sampled_from(WAYS))
    if roots:
        check(search, wanted, roots, direction=way)
    else:
        search.run(np.zeros(0, dtype=np.int64), Wanted(levels=True))
        assert levels_by_id(search).shape == (0, source.n)
        assert search.counts().shape[0] == search.deepest == 0
    if directed and roots:
        turned = searches_of(part.reversed(), search.lanes, 1)
        check(turned, all_levels(source, directed).T[roots], roots, direction=way)


def test_pull_stops_early_and_the_choice_is_by_price():
    search = searches_of(whole(LARGER["kronecker-12"]), 1, 2)
    roots, edges = np.arange(64), search._parts[0].nn.edges
    checks = {}
    for way in WAYS:
        search.run(roots, replace(LEVELS, direction=way))
        checks[way] = search.records.checks.sum()
    assert checks["auto"] <= min(checks["push"], checks["pull"])
    assert checks["auto"] < 64 * edges / 10
    search.run(roots, LEVELS)
    assert {*search.records.direction} == {PUSH, PULL}


def test_pulls_leave_a_row_when_all_searches_are_seen():
    """Sources on one side of a complete bipartite graph see each other at once."""
    left, right = LANE, 40
    u, v = np.divmod(np.arange(left * right), right)
    search = searches_of(whole(Tuples(left + right, u, left + v)), 1, 2)
    search.run(np.arange(left), replace(LEVELS, direction="pull"))
    checks = search.records.checks
    assert checks[:2].tolist() == [2 * left * right, left]


def test_light_searches_do_not_keep_pulls_at_rows():
    """A search that goes along a path elsewhere changes little for the others."""
    core, tail = LARGER["kronecker-12"], 300
    ends = core.n + np.arange(tail)
    u, v = np.append(core.u, ends[:-1]), np.append(core.v, ends[1:])
    search = searches_of(whole(Tuples(core.n + tail, u, v)), 1, 2)
    roots, checks = np.argsort(-core.degrees)[:63], []
    for extra in ([], [int(ends[0])]):
        search.run(np.append(roots, extra).astype(np.int64), LEVELS)
        log = search.records
        checks.append(log.checks.sum())
        assert PULL in log.direction
    assert checks[1] < checks[0] + core.degrees.sum() / 4


def test_planes_are_added_while_levels_go_on():
    source = Tuples(600, range(599), range(1, 600))
    search = searches_of(whole(source), 1, 2)
    check_path = np.abs(np.arange(600) - 5)[None]
    search.run(np.array([5]), Wanted(levels=True))
    np.testing.assert_array_equal(levels_by_id(search), check_path)
    search.run(np.array([0, 599]), Wanted(levels=True, limit=126))
    assert levels_by_id(search, "int8")[0, 125:129].tolist() == [125, 126, -1, -1]
    assert search.deepest == 126


@pytest.mark.parametrize("width", [1, 4])
def test_memory_is_what_was_counted(width):
    part = whole(grid(40))
    search = searches_of(part, width, threads=1)
    for depth in (0, 7, 78):
        search.run(np.array([0]), Wanted(levels=depth > 0, limit=depth))
        [_, rows] = search._searched
        held = sum(x.nbytes for x in [*rows.arrays.values(), *rows.planes])
        planes = max(depth.bit_length(), 3) * (depth > 0)
        need = bytes_needed([part], width, planes=planes)
        assert held == need


def test_limits_and_single_pairs():
    source = LARGER["grid-40"]
    search = searches_of(whole(source), 2, 2)
    roots = np.arange(100)
    wanted = source.levels_from(roots)
    for limit in (0, 1, 7, 1000):
        near = np.where(wanted > limit, -1, wanted)
        check(search, near, roots, limit=limit)
    rng = np.random.default_rng(2)
    row, vertex = rng.integers(0, 100, 300), rng.integers(0, source.n, 300)
    search.run(roots, LEVELS)
    np.testing.assert_array_equal(search.levels_at(row, vertex), wanted[row, vertex])


def test_a_search_that_is_stopped():
    search = searches_of(whole(NAMED["path"]), 1, 1)
    asked = []

    def stop():
        asked.append(1)
        return len(asked) > 3

    with pytest.raises(SearchStopped, match="stopped at level 3"):
        search.run(np.array([0]), Wanted(stop=stop))
    check(search, NAMED["path"].distances(9)[None], [9])
    with pytest.raises(ZeroDivisionError):
        search.run(np.array([0]), Wanted(stop=lambda: stop() and 1 // 0))
    check(search, NAMED["path"].distances(9)[None], [9])


def test_results_go_where_they_are_told():
    source = NAMED["grid"]
    search = searches_of(whole(source), 1, 2)
    search.run(np.array([3, 4]), LEVELS)
    out = np.empty((4, source.n), dtype=np.int16)
    search.put_levels(out[1:3])
    np.testing.assert_array_equal(out[2], source.distances(4))
    with pytest.raises(ValueError, match="not requested"):
        search.counts()
