"""Engine ``xbfs`` on directed graphs, its kernels run on the CPU, against SciPy."""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from device_graphs import HostGraph
from directed_hosts import (
    SHAPES,
    Arcs,
    DirectedHost,
    any_arcs,
    masks_of,
    records_fault,
    ring,
    roots_of,
    seen_of,
    some_of,
    split_at_eight,
    star,
    turned,
)
from drawn_examples import examples
from fast_faults import Faults
from fast_graphs import HUGE, fault, untils, wanted_levels
from hypothesis import given
from hypothesis import strategies as st

from distbfs.build.cuda import seen as seen_edges
from distbfs.build.cuda.graph import build
from distbfs.build.cuda.room import Room
from distbfs.device import cuda
from distbfs.engines.base import Until
from distbfs.engines.cuda.xbfs.arrays import Arrays
from distbfs.engines.cuda.xbfs.search import FastSearch
from distbfs.graph.device_graph import AT_LEAST, FEW_OUT

MADE = {}
WAYS = {
    "plain": {},
    "push": {"direction": "push"},
    "pull": {"direction": "pull"},
    "parents": {"levels": False},
    "levels": {"parents": False},
    "mark": {"overrides": {"mark_edges": 0, "row_edges": 0, "pull_edges": HUGE}},
    "mark-rows": {"overrides": {"mark_edges": 0, "row_edges": HUGE}},
    "pull-at-once": {"overrides": {"pull_edges": 0, "tile": 8}},
    "pull-early": {"overrides": {"mark_edges": HUGE, "pull_edges": 50, "hub_words": 4}},
    "windows": {"overrides": {"window_words": 8, "pull_edges": 30}},
}
EACH_WAY = pytest.mark.parametrize("way", WAYS)
IN_IDS = pytest.mark.parametrize("in_ids", [True, False], ids=["ids", "numbers"])


def host(name, wide=False):
    """Return a graph of SHAPES; kept."""
    if (name, wide) not in MADE:
        MADE[name, wide] = DirectedHost(SHAPES[name](), wide)
    return MADE[name, wide]


def look(faults, made, search, root, name, **form):
    """Search, check, and count the levels."""
    form = {k: x for k, x in form.items() if k in ("levels", "parents", "until")}
    faults.look(made, search, root, name, **form)


@EACH_WAY
@IN_IDS
def test_directed_shapes(device, way, in_ids):
    device.multiprocessors = 3
    faults, options = Faults(), WAYS[way]
    for k, name in enumerate(SHAPES):
        made = host(name, wide=k % 4 == 3)
        search = FastSearch(made.graph, in_ids=in_ids, **options)
        for root in roots_of(made, 0):
            look(faults, made, search, root, f"{name}, {way}", **options)
    faults.tell()


@pytest.mark.parametrize("name", ["kronecker", "dead-ends", "acyclic", "star-out"])
def test_vertices_that_no_edge_enters_come_last(device, name):
    """All bounds hold, also when edges are reversed, and searches go either way."""
    made = host(name)
    graph, source = made.graph, made.source
    other = source.u != source.v
    out, into = (
        np.bincount(ends[other], minlength=source.n)[made.vertices]
        for ends in (source.u, source.v)
    )
    last = (into == 0) & (out <= FEW_OUT)
    assert bool(last.any()) == (name != "star-out")
    assert not last.all()
    assert (np.diff(last.astype(int)) >= 0).all()
    for k in range(1, AT_LEAST):
        some = np.flatnonzero(out + into >= k)
        assert graph.reversed().at_least[k] > some.max(initial=-1)
        some = some[~last[some]] if k <= FEW_OUT else some
        assert graph.at_least[k] > some.max(initial=-1)
    back, faults = DirectedHost(turned(source), graph=graph.reversed()), Faults()
    for way in ("plain", "pull", "pull-at-once", "windows"):
        search = FastSearch(back.graph, **WAYS[way])
        for root in roots_of(back, 0):
            faults.look(back, search, root, f"{name} reversed, {way}")
    faults.tell()


