"""Directed graphs between domains of devices, which are the CPU, against SciPy."""

import gc

import numpy as np
import pytest
from covering import covered
from device_parts import LARGE
from directed_between import check_parts, directed_parts
from directed_hosts import (
    SHAPES,
    Arcs,
    any_arcs,
    arcs_of,
    ends_of,
    masks_of,
    some_of,
    turned,
)
from drawn_examples import examples
from graphs import kronecker
from hypothesis import given
from hypothesis import strategies as st
from masked_graphs import see_between
from part_graphs import SMALL
from resident_parts import NOTHING
from test_between_kernels import (
    EACH_WAY,
    each_pair,
    short_boxes,  # noqa: F401
    streamed,
)
from test_between_loop import looped
from test_sessions import CODE, SLACK, allocated
from test_split_between import budgets, shares_of
from worlds import on_ranks

from distbfs.build.cuda import chunks
from distbfs.build.cuda import keys as device_keys
from distbfs.build.cuda.room import Room
from distbfs.options import SearchOptions
from distbfs.ranks.world import SoloWorld
from distbfs.registry import ENGINES, lookup

SOURCES = {}
FEW = ["kronecker", "dead-ends", "layers", "hubs", "acyclic", "star-in"]


def source_of(name):
    """Return a graph of SHAPES; kept."""
    if name not in SOURCES:
        SOURCES[name] = SHAPES[name]()
    return SOURCES[name]


def look(source, sizes, threshold, **options):
    roots = options.pop("roots", None) or ends_of(source, 0)
    form = {"make": directed_parts, "roots": roots, "threshold": threshold}
    return streamed(source, sizes, **form, **options)


@each_pair("parts, threshold, name", [1, 2, 3], [0, 6, 40, LARGE], list(SHAPES))
def test_parts(device, id_bits, name, parts, threshold):
    """Each arc is there once, out and in, where the degrees of its ends say."""
    made = directed_parts(source_of(name), parts, threshold=threshold)
    check_parts(source_of(name), made)


@pytest.mark.thorough
@pytest.mark.parametrize("making", ["all", "share"])
def test_parts_made_in_passes(device, id_bits, monkeypatch, making):
    """By ranks, some rows at a time; and where subgraphs wait in host memory."""
    monkeypatch.setattr(device_keys, "SLACK", 100)
    monkeypatch.setattr(chunks, "CHUNK", 1777)
    source = source_of("kronecker" if making == "all" else "hubs")
    form = {"threshold": 12, "making": making, "buffer_bytes": 5000}

    def rank(world):
        return directed_parts(source, 4, world, **form)

    made = [part for some in on_ranks(2, rank) for part in some]
    check_parts(source, sorted(made, key=lambda part: part.index))
    monkeypatch.setattr(Room, "spills", lambda *_: True)
    room = Room(None, None, NOTHING)
    made = directed_parts(source, 3, room=room, **form)
    assert all(part.host_bytes for part in made)
    check_parts(source, made)


@pytest.mark.parametrize(
    ("direction", "domains", "name"),
    covered(
        ("auto", "push", "pull"),
        ((2, 6), (3, LARGE), (2, 0), (4, 40)),
        list(SHAPES),
    ),
)
def test_directed_shapes(device, name, domains, direction):
    count, threshold = domains
    look(source_of(name), (1,) * count, threshold, direction=direction)


@each_pair(
    "sizes, threshold, name",
    [(2, 2), (3,), (2, 1), (1, 3), (3, 2, 1)],
    [0, 6, LARGE],
    FEW,
)
def test_domains_of_several_devices(device, id_bits, name, sizes, threshold):
    look(source_of(name), sizes, threshold)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("way", "sizes", "threshold", "name"),
    covered(
        list(EACH_WAY),
        ((1, 1, 1), (2, 1)),
        (12, LARGE),
        FEW[:-1],
    ),
)
def test_each_way(device, way, sizes, threshold, name):
    look(source_of(name), sizes, threshold, overrides=EACH_WAY[way])


