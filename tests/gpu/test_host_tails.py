"""Graphs whose rows have tails in host memory, on a device and on a domain."""

import numpy as np
import pytest
from device_graphs import HostGraph
from fast_faults import Faults
from fast_graphs import HUGE, beside, roots_of
from graphs import complete, kronecker, some_roots, uniform
from resident_parts import (
    NOTHING,
    budgets,
    devices_of,
    look,
    parts_here,
    resident_driver,
)

from distbfs.build.cuda.graph import build
from distbfs.build.cuda.room import Room
from distbfs.engines.cuda.xbfs.search import FastSearch
from distbfs.errors import OutOfMemory

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


@pytest.mark.parametrize("share", [0, 0.3, 0.8])
@pytest.mark.parametrize("name", GRAPHS)
def test_domains_with_tails_in_host_memory(monkeypatch, name, share):
    source = GRAPHS[name]()
    for parts in parts_here():
        told = {"devices": devices_of(parts)}
        least, every = budgets(source, parts, monkeypatch, **told)
        room = Room(int(least + share * (every - least)), None, NOTHING)
        for k, way in enumerate(WAYS):
            told |= {"overrides": way, "internal_ids": k % 2 == 1, "room": room}
            driver = resident_driver(source, parts, **told)
            held = sum(one.part.graph.held_back for one in driver._parts)
            for root in some_roots(source, 4):
                records = look(driver, source, root, records=k % 2 == 0).records
                for record in records:
                    assert record.extra["tail_edges"] <= record.checks
            driver.close()
            assert held
