"""Method ``fast`` with its kernels run on the CPU: levels against scipy, and parents.

FastSearch is the real one; cuda_on_cpu.hpp runs what it launches.
"""

from functools import cache
from itertools import product

import numpy as np
import pytest
from device_graphs import HostGraph, hubs
from fast_faults import Faults
from fast_graphs import (
    HUGE,
    beside,
    binary_tree,
    bipartite,
    chained,
    circulant,
    fault,
    lone,
    long_rows,
    pairs,
    path,
    roots_of,
    shuffled,
    star,
    wanted_levels,
)
from graphs import NO_VERTEX, Tuples, complete, grid, kronecker, random_tuples, uniform

from distbfs.engines.base import Until
from distbfs.engines.cuda.xbfs import arrays, ranges
from distbfs.engines.cuda.xbfs.arrays import Arrays
from distbfs.engines.cuda.xbfs.search import FastSearch
from distbfs.errors import UsageError

BOTH = [True, False]
IN_IDS = pytest.mark.parametrize("in_ids", BOTH, ids=["ids", "numbers"])
WIDE = pytest.mark.parametrize("wide", BOTH, ids=["u64", "u32"])
DIRECTION = pytest.mark.parametrize("direction", ["auto", "push", "pull"])
BLOB = complete(40)

# those with a clique that is not reached are kept from the cluster by it
SHAPES = {
    "one-edge": lambda: Tuples(4, [1, 1], [3, 3]),
    "random": lambda: random_tuples(1500, 4000, 11),
    "kronecker": lambda: kronecker(10),
    "star": lambda: star(700),
    "grid": lambda: beside(grid(14), BLOB),
    "tree": lambda: beside(shuffled(binary_tree(1023)), BLOB),
    "complete": lambda: complete(24),
    "two-blobs": lambda: shuffled(chained(complete(60), path(25), complete(90))),
    "two-big": lambda: shuffled(
        beside(random_tuples(1500, 5000, 3), uniform(1200, 6000))
    ),
    "tiny": lambda: shuffled(beside(uniform(500, 2500), pairs(700), lone(200))),
    "hubs": lambda: hubs(3, 1200),
    "long-rows": lambda: shuffled(long_rows()),
    "bipartite": lambda: shuffled(bipartite(70, 190)),
}
OVERRIDES = {
    "always-mark": {"mark_edges": 0, "row_edges": 0, "pull_edges": HUGE},
    "always-mark-rows": {"mark_edges": 0, "row_edges": HUGE, "pull_edges": HUGE},
    "mark-early": {"mark_edges": 50, "pull_edges": HUGE, "tile": 8},
    "pull-at-once": {"pull_edges": 0},
    "pull-early": {"mark_edges": HUGE, "pull_edges": 50, "tile": 8},
    "mark-then-pull": {"mark_edges": 20, "row_edges": 60, "pull_edges": 400},
    "never-pull": {"mark_edges": HUGE, "pull_edges": HUGE},
    "no-hub-bits": {"hub_words": 0, "pull_edges": 30, "tile": 4},
    "few-hub-bits": {"hub_words": 4, "mark_edges": 30, "tile": 8},
    "windows": {"window_words": 8, "pull_edges": 30},
    "small-windows": {"window_words": 4, "pull_edges": 0},
}
MADE = {}


def none_of_few(self):
    """Instead of ``Arrays.forms_of_few``: searches of many vertices."""
    return ()


def host(name, wide=False):
    """Return a graph of SHAPES; kept, as are its levels."""
    if (name, wide) not in MADE:
        MADE[name, wide] = HostGraph(SHAPES[name](), wide)
    return MADE[name, wide]


def look_at_levels(faults, made, root, found, name):
    """Also check the number of levels."""
    wanted = wanted_levels(made, root).max() + 1
    if found.levels != wanted:
        faults.lines.append(f"{name}, root {root}: {found.levels} levels, not {wanted}")


@DIRECTION
@IN_IDS
def test_shapes_in_every_form(device, in_ids, direction):
    """Half of the graphs in each, by id, and by number the others."""
    faults = Faults()
    for parents in BOTH:
        told = {"parents": parents, "direction": direction}
        for name in [*SHAPES][in_ids ^ parents :: 2]:
            made = host(name, wide=parents)
            search = FastSearch(made.graph, in_ids=in_ids, **told)
            for root in roots_of(made, 1):
                found = faults.look(made, search, root, name, **told)
                look_at_levels(faults, made, root, found, f"{name}, {told}")
    faults.tell()


