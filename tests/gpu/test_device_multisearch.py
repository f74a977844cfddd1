"""Many searches at once on a CUDA device, against SciPy and NetworkX."""

import networkx as nx
import numpy as np
import pytest
from bit_searches import BitSearches
from device_graphs import HostGraph, hubs, small
from device_problems import PROBLEMS, device_problem, run_problem
from fast_graphs import path, shuffled
from graphs import NAMED, Tuples, grid, kronecker, uniform

from distbfs.device import cuda
from distbfs.device.energy import measured
from distbfs.engines.cuda.xbfs.engine import XbfsEngine
from distbfs.engines.cuda.xbfs.lookups import STEPS
from distbfs.errors import UsageError
from distbfs.multisearch.apps.diameter import Bounds, extremes
from distbfs.multisearch.base import SUMS
from distbfs.multisearch.cuda_meet import MeetingSearches
from distbfs.multisearch.cuda_problems import METHODS
from distbfs.multisearch.lookups import OPEN
from distbfs.multisearch.problem import Problem
from distbfs.options import SearchOptions
from distbfs.ranks.world import SoloWorld

GRAPHS = {
    **NAMED,
    **small(),
    "long": shuffled(path(3000)),
    "hub": uniform(9000, 12_000, hub=8000),
    "hubs-far": hubs(3, 2500),
    "kronecker-14": kronecker(14, 16),
    "wide-grid": shuffled(grid(90)),
}
WAYS = [(m, t) for m in METHODS for t in ((2, 16, "auto") if m == "hybrid" else (16,))]


def roots_of(source, count, seed=3):
    rng = np.random.default_rng(seed)
    ends = [source.degrees.argmax(), source.degrees.argmin()]
    return np.concatenate([ends, rng.integers(0, source.n, count)])


def distances(source, roots):
    return source.levels_from(roots)


def signed(levels):
    return levels.get().astype(np.int64)


@pytest.mark.parametrize("pull_edges", [None, 1, 1 << 62])
@pytest.mark.parametrize("name", GRAPHS)
def test_bits(name, pull_edges):
    source = GRAPHS[name]
    made = HostGraph(source, wide=pull_edges == 1)
    roots = roots_of(source, 60)
    wanted = distances(source, roots)
    near = np.where(wanted > 0, 1 / np.where(wanted > 0, wanted, 1), 0).sum(axis=0)
    for width in (128, 256, 512):
        ways = {"width": width, "pull_edges": pull_edges}
        searches = BitSearches(made.graph, counts=True, sums=SUMS, **ways)
        for _ in range(2):
            batch = searches.search(roots)
            np.testing.assert_array_equal(signed(batch.levels_by_id()), wanted)
            counts = [
                np.bincount(x[x >= 0], minlength=batch.deepest + 1) for x in wanted
            ]
            np.testing.assert_array_equal(batch.counts(), np.stack(counts))
        sums = {name: searches.sum_by_id(name) for name in SUMS}  # of both batches
        reached = wanted >= 0
        np.testing.assert_array_equal(sums["reached_from"], 2 * reached.sum(axis=0))
        total = np.where(reached, wanted, 0).sum(axis=0)
        np.testing.assert_array_equal(sums["distance_from"], 2 * total)
        np.testing.assert_allclose(sums["harmonic_from"], 2 * near, rtol=1e-12)


def test_many_batches():
    source = kronecker(12, 8)
    made = HostGraph(source)
    roots = np.arange(1300) * 3 % source.n
    wanted = distances(source, roots)
    for first, last, batch in BitSearches(made.graph).batches(roots):
        np.testing.assert_array_equal(signed(batch.levels_by_id()), wanted[first:last])
    batch = BitSearches(made.graph, levels=False).search(roots[:512])
    rng = np.random.default_rng(5)
    rows, targets = rng.integers(0, 512, 9999), rng.integers(0, source.n, 9999)
    found = batch.levels_at(rows, targets) >= 0
    np.testing.assert_array_equal(found, wanted[rows, targets] >= 0)
    found = BitSearches(made.graph).search(roots[:512]).levels_at(rows, targets)
    np.testing.assert_array_equal(found, wanted[rows, targets])


@pytest.mark.parametrize("lookups", [0, 2, STEPS])
@pytest.mark.parametrize("name", GRAPHS)
def test_levels_of_pairs(name, lookups):
    source = GRAPHS[name]
    made, rng = HostGraph(source, wide=lookups == 2), np.random.default_rng(4)
    if not made.graph.active:
        return
    searches = MeetingSearches(made.graph)
    searches._lookups.pairs.lookups = lookups
    for count in (1, 40, 128):
        roots = roots_of(source, count)[:count]
        rows, targets = rng.integers(0, [[count], [source.n]], (2, 9 * count))
        wanted = distances(source, roots)[rows, targets]
        levels = searches.levels_at(roots, rows, targets)
        np.testing.assert_array_equal(levels, wanted)
        near = searches.near(roots[0], targets)
        known = near != OPEN
        lone = source.distances(int(roots[0]))[targets]
        np.testing.assert_array_equal(near[known], lone[known])
        assert lookups or (near[lone > 1] == OPEN).all()  # neighbours are looked up


