"""Method fast of engine openmp: which levels take one thread, and which all."""

import numpy as np
import pytest
from graphs import Tuples, build, check_search, random_tuples
from variants import make_engine

from distbfs.engines.openmp import whole

ONE, ALL, CHOSEN = range(3)
DENSE = 64  # row of rates for pulls
SERIAL = 12  # pushes of 2^12 edges are the first that all threads take
TRIALS = 6


@pytest.fixture(autouse=True)
def _rates_are_kept(monkeypatch, _no_graph_is_small):
    monkeypatch.setattr(whole, "team_rates", lambda _: np.zeros((65, 3)))


def layers(width, count=12):
    """Layers of so many vertices, each vertex joined to all of the next layer."""
    at = np.arange(width)
    u, v = (x.ravel() for x in np.meshgrid(at, at + width))
    steps = width * np.arange(count)[:, None]
    return Tuples(width * (count + 1), (u + steps).ravel(), (v + steps).ravel())


def pushed(source, rates):
    """Directions of the middle levels of a search that begins with such rates."""
    [part], _ = build(source, 1)
    search = make_engine("openmp", direction="push", threads=2).whole(part)
    kept = search._graph.held["rates"]
    kept[:] = rates
    result = search.search(0, records=True)
    check_search(source, 0, result.level, result.parent)
    return [record.direction for record in result.records[3:-2]], kept


@pytest.mark.parametrize(("fastest", "way"), [(ONE, "push-serial"), (ALL, "push")])
def test_what_was_faster_is_taken(fastest, way):
    rates = np.zeros((65, 3))
    rates[SERIAL] = 1, 1, TRIALS
    rates[SERIAL, fastest] = 1e-30
    directions, kept = pushed(layers(60), rates)
    assert set(directions) == {way}
    assert kept[SERIAL, CHOSEN] > TRIALS


def test_what_is_not_known_is_tried_in_turns():
    directions, kept = pushed(layers(60, 9), np.zeros((65, 3)))
    assert len(directions) >= 4
    assert directions[:4] in (["push", "push-serial"] * 2, ["push-serial", "push"] * 2)
    assert (kept[SERIAL] > 0).all()


def test_the_slower_way_is_tried_again():
    rates = np.zeros((65, 3))
    rates[SERIAL] = 1e-30, 1, 60
    directions, _ = pushed(layers(60), rates)
    assert directions.count("push") == 1


def test_small_levels_are_tried_where_large_ones_show_that_it_pays():
    rates = np.zeros((65, 3))
    for pays in (False, True):
        rates[SERIAL] = (1, 1e-30, TRIALS) if pays else (1e-30, 1, TRIALS)
        directions, kept = pushed(layers(40), rates)
        assert ("push" in directions) == pays
        assert (kept[SERIAL - 1, ALL] > 0) == pays


def test_large_levels_are_tried_where_smaller_ones_show_that_it_does_not_pay():
    rates = np.zeros((65, 3))
    for pays in (True, False):
        rates[SERIAL] = (1, 1e-30, TRIALS) if pays else (1e-30, 1, TRIALS)
        directions, kept = pushed(layers(80), rates)
        assert ("push-serial" in directions) != pays
        assert (kept[SERIAL + 1, ONE] > 0) != pays


def test_pulls_take_the_threads_that_pay():
    source = random_tuples(20_000, 160_000, 3)
    [part], _ = build(source, 1)
    search = make_engine("openmp", direction="pull", threads=2).whole(part)
    rates = search._graph.held["rates"][DENSE]
    for k in range(1, TRIALS + 1):
        result = search.search(0)
        check_search(source, 0, result.level, result.parent)
        assert rates[CHOSEN] == k
        assert rates[ONE] > 0
        assert (rates[ALL] > 0) == (k > TRIALS // 2)
    for fastest, slowest in ((ONE, ALL), (ALL, ONE)):
        rates[[fastest, slowest]] = 1e-30, 1
        search.search(0)
        assert rates[fastest] > 1e-30
        assert rates[slowest] == 1