@pytest.mark.full_blocks(named="few-hub-bits", in_ids=True)
@pytest.mark.full_blocks(named="mark-then-pull", in_ids=True)
@pytest.mark.full_blocks(named="windows", in_ids=True)
@pytest.mark.parametrize("named", OVERRIDES)
@IN_IDS
def test_thresholds_that_force_each_way(device, monkeypatch, in_ids, named):
    """Half of the graphs, in turn in the form for few vertices and in that for many.

    By windows, which few searches move, all of them and from more roots.
    """
    device.multiprocessors = 3
    faults, forms = Faults(), [Arrays.forms_of_few, none_of_few]
    more = "windows" in named
    for k, name in enumerate([*SHAPES] if more else [*SHAPES][in_ids::2]):
        made = host(name)
        monkeypatch.setattr(Arrays, "forms_of_few", forms[k % 2])
        search = FastSearch(made.graph, in_ids=in_ids, overrides=OVERRIDES[named])
        for root in roots_of(made, 1 + more):
            found = faults.look(made, search, root, name, overrides=named)
            look_at_levels(faults, made, root, found, f"{name}, {named}")
    faults.tell()


@IN_IDS
@pytest.mark.parametrize("fetch_edges", [0, HUGE])
def test_marks_by_short_and_long_ranges(device, monkeypatch, in_ids, fetch_edges):
    """Those of hubs are cut once; a frontier of few edges takes several as one."""
    device.multiprocessors = 3
    monkeypatch.setattr(ranges, "FETCHED_WORDS", 4)
    limits = {**OVERRIDES["always-mark"], "fetch_edges": fetch_edges}
    faults, groups = Faults(), []
    for name in SHAPES:
        made = host(name)
        search = FastSearch(made.graph, in_ids=in_ids, overrides=limits)
        p = search.params
        assert p.ranges % p.group == 0
        groups.append(p.hubs and p.group)
        for root in roots_of(made, 1):
            found = faults.look(made, search, root, name)
            look_at_levels(faults, made, root, found, f"{name}, {fetch_edges}")
    faults.tell()
    assert max(groups) > 2


@pytest.mark.parametrize("kept", [8, 40])
def test_tails_in_host_memory(device, kept):
    """Every way through rows that are in two pieces, and what is read of tails.

    Graphs with few and with many columns kept take the ways in turns.
    """
    device.multiprocessors = 3
    faults, some = Faults(), ("always-mark", "pull-early", "mark-then-pull")
    ways = [{}, {"pull_tails": 1}, *(OVERRIDES[x] for x in some)]
    forms = [{"direction": "push"}, {"direction": "pull"}]
    forms += [{"overrides": way} for way in ways]
    for k, name in enumerate(("kronecker", "two-big", "hubs", "long-rows", "star")):
        made = host(name)
        graph = made.split(kept)
        assert graph.held_back == np.maximum(made.degrees - kept, 0).sum()
        for options in forms[(k + (kept == 8)) % 2 :: 2]:
            in_ids = (k + len(options.get("overrides", ""))) % 2 == 0
            search = FastSearch(graph, in_ids=in_ids, **options)
            for root in roots_of(made, 1):
                for records in (False, True):
                    found = faults.look(made, search, root, name, records=records)
                    look_at_levels(faults, made, root, found, f"{name}, {options}")
                tails = [x.extra["tail_edges"] for x in found.records]
                checks = [x.checks for x in found.records]
                assert all(a <= b for a, b in zip(tails, checks, strict=True))
                if options == {"direction": "push"} and made.source.degrees[root]:
                    level = (wanted_levels(made, root) >= 0) & made.searched()
                    level = level[made.vertices]
                    beyond = np.maximum(made.degrees[level] - kept, 0)
                    assert sum(tails) == beyond.sum()
    faults.tell()


@pytest.mark.thorough
@DIRECTION
def test_records_are_the_histogram_of_levels(device, direction):
    faults = Faults()
    for k, name in enumerate(SHAPES):
        made = host(name, wide=k % 3 == 2)
        search = FastSearch(made.graph, in_ids=k % 2 == 0, direction=direction)
        first, *more = roots_of(made, 1)
        faults.look(made, search, first, name, records=True)
        faults.look(made, search, first, name)  # between others
        for root in more:
            faults.look(made, search, root, name, records=True)
    faults.tell()