@pytest.mark.thorough
@pytest.mark.full_blocks
@pytest.mark.parametrize("way", ["plain", "mark", "pull-at-once"])
def test_full_blocks(device, way):
    faults = Faults()
    for name in ("kronecker", "dead-ends", "layers"):
        search = FastSearch(host(name).graph, **WAYS[way])
        for root in roots_of(host(name), 0):
            faults.look(host(name), search, root, f"{name}, {way}")
    faults.tell()


@IN_IDS
@pytest.mark.parametrize("way", ["plain", "push", "pull", "mark"])
def test_records(device, way, in_ids):
    faults = Faults()
    for k, name in enumerate(SHAPES):
        made = host(name, wide=k % 4 == 3)
        search = FastSearch(made.graph, in_ids=in_ids, **WAYS[way])
        for root in roots_of(made, 0):
            for records in (True, False):
                found = search.search(root, records=records)
                said = fault(made, root, found, in_ids=in_ids)
                said = said or (records and records_fault(made, root, found))
                if said:
                    faults.lines.append(f"{name}, {way}, root {root}: {said}")
    faults.tell()


@pytest.mark.thorough
@IN_IDS
@pytest.mark.parametrize("way", ["plain", "pull-early", "pull"])
@pytest.mark.parametrize(
    "name", ["kronecker", "dead-ends", "acyclic", "layers", "star-out", "ring"]
)
def test_ends_on_one_device(device, name, way, in_ids):
    """Depths, and targets that are reached or not."""
    faults, made = Faults(), host(name)
    search = FastSearch(made.graph, in_ids=in_ids, **WAYS[way])
    root = roots_of(made, 0)[0]
    for until in untils(wanted_levels(made, root), root):
        faults.look(made, search, root, name, until=until)
    faults.tell()


@IN_IDS
@pytest.mark.parametrize("way", ["plain", "push", "pull", "mark", "pull-early"])
def test_sets(device, way, in_ids):
    """Among them vertices with edges of one direction, or of none."""
    for name in ("kronecker", "dead-ends", "star-in", "star-out", "hubs", "one-arc"):
        made = host(name)
        search = FastSearch(made.graph, in_ids=in_ids, **WAYS[way])
        sinks = np.flatnonzero(made.source.degrees == 0)
        drawn = np.random.default_rng(5).integers(0, made.source.n, 9)
        for ids in (np.unique(roots_of(made, 3)), sinks[:5], np.unique(drawn)):
            found = search.search(ids)
            wanted = made.source.distances(ids)
            assert found.levels == wanted.max() + 1
            wanted = wanted if in_ids else wanted[made.vertices]
            np.testing.assert_array_equal(found.level.get(), wanted)


def test_last_levels_of_vertices_without_edges_out(device):
    """The last level may have no vertex with edges out."""
    for in_ids in (True, False):
        for source in (star(9), ring(5), Arcs(7, [0, 1, 2, 3], [1, 2, 3, 4])):
            made = DirectedHost(source)
            for root in range(source.n):
                for way in ({}, {"direction": "push"}):
                    search = FastSearch(made.graph, in_ids=in_ids, **way)
                    search._cluster = None
                    assert fault(made, root, search.search(root), in_ids=in_ids) is None


def test_vertices_without_edges_out(device):
    """As many of them as a warp has lanes would lie between two rows of a queue."""
    found = np.arange(1, 97)
    others, ends = found[found % 32 != 1], found[found % 32 == 1]
    before, after = [97, 98], np.arange(99, 105)
    u = [*np.zeros(96, int), *np.repeat(before, len(others)), *np.repeat(ends, 2)]
    v = [*found, *others, *others, *after]
    made = DirectedHost(Arcs(105, u, v))
    assert (made.vertices[3:99] == [*range(1, 97)]).all()  # of one class, by their ids
    for way in ({"direction": "push"}, {"overrides": {"mark_edges": HUGE}}):
        search = FastSearch(made.graph, **way)
        search._cluster = None
        assert fault(made, 0, search.search(0)) is None


