"""Graphs whose rows have tails in host memory, on a device and on a domain."""

import numpy as np
import pytest
from bit_searches import BitSearches
from device_graphs import HostGraph
from device_parts import LARGE, check, driver_of
from fast_faults import Faults
from fast_graphs import HUGE, beside, roots_of
from graphs import complete, kronecker, some_roots, uniform
from resident_parts import (
    NOTHING,
    budgets,
    by_parts,
    device_searches,
    devices_of,
    look,
    parts_here,
    resident_driver,
    resident_parts,
)

from distbfs.build.cuda import keys
from distbfs.build.cuda.graph import build
from distbfs.build.cuda.parts import construct_on_devices
from distbfs.build.cuda.room import LEAST_KEPT, Fit, Room
from distbfs.engines.cuda.xbfs.search import FastSearch
from distbfs.errors import OutOfMemory
from distbfs.generate import cuda as device_tuples
from distbfs.multisearch.base import SUMS
from distbfs.multisearch.part_loop import Wanted
from distbfs.options import BuildOptions
from distbfs.partition.layout import Placement
from distbfs.ranks.world import SoloWorld

GRAPHS = {
    "kronecker": lambda: kronecker(13),
    "uniform": lambda: uniform(6000, 90_000),
    "blobs": lambda: beside(complete(300), uniform(3000, 9000)),
}
WAYS = (
    *({}, {"mark_edges": 0, "pull_edges": HUGE}, {"pull_edges": 0}),
    *({"mark_edges": HUGE, "pull_edges": HUGE}, {"pull_tails": 1}),
)


@pytest.mark.parametrize("share", [0, 0.3, 0.8])
@pytest.mark.parametrize("name", GRAPHS)
def test_searches_with_tails_in_host_memory(name, share):
    source = GRAPHS[name]()
    made = HostGraph(source)
    fixed = 8 * source.n + 12 * made.active + 4096
    least = fixed + 4 * np.minimum(made.degrees, 8).sum() * 1.2 + 8 * made.active
    limit = int(least + share * 4 * made.m)
    built = build(source, room=Room(limit, None, NOTHING))
    assert built.held_back or share
    split = made.split(8 + int(50 * share))
    faults = Faults()
    for graph, in_ids in ((built, True), (split, True), (split, False)):
        for way in WAYS:
            search = FastSearch(graph, in_ids=in_ids, overrides=way)
            for root in roots_of(made):
                for records in (False, graph is split):
                    faults.look(made, search, root, name, records=records)
    faults.tell()


def test_more_than_can_be_pinned_is_one_line():
    source = kronecker(13)
    with pytest.raises(OutOfMemory, match="tails of rows need"):
        build(source, room=Room(600_000, 10_000, NOTHING))


@by_parts(1, 2, 3, 4, 8)
@pytest.mark.parametrize("share", [0, 0.3, 0.8])
@pytest.mark.parametrize("name", GRAPHS)
def test_domains_with_tails_in_host_memory(monkeypatch, name, share, parts):
    source = GRAPHS[name]()
    told = {"devices": devices_of(parts)}
    least, every = budgets(source, parts, monkeypatch, **told)
    room = Room(int(least + share * (every - least)), None, NOTHING)
    for k, way in enumerate(WAYS):
        told |= {"overrides": way, "internal_ids": k % 2 == 1, "room": room}
        driver = resident_driver(source, parts, **told)
        held = sum(one.part.held_back for one in driver._parts)
        for root in some_roots(source, 4):
            records = look(driver, source, root, records=k % 2 == 0).records
            for record in records:
                assert record["tail_edges"] <= record["checks"]
        driver.close()
        assert held


@pytest.mark.parametrize("kept", [0, 8, 40])
@pytest.mark.parametrize("name", GRAPHS)
def test_many_searches_with_tails_in_host_memory(name, kept):
    source = GRAPHS[name]()
    graph = HostGraph(source).split(kept)
    roots = np.random.default_rng(kept).integers(0, source.n, 512)
    wanted = source.levels_from(roots)
    for width in (128, 256, 512):
        for pull_edges in (None, 1, HUGE):
            ways = {"width": width, "pull_edges": pull_edges}
            searches = BitSearches(graph, counts=True, sums=SUMS, **ways)
            for first, last, batch in searches.batches(roots):
                levels = batch.levels_by_id().get()
                np.testing.assert_array_equal(levels, wanted[first:last])
                read = batch.tail_counts()["tail_edges"]
                assert 0 < 4 * read <= batch.tail_counts()["tail_bytes"]
                assert read <= (batch.deepest + 1) * graph.held_back
            reached = searches.sum_by_id("reached_from")
            np.testing.assert_array_equal(reached, (wanted >= 0).sum(axis=0))


@pytest.mark.parametrize("name", GRAPHS)
def test_many_searches_of_domains_with_tails(monkeypatch, name):
    source = GRAPHS[name]()
    roots = np.random.default_rng(1).integers(0, source.n, 130)
    wanted = np.concatenate([source.distances(root) for root in roots.tolist()])
    rows, targets = np.divmod(np.arange(len(wanted)), source.n)
    for parts in parts_here():
        told = {"devices": devices_of(parts)}
        least, _ = budgets(source, parts, monkeypatch, **told)
        made, _ = resident_parts(source, parts, room=Room(least, None, NOTHING), **told)
        members = [*made]
        for pull_edges in (None, 1, HUGE):
            searches = device_searches(
                SoloWorld(), members, lanes=2, pull_edges=pull_edges
            )
            searches.run(roots, Wanted(levels=True))
            np.testing.assert_array_equal(searches.levels_at(rows, targets), wanted)
            assert searches.tail_counts()["tail_edges"] > 0
            searches.close()


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("name", GRAPHS)
def test_parts_with_tails_in_host_memory(monkeypatch, name, wide):
    """Subgraphs lie on the device while rows are made of them, or on the host."""
    monkeypatch.setattr(Fit, "most", lambda _: LEAST_KEPT)
    monkeypatch.setattr(keys, "SLACK", 100)
    if wide:
        monkeypatch.setattr(device_tuples, "NARROW", 1)  # ids of 64 bits
    source = GRAPHS[name]()
    places = ((2, 40, None), (3, 20, 1), (2, LARGE, 1))
    for at, (parts, threshold, limit) in enumerate(places):
        room = Room(limit, None, NOTHING)
        made, _ = construct_on_devices(
            *(source, SoloWorld(), Placement(parts, 1), BuildOptions(threshold)),
            buffer_bytes=5_000,
            room=room,
        )
        assert {part.host_bytes > 0 for part in made} == {limit is not None}
        for k, direction in enumerate(("auto", "push", "pull")):
            driver = driver_of(made, "xbfs", room, direction=direction)
            searches = driver._searches
            assert sum(one.part.held_back for one in searches)
            for field, value in WAYS[(at + k) % 3].items():  # each with each direction
                for one in searches:
                    setattr(one.own, field, value)
            for root in some_roots(source, 2):
                records = check(driver, source, root, records=True).records
                for record in records:
                    assert record["tail_edges"] <= record["checks"]["inner"]
            driver.close()