@cache
def graphs_of_size(n):
    """Graphs of so many vertices by name; of fewer what would take long."""
    shapes = {"random": random_tuples(n, 3 * n + 5, seed=n), "star": star(n - 1)}
    if n <= 33:
        shapes |= {"path": path(n), "complete": complete(n)}
    if n == 257:
        shapes |= {"tail": chained(star(31), path(21)), "complete": complete(70)}
    return {name: HostGraph(source) for name, source in shapes.items()}


@pytest.mark.thorough
@DIRECTION
def test_sizes_at_the_borders_of_words_and_tiles(device, direction):
    """By id and by number in turns."""
    faults, in_ids = Faults(), False
    for n in (1, 2, 31, 32, 33, 255, 256, 257, 1025):
        for shape, made in graphs_of_size(n).items():
            source = made.source
            tile, in_ids = 4 if n % 2 else 8, not in_ids
            search = FastSearch(
                made.graph,
                in_ids=in_ids,
                direction=direction,
                overrides={"tile": tile},
            )
            for root in {0, source.n - 1, min(31, source.n - 1)}:
                found = faults.look(made, search, root, f"{shape} {n}", tile=tile)
                look_at_levels(faults, made, root, found, f"{shape} {n}")
    faults.tell()


def steps_of(made, root, **options):
    """Return the names of the steps of a search, which must be right."""
    search = FastSearch(made.graph, **options)
    in_ids = options.get("in_ids", True)
    for records in (False, True, False):
        found = search.search(root, records=records)
        assert fault(made, root, found, in_ids=in_ids) is None
        assert found.levels == wanted_levels(made, root).max() + 1
    return [name for name, *_ in search.steps()]


@cache
def graphs_of_two_halves():
    outside = beside(uniform(800, 4800), uniform(1300, 10_400, seed=8))
    tail = chained(complete(120), path(24), complete(200), path(10))
    halves = outside, shuffled(outside), tail, shuffled(beside(tail, BLOB))
    return [HostGraph(source) for source in halves]


@IN_IDS
def test_pulls_that_find_little_become_pushes(device, in_ids):
    """Half of the graph is never reached, or a path follows."""
    for made in graphs_of_two_halves():
        source = made.source
        steps = steps_of(made, 0, in_ids=in_ids)
        hub = int(source.degrees.argmax())
        steps += steps_of(made, hub, in_ids=in_ids)
        steps += steps_of(made, hub, in_ids=in_ids, overrides={"pull_edges": 1})
        assert "gather" in steps
        assert {"pull", "push-block"} <= set(steps)


@IN_IDS
def test_levels_beyond_the_snapshots_are_flushed(device, in_ids):
    for n in (19, 20, 21, 22, 58):
        made = HostGraph(shuffled(beside(path(n), complete(12))))
        end = int(np.flatnonzero(made.source.degrees == 1)[0])
        steps = steps_of(made, end, in_ids=in_ids, direction="pull")
        assert steps.count("flush") == max(n - 1, 0) // 19


@IN_IDS
def test_the_last_few_are_listed(device, in_ids):
    core = uniform(3000, 45_000)
    for source in (beside(chained(core, path(16)), pairs(4)), chained(core, path(4))):
        steps = steps_of(HostGraph(shuffled(source)), 0, in_ids=in_ids)
        assert "pull-last" in steps


@pytest.mark.thorough
def test_pulls_are_counted_from_what_was_not_visited(device):
    """No level is told for a marking push or a pull that has found nothing."""
    made = host("tree")
    for root in (1023, 1062):  # in a clique beside what is not reached
        for overrides in OVERRIDES.values():
            for in_ids in BOTH:
                steps_of(made, root, in_ids=in_ids, overrides=overrides)


@IN_IDS
def test_every_step_is_seen(device, in_ids):
    """Results by number are written by the search itself."""
    seen = set()
    for name in ("kronecker", "two-big", "hubs"):
        made = host(name)
        for overrides in ({}, {"mark_edges": HUGE, "pull_edges": HUGE}):
            for root in roots_of(made, 2):
                form = {"in_ids": in_ids, "overrides": overrides}
                seen |= set(steps_of(made, root, **form))
    assert seen >= {"push-block", "push", "push-marking", "pull"}
    assert ("results" in seen) != in_ids
    assert "results" in steps_of(host("kronecker"), 0, in_ids=False)


