"""What method ``fast`` does at each level, as its records tell it."""

from functools import cache

import numpy as np
import pytest
from device_graphs import HostGraph
from fast_graphs import (
    HUGE,
    beside,
    chained,
    fault,
    path,
    shuffled,
    star,
    wanted_levels,
)
from graphs import Tuples, complete, kronecker, uniform

from distbfs.engines.cuda.xbfs import arrays
from distbfs.engines.cuda.xbfs.search import FastSearch

SMALL, FEW = 2048, 128  # as in search.cuh
GRAPHS = {
    "kronecker": kronecker(11),
    "outside": shuffled(beside(uniform(1500, 9000), uniform(2500, 20_000, seed=8))),
    "blobs": shuffled(chained(complete(120), path(50), complete(200), path(20))),
    "uniform": uniform(3000, 30_000),
}
LIMITS = [
    {},
    {"mark_edges": HUGE, "pull_edges": 3000},
    {"mark_edges": 900, "pull_edges": 6000},
    {"mark_edges": HUGE, "pull_edges": HUGE},
    {"mark_edges": HUGE, "pull_edges": 0},
    {"mark_edges": 0, "pull_edges": HUGE},
]


class Searched:
    """A search with its records, and the size of each level."""

    def __init__(self, made, root, **options):
        search = FastSearch(made.whole, **options)
        found = search.search(root, records=True)
        assert fault(made, root, found) is None
        level = wanted_levels(made, root)
        reached = level >= 0
        self.params, self.log = search.params, found.records
        self.active = made.active
        weights = made.source.degrees[reached]
        self.edges = np.bincount(level[reached], weights=weights).astype(int).tolist()
        self.kinds = [record.direction for record in self.log]


@cache
def host(name):
    return HostGraph(GRAPHS[name])


@cache
def searched(name, root, *limits):
    """What one search tells, which several tests look at."""
    return Searched(host(name), root, overrides=dict(limits))


def searches(overrides=({},)):
    for name, source in GRAPHS.items():
        for root in (int(source.degrees.argmax()), int(host(name).vertices[-1])):
            for limits in overrides:
                yield searched(name, root, *limits.items())


def first_steps(one):
    """The steps up to the first that does not push a queue, from edges alone."""
    steps, before, p = [], 0, one.params
    for edges in one.edges:
        grows = edges >= p.growth * before or edges > p.queue_room
        if grows and edges >= p.pull_edges:
            return [*steps, "pull"]
        if grows and edges >= p.mark_edges:
            return [*steps, "push-marking", "pull"]
        steps.append("push-block" if edges <= SMALL else "push")
        before = edges
    return steps


def test_steps_follow_the_edges_of_the_frontier(device):
    seen = set()
    for one in searches(LIMITS):
        steps = first_steps(one)
        kinds = [kind.removesuffix("-last") for kind in one.kinds]
        assert kinds[: len(steps)] == steps[: len(kinds)]
        seen |= set(steps)
    assert seen == {"push-block", "push", "push-marking", "pull"}


@cache
def strip():
    """Return a long mesh, whose vertices have up to 8 neighbours."""
    shape = np.array([100, 40])
    n = int(shape.prod())
    here = np.array(np.unravel_index(np.arange(n), shape)).T
    u, v = [], []
    for step in np.ndindex(3, 3):
        if step <= (1, 1):  # each edge once
            continue
        there = here + step - 1
        inside = ((there >= 0) & (there < shape)).all(axis=1)
        u.append(np.flatnonzero(inside))
        v.append(np.ravel_multi_index(there[inside].T, shape))
    return HostGraph(shuffled(Tuples(n, np.concatenate(u), np.concatenate(v))))


@cache
def spiral():
    """Return a long ring with chords, whose frontiers have four vertices at most."""
    at = np.arange(600)
    u, v = np.concatenate([at, at]), np.concatenate([(at + 1) % 600, (at + 3) % 600])
    # the clique, which is not reached, keeps it from the cluster
    return HostGraph(shuffled(beside(Tuples(600, u, v), complete(12))))


