"""Searches of a domain that leave out leaves: levels against SciPy, parents by rule."""

from functools import cache

import numpy as np
import pytest
from device_parts import joined
from fast_graphs import HUGE, beside, chained, complete, lone, pairs, path, shuffled
from graphs import Tuples, kronecker, random_tuples, uniform
from resident_parts import look, resident_driver, resident_parts

from distbfs.engines.base import PRUNED, Until
from distbfs.engines.cuda.xbfs.share_search import TREES

WAYS = {
    "as they come": {},
    "by queue": {"mark_edges": HUGE, "pull_edges": HUGE},
    "marks": {"mark_edges": 0, "pull_edges": HUGE},
    "pulls": {"mark_edges": HUGE, "pull_edges": 30, "tile": 8},
    "pulls at once": {"pull_edges": 0},
}


def leafy(core, leaves, seed=5):
    """A graph whose vertices get more neighbours, of one edge each."""
    rng = np.random.default_rng(seed)
    u = np.concatenate([core.u, rng.integers(0, core.n, leaves)])
    v = np.concatenate([core.v, np.arange(core.n, core.n + leaves)])
    return Tuples(core.n + leaves, u, v)


GRAPHS = {
    "random": lambda: shuffled(leafy(random_tuples(1500, 5000, 11), 5000)),
    "apart": lambda: shuffled(
        beside(leafy(uniform(900, 4000), 6000), pairs(300), lone(50), path(9))
    ),
    "deep": lambda: shuffled(leafy(chained(path(130), uniform(600, 3000)), 6000)),
    "kronecker": lambda: kronecker(13, 2),
}


@cache
def source_of(name):
    return GRAPHS[name]()


def neighbours_of(source, leaf):
    """Return the only neighbour of each of some vertices."""
    return source.matrix.indices[source.matrix.indptr[leaf]]


def roots_of(source, count=2):
    """A hub, leaves, one of a pair if there is one, and vertices without edges."""
    degrees = source.degrees
    leaf = np.flatnonzero(degrees == 1)
    paired = leaf[degrees[neighbours_of(source, leaf)] == 1]
    some = [[int(degrees.argmax())], leaf[:count], paired[:count], leaf[-1:]]
    some += [np.flatnonzero(degrees == 0)[:1], np.flatnonzero(degrees == 2)[:1]]
    return np.concatenate(some).astype(int).tolist()


@pytest.mark.pairs
@pytest.mark.parametrize("internal", [True, False], ids=["internal", "ids"])
@pytest.mark.parametrize("way", WAYS)
def test_every_way(device, way, internal):
    """Half of the graphs by id, the others by position."""
    for k, name in enumerate([*GRAPHS][internal::2]):
        source, parts = source_of(name), (2, 4, 2, 3)[2 * k + internal]
        driver = resident_driver(
            source, parts, internal_ids=internal, wide=k % 2, overrides=WAYS[way]
        )
        turn = list(WAYS).index(way) + k
        for root in roots_of(source, 1)[turn % 2 :: 2]:
            look(driver, source, root)
            assert all(part.leaves_out for part in driver._parts), name
        driver.close()


def test_ids_of_any_width(device, id_bits):
    source = source_of("apart")
    driver = resident_driver(source, 3)
    for root in roots_of(source, 1):
        parent = look(driver, source, root).parent[0]
        assert parent.dtype.itemsize * 8 == id_bits
    driver.close()


@pytest.mark.parametrize("internal", [True, False], ids=["internal", "ids"])
def test_between_searches_of_all(device, internal):
    """Searches for targets, from sets and of cut depth come between others."""
    source = source_of("apart")
    driver = resident_driver(source, 2, internal_ids=internal)
    hub, leaf, *_ = roots_of(source)
    for root in (hub, leaf):
        look(driver, source, root)
        look(driver, source, root, until=Until(targets=np.array([leaf, 3])))
        assert not driver._parts[0].leaves_out
        for depth in range(4):
            look(driver, source, root, until=Until(depth=depth))
            assert driver._parts[0].leaves_out
        found = driver.search(np.array([3, min(hub, leaf), max(hub, leaf)]))
        assert found.levels > 1
        assert not driver._parts[0].leaves_out
        look(driver, source, root)
    driver.close()


