"""Directed graphs in a domain of several devices: pushes along edges out, pulls in."""

import numpy as np
import pytest
from directed_domains import (
    check_records,
    check_rows,
    directed_driver,
    look,
    look_from_set,
    mask,
)
from directed_hosts import SHAPES, arcs_of, turned
from directed_hosts import ends_of as roots_of
from fast_graphs import HUGE, untils
from graphs import kronecker, random_tuples
from resident_parts import NOTHING, budgets, by_parts, devices_of, resident_parts

from distbfs.build.cuda.room import Room

WAYS = (
    *({}, {"direction": "push"}, {"direction": "pull"}),
    {"overrides": {"mark_edges": 0, "pull_edges": HUGE}},
    {"overrides": {"pull_edges": 0}},
    {"overrides": {"mark_edges": HUGE, "pull_edges": 50}},
    {"overrides": {"mark_edges": HUGE, "pull_edges": HUGE}},
)
MORE = {
    "kronecker-16": lambda: arcs_of(kronecker(16)),
    "random-large": lambda: arcs_of(random_tuples(90_000, 900_000, 3)),
}
LARGE = ["kronecker-16", "hubs", "dead-ends", "layers"]


def made(name):
    return (SHAPES | MORE)[name]()


@by_parts(1, 2, 3, 4, 8)
@pytest.mark.parametrize("name", [*SHAPES, *MORE])
def test_searches(name, parts):
    """By id and by number in turns, and with records."""
    source, devices = made(name), devices_of(parts)
    check_rows(source, resident_parts(source, parts, devices=devices, directed=True)[0])
    for k, way in enumerate(WAYS):
        form = {"devices": devices, "internal_ids": (k + parts) % 2 == 1, **way}
        driver = directed_driver(source, parts, **form)
        for root in roots_of(source):
            look(driver, source, root)
            check_records(source, root, look(driver, source, root, records=True))
        look_from_set(driver, source, np.unique(roots_of(source)))
        driver.close()


@by_parts(2, 4)
def test_ends_of_searches(parts):
    for k, name in enumerate(LARGE):
        source = made(name)
        form = {"devices": devices_of(parts), "internal_ids": k % 2 == 1}
        driver = directed_driver(source, parts, **form)
        for root in roots_of(source)[:2]:
            for until in untils(source.distances(root), root):
                look(driver, source, root, until=until)
        driver.close()


@by_parts(2)
def test_an_arc_turned_round(parts):
    """Checks that pass for a graph fail for its arcs the other way."""
    source = made("acyclic")
    driver = directed_driver(source, parts, devices=devices_of(parts))
    root = roots_of(source)[0]
    look(driver, source, root)
    with pytest.raises(AssertionError):
        look(driver, turned(source), root)


@by_parts(2, 4)
@pytest.mark.parametrize("name", LARGE)
def test_masks(name, parts):
    source = made(name)
    for seed in range(3):
        for k, way in enumerate(WAYS[seed::3]):
            form = {"devices": devices_of(parts), "internal_ids": (k + seed) % 2 == 0}
            driver = directed_driver(source, parts, **form, **way)
            left = mask(driver, source, seed)
            for root in roots_of(left):
                look(driver, left, root)
            look(driver, left, roots_of(left)[0], records=True)
            driver.see([None] * parts)
            look(driver, source, roots_of(source)[0])
            driver.close()


@by_parts(2, 4)
@pytest.mark.parametrize("name", ["kronecker-16", "hubs", "random-large"])
def test_tails_in_host_memory(monkeypatch, name, parts):
    source, devices = made(name), devices_of(parts)
    least, _ = budgets(source, parts, monkeypatch, devices=devices, directed=True)
    room = Room(least + 4000, None, NOTHING)
    for k, way in enumerate(WAYS[::2]):
        form = {"devices": devices, "internal_ids": k % 2 == 1, "room": room}
        driver = directed_driver(source, parts, **form, **way)
        assert driver._parts[0].part.into.tails is not None
        for root in roots_of(source):
            look(driver, source, root)
            check_records(source, root, look(driver, source, root, records=True))
        driver.close()


@by_parts(2, 4)
def test_many_searches_leave_nothing_behind(parts):
    source = made("kronecker-16")
    driver = directed_driver(source, parts, devices=devices_of(parts))
    for root in np.random.default_rng(3).integers(0, source.n, 100).tolist():
        look(driver, source, root)
    driver.close()
