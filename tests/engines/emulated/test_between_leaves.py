"""Searches between domains that leave out leaves on delegates, kernels on the CPU."""

from functools import cache

import numpy as np
import pytest
from device_parts import LARGE, check, device_parts, driver_of, share_searches
from fast_graphs import beside, chained, lone, pairs, path, shuffled, star
from graphs import Tuples, kronecker, random_tuples, uniform
from masked_graphs import random_way, see_between
from test_between_kernels import SEVERAL_A_RANK, each_pair, streamed
from test_between_loop import looped
from test_domain_leaves import WAYS, leafy, neighbours_of
from test_domain_leaves import roots_of as some_roots
from test_split_between import split  # noqa: F401 - a fixture

from distbfs.engines import streamed as streams
from distbfs.engines.cuda.xbfs import arrays as fast_arrays
from distbfs.engines.cuda.xbfs import between_params, between_share
from distbfs.options import SearchOptions
from distbfs.partition.layout import Placement
from distbfs.partition.share import GRANULE
from distbfs.registry import ENGINES, lookup

GRAPHS = {  # made once
    "random": lambda: shuffled(leafy(random_tuples(700, 2500, 11), 8000)),
    "apart": lambda: shuffled(
        beside(leafy(uniform(500, 2000), 7000), pairs(200), lone(40), path(9))
    ),
    "deep": lambda: chained(path(12), star(4500)),
    "stars": lambda: shuffled(beside(star(3000), star(2200), star(2))),
    "kronecker": lambda: shuffled(leafy(kronecker(13, edge_factor=8), 6000)),
}
LARGER = {  # with leaves to be left out of shares that have a granule of delegates
    "random": lambda: shuffled(leafy(random_tuples(700, 2500, 11), 9000)),
    "apart": lambda: shuffled(
        beside(leafy(uniform(500, 2000), 9000), pairs(200), lone(40), path(9))
    ),
    "deep": lambda: chained(path(12), star(9000)),
    "stars": lambda: shuffled(beside(star(5000), star(4000), star(2))),
    "kronecker": lambda: shuffled(leafy(kronecker(13, edge_factor=8), 9000)),
}
for graphs in (GRAPHS, LARGER):
    graphs.update({name: cache(make) for name, make in graphs.items()})
THRESHOLDS = {"random": 9, "apart": 9, "deep": 4, "stars": 4, "kronecker": 3}


def graph_of(name, parts):
    """A graph that has leaves to be left out of so many domains, or devices of some."""
    return (GRAPHS if max(sizes_of(parts)) == 1 else LARGER)[name]()


def sizes_of(parts):
    """Devices of each domain: of so many domains, or as a sum says, "2+1"."""
    return [1] * parts if isinstance(parts, int) else [*map(int, parts.split("+"))]


@pytest.fixture
def run(form, monkeypatch):
    """Search level by level with the host, in rounds, on a stream, or in one launch."""
    if form == "host":
        for module in (between_params, streams):
            monkeypatch.setattr(module, "MOST_STREAMED", 1)
        monkeypatch.setattr(between_params, "MOST_BOXED", 500)
        for name in ("FIRST", "LEAST_FIRST"):
            monkeypatch.setattr(streams, name, 500)
    by = looped if form == "launch" else streamed

    def searched(source, parts, **options):
        by(source, sizes_of(parts), **options)

    return searched


FORMS = ["host", "stream", "launch"]


def left_out(searches):
    """How many vertices are not searched."""
    return sum(one.own.every - one.own.active for one in searches)


def leaves_of(source, threshold, count=3):
    """Leaves on delegates, and one of another vertex, if there is one."""
    degrees = source.degrees
    leaf = np.flatnonzero(degrees == 1)
    on = neighbours_of(source, leaf)
    hung = degrees[on] > threshold
    rest = leaf[~hung & (degrees[on] > 1)][:1]
    return leaf[hung][:count].tolist() + rest.tolist()


def expected(source, parts, threshold):
    """How many are left out where the others are whole granules, at least."""
    degrees = source.degrees
    leaf = np.flatnonzero(degrees == 1)
    on = neighbours_of(source, leaf)
    return max((degrees[on] > threshold).sum() - GRANULE * parts, 0)


