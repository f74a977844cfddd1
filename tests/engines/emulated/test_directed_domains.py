"""Directed graphs in domains of several devices, which are the CPU, against SciPy."""

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
from directed_hosts import (
    SHAPES,
    Arcs,
    any_arcs,
    ends_of,
    ring,
    some_of,
    star,
    turned,
)
from drawn_examples import examples
from fast_graphs import HUGE, untils
from hypothesis import given
from hypothesis import strategies as st
from resident_parts import NOTHING, budgets, resident_parts
from worlds import on_ranks

from distbfs.build.cuda import chunks
from distbfs.build.cuda import keys as device_keys
from distbfs.build.cuda.room import Room
from distbfs.engines.base import Until

WAYS = {
    "plain": {},
    "push": {"direction": "push"},
    "pull": {"direction": "pull"},
    "parents": {"levels": False},
    "levels": {"parents": False},
    "mark": {"overrides": {"mark_edges": 0, "pull_edges": HUGE}},
    "mark-early": {"overrides": {"mark_edges": 50, "pull_edges": HUGE, "tile": 8}},
    "pull-at-once": {"overrides": {"pull_edges": 0}},
    "pull-early": {"overrides": {"mark_edges": HUGE, "pull_edges": 50, "hub_words": 4}},
    "never-pull": {"overrides": {"mark_edges": HUGE, "pull_edges": HUGE}},
}
INTERNAL = pytest.mark.parametrize("internal", [True, False], ids=["internal", "ids"])
SOURCES = {}


def source_of(name):
    """Return a graph of SHAPES; kept."""
    if name not in SOURCES:
        SOURCES[name] = SHAPES[name]()
    return SOURCES[name]


def roots_of(source, count=0):
    return ends_of(source, count)


@pytest.mark.parametrize("way", WAYS)
@INTERNAL
def test_directed_shapes(device, way, internal):
    """And again with records, which a form of its own counts."""
    turn = list(WAYS).index(way)
    for k, name in [*enumerate(SHAPES)][(turn + internal) % 2 :: 2]:
        source, parts = source_of(name), (2, 3, 2, 4, 1)[(k + turn) % 5]
        driver = directed_driver(source, parts, internal_ids=internal, **WAYS[way])
        roots = roots_of(source)
        for root in roots:
            look(driver, source, root)
        if "levels" in WAYS[way]:
            continue
        check_records(source, roots[0], look(driver, source, roots[0], records=True))
        look(driver, source, roots[-1])
        driver.close()


@pytest.mark.thorough
@pytest.mark.full_blocks
@pytest.mark.parametrize("way", ["plain", "mark", "pull-at-once"])
def test_full_blocks(device, way):
    for name in ("kronecker", "dead-ends", "layers"):
        driver = directed_driver(source_of(name), 2, **WAYS[way])
        for root in roots_of(source_of(name)):
            look(driver, source_of(name), root)


@pytest.mark.thorough
@pytest.mark.parametrize("parts", [1, 2, 3, 4])
def test_rows_of_both_directions(device, id_bits, monkeypatch, parts):
    """One pass or several, and ranks that make a share each."""
    names = list(SHAPES)[parts % 4 :: 4]
    for source in map(source_of, names):
        check_rows(source, resident_parts(source, parts, directed=True)[0])
    monkeypatch.setattr(device_keys, "SLACK", 100)
    monkeypatch.setattr(chunks, "CHUNK", 1777)
    source = source_of("kronecker")
    for making in ("all", "share"):
        form = {"directed": True, "buffer_bytes": 5000, "making": making}

        def rank(world, form=form):
            return resident_parts(source, parts * 2, world, **form)[0]

        made = [part for some in on_ranks(2, rank) for part in some]
        check_rows(source, sorted(made, key=lambda part: part.index))


@pytest.mark.thorough
@INTERNAL
@pytest.mark.parametrize("parts", [2, 3, 4])
@pytest.mark.parametrize("way", ["plain", "pull-at-once", "pull"])
@pytest.mark.parametrize(
    "name", ["kronecker", "dead-ends", "acyclic", "layers", "star-out", "ring"]
)
def test_ends_of_searches(device, name, way, parts, internal):
    """Depths, and targets that are reached or not."""
    source = source_of(name)
    driver = directed_driver(source, parts, internal_ids=internal, **WAYS[way])
    root = roots_of(source)[0]
    for until in untils(source.distances(root), root):
        look(driver, source, root, until=until)


@INTERNAL
@pytest.mark.parametrize("way", ["plain", "push", "pull", "mark", "pull-early"])
def test_sets(device, way, internal):
    """Among them vertices with edges of one direction, or of none."""
    names = ("kronecker", "dead-ends", "star-in", "star-out", "hubs", "one-arc")
    for k, name in enumerate(names):
        source = source_of(name)
        form = {"internal_ids": internal, **WAYS[way]}
        driver = directed_driver(source, 2 + k % 3, **form)
        sinks = np.flatnonzero(source.degrees == 0)[:5]
        drawn = np.random.default_rng(5).integers(0, source.n, 9)
        for ids in (np.unique(roots_of(source, 3)), sinks, np.unique(drawn)):
            look_from_set(driver, source, ids)
        look(driver, source, roots_of(source)[0])