@IN_IDS
def test_levels_pass_one_byte(device, in_ids):
    """By pushes, or by what pulls and what follows them find."""
    faults = Faults()
    for length in (119, 121, 124, 128):
        source = chained(path(length), complete(60), path(4))
        made = HostGraph(shuffled(beside(source, BLOB)))
        end = int(np.flatnonzero(made.source.degrees == 1)[0])
        for overrides in ({}, {"pull_edges": 50, "mark_edges": HUGE}):
            search = FastSearch(made.graph, in_ids=in_ids, overrides=overrides)
            found = faults.look(made, search, end, f"length {length}", **overrides)
            look_at_levels(faults, made, end, found, f"length {length}")
            faults.look(made, search, int(made.vertices[0]), "hub", **overrides)
    faults.tell()


@pytest.mark.thorough
@IN_IDS
def test_levels_are_signed_bytes_to_126_and_ints_beyond(device, in_ids):
    for deepest, way in product((1, 125, 126, 127, 128, 150), ("push", "pull")):
        made = HostGraph(beside(path(deepest + 1), BLOB))
        found = FastSearch(made.graph, in_ids=in_ids, direction=way).search(0)
        assert fault(made, 0, found, in_ids=in_ids) is None
        assert found.levels == deepest + 1
        if way == "push" or deepest != 126:  # the pull after it may count
            assert found.level.dtype == (np.int8 if deepest <= 126 else np.int32)
        assert found.parent.dtype == np.int32
        assert (found.level.min(), found.level.max()) == (-1, deepest)
        assert found.parent.min() == -1


@pytest.mark.thorough
@IN_IDS
def test_many_searches_leave_clean_bitmaps(device, in_ids):
    """Also after roots without edges, and records."""
    faults, rng = Faults(), np.random.default_rng(3)
    ways = {}, {"overrides": {"pull_edges": 40}}, {"direction": "push"}
    for name, options in [*product(("tiny", "two-big", "kronecker"), ways)][in_ids::2]:
        made = host(name)
        search = FastSearch(made.graph, in_ids=in_ids, **options)
        lonely = np.flatnonzero(made.source.degrees == 0)[:3].tolist()
        roots = [*rng.integers(0, made.source.n, 7).tolist(), *lonely]
        for k, root in enumerate(rng.permutation(roots * 2).tolist()):
            told = {**options, "records": k % 8 == 5}
            faults.look(made, search, root, f"{name}, search {k}", **told)
    faults.tell()


@IN_IDS
def test_a_launch_that_meets_nowhere_ends(device, in_ids):
    """Blocks that begin late must not see the state that the others leave behind."""
    made = host("kronecker")
    search = FastSearch(made.graph, in_ids=in_ids, direction="push")
    lonely = int(np.flatnonzero(made.source.degrees == 0)[0])
    for root in [*made.vertices[:8].tolist(), lonely] * 2:
        assert fault(made, root, search.search(root), in_ids=in_ids) is None