def roots_of(source, threshold, name, way):
    """Every other root, as graph and way say."""
    turn = list(GRAPHS).index(name) + list(WAYS).index(way)
    roots = some_roots(source, 1) + leaves_of(source, threshold, 1)
    return roots[turn % 2 :: 2]


@pytest.mark.full_blocks(name="random", way="by queue")
@each_pair("parts, way, name", [1, 2, 3], list(WAYS), list(GRAPHS))
def test_every_way(device, id_bits, name, way, parts):
    source, threshold = GRAPHS[name](), THRESHOLDS[name]
    placed = device_parts(source, parts, threshold=threshold)
    driver = driver_of(placed, engine="xbfs")
    assert left_out(driver._searches) >= expected(source, parts, threshold) > 0
    for search in driver._searches:
        for what, value in WAYS[way].items():
            setattr(search.own, what, value)
    for k, root in enumerate(roots_of(source, threshold, name, way)):
        check(driver, source, root, records=k % 2 == 0)


def test_blocks_hold_as_many_codes_as_they_have_room_for():
    """More would lie in what waits behind them in shared memory."""
    text = (fast_arrays.KERNELS / "between_leaves.cuh").read_text(encoding="utf-8")
    assert f"#define HELD_CODES {between_share.HELD_CODES} " in text


@pytest.mark.thorough
@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("name", list(GRAPHS))
@pytest.mark.parametrize("threshold", [0, 1, LARGE])
def test_all_but_hubs_are_left_out_or_none(device, name, parts, threshold):
    """Without delegates there are no leaves on them; nor where all are delegates."""
    source = GRAPHS[name]()
    placed = device_parts(source, parts, threshold=threshold)
    driver = driver_of(placed, engine="xbfs")
    assert (left_out(driver._searches) > 0) == (threshold == 1)
    for root in some_roots(source, 1)[:: 3 if threshold == 1 else 9]:
        check(driver, source, root, records=True)


@pytest.mark.parametrize("direction", ["push", "pull"])
def test_one_direction(device, direction):
    """Pulls alone would not see a root that is left out: there none is."""
    source = GRAPHS["random"]()
    placed = device_parts(source, 2, threshold=9)
    driver = driver_of(placed, engine="xbfs", direction=direction)
    assert (left_out(driver._searches) > 0) == (direction == "push")
    for root in leaves_of(source, 9):
        check(driver, source, root)


def aims_of(source, root):
    """Ends at levels, and at targets: leaves, near and far, of those that go out."""
    distances = source.distances(root)
    leaf = np.flatnonzero((source.degrees == 1) & (distances > 0))[::-1]
    near, far = leaf[distances[leaf].argmin()], leaf[distances[leaf].argmax()]
    aims = [(depth, None) for depth in (0, 1, 2)]
    aims += [(None, np.array(some)) for some in ([near], [far], sorted({near, far}))]
    aims += [(2, np.array([far]))]
    return aims


@each_pair(
    "form, parts, name, on_leaf",
    *(FORMS[:2], ["1+1", "2+1", "3"], ["random", "stars", "deep"], [False, True]),
)
def test_ends(device, id_bits, run, parts, name, on_leaf):
    source, threshold = graph_of(name, parts), THRESHOLDS[name]
    root = int(source.degrees.argmax())
    if on_leaf:
        root = leaves_of(source, threshold)[0]
    aims = [(None, None), *aims_of(source, root), (None, None)]
    run(source, parts, aims=aims, roots=[root], threshold=threshold)