@pytest.mark.thorough
@INTERNAL
def test_levels_of_vertices_without_edges_out(device, internal):
    """The last level may have no vertex with edges out, on any device or on all."""
    shapes = (star(9), ring(5), Arcs(7, [0, 1, 2, 3], [1, 2, 3, 4]))
    wide = Arcs(9001, [0] * 9000, range(1, 9001))  # more than one block pushes
    for source in (*shapes, wide):
        for way in ("plain", "push", "never-pull"):
            form = {"internal_ids": internal, **WAYS[way]}
            driver = directed_driver(source, 2, **form)
            for root in range(min(source.n, 10)):
                look(driver, source, root)


@pytest.mark.thorough
@INTERNAL
def test_many_levels(device, internal):
    """Levels that need more than a byte, of which the last ones lead nowhere."""
    for length in (125, 126, 127, 128, 270):
        chain = np.arange(length)
        u, v = [*chain, length, length], [*(chain + 1), length + 1, length + 2]
        source = Arcs(length + 3, u, v)
        driver = directed_driver(source, 2, internal_ids=internal)
        look(driver, source, 0)
        look(driver, source, length)


@pytest.mark.thorough
def test_what_was_found_before_is_no_component(device):
    """Half of the vertices may be reached from here, and others from there."""
    source = source_of("acyclic")
    for parts in (2, 3):
        for way in ("plain", "pull", "pull-early"):
            driver = directed_driver(source, parts, **WAYS[way])
            for root in range(0, source.n, 89):
                look(driver, source, root)


def test_an_arc_turned_round(device):
    """Checks that pass for a graph fail for its arcs the other way."""
    source = source_of("acyclic")
    driver, root = directed_driver(source, 2), roots_of(source)[0]
    look(driver, source, root)
    with pytest.raises(AssertionError):
        look(driver, turned(source), root)
    found = source.distances(root)
    arc = int(np.flatnonzero((found[source.u] == 0) & (found[source.v] == 1))[0])
    u, v = source.u.copy(), source.v.copy()
    every = (u == u[arc]) & (v == v[arc])
    u[every], v[every] = v[every], u[every]
    other = Arcs(source.n, u, v)
    with pytest.raises(AssertionError):
        look(driver, other, root)
    look(directed_driver(other, 2), other, root)


def test_the_same_as_a_symmetric_graph(device):
    source = source_of("both-ways")
    for root in roots_of(source):
        look(directed_driver(source, 3), source, root)


@pytest.mark.parametrize("name", ["kronecker", "dead-ends", "hubs", "layers", "ring"])
@INTERNAL
def test_masks(device, name, internal):
    """Every way through rows of which some edges are seen, and again through all."""
    source, ways = source_of(name), [x for x in WAYS if x not in ("levels", "parents")]
    for seed in range(3):
        for k, way in enumerate(ways):
            if (k + seed + internal) % 6:
                continue
            form = {"internal_ids": internal, **WAYS[way]}
            driver = directed_driver(source, 2 + seed % 3, **form)
            left = mask(driver, source, seed)
            roots = roots_of(left)
            for root in roots:
                look(driver, left, root)
            look(driver, left, roots[0], records=True)
            look_from_set(driver, left, np.unique(roots))
            driver.see([None] * len(driver._parts))
            look(driver, source, roots[0])
            driver.close()


@INTERNAL
@pytest.mark.parametrize("name", ["kronecker", "hubs", "hubs-turned", "uniform"])
def test_tails_in_host_memory(device, monkeypatch, name, internal):
    source = source_of(name)
    for parts in (2, 3):
        limits = budgets(source, parts, monkeypatch, directed=True)
        for k, way in enumerate(("plain", "push", "pull", "mark", "pull-early")):
            if (k + parts + internal) % 2:
                continue
            room = Room(limits[0] + k * 1000, None, NOTHING)
            form = {"internal_ids": internal, **WAYS[way]}
            driver = directed_driver(source, parts, room=room, **form)
            for one in driver._parts:
                assert one.part.out.tails is not None
                assert one.part.into.tails is not None
            roots = roots_of(source)
            for root in roots:
                look(driver, source, root)
            found = look(driver, source, roots[0], records=True)
            check_records(source, roots[0], found)
            driver.close()
    whole = directed_driver(source, 2, room=Room(None, None, NOTHING))
    assert whole._parts[0].part.out.tails is None


@examples(40)
@given(data=st.data())
def test_any_directed_graph(device, data):
    source = data.draw(any_arcs())
    way = WAYS[data.draw(st.sampled_from(sorted(WAYS)))]
    form = {"internal_ids": data.draw(st.booleans()), **way}
    driver = directed_driver(source, data.draw(st.integers(1, 4)), **form)
    for root in data.draw(some_of(source)):
        look(driver, source, root)
        if "levels" not in way:
            depth = data.draw(st.integers(0, 4))
            look(driver, source, root, until=Until(depth))
    driver.close()