@pytest.mark.thorough
@IN_IDS
@WIDE
def test_rows_at_the_border_of_the_hubs(device, wide, in_ids):
    """Degrees around those from which rows are cut by destination."""
    faults = Faults()
    for degree in (511, 512, 900):
        source = beside(star(degree), star(degree + 1), complete(degree // 8))
        u, v = np.append(source.u, 0), np.append(source.v, degree + 1)
        made = HostGraph(shuffled(Tuples(source.n, u, v, size=1 << 20)), wide)
        for ways in ("always-mark", "mark-early", "pull-early"):
            overrides = OVERRIDES[ways]
            search = FastSearch(made.graph, in_ids=in_ids, overrides=overrides)
            for root in roots_of(made, 2):
                faults.look(made, search, root, f"degree {degree}", overrides=ways)
    faults.tell()


def test_results_of_several_blocks_of_ids(device):
    """Ids fill more blocks than there are multiprocessors, the last in part."""
    faults = Faults()
    for n in (2048, 2049, 6000, 9000):
        made = HostGraph(uniform(n, 4 * n))
        lonely = np.flatnonzero(made.source.degrees == 0)[-1:].tolist()
        search = FastSearch(made.graph)
        for root in [0, n - 1, *lonely]:
            faults.look(made, search, root, f"n {n}")
    ring = HostGraph(shuffled(circulant(5000, 8)))
    search = FastSearch(ring.graph)
    assert fault(ring, 3, search.search(3)) is None
    faults.tell()


def test_roots_that_are_not_there_are_refused(device):
    search = FastSearch(host("grid").graph)
    n = host("grid").source.n
    for root in (-1, n, 1 << 40):
        with pytest.raises(UsageError, match=f"allowed: 0 to {n - 1}"):
            search.search(root)
    assert fault(host("grid"), 3, search.search(3)) is None


@IN_IDS
def test_graphs_without_vertices_or_edges(device, in_ids):
    for source in (NO_VERTEX, lone(1), lone(7000), Tuples(3, [1, 1], [1, 1])):
        made = HostGraph(source)
        for direction in ("auto", "push", "pull"):
            search = FastSearch(made.graph, in_ids=in_ids, direction=direction)
            for root in range(min(source.n, 2)):
                found = search.search(root)
                assert fault(made, root, found, in_ids=in_ids) is None
                assert found.levels == 1


def test_roots_without_edges(device):
    made = host("tiny")
    root = int(np.flatnonzero(made.source.degrees == 0)[0])
    other = int(made.vertices[0])
    search = FastSearch(made.graph)
    for records in BOTH:
        for one in (root, other, root, root, other):
            assert fault(made, one, search.search(one, records=records)) is None
        found = search.search(root, records=records)
        assert found.levels == 1
        assert int(found.parent[root]) == root


def test_a_queue_holds_what_pulls_leave_for_it(device, monkeypatch):
    """More vertices than one block pushes, less than 1/8 of those that are left."""
    monkeypatch.setattr(arrays, "PUSHED", 64)  # or a graph has to be larger
    core, middle, each = 300, 2500, 12
    inside = complete(core)
    stems = np.arange(core, core + middle)
    leaves = np.arange(core + middle, core + middle * (1 + each))
    u = np.concatenate([inside.u, stems % core, np.repeat(stems, each), leaves])
    v = np.concatenate([inside.v, stems, leaves, np.roll(leaves, 1)])  # no trees
    source = Tuples(len(leaves) + core + middle, u, v, size=1 << 20)
    made = HostGraph(source)
    assert "gather" in steps_of(made, 0)


@cache
def hung_trees():
    """A core, trees on it that are deeper than rounds of leaves, and trees alone."""
    rng = np.random.default_rng(6)
    core, n = uniform(600, 2400, seed=2), 3000
    above = np.array(
        [rng.integers(0, v if v > 1300 else 600) for v in range(600, 2200)]
    )
    above[1000:1030] = np.arange(1599, 1629)  # a long path
    alone = np.array([rng.integers(2200, v) for v in range(2201, 2700)])
    u = np.concatenate([core.u, np.arange(600, 2200), np.arange(2201, 2700)])
    v = np.concatenate([core.v, above, alone])
    return HostGraph(shuffled(Tuples(n, u, v, size=1 << 20)))


@pytest.mark.pairs
@IN_IDS
@DIRECTION
@pytest.mark.parametrize("form", ["many", "few", "coded"])
def test_trees_from_every_place(device, monkeypatch, direction, in_ids, form):
    """From the core, from trees, from those alone, and after searches of all."""
    device.multiprocessors = 3
    if form == "many":
        monkeypatch.setattr(Arrays, "forms_of_few", none_of_few)
    elif form == "coded":
        monkeypatch.setattr(arrays, "UNCODED", 0)
    made, faults = hung_trees(), Faults()
    trees = made.graph.trees
    assert trees.count > 1000
    assert trees.chain > 5
    marks = {"mark_edges": 0, "pull_edges": HUGE} if direction == "auto" else {}
    search = FastSearch(made.graph, in_ids=in_ids, direction=direction, overrides=marks)
    numbers = [0, made.active - trees.count, made.active - 1]
    numbers += np.linspace(1, made.active - 2, 3).astype(int).tolist()
    for k, number in enumerate(numbers):
        root = int(made.vertices[number])
        for until in (Until(), Until(k % 5)):
            faults.look(made, search, root, "trees", until=until, records=k % 2 == 0)
        if k % 3 == 0:
            target = int(made.vertices[numbers[k - 1]])
            only = Until(None, np.array([target]))
            faults.look(made, search, root, "trees", until=only)
            search.search(np.sort(made.vertices[numbers]))
    faults.tell()