@pytest.mark.parametrize(
    ("form", "parts", "name"),
    [
        *((form, "1+1", name) for form in FORMS for name in ("random", "stars")),
        *(("host", "1+1+1", "random"), ("launch", "1+1+1", "deep")),
        *(("launch", "2+2", "random"), ("launch", "2+1", "stars")),
        *(("host", "2+1", "stars"), ("host", "2", "random"), ("stream", "3", "random")),
        *(("stream", "2+1", "random"), ("stream", "3", "stars")),
    ],
)
def test_sets_of_roots(device, run, name, parts):
    """Leaves of one delegate, all of them, with it and without."""
    source, threshold = graph_of(name, parts), THRESHOLDS[name]
    rng = np.random.default_rng(3)
    degrees, hub = source.degrees, int(source.degrees.argmax())
    leaf = np.flatnonzero(degrees == 1)
    on = neighbours_of(source, leaf)
    own = leaf[on == hub]
    some = np.sort(rng.choice(source.n, 40, replace=False))
    roots = [own, np.union1d(own, [hub]), own[1:], leaf, some]
    roots += [leaf[:2]]
    run(source, parts, roots=roots, threshold=threshold)


@pytest.mark.parametrize("form", FORMS)
def test_all_leaves_of_a_star(device, run):
    """Their hub is the last that is found: no level follows."""
    source = star(2500)
    leaves = np.arange(1, source.n)
    run(source, 2, roots=[leaves, 0, leaves[1:], 5], threshold=4)


@pytest.mark.parametrize("form", FORMS)
def test_a_last_level_of_leaves_alone(device, run):
    """None of them is searched: those of lower ids fill up granules."""
    source = chained(star(2500), path(4), star(2000))
    run(source, 2, roots=[0, 7], threshold=4)


@pytest.mark.thorough
@pytest.mark.parametrize("form", FORMS)
def test_levels_beyond_a_byte(device, run):
    source = chained(path(130), star(4500))
    run(source, 2, roots=[0], threshold=4)


@pytest.mark.thorough
@each_pair("form, parts, name", FORMS, [2, 3], ["apart", "stars", "deep"])
def test_forms(device, id_bits, run, name, parts):
    source, threshold = GRAPHS[name](), THRESHOLDS[name]
    roots = some_roots(source, 1)[::3] + leaves_of(source, threshold, 1)
    run(source, parts, roots=roots, threshold=threshold)


@pytest.mark.parametrize("parts", ["1+1", "2+1"])
@pytest.mark.parametrize("form", FORMS[:2])
def test_records(device, run, parts):
    """A leaf counts in the level after that of its delegate."""
    source, threshold = graph_of("random", parts), THRESHOLDS["random"]
    hub = int(source.degrees.argmax())
    own = np.union1d(source.matrix[hub].indices, [hub])
    roots = [hub, *leaves_of(source, threshold, 1), own[source.degrees[own] == 1], own]
    options = {"records": True, "roots": roots, "direction": "push"}
    run(source, parts, threshold=threshold, **options)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["random", "stars"])
@pytest.mark.parametrize(
    ("form", "parts"),
    [*((form, "1+1") for form in FORMS), ("host", "2+1"), ("stream", "2")],
)
def test_some_edges(device, run, name, parts):
    """Edges of leaves, too, may not be seen; then all are seen again."""
    source, threshold = graph_of(name, parts), THRESHOLDS[name]
    make, left = random_way(source, 1, 0.6)

    def before(runner, world):
        see_between(runner, make, left, world)

    roots = some_roots(left, 1)[::3] + leaves_of(left, threshold, 1)
    roots += leaves_of(source, threshold, 1)
    sets = [np.flatnonzero(left.degrees == 1)]
    options = {"before": before, "left": left, "threshold": threshold}
    run(source, parts, roots=[*roots, *sets], **options)


def test_some_edges_with_records(device):
    source = GRAPHS["random"]()
    placed = device_parts(source, 2, threshold=9)
    driver = driver_of(placed, engine="xbfs")
    make, left = random_way(source, 1, 0.6)
    roots = some_roots(left, 1) + leaves_of(source, 9)
    see_between(driver, make, left)
    for root in roots:
        check(driver, left, root, records=True)
    driver.see([None] * 2)
    for root in roots:
        check(driver, source, root, records=True)


def test_rows_with_tails_in_host_memory(device, split):  # noqa: F811
    for parts, threshold in (("1+1", 9), ("1+1", 30), ("2+1", 9)):
        source, sizes = graph_of("random", parts), sizes_of(parts)
        streamed(source, sizes, threshold=threshold, room=split)
    last = chained(star(2500), path(4), star(2000))  # leaves alone
    form = {"records": True, "direction": "push", "roots": [0, 7]}
    streamed(last, (1, 1), threshold=4, room=split, **form)


