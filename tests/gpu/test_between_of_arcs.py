"""Directed graphs in parts, several on one device: edges out are pushed, in asked."""

import numpy as np
import pytest
from device_parts import LARGE, check, driver_of
from directed_between import check_parts, directed_parts
from directed_hosts import SHAPES, Arcs, arcs_of, ends_of, turned
from fast_graphs import HUGE
from graphs import kronecker, random_tuples
from masked_graphs import see_between
from resident_parts import NOTHING

from distbfs.build.cuda.room import LEAST_KEPT, Fit, Room

MORE = {
    "kronecker-14": lambda: arcs_of(kronecker(14)),
    "random-large": lambda: arcs_of(random_tuples(60_000, 500_000, 3)),
}
LARGEST = ["kronecker-14", "hubs", "dead-ends", "layers"]
WAYS = (
    {"mark_edges": 0, "pull_edges": HUGE},
    {"pull_edges": 0},
    {"mark_edges": HUGE, "pull_edges": HUGE},
)


def made(name):
    return (SHAPES | MORE)[name]()


@pytest.mark.parametrize("name", [*SHAPES, *MORE])
def test_searches(name):
    """Of all kinds of delegates, in each direction, and with records."""
    source = made(name)
    for parts, threshold in ((1, 4), (2, 0), (3, 12), (4, LARGE)):
        placed = directed_parts(source, parts, threshold=threshold)
        check_parts(source, placed)
        for direction in ("auto", "push", "pull"):
            driver = driver_of(placed, engine="xbfs", direction=direction)
            for root in ends_of(source):
                check(driver, source, root)
            check(driver, source, ends_of(source)[0], records=True)


@pytest.mark.parametrize("name", LARGEST)
def test_each_way(name):
    source = made(name)
    for way in WAYS:
        placed = directed_parts(source, 3, threshold=12)
        driver = driver_of(placed, engine="xbfs")
        for search in driver._searches:
            for key, value in way.items():
                setattr(search.own, key, value)
        for root in ends_of(source):
            check(driver, source, root)


def test_an_arc_turned_round():
    """Checks that pass for a graph fail for its arcs the other way."""
    source = made("acyclic")
    placed = directed_parts(source, 2, threshold=8)
    driver, root = driver_of(placed, engine="xbfs"), ends_of(source)[0]
    check(driver, source, root)
    with pytest.raises(AssertionError):
        check(driver, turned(source), root)


@pytest.mark.parametrize("name", LARGEST[:2])
def test_tails_in_host_memory(monkeypatch, name):
    """Each row keeps eight columns."""
    monkeypatch.setattr(Fit, "most", lambda _: LEAST_KEPT)
    source = made(name)
    for direction, threshold in (("auto", 20), ("push", LARGE), ("pull", LARGE)):
        placed = directed_parts(source, 2, threshold=threshold)
        form = {"room": Room(None, None, NOTHING), "direction": direction}
        driver = driver_of(placed, engine="xbfs", **form)
        assert driver._searches[0].part.into.tails is not None
        for root in ends_of(source):
            check(driver, source, root)


def test_masks():
    source = made("kronecker-14")
    rng = np.random.default_rng(2)
    flags = rng.random(source.n) < 0.8
    u, v = source.edges.T
    some = flags[u] & flags[v]
    left = Arcs(source.n, u[some], v[some], size=1 << 20)
    placed = directed_parts(source, 3, threshold=12)
    driver = driver_of(placed, engine="xbfs")
    see_between(driver, lambda maker: maker.of_vertices(flags), left)
    for root in ends_of(left):
        check(driver, left, root)


def test_many_searches_leave_nothing_behind():
    source = made("kronecker-14")
    placed = directed_parts(source, 4, threshold=30)
    driver = driver_of(placed, engine="xbfs")
    for root in np.random.default_rng(3).integers(0, source.n, 60).tolist():
        check(driver, source, root)
