"""Searches on one device or several that see a part of the graph."""

import numpy as np
import pytest
from device_graphs import HostGraph
from device_parts import LARGE, check, device_parts, driver_of
from fast_faults import Faults
from fast_graphs import HUGE, beside, roots_of, shuffled
from graphs import complete, grid, kronecker, some_roots, uniform
from masked_graphs import random_mask, random_way, see, see_between
from resident_parts import by_parts, devices_of, look, parts_here, resident_driver
from sessions import open_tuples

from distbfs import Graph, bfs
from distbfs.engines.cuda.xbfs.search import FastSearch
from distbfs.search.choose import Request

GRAPHS = {
    "kronecker": lambda: kronecker(14),
    "uniform": lambda: shuffled(beside(uniform(20_000, 400_000), complete(300))),
    "grid": lambda: shuffled(grid(120)),
}
WAYS = (
    *({}, {"direction": "push"}, {"direction": "pull"}),
    {"overrides": {"mark_edges": 0, "pull_edges": HUGE}},
    {"overrides": {"pull_edges": 0}},
)


@pytest.mark.parametrize("kept", [None, 9])
@pytest.mark.parametrize("name", ["kronecker", "uniform"])
def test_masks_in_every_way(name, kept):
    """kept: columns of a row on the device, where tails are in host memory."""
    look_through(name, kept, 0.5)


def test_clusters():
    look_through("grid", None, 0.9)


def look_through(name, kept, share):
    """Search a graph with masks of each kind, and again without."""
    made, faults = HostGraph(GRAPHS[name]()), Faults()
    if kept is not None:
        made.graph = made.split(kept)
    for seed in range(3):
        seen, left = random_mask(made, seed, share)
        wanted = left.source.degrees[made.vertices]
        np.testing.assert_array_equal(seen.ends.get(), wanted)
        for k, way in enumerate(WAYS):
            search = FastSearch(made.graph, in_ids=(k + seed) % 2 == 0, **way)
            search.see(seen)
            for root in roots_of(left):
                faults.look(left, search, root, f"{name}, mask {seed}", **way)
            search.see(None)
            faults.look(made, search, roots_of(made)[0], f"{name}, all", **way)
    faults.tell()


def test_a_graph_that_the_device_has_built():
    source = kronecker(17)
    graph = Graph.from_edges(source.u, source.v, source.n)
    root = int(source.degrees.argmax())
    vertices = np.random.default_rng(3).random(source.n) < 0.7
    vertices[root] = True
    edges = np.random.default_rng(4).random(len(graph.edges())) < 0.5
    for some in ({"vertices": vertices}, {"edges": edges, "vertices": vertices}):
        one, other = (bfs(graph, root, x, **some) for x in ("xbfs", "openmp"))
        np.testing.assert_array_equal(one.to_numpy()[0], other.to_numpy()[0])
        assert one.nedge == other.nedge


@by_parts(1, 2, 3, 4, 8)
@pytest.mark.parametrize("name", GRAPHS)
def test_domains(name, parts):
    """As many devices as there are, and one that is a domain of its own."""
    source, share = GRAPHS[name](), 0.9 if name == "grid" else 0.5
    for k, way in enumerate(WAYS):
        form = {"devices": devices_of(parts), "internal_ids": k % 2 == 1}
        driver = resident_driver(source, parts, **form, **way)
        make, left = random_way(source, k, share)
        see(driver, [one.part for one in driver._parts], make, left)
        for root in some_roots(left, 3):
            look(driver, left, root)
        look(driver, left, root, records=True)
        driver.see([None] * parts)
        look(driver, source, root)


@pytest.mark.parametrize("direction", ["auto", "push", "pull"])
@pytest.mark.parametrize("name", GRAPHS)
def test_between_domains(name, direction):
    source, share = GRAPHS[name](), 0.9 if name == "grid" else 0.5
    for seed, threshold in enumerate((0, 30, LARGE)):
        placed = device_parts(source, 2 + seed, threshold=threshold)
        driver = driver_of(placed, engine="xbfs", direction=direction)
        make, left = random_way(source, seed, share)
        see_between(driver, make, left)
        for root in some_roots(left, 3):
            check(driver, left, root)
        driver.see([None] * len(placed))
        check(driver, source, root)


@pytest.mark.alone
def test_sessions_of_several_devices():
    """Bits come from the edges in host memory."""
    source = kronecker(15)
    graph = Graph.from_edges(source.u, source.v, source.n)
    root = int(source.degrees.argmax())
    flags = np.random.default_rng(5).random(len(graph.edges())) < 0.5
    wanted = bfs(graph, root, "openmp", edges=flags)
    forms = [(Request(3, "parts", masked=True), {"threshold": 40})]
    most = parts_here()[-1]
    if most > 1:
        devices_of(most)
        forms.append((Request(domain=most, masked=True), {}))
    for request, form in forms:
        session = open_tuples(source, engine="xbfs", request=request, **form)
        with session:
            whole = session.search(root).nedge
            session.see(session.view(edges=flags))
            one = session.search(root)
            np.testing.assert_array_equal(one.to_numpy()[0], wanted.to_numpy()[0])
            assert one.nedge == wanted.nedge
            session.see(None)
            assert session.search(root).nedge == whole