def by_domains(source, sizes, **options):
    """As ``streamed``; all domains leave leaves out, and some on other devices."""
    counts = []

    def before(runner, world):
        counts.extend(left_out([one]) for one in runner._searches)

    streamed(source, sizes, before=before, **options)
    assert min(counts) > 0


@pytest.mark.pairs
@pytest.mark.full_blocks(name="random", way="marks")
@each_pair(
    "parts, way, name", ["2", "2+1", "3"], list(WAYS), ["random", "apart", "kronecker"]
)
def test_several_devices(device, id_bits, name, way, parts):
    """Leaves of a delegate may be of other devices of its domain."""
    source, threshold = LARGER[name](), THRESHOLDS[name]
    form = {"overrides": WAYS[way], "threshold": threshold}
    roots = roots_of(source, threshold, name, way)
    by_domains(source, sizes_of(parts), roots=roots, **form)


@each_pair(
    "parts, way, name", ["2+1", "2+2"], list(WAYS), ["random", "apart", "kronecker"]
)
def test_several_devices_in_one_launch(device, id_bits, name, way, parts):
    source, threshold = LARGER[name](), THRESHOLDS[name]
    form = {"overrides": WAYS[way], "threshold": threshold}
    roots = roots_of(source, threshold, name, way)
    looped(source, sizes_of(parts), roots=roots, **form)


def test_most_of_what_is_searched_is_on_one_device(device):
    """The others leave out no more than that one can."""
    core = uniform(1500, 6000)
    rng = np.random.default_rng(5)
    leaf = np.arange(13_500)
    u = np.concatenate([3 * core.u, 3 * rng.integers(0, core.n, len(leaf))])
    v = np.concatenate([3 * core.v, leaf // 2 * 3 + leaf % 2 + 1])
    own = np.arange(1500, 5500)
    u = np.concatenate([u, 3 * rng.integers(0, core.n, len(own))])
    v = np.concatenate([v, 3 * own])
    source = Tuples(int(v.max()) + 1, u, v)
    by_domains(source, (3,), roots=[0, *leaves_of(source, 20, 2)], threshold=20)


@pytest.mark.thorough
@pytest.mark.parametrize("how", ["pairs", "uneven", "one rank, pairs"])
def test_devices_of_a_rank(device, how):
    """One rank ends the searches of its devices, which meet, one after the other."""
    owners, source = SEVERAL_A_RANK[how], shuffled(leafy(uniform(500, 2000), 12_000))
    device.one_rank = True
    placement = Placement.of_domains(owners, 1 + owners[-1][-1])
    roots = leaves_of(source, 9)
    by_domains(source, (), owners=placement, roots=roots, threshold=9)


def test_numbers_and_rows(device):
    """What is left out has one edge, to a delegate; the rest are whole granules."""
    source, parts, threshold = GRAPHS["apart"](), 2, 9
    placed = device_parts(source, parts, threshold=threshold)
    engine = lookup(ENGINES, "engine", "xbfs")(SearchOptions(engine="xbfs"))
    degrees = source.degrees
    for search in share_searches(engine, placed):
        graph, p = search.part, search.own
        assert p.active % GRANULE == 0
        assert p.every == graph.active
        lengths = np.diff(graph.out.offsets.get().astype(np.int64))
        last = np.arange(p.active, p.every)
        local = graph.vertices.get()[last].astype(np.int64)
        ids = search.part.layout.global_of(search.part.index, local)
        assert (degrees[ids] == 1).all()
        assert (lengths[last] == 1).all()
        on = graph.out.columns.get()[graph.out.offsets.get()[last]]
        assert (on < search.part.delegate_count).all()
        counts = np.bincount(on, minlength=search.part.normals)
        leaves = search._held["leaves"].get()
        np.testing.assert_array_equal(leaves, counts)
        for k in range(2, len(graph.at_least)):
            some = np.flatnonzero(lengths[: p.every] >= k)
            assert graph.at_least[k] > some.max(initial=-1)