def test_limits_of_pushes(device):
    """A frontier grows with edges out of what edges lead to."""
    made = host("hubs")
    params = Arrays(made.graph, in_ids=True, parents=True)
    out, into = made.source.degrees, made.source.entering
    assert params.mean_next == pytest.approx((out * into).sum() / made.m)
    assert host("star-out").graph.directed
    assert Arrays(host("star-out").graph, in_ids=True, parents=True).mean_next == 0


def test_clusters(device):
    for source in (ring(300), ring(400, 60), Arcs(9, range(8), range(1, 9))):
        made = DirectedHost(source)
        search = FastSearch(made.graph)
        assert search._cluster is not None
        for root in roots_of(made, 2):
            assert fault(made, root, search.search(root)) is None
        assert search._cluster is not None
    assert FastSearch(host("star-out").graph)._cluster is not None
    assert FastSearch(host("small-world").graph)._cluster is None
    assert FastSearch(DirectedHost(ring(1200, 3000)).graph)._cluster is None


def test_the_same_rows_as_a_symmetric_graph(device):
    """Edges of both directions are searched as those of one graph."""
    source = SHAPES["both-ways"]()
    made, other = host("both-ways"), HostGraph(source)
    for root in roots_of(made, 2):
        one = FastSearch(made.graph).search(root).level.get()
        two = FastSearch(other.graph).search(root).level.get()
        np.testing.assert_array_equal(one, two)


@cache
def reversed_host(name):
    source = SHAPES[name]()
    back = Arcs(source.n, source.v, source.u, size=1 << 20)
    return DirectedHost(back, graph=host(name).graph.reversed())


def test_reversed_graphs(device):
    faults = Faults()
    for name in ("kronecker", "layers", "dead-ends", "star-in"):
        made = reversed_host(name)
        for way in ({}, {"direction": "pull"}):
            search = FastSearch(made.graph, **way)
            for root in roots_of(made, 0):
                faults.look(made, search, root, name)
    faults.tell()


def rows_of(side):
    """Columns of each row, both pieces."""
    offsets, columns = side.offsets.get().astype(np.int64), side.columns.get()
    tails = side.tails
    rows = [columns[a:b] for a, b in pairwise(offsets)]
    if tails is not None:
        starts = tails.offsets.get().astype(np.int64)
        for k in range(tails.tailed):
            tail = tails.columns[starts[k] : starts[k + 1]]
            assert not len(tail) or len(rows[k]) == tails.kept
            rows[k] = np.concatenate([rows[k], tail])
    return rows


def both_rows(graph):
    """Columns of each row of edges out, then of edges in."""
    return [*rows_of(graph.out), *rows_of(graph.into)]


def split_graph(source, share, **options):
    """Return the graph of a device that has so much of what its columns take."""
    whole = build(source, directed=True)
    fixed = whole.nbytes - 8 * whole.m + 12 * whole.active + 3000
    room = Room(int(fixed + 8 * share * source.tuples), None, lambda *_: 0)
    return build(source, directed=True, room=room, **options)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["kronecker", "hubs", "layers"])
def test_rows_in_two_pieces(device, name):
    """Edges out and in, of which rows on the device keep as many columns."""
    made, kept = host(name), []
    for share in (0.35, 0.6, 0.9, 1.6):
        graph = split_graph(made.source, share, buffer_bytes=8000)
        assert graph.m == made.m
        assert (graph.out.tails is None) == (graph.into.tails is None)
        assert share <= 1 or graph.out.tails is None
        for row, wanted in zip(both_rows(graph), both_rows(made.graph), strict=True):
            np.testing.assert_array_equal(row, wanted)
        if graph.out.tails is not None:
            kept.append(graph.out.tails.kept)
            heads = int(graph.out.offsets[-1]) + int(graph.into.offsets[-1])
            assert graph.held_back == 2 * made.m - heads
    assert kept
    assert kept == sorted(kept)


