"""Method ``fast``: levels against scipy, parents, records, in every setting."""

import numpy as np
import pytest
from device_graphs import HostGraph
from fast_faults import Faults
from fast_graphs import (
    HUGE,
    Proof,
    beside,
    binary_tree,
    bipartite,
    chained,
    circulant,
    fault,
    graphs,
    host,
    lone,
    path,
    roots_of,
    shuffled,
    star,
    untils,
    wanted_levels,
)
from graphs import (
    Tuples,
    complete,
    grid,
    kronecker,
    random_tuples,
    uniform,
)
from graphs import (
    sources as any_source,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from distbfs.engines.cuda.xbfs.search import FastSearch

NAMES = list(graphs())
SOME = [
    *("one-edge", "wide-star", "grid", "kronecker", "path-clique", "half-outside"),
    *("many-tiny", "blobs", "blobs-tail", "unreached-hubs"),
]
BOTH = [True, False]
IN_IDS = pytest.mark.parametrize("in_ids", BOTH, ids=["ids", "numbers"])
DIRECTION = pytest.mark.parametrize("direction", ["auto", "push", "pull"])
OVERRIDES = {
    "always-mark": {"mark_edges": 0, "pull_edges": HUGE},
    "mark-early": {"mark_edges": 50, "pull_edges": HUGE},
    "mark-late": {"mark_edges": 3000, "pull_edges": HUGE},
    "pull-at-once": {"pull_edges": 0},
    "pull-early": {"mark_edges": HUGE, "pull_edges": 50},
    "pull-late": {"mark_edges": HUGE, "pull_edges": 3000},
    "mark-then-pull": {"mark_edges": 20, "pull_edges": 400},
    "never-pull": {"mark_edges": HUGE, "pull_edges": HUGE},
    "tiles-of-4": {"tile": 4},
    "tiles-of-8": {"tile": 8},
    "no-hub-bits": {"hub_words": 0, "pull_edges": 30},
    "few-hub-bits": {"hub_words": 4, "mark_edges": 30, "tile": 8},
    "tiles-and-pulls": {"hub_words": 8, "pull_edges": 1, "tile": 8},
}


@pytest.mark.parametrize("wide", BOTH, ids=["u64", "u32"])
@DIRECTION
@pytest.mark.parametrize("parents", BOTH, ids=["parents", "levels"])
@IN_IDS
def test_every_combination(in_ids, parents, direction, wide):
    faults = Faults()
    options = {"parents": parents, "direction": direction}
    for name in SOME if wide else NAMES:
        made = host(name, wide)
        search = FastSearch(made.graph, in_ids=in_ids, **options)
        for root in roots_of(made):
            found = faults.look(made, search, root, name, wide=wide, **options)
            assert found.records == []
    faults.tell()


@pytest.mark.parametrize("named", OVERRIDES)
def test_thresholds_that_force_each_way(named):
    """Marking pushes, direct pulls, neither; tiles and hub bits of other sizes.

    Ids and numbers take turns, which are others for the next thresholds.
    """
    faults = Faults()
    first = list(OVERRIDES).index(named)
    for k, name in enumerate(NAMES, first):
        made, in_ids = host(name), k % 2 == 0
        search = FastSearch(made.graph, in_ids=in_ids, overrides=OVERRIDES[named])
        for root in roots_of(made):
            faults.look(made, search, root, name, overrides=named)
    faults.tell()


@pytest.mark.parametrize("wide", BOTH, ids=["u64", "u32"])
@DIRECTION
def test_records_are_the_histogram_of_levels(direction, wide):
    faults = Faults()
    for k, name in enumerate(SOME if wide else NAMES, len(direction)):
        made, in_ids = host(name, wide), k % 2 == 0
        search = FastSearch(made.graph, in_ids=in_ids, direction=direction)
        for root in roots_of(made, 3):
            for records in (True, False):  # between others
                faults.look(
                    made, search, root, name, records=records, direction=direction
                )
    faults.tell()


@pytest.mark.parametrize("named", OVERRIDES)
def test_records_of_forced_ways(named):
    faults = Faults()
    for k, name in enumerate(NAMES, list(OVERRIDES).index(named)):
        made, in_ids = host(name), k % 2 == 0
        search = FastSearch(made.graph, in_ids=in_ids, overrides=OVERRIDES[named])
        for root in roots_of(made, 2):
            faults.look(made, search, root, name, records=True, overrides=named)
    faults.tell()


def test_comes_through_every_way():
    """The graphs above are tests of all of them."""
    seen = set()
    for overrides in OVERRIDES.values():
        for name in ("blobs", "blobs-tail", "kronecker", "two-big", "grid-clique"):
            made = host(name)
            search = FastSearch(made.graph, overrides=overrides)
            for root in roots_of(made, 3):
                records = search.search(root, records=True).records
                seen |= {r.direction for r in records}
    assert seen >= {"push-block", "push", "push-marking", "pull"}


@DIRECTION
@IN_IDS
def test_number_of_levels(in_ids, direction):
    """It is the largest level and one, whatever the last level was found by."""
    wrong = []
    for name in NAMES:
        made = host(name)
        search = FastSearch(made.graph, in_ids=in_ids, direction=direction)
        for root in roots_of(made, 3):
            levels, wanted = search.search(root).levels, wanted_levels(made, root).max()
            if levels != wanted + 1:
                wrong.append(f"{name}, root {root}: {levels}, not {wanted + 1}")
    assert not wrong, f"{len(wrong)}: {wrong[:5]}"


SIZES = [1, 2, 31, 32, 33, 63, 64, 65, 255, 256, 257, 511, 1023, 1024, 1025, 4097]


@IN_IDS
@DIRECTION
def test_sizes_at_the_borders_of_words_and_tiles(direction, in_ids):
    faults = Faults()
    for n in SIZES:
        shapes = {
            "path": path(n),
            "random": random_tuples(n, 3 * n + 5, seed=n),
            "star": star(n - 1),
            "ring": circulant(n, min(6, n - 1)) if n > 2 else lone(n),
            "complete": complete(min(n, 257)),
        }
        for shape, source in shapes.items():
            made = HostGraph(source)
            for tile in (4, 8):
                search = FastSearch(
                    made.graph,
                    in_ids=in_ids,
                    direction=direction,
                    overrides={"tile": tile},
                )
                for root in roots_of(made, 1):
                    told = {"n": n, "tile": tile, "direction": direction}
                    faults.look(made, search, root, shape, **told)
    faults.tell()


@DIRECTION
@IN_IDS
def test_bits_past_the_last_vertex_are_no_vertices(in_ids, direction):
    """Bitmaps end at 256 vertices, these graphs at 32 … 224 beyond."""
    faults = Faults()
    for n in (32, 64, 96, 128, 160, 192, 224, 256, 288, 1056):
        tails = [path(n - 32)] if n > 32 else []
        made = HostGraph(chained(star(31), *tails))  # 32 vertices, then one a level
        search = FastSearch(made.graph, in_ids=in_ids, direction=direction)
        for root in (0, 31, n - 1):
            for records in BOTH:
                told = {"records": records, "direction": direction}
                faults.look(made, search, root, f"n {n}", **told)
    faults.tell()


@pytest.mark.parametrize("ways", ["mark-early", "pull-early"])
@IN_IDS
def test_results_pass_one_byte_at_any_step(in_ids, ways):
    """Level 254 is reached by pushes, by the pulls in between, or by what follows."""
    faults = Faults()
    for length in range(246, 258):
        for core, clique in (("far", 5), ("tail", 40), ("gather", 300)):
            end = [path(9)] if core == "far" else [path(9), complete(30), path(4)]
            source = chained(path(length), complete(60), *end)
            made = HostGraph(shuffled(beside(source, complete(clique))))
            search = FastSearch(made.graph, in_ids=in_ids, overrides=OVERRIDES[ways])
            degrees = made.source.degrees
            leaves = np.flatnonzero(degrees == 1)
            for root in leaves[:2].tolist():
                told = {"core": core, "ways": ways}
                faults.look(made, search, root, f"length {length}", **told)
    faults.tell()


@IN_IDS
def test_late_pushes_grow_again(in_ids):
    """A frontier too large for one block after results were written."""
    faults = Faults()
    for between in (1, 2, 20, 270):
        for far in (path(3), path(260)):
            source = chained(complete(150), path(between), complete(400), far)
            made = HostGraph(shuffled(source))
            search = FastSearch(made.graph, in_ids=in_ids)
            for root in roots_of(made, 6):
                faults.look(made, search, root, f"{between} between")
    faults.tell()


LARGE = {
    "star": lambda: star(100_000),
    "path": lambda: path(70_001),
    "path-clique": lambda: beside(shuffled(path(70_001)), complete(120)),
    "grid-clique": lambda: beside(shuffled(grid(300)), complete(300)),
    "tree-clique": lambda: beside(shuffled(binary_tree((1 << 17) - 1)), complete(150)),
    "complete": lambda: complete(1500),
    "bipartite": lambda: shuffled(bipartite(40, 20_000)),
    "regular-32": lambda: shuffled(circulant(50_000, 32)),
    "uniform-32": lambda: uniform(60_000, 960_000),
    "uniform-4": lambda: uniform(200_000, 400_000),
    "half-outside": lambda: shuffled(
        beside(uniform(150_000, 900_000), uniform(150_000, 300_000, seed=7))
    ),
    "many-pairs": lambda: shuffled(
        beside(
            kronecker(13),
            Tuples(200_000, range(0, 200_000, 2), range(1, 200_000, 2), size=1 << 20),
        )
    ),
    "hub-beside": lambda: beside(star(6000), kronecker(12), star(70_000), path(50)),
    **{f"kronecker-{k}": lambda k=k: kronecker(k) for k in (8, 9, 10, 12, 13, 14, 15)},
}


@pytest.mark.parametrize("name", LARGE)
def test_larger_graphs(name):
    made, faults = HostGraph(LARGE[name]()), Faults()
    long = name.startswith("path")
    roots = [0, made.source.n // 2] if long else roots_of(made, 3)
    for in_ids in BOTH:
        for direction in ("auto", "push", "pull"):
            search = FastSearch(made.graph, in_ids=in_ids, direction=direction)
            for root in roots[:1] if long and direction != "auto" else roots:
                faults.look(made, search, root, name, direction=direction)
        for ways in () if long else ("mark-early", "pull-late", "few-hub-bits"):
            search = FastSearch(made.graph, in_ids=in_ids, overrides=OVERRIDES[ways])
            for root in roots:
                faults.look(made, search, root, name, overrides=ways)
        search = FastSearch(made.graph, in_ids=in_ids, parents=False)
        faults.look(made, search, roots[0], name, parents=False)
    if not long:
        search = FastSearch(made.graph)
        for root in roots[:2]:
            faults.look(made, search, root, name, records=True)
    faults.tell()


@pytest.mark.parametrize("ways", ["always-mark", "pull-early", "never-pull"])
@IN_IDS
def test_searches_end_after_a_level_or_with_targets(in_ids, ways):
    faults = Faults()
    for name in SOME:
        made = host(name)
        for told in ({}, {"overrides": OVERRIDES[ways]}):
            search = FastSearch(made.graph, in_ids=in_ids, **told)
            for root in roots_of(made, 2):
                for until in untils(wanted_levels(made, root), root):
                    faults.look(made, search, root, name, until=until)
                faults.look(made, search, root, name)
    faults.tell()


def test_scale_16():
    made, faults = HostGraph(kronecker(16)), Faults()
    proof = Proof(made)
    roots = made.vertices[
        np.random.default_rng(2).integers(0, made.active, 20)
    ].tolist()
    for in_ids in BOTH:
        for options in (
            {},
            {"direction": "push"},
            {"direction": "pull"},
            {"overrides": {"hub_words": 0}},
            {"overrides": {"mark_edges": HUGE}},
            {"overrides": {"tile": 8}},
            {"overrides": {"tile": 4, "pull_edges": 1}},
        ):
            search = FastSearch(made.graph, in_ids=in_ids, **options)
            for root in roots:
                said = proof.fault(root, search.search(root), in_ids=in_ids)
                if said:
                    faults.lines.append(f"root {root}, {in_ids=}, {options}: {said}")
    search = FastSearch(made.graph)
    faults.look(made, search, roots[0], "scale 16", records=True)
    faults.tell()


def test_rows_at_the_border_of_the_hubs():
    """Degrees around those from which rows are cut by destination."""
    faults = Faults()
    for degree in (500, 511, 512, 513, 700):
        source = beside(star(degree), star(degree + 1), complete(degree // 4))
        u, v = np.append(source.u, 0), np.append(source.v, degree + 1)
        made = HostGraph(shuffled(Tuples(source.n, u, v, size=1 << 20)))
        for ways, overrides in OVERRIDES.items():
            search = FastSearch(made.graph, overrides=overrides)
            for root in roots_of(made, 2):
                faults.look(made, search, root, f"degree {degree}", overrides=ways)
    faults.tell()


def test_leftovers_of_every_number():
    """Lists for the tail of any length, from none to more than they hold."""
    faults = Faults()
    for left in (0, 1, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 400):
        tails = [path(3)] * (left // 3)
        source = beside(kronecker(9), *tails, lone(3))
        joined = chained(kronecker(9), path(4), complete(max(left, 1)))
        for made in (HostGraph(source), HostGraph(shuffled(joined))):
            for in_ids in BOTH:
                search = FastSearch(made.graph, in_ids=in_ids)
                for root in roots_of(made, 3):
                    faults.look(made, search, root, f"{left} left", in_ids=in_ids)
    faults.tell()


def test_records_leave_searches_right():
    for name in ("kronecker", "blobs", "path-clique"):
        made = host(name)
        search = FastSearch(made.graph)
        for root in roots_of(made, 2):
            recorded = search.search(root, records=True)
            assert recorded.records
            assert all(record.seconds >= 0 for record in recorded.records)
            assert fault(made, root, recorded) is None
            assert fault(made, root, search.search(root)) is None


thresholds = st.sampled_from([None, 0, 1, 7, 60, 900, HUGE])


@st.composite
def made_sources(draw):
    """Small sources drawn whole, or larger ones from a seed, joined or not."""
    if draw(st.booleans()):
        return draw(any_source(max_n=150, max_tuples=300))
    n, seed = draw(st.integers(2, 3000)), draw(st.integers(0, 1 << 20))
    count = draw(st.integers(4, 5 * n))
    some = [random_tuples(n, count, seed)]
    if draw(st.booleans()):
        some.append(path(draw(st.integers(1, 300))))
    if draw(st.booleans()):
        some.append(complete(draw(st.integers(2, 90))))
    join = draw(st.sampled_from([beside, chained]))
    return shuffled(join(*some), seed)


@settings(max_examples=150, deadline=None)
@given(
    made_sources(),
    st.fixed_dictionaries(
        {
            "in_ids": st.booleans(),
            "parents": st.booleans(),
            "direction": st.sampled_from(["auto", "auto", "push", "pull"]),
        }
    ),
    st.fixed_dictionaries(
        {
            "mark_edges": thresholds,
            "pull_edges": thresholds,
            "tile": st.sampled_from([None, 4, 8]),
            "hub_words": st.sampled_from([None, 0, 4, 8]),
        }
    ),
    st.booleans(),
    st.integers(0, 1 << 30),
)
def test_any_graph_in_any_setting(source, options, forced, wide, seed):
    made, faults = HostGraph(source, wide), Faults()
    overrides = {key: value for key, value in forced.items() if value is not None}
    search = FastSearch(made.graph, overrides=overrides, **options)
    told = {**options, "overrides": overrides, "wide": wide}
    told.pop("in_ids")
    hub = int(source.degrees.argmax())
    for root, records in ((seed % source.n, False), (hub, True), (hub, False)):
        faults.look(made, search, root, repr(source)[:200], records=records, **told)
    faults.tell()