@pytest.mark.thorough
@each_pair(
    "sizes, threshold, name",
    *([(1, 1), (1, 1, 1), (2, 2), (1, 3), (3, 2)], [0, 8, LARGE], FEW),
)
def test_one_launch(device, id_bits, sizes, threshold, name):
    source = source_of(name)
    form = {"make": directed_parts, "roots": ends_of(source, 0)}
    looped(source, sizes, threshold=threshold, **form)


@pytest.mark.thorough
@pytest.mark.parametrize("sizes", [(1, 1), (2, 1), (1, 1, 1)])
@pytest.mark.parametrize(
    "name", ["kronecker", "dead-ends", "layers", "acyclic", "star-out"]
)
def test_ends_and_records(device, sizes, name):
    source = source_of(name)
    root = ends_of(source)[0]
    levels = source.distances(root)
    far = np.array([int(levels.argmax()), root])
    lone = np.flatnonzero(levels < 0)[:1]
    aims = [(1, None), (None, far), (2, far), (None, lone)]
    if not len(lone):
        aims.pop()
    for threshold in (6, LARGE):
        look(source, sizes, threshold, aims=aims, roots=[root])
    for direction, threshold in (("push", 40), ("pull", LARGE)):
        if name == "star-out":
            continue
        form = {"records": True, "direction": direction, "roots": [root]}
        look(source, sizes, threshold, **form)


@pytest.mark.parametrize("sizes", [(1, 1), (2, 1), (1, 1, 1)])
@pytest.mark.parametrize(
    "name", ["kronecker", "dead-ends", "star-in", "star-out", "hubs", "one-arc"]
)
def test_sets_of_roots(device, sizes, name):
    source = source_of(name)
    sinks = np.flatnonzero(source.degrees == 0)[:5]
    drawn = np.random.default_rng(5).integers(0, source.n, 9)
    sets = [np.unique(ends_of(source)), sinks, np.unique(drawn)]
    roots = [*(x for x in sets if len(x)), 0]
    for threshold in (0, 6, LARGE):
        look(source, sizes, threshold, roots=roots)


@pytest.mark.thorough
@each_pair(
    "short_boxes, sizes, direction, threshold, name",
    *((1, 3, 12), ((1, 1, 1), (2, 1)), ("auto", "push", "pull"), (5, LARGE)),
    ("kronecker", "random"),
)
def test_rounds(
    device,
    id_bits,
    short_boxes,  # noqa: F811
    sizes,
    direction,
    threshold,
    name,
):
    """Boxes have less room than levels need."""
    source = arcs_of(SMALL[name])
    form = {"direction": direction, "roots": ends_of(source, 1)[:3]}
    look(source, sizes, threshold, **form)


@pytest.mark.thorough
@pytest.mark.full_blocks
@pytest.mark.parametrize("sizes", [(1, 1), (2, 1)])
def test_full_blocks(device, sizes):
    for name in ("kronecker", "dead-ends", "layers"):
        look(source_of(name), sizes, 20, roots=ends_of(source_of(name))[:3])


@pytest.mark.parametrize("sizes", [(1, 1), (2, 1)])
@pytest.mark.parametrize("name", ["kronecker", "hubs", "hubs-turned", "uniform"])
def test_tails_in_host_memory(device, monkeypatch, sizes, name):
    """And outer edges of which nothing fits the devices."""
    source, some = source_of(name), 0
    for threshold, direction in ((12, "auto"), (LARGE, "push"), (LARGE, "pull")):
        placed = directed_parts(source, sum(sizes), threshold=threshold)
        least = budgets(placed, sizes, monkeypatch)[2] * sum(sizes)
        room = Room(least, None, NOTHING)
        for share in shares_of(placed, sizes, room):
            tails = share.out.tails, share.into.tails
            assert (tails[0] is None) == (tails[1] is None)
            some += tails[0] is not None
        form = {"direction": direction, "roots": ends_of(source)[:4], "room": room}
        look(source, sizes, threshold, **form)
        form["records"] = direction == "pull"
        look(source, sizes, threshold, **form)
        if max(sizes) == 1:
            del form["records"], form["roots"]
            looped(
                source,
                len(sizes),
                make=directed_parts,
                roots=ends_of(source)[:2],
                threshold=threshold,
                **form,
            )
    assert some


