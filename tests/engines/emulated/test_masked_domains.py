"""Searches by several devices that see a part of the graph, with kernels on the CPU."""

from itertools import product

import pytest
from device_parts import LARGE, check, device_parts, driver_of
from graphs import some_roots
from masked_graphs import random_way, see, see_between
from part_graphs import GRAPHS
from resident_parts import NOTHING, budgets, look, resident_driver
from test_between_kernels import streamed
from test_resident_kernels import OVERRIDES, SHAPES

from distbfs.build.cuda import seen as seen_edges
from distbfs.build.cuda.room import Room
from distbfs.generate import cuda as device_tuples

NAMES = ("kronecker", "two-blobs", "long-rows", "grid")


@pytest.mark.parametrize(
    ("parts", "name"), [*product([2, 4], NAMES[:-1]), (2, NAMES[-1])]
)
def test_one_domain(device, monkeypatch, name, parts):
    """In every way that levels go, and again without a mask."""
    if parts == 4:  # ids of 64 bits, and offsets
        monkeypatch.setattr(device_tuples, "NARROW", 1)
    source, ways = SHAPES[name](), list(OVERRIDES.values())
    for seed in {0, 1, 2} - {NAMES.index(name)}:
        turn = seed + parts + NAMES.index(name)
        internal, overrides = turn % 2 == 1, ways[turn % len(ways)]
        form = {"internal_ids": internal, "wide": parts == 4}
        driver = resident_driver(source, parts, overrides=overrides, **form)
        make, left = random_way(source, seed, 0.7 if name == "grid" else 0.5)
        see(driver, [one.part for one in driver._parts], make, left)
        roots = some_roots(left, 2)
        for root in roots:
            look(driver, left, root)
        look(driver, left, roots[0], records=True)
        driver.see([None] * parts)
        look(driver, source, roots[0])


@pytest.mark.thorough
@pytest.mark.parametrize("parts", [2, 3])
def test_one_domain_with_tails_in_host_memory(device, monkeypatch, parts):
    for k, name in enumerate(("kronecker", "long-rows")):
        source, ways = SHAPES[name](), list(OVERRIDES.values())
        room = Room(budgets(source, parts, monkeypatch)[0], None, NOTHING)
        for seed in {0, 1, 2} - {(parts + k) % 3}:
            overrides = ways[(seed + parts + k) % len(ways)]
            form = {"internal_ids": seed == 1, "overrides": overrides}
            driver = resident_driver(source, parts, room=room, **form)
            assert driver._parts[0].part.out.tails is not None
            make, left = random_way(source, seed)
            see(driver, [one.part for one in driver._parts], make, left)
            for root in some_roots(left, 2):
                look(driver, left, root)
            driver.see([None] * parts)
            look(driver, source, some_roots(left, 1)[0])
            driver.close()


@pytest.mark.parametrize("name", ["kronecker", "hub", "tree"])
@pytest.mark.parametrize("direction", ["auto", "push", "pull"])
def test_between_domains_of_one_device(device, monkeypatch, name, direction):
    """Delegates, and outer edges that are pushed and asked for."""
    monkeypatch.setattr(seen_edges, "KEYS", 700)
    if name in ("hub", "tree"):  # ids of 64 bits
        monkeypatch.setattr(device_tuples, "NARROW", 1)
    source = GRAPHS[name]
    turn = ("kronecker", "hub", "tree").index(name)
    turn += ("auto", "push", "pull").index(direction)
    for seed, threshold in enumerate((0, 5, LARGE)):
        if seed == turn % 3:  # seen by another graph, and another direction
            continue
        placed = device_parts(source, 2 + seed, threshold=threshold)
        driver = driver_of(placed, engine="xbfs", direction=direction)
        make, left = random_way(source, seed, 0.7)
        see_between(driver, make, left)
        roots = some_roots(left, 2)
        for root in roots:
            check(driver, left, root, records=root == roots[0])
        driver.see([None] * len(placed))
        check(driver, source, roots[0])


@pytest.mark.thorough
@pytest.mark.parametrize("direction", ["auto", "pull"])
@pytest.mark.parametrize("sizes", [(2, 2), (1, 2), (1, 1, 1, 1)])
def test_between_domains_on_streams(device, sizes, direction):
    """Ranks are threads; domains have one device or two, and delegates or none."""
    seed = (sum(sizes) + (direction == "pull")) % 2
    source, threshold = ((GRAPHS["hub"], 4), (GRAPHS["kronecker"], LARGE))[seed]
    make, left = random_way(source, 2 * seed + 1)

    def before(runner, world):
        see_between(runner, make, left, world)

    form = {"threshold": threshold, "direction": direction}
    streamed(source, sizes, before=before, left=left, **form)