@pytest.mark.parametrize("internal", [True, False], ids=["internal", "ids"])
def test_a_component_that_is_known(device, internal):
    """Later searches in it end with its last vertex; others as before."""
    large = leafy(uniform(4000, 24_000), 6000)
    source = shuffled(beside(large, complete(6), path(7)))
    limits = {"overrides": {"pull_edges": 10}, "internal_ids": internal}
    driver = resident_driver(source, 2, **limits)
    hub = int(source.degrees.argmax())
    level = source.distances(hub)
    others = np.flatnonzero((level < 0) & (source.degrees > 1))
    steps = set()
    for root in others:
        look(driver, source, int(root), records=True)
        assert driver._parts[0].params.outside == 0
        steps |= {name for name, *_ in driver._parts[0].steps()}
    assert "pull" in steps
    for k in range(3):
        look(driver, source, hub, records=True)
        found = [line[2] for line in driver._parts[0].steps() if "pull" in line[0]]
        assert (0 in found) == (k == 0)
    outside = 0
    for part in driver._parts:
        searched = part.part.vertices[: part.own.active].get().astype(int)
        ids = part.part.layout.global_of(part.part.index, searched)
        outside += int((level[ids] < 0).sum())
    for root in (*others[:3], int(np.flatnonzero(source.degrees == 1)[0])):
        look(driver, source, int(root))
        assert {part.params.outside for part in driver._parts} == {outside}
    for until in (Until(depth=2), Until(targets=np.array([others[0]]))):
        look(driver, source, hub, until=until)
    found = driver.search(np.unique([hub, others[0]]))
    assert joined(found.level, source.n)[others[0]] == 0
    look(driver, source, hub)
    driver.close()


def test_records(device):
    """They tell what was found without being searched."""
    source = shuffled(leafy(chained(uniform(900, 4000), path(30)), 6000))
    driver = resident_driver(source, 2)
    [hub, leaf, *_] = roots_of(source)
    for root in (hub, leaf):
        found = look(driver, source, root, records=True)
        wanted = np.bincount(source.distances(root) + 1)[2:]
        assert [one["found"] for one in found.records] == wanted.tolist()
        pruned = sum(one[PRUNED] for one in found.records)
        searched = 2 * 1024
        assert pruned + (root == leaf) >= (source.degrees > 0).sum() - searched
    driver.close()


def test_levels_of_leaves_alone(device):
    """Where none had to fill a granule up, the last level has no step of its own."""
    ring, some = np.arange(2048), uniform(2048, 9000)
    core = Tuples(2048, [*ring, *some.u], [*np.roll(ring, 1), *some.v])
    source = leafy(core, 6000)
    driver = resident_driver(source, 2)
    found = look(driver, source, roots_of(source)[0], records=True)
    last = found.records[-1]
    assert last["direction"] == TREES
    assert last["found"] == last[PRUNED]
    driver.close()


@pytest.mark.parametrize(
    ("make", "parts", "searched"),
    [
        (lambda: leafy(random_tuples(1500, 5000, 11), 5000), 2, 1024),
        (lambda: leafy(random_tuples(4500, 20_000, 11), 5000), 2, 3072),
        (lambda: leafy(random_tuples(1500, 5000, 11), 5000), 1, 2048),
        (lambda: leafy(random_tuples(1500, 5000, 11), 400), 2, None),  # too few
        (lambda: uniform(9000, 60_000), 2, None),
        (lambda: Tuples(4, [], []), 3, None),
    ],
)
def test_how_many_are_searched(device, make, parts, searched):
    """Whole granules, filled up with leaves, the same of all parts."""
    for one in resident_parts(make(), parts)[0]:
        trees = one.trees
        own = None if trees is None else one.active - trees.count
        assert own == searched