@IN_IDS
@pytest.mark.parametrize("name", ["kronecker", "hubs", "hubs-turned", "uniform"])
def test_tails_in_host_memory(device, name, in_ids):
    device.multiprocessors = 3
    faults, made = Faults(), host(name)
    graph = split_at_eight(made.source)
    assert graph.into.tails is not None
    ways = ["plain", "push", "pull", "mark", "mark-rows", "pull-at-once", "pull-early"]
    for way in ways[in_ids::2]:
        search = FastSearch(graph, in_ids=in_ids, **WAYS[way])
        for root in roots_of(made, 0):
            faults.look(made, search, root, f"{name}, {way}")
            found = search.search(root, records=True)
            said = fault(made, root, found, in_ids=in_ids)
            if said := said or records_fault(made, root, found):
                faults.lines.append(f"{name}, {way}, root {root}: {said}")
    back = DirectedHost(turned(made.source), graph=graph.reversed())
    search = FastSearch(back.graph, in_ids=in_ids)
    for root in roots_of(back, 0):
        faults.look(back, search, root, f"{name}, turned")
    faults.tell()


@IN_IDS
@pytest.mark.parametrize("name", ["kronecker", "hubs", "hubs-turned", "uniform"])
def test_masks_in_host_memory(device, name, in_ids, monkeypatch):
    """Rows out and rows in have tails, whose bits are made a piece at a time."""
    device.multiprocessors = 3
    faults, made = Faults(), DirectedHost(host(name).source)
    made.graph = split_at_eight(made.source)
    monkeypatch.setattr(seen_edges, "SCRATCH", cuda.free_bytes() // 160)
    for seed in range(3):
        vertices, edges, left = masks_of(made.source, seed)
        seen = seen_of(made, vertices, edges, left)
        assert seen.tails is not None
        assert seen.incoming.tails is not None
        other = DirectedHost(left, graph=made.graph)
        for way in ("plain", "push", "pull", "mark", "pull-at-once", "pull-early"):
            search = FastSearch(made.graph, in_ids=in_ids, **WAYS[way])
            search.see(seen)
            for root in roots_of(other, 0):
                faults.look(other, search, root, f"{name}, {way}, {seed}")
            search.see(None)
            faults.look(made, search, roots_of(made, 0)[0], f"{name}, {way}, all")
    faults.tell()


@pytest.mark.parametrize("name", ["kronecker", "dead-ends", "hubs", "layers", "ring"])
@IN_IDS
def test_masks(device, name, in_ids):
    """Every way through rows of which some edges are seen, and again through all."""
    device.multiprocessors = 3
    faults, made = Faults(), host(name)
    ways = [x for x in WAYS if x not in ("levels", "parents", "windows")]
    for seed in range(3):
        vertices, edges, left = masks_of(made.source, seed)
        seen = seen_of(made, vertices, edges, left)
        other = DirectedHost(left, graph=made.graph)
        for k, way in enumerate(ways):
            if (k + seed) % 3:
                continue
            search = FastSearch(made.graph, in_ids=in_ids, **WAYS[way])
            search.see(seen)
            roots = roots_of(other, 0)
            for root in roots:
                faults.look(other, search, root, f"{name}, {way}, mask {seed}")
            found = search.search(roots[0], records=True)
            if said := fault(other, roots[0], found, in_ids=in_ids):
                faults.lines.append(f"{name}, {way}, mask {seed}, records: {said}")
            search.see(None)
            faults.look(made, search, roots[0], f"{name}, {way}, all")
    faults.tell()


@examples(40)
@given(data=st.data())
def test_any_directed_graph(device, data):
    made = DirectedHost(data.draw(any_arcs()))
    way = data.draw(st.sampled_from(sorted(WAYS)))
    in_ids = data.draw(st.booleans())
    options = WAYS[way]
    search = FastSearch(made.graph, in_ids=in_ids, **options)
    if data.draw(st.booleans()):
        search._cluster = None
    faults = Faults()
    for root in data.draw(some_of(made.source)):
        look(faults, made, search, root, way, **options)
        depth = data.draw(st.integers(0, 4))
        form = {k: x for k, x in options.items() if k in ("levels", "parents")}
        faults.look(made, search, root, way, until=Until(depth), **form)
    faults.tell()