@pytest.mark.parametrize("name", ["kronecker", "dead-ends", "hubs", "layers", "ring"])
@pytest.mark.parametrize("sizes", [(1, 1), (2, 1)])
def test_masks(device, name, sizes):
    """Of vertices, and of pairs of ids; by levels, with records, and in one launch."""
    source = source_of(name)
    for seed, direction in enumerate(("auto", "push", "pull")):
        vertices, edges, left = masks_of(source, seed)
        pairs = [(left.u[k::2], left.v[k::2]) for k in (0, 1)]

        def make(maker, flags=vertices, all_edges=edges is None, pairs=pairs):
            return (
                maker.of_vertices(flags) if all_edges else maker.of_pairs(lambda: pairs)
            )

        def before(runner, world, make=make, left=left):
            see_between(runner, make, left, world)

        form = {"direction": direction, "before": before, "left": left}
        form["roots"] = ends_of(left)[:4]
        threshold = LARGE if seed % 2 else 8
        look(source, sizes, threshold, **form)
        if max(sizes) == 1:
            count, form["threshold"] = len(sizes), threshold
            looped(source, count, make=directed_parts, **form)
            del form["threshold"]
        if direction != "auto" and name == "kronecker":
            look(source, sizes, LARGE, records=True, **form)


@pytest.mark.thorough
@pytest.mark.parametrize("threshold", [6, LARGE])
def test_the_memory_of_searches_is_known(device, id_bits, threshold):
    """At least what there is, and little more."""
    source, parts, told = arcs_of(kronecker(12)), 3, []
    room = Room(None, None, lambda share: told.append(share) or 0)
    placed = directed_parts(source, parts, threshold=threshold)
    engine = lookup(ENGINES, "engine", "xbfs")(SearchOptions(engine="xbfs"))
    made = shares_of(placed, [1] * parts, room)
    gc.collect()
    before = allocated(device)
    searches = [engine.of_shares([share], SoloWorld()) for share in made]
    gc.collect()
    used = allocated(device) - before
    assert len(searches) == len(told) == parts
    assert all(share.directed for share in told)
    planned = sum(engine.search_bytes(share) - CODE for share in told)
    assert used <= planned <= 1.05 * used + 16_384 + parts * SLACK


@pytest.mark.thorough
def test_an_arc_turned_round(device):
    """Checks that pass for a graph fail for its arcs the other way."""
    source = source_of("acyclic")
    root = ends_of(source)[0]
    levels = source.distances(root)
    arc = int(np.flatnonzero((levels[source.u] == 0) & (levels[source.v] == 1))[0])
    u, v = source.u.copy(), source.v.copy()
    every = (u == u[arc]) & (v == v[arc])
    u[every], v[every] = v[every], u[every]
    other = Arcs(source.n, u, v)
    for threshold, sizes in ((0, (1, 1)), (12, (2, 1)), (LARGE, (1, 1))):
        look(source, sizes, threshold, roots=[root])
        for left in (other, turned(source)):
            with pytest.raises(AssertionError):
                look(source, sizes, threshold, roots=[root], left=left)
        look(other, sizes, threshold, roots=[root])


@examples(40)
@given(data=st.data())
def test_any_directed_graph(device, data):
    source = data.draw(any_arcs())
    sizes = data.draw(st.sampled_from([(1, 1), (2, 1), (1, 1, 1), (1, 2, 1), (3,)]))
    threshold = data.draw(st.sampled_from([0, 1, 3, 8, LARGE]))
    form = {"direction": data.draw(st.sampled_from(["auto", "push", "pull"]))}
    form["overrides"] = EACH_WAY[data.draw(st.sampled_from(sorted(EACH_WAY)))]
    depth = data.draw(st.integers(0, 4))
    aims = ((None, None), (depth, None))
    roots = data.draw(some_of(source))
    look(source, sizes, threshold, aims=aims, roots=roots, **form)