@pytest.mark.parametrize(("method", "threshold"), WAYS)
@pytest.mark.parametrize("name", GRAPHS)
def test_levels(name, method, threshold):
    source = GRAPHS[name]
    roots = roots_of(source, 5)
    wanted = distances(source, roots)
    for block in (256, 1024):
        made = HostGraph(source, wide=block == 256)
        ways = {"method": method, "threshold": threshold, "batch": 4, "block": block}
        problem = device_problem("paths")
        found, _ = run_problem(problem, made.graph, roots, levels=True, **ways)
        np.testing.assert_array_equal(signed(found["level"]), wanted)
        deepest = np.maximum(wanted.max(axis=1), 0)
        np.testing.assert_array_equal(found["deepest"].get(), deepest)


@pytest.mark.parametrize(("method", "threshold"), WAYS)
def test_betweenness(method, threshold):
    sources = {name: x for name, x in GRAPHS.items() if x.n <= 500}
    sources["kronecker-9"] = kronecker(9, 8)
    for name, source in sources.items():
        graph = nx.Graph()
        graph.add_nodes_from(range(source.n))
        graph.add_edges_from(zip(source.u.tolist(), source.v.tolist(), strict=True))
        graph.remove_edges_from(list(nx.selfloop_edges(graph)))
        wanted = nx.betweenness_centrality(graph, normalized=False)
        wanted = 2 * np.array([wanted[v] for v in range(source.n)])
        found, _ = run_problem(
            device_problem("betweenness"),
            HostGraph(source).graph,
            np.arange(source.n),
            method=method,
            threshold=threshold,
        )
        np.testing.assert_allclose(
            found["value"].get(), wanted, 1e-9, 1e-9, err_msg=name
        )


@pytest.mark.parametrize("name", PROBLEMS)
def test_applications_on_all_vertices(name):
    source = GRAPHS["kronecker"]
    made = HostGraph(source)
    roots = np.arange(source.n)
    wanted = distances(source, roots)
    there = wanted >= 0
    found, _ = run_problem(device_problem(name, hops=2), made.graph, roots)
    checks = {
        "closeness": ("far", np.where(there, wanted, 0).sum(axis=1)),
        "eccentricity": ("eccentricity", wanted.max(axis=1)),
        "khop": ("count", (there & (wanted <= 2)).sum(axis=1)),
        "paths": ("deepest", wanted.max(axis=1)),
        "reachability": ("reached", there),
    }
    if name in checks:
        key, values = checks[name]
        np.testing.assert_array_equal(found[key].get(), values)


def test_levels_that_pass_a_byte():
    source = Tuples(1500, [*range(1399), 1400], [*range(1, 1400), 1401])
    made = HostGraph(source)
    roots = np.arange(0, 1500, 100)
    problem, ways = device_problem("betweenness"), {"levels": True, "batch": 4}
    found, runner = run_problem(problem, made.graph, roots, **ways)
    assert runner.level == "u16"
    np.testing.assert_array_equal(found["level"].get(), distances(source, roots))


def test_an_error_of_the_user():
    made = HostGraph(GRAPHS["grid"])
    problem = Problem("mine", cuda="void init(Search &s) {\n    s.nothing = 1;\n}\n")
    with pytest.raises(UsageError, match=r"problem 'mine', line 2: .*nothing"):
        run_problem(problem, made.graph, [0])


@pytest.mark.parametrize("name", ["wide-grid", "grid", "tree", "kronecker"])
def test_extremes(name):
    source = GRAPHS[name]
    start = int(source.degrees.argmax())
    part = np.flatnonzero(source.distances(start) >= 0)
    hops = source.levels_from(part).max(axis=1)
    options = SearchOptions(engine="xbfs", parents=False)
    search = XbfsEngine(options).on_graph(HostGraph(source).graph)
    inside = cuda.cupy().asarray(part)

    def rows(places):
        for place in part[places].tolist():
            level = search.search(place).level[inside].astype(np.int32)
            yield level, level

    bounds = Bounds(len(part), cuda.cupy())
    radius, longest, _ = extremes(rows, bounds, SoloWorld())
    if name == "wide-grid":
        assert (longest, radius) == (178, 90)
    else:
        assert (longest, radius) == (hops.max(), hops.min())


def test_energy():
    """Counter and power agree where the driver has both."""
    pytest.importorskip("pynvml")
    made = HostGraph(GRAPHS["kronecker-14"])
    searches = BitSearches(made.graph)
    roots = np.arange(512)
    with measured(cuda.uuids()) as energy:
        for _ in range(2000):
            searches.search(roots)
    if energy.missing:
        pytest.skip(energy.missing[0])
    (gpu,) = energy.gpus
    assert gpu.samples > 10
    if gpu.counter_joules is not None and gpu.sampled_joules is not None:
        assert gpu.sampled_joules == pytest.approx(gpu.counter_joules, rel=0.5)
