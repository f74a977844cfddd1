"""Searches on a device that see a part of the graph; kernels are run on the CPU."""

import numpy as np
import pytest
from device_graphs import HostGraph
from fast_faults import Faults
from fast_graphs import (
    HUGE,
    beside,
    binary_tree,
    chained,
    fault,
    long_rows,
    path,
    roots_of,
    shuffled,
    star,
    wanted_levels,
)
from graphs import complete, grid, kronecker, uniform
from masked_graphs import random_mask

from distbfs.build.cuda import seen as seen_edges
from distbfs.engines.cuda.xbfs.search import FastSearch

SHAPES = {
    "kronecker": lambda: kronecker(10),
    "uniform": lambda: shuffled(beside(uniform(1200, 9000), complete(40))),
    "long-rows": lambda: shuffled(long_rows()),
    "blobs": lambda: chained(complete(120), path(9), kronecker(8), complete(90)),
    "star": lambda: beside(star(700), complete(40)),
}
WAYS = (
    *({}, {"direction": "push"}, {"direction": "pull"}),
    *(
        {"overrides": x}
        for x in (
            {"mark_edges": 0, "pull_edges": HUGE},
            {"mark_edges": 20, "pull_edges": 400, "tile": 8},
            {"pull_edges": 0, "tile": 4},
        )
    ),
)
MADE = {}


def host(name):
    """Return a graph of SHAPES; kept."""
    if name not in MADE:
        MADE[name] = HostGraph(SHAPES[name]())
    return MADE[name]


def ends_fault(made, seen, left):
    """Return what is wrong with the edges that are seen at each vertex, or None."""
    wanted = left.source.degrees[made.vertices]
    if np.array_equal(seen.ends.get(), wanted):
        return None
    return f"{(seen.ends.get() != wanted).sum()} vertices with wrong ends"


def look_through(faults, made, graph, seed, ways, kept=""):
    """Search a graph with and without a mask, in some ways."""
    name = f"mask {seed}, {kept}"
    whole, made = made, made if graph is made.graph else with_graph(made, graph)
    seen, left = random_mask(made, seed)
    if said := ends_fault(made, seen, left):
        faults.lines.append(f"{name}: {said}")
    for k, way in enumerate(ways):
        in_ids = (k + seed) % 2 == 0
        search = FastSearch(graph, in_ids=in_ids, **way)
        search.see(seen)
        roots = roots_of(left, 1)
        for root in roots:
            faults.look(left, search, root, name, **way)
        found = search.search(roots[0], records=True)
        if said := fault(left, roots[0], found, in_ids=in_ids):
            faults.lines.append(f"{name}, records, {way}: {said}")
        told = [x.found for x in found.records if x.found]
        level = wanted_levels(left, roots[0])
        assert told == np.bincount(level[level >= 0])[1:].tolist()
        search.see(None)
        faults.look(whole, search, roots[0], f"{name}, again without", **way)


def with_graph(made, graph):
    """Return the same rows in another graph of the device."""
    other = HostGraph.__new__(HostGraph)
    vars(other).update(vars(made), graph=graph)
    return other


@pytest.mark.parametrize("name", SHAPES)
def test_masks_in_every_way(device, name):
    device.multiprocessors = 3
    faults = Faults()
    for seed in range(3):
        look_through(faults, host(name), host(name).graph, seed, WAYS[seed % 2 :: 2])
    faults.tell()


@pytest.mark.parametrize("kept", [8, 40])
def test_tails_in_host_memory(device, monkeypatch, kept):
    """Bits of tails are made in pieces, as a device that is full makes them."""
    device.multiprocessors = 3
    monkeypatch.setattr(seen_edges, "SCRATCH", (1 << 40) // (4 * 201))
    monkeypatch.setattr(seen_edges, "KEYS", 3000)
    faults = Faults()
    ways = [*WAYS, {"overrides": {"pull_tails": 1}}]
    for k, name in enumerate(("kronecker", "long-rows", "star")):
        graph = host(name).split(kept)
        assert graph.held_back
        for seed in range(3):
            if (seed + k) % 2 == (kept == 40):  # done where other tails are kept
                continue
            some = ways[(seed + k) % 3 :: 3]
            look_through(faults, host(name), graph, seed, some, f"{kept} kept")
    faults.tell()


def test_clusters(device):
    for source in (shuffled(grid(11)), binary_tree(500), path(25)):
        made = HostGraph(source)
        search = FastSearch(made.graph)
        for seed in range(3):
            seen, left = random_mask(made, seed, 0.85)
            search.see(seen)
            for root in roots_of(left, 1):
                assert fault(left, root, search.search(root)) is None
            search.see(None)
            assert fault(made, 0, search.search(0)) is None
            assert search._cluster is not None