def test_frontiers_that_do_not_grow_are_pushed(device):
    made = strip()
    one = Searched(made, int(made.vertices[0]))
    assert max(one.edges) > 2 * one.params.mark_edges
    assert {kind.partition("-")[2] for kind in one.kinds} <= {"", "block"}


@pytest.mark.parametrize("near", [None, 20, 3])
@pytest.mark.parametrize("in_ids", [True, False], ids=["ids", "numbers"])
def test_narrow_frontiers(device, monkeypatch, in_ids, near):
    """Blocks that keep what they find, down to so little room that they seldom can."""
    limits, narrow = {} if near is None else {"near": near}, set()
    for few in (True, False):
        if not few:
            monkeypatch.setattr(arrays.Arrays, "forms_of_few", lambda _: ())
        for made in (strip(), spiral()):
            search = FastSearch(made.whole, in_ids=in_ids, overrides=limits)
            said = search.params.held["said"]
            for root in np.flatnonzero(made.source.degrees < 9)[[0, 7, -1]]:
                said[:] = 0
                one = search.search(int(root))
                assert fault(made, int(root), one, in_ids=in_ids) is None
                narrow |= {few} if said.any() else set()
    assert narrow == {True, False}


def test_graphs_whose_frontiers_are_not_narrow(device):
    """Of vertices with many neighbours, and of some with very many."""
    for source in (uniform(600, 6000), shuffled(beside(strip().source, star(300)))):
        search = FastSearch(HostGraph(source).whole)
        assert not search.params.near


def test_wide_frontiers_that_do_not_grow(device, monkeypatch):
    """A queue that has no room for what a push may find is not asked to have it."""
    monkeypatch.setattr(arrays, "PUSHED", 64)
    made = strip()
    one = Searched(made, int(made.vertices[0]))
    assert max(one.edges) > one.params.queue_room
    assert "push-marking" in one.kinds


def test_pushes_after_pulls_check_the_edges_of_their_frontier(device):
    later = 0
    for one in searches(LIMITS[:3]):
        pulled = False
        for depth, record in enumerate(one.log):
            pulled |= record.direction.startswith("pull")
            if record.direction.startswith("push"):
                assert record.checks == one.edges[depth]
                later += pulled
    assert later


def test_pulls_go_on_while_they_find_an_eighth(device):
    """Or while few are left; what was pushed before counts for the first."""
    seen = set()
    for one in searches(LIMITS[:3]):
        left = one.active
        for k, record in enumerate(one.log[:-1]):
            if not record.direction.startswith("pull"):
                continue
            after = record.frontier - record.found
            found, left = left - after, after
            if record.direction == "pull" and found and left:
                on = found * 8 >= left or left <= one.active // FEW
                assert one.kinds[k + 1].startswith("pull") == on
                seen.add(on)
    assert seen == {True, False}


def test_the_last_vertices_are_listed(device):
    for one in searches(LIMITS[:3]):
        left = one.active
        for record in one.log:
            if record.direction.startswith("pull"):
                few = left <= one.active // FEW
                assert (record.direction == "pull-last") == few
                left = record.frontier - record.found


@pytest.mark.parametrize("hub_words", [None, 4, 0])
def test_hub_bits_are_asked_while_many_are_left(device, hub_words):
    """Bits of hubs are copied where an eighth of the vertices is unvisited."""
    overrides = {"pull_edges": 0}
    if hub_words is not None:
        overrides["hub_words"] = hub_words
    counts = []
    for one in searches([overrides]):
        left = one.active
        for record in one.log:
            looks = record.extra["hub_looks"]
            copied = left >= one.active // 8 and one.params.hub_words
            assert not looks or (record.direction == "pull" and copied)
            assert looks <= record.checks
            left = record.frontier - record.found
            counts.append(looks)
    assert any(counts) == (hub_words != 0)
