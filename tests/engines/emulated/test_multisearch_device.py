"""Problems over many searches with the kernels run on the CPU, against NetworkX."""

from functools import cache

import networkx as nx
import numpy as np
import pytest
from device_graphs import HostGraph, hubs, small
from device_problems import device_problem, run_problem
from drawn_examples import examples
from fast_graphs import path, shuffled
from graphs import NAMED, NO_VERTEX, Tuples, sources
from hypothesis import given
from hypothesis import strategies as st

from distbfs.device import cuda
from distbfs.errors import ResourceError, UsageError
from distbfs.multisearch.base import RunOptions
from distbfs.multisearch.cuda_problems import METHODS, DeviceRunner
from distbfs.multisearch.problem import Problem, State

GRAPHS = {**NAMED, **small(), "hubs": hubs(3, 300), "shuffled": shuffled(path(40))}
GRAPHS.pop("wide-star")
WAYS = [(m, t) for m in METHODS for t in ((2, "auto") if m == "hybrid" else (16,))]


def network(source):
    found = nx.Graph()
    found.add_nodes_from(range(source.n))
    found.add_edges_from(zip(source.u.tolist(), source.v.tolist(), strict=True))
    found.remove_edges_from(list(nx.selfloop_edges(found)))
    return found


@cache
def by_networkx(source):
    """Return betweenness by vertex, each path from both of its ends."""
    values = nx.betweenness_centrality(network(source), normalized=False)
    return 2 * np.array([values[v] for v in range(source.n)])


def distances(source, roots):
    found = [source.distances(int(r)) for r in roots]
    return np.stack(found) if found else np.zeros((0, source.n), int)


def roots_of(source, count, seed=3):
    rng = np.random.default_rng(seed)
    ends = [source.degrees.argmax(), source.degrees.argmin()]
    return np.concatenate([ends, rng.integers(0, source.n, count)])


def signed(levels):
    return np.asarray(levels.get()).astype(np.int64)


def run(name, made, roots, **options):
    return run_problem(device_problem(name), made.graph, roots, **options)[0]


@pytest.mark.parametrize(("method", "warp_degree"), WAYS)
def test_levels(device, method, warp_degree):
    """Half of the graphs each, all by two methods or more."""
    turn = WAYS.index((method, warp_degree)) % 2
    for k, (name, source) in [*enumerate(GRAPHS.items())][turn::2]:
        made = HostGraph(source, wide=k % 3 == 1)
        roots = roots_of(source, 3)
        block = (256, 1024)[k // 2 % 2]
        options = {"method": method, "threshold": warp_degree, "block": block}
        found = run("paths", made, roots, levels=True, batch=1 + k // 2 % 4, **options)
        wanted = distances(source, roots)
        assert found["level"].dtype == np.int8
        np.testing.assert_array_equal(signed(found["level"]), wanted, name)
        deepest = found["deepest"].get()
        np.testing.assert_array_equal(deepest, np.maximum(wanted.max(axis=1), 0), name)


@pytest.mark.parametrize(("method", "warp_degree"), WAYS)
def test_betweenness(device, method, warp_degree):
    """Half of the graphs each, all by two methods or more."""
    small = [
        (name, source)
        for name, source in GRAPHS.items()
        if source.n <= 130 and name not in ("path", "tree")  # the same as others
    ]
    for name, source in small[WAYS.index((method, warp_degree)) % 2 :: 2]:
        made = HostGraph(source)
        found = run(
            "betweenness",
            made,
            np.arange(source.n),
            method=method,
            threshold=warp_degree,
            block=256,
        )
        assert set(found) == {"value"}
        np.testing.assert_allclose(
            found["value"].get(), by_networkx(source), 1e-9, 1e-9, err_msg=name
        )


@pytest.mark.thorough
@pytest.mark.parametrize("method", ["hybrid", "edge-parallel"])
def test_other_applications(device, method):
    options = {"method": method, "threshold": 2, "block": 256}
    for name in ("isolated", "two-components", "loops", "kronecker", "star"):
        source = GRAPHS[name]
        made = HostGraph(source)
        roots = roots_of(source, 4)
        wanted = distances(source, roots)
        there = wanted >= 0
        found = run("closeness", made, roots, **options)
        np.testing.assert_array_equal(found["reached"].get(), there.sum(axis=1))
        far = np.where(there, wanted, 0).sum(axis=1)
        np.testing.assert_array_equal(found["far"].get(), far)
        found = run("eccentricity", made, roots, **options)
        np.testing.assert_array_equal(found["eccentricity"].get(), wanted.max(axis=1))
        found = run("reachability", made, roots, **options)
        np.testing.assert_array_equal(found["reached"].get(), there)
        problem = device_problem("khop", hops=2)
        found, _ = run_problem(problem, made.graph, roots, **options)
        near = (there & (wanted <= 2)).sum(axis=1)
        assert set(found) == {"count"}
        np.testing.assert_array_equal(found["count"].get(), near)


@pytest.mark.parametrize("levels", [True, False])
def test_levels_that_pass_a_byte(device, levels):
    """What was added up before the levels were widened does not count twice."""
    source = Tuples(900, [*range(699), 700], [*range(1, 700), 701])
    made = HostGraph(shuffled(source))
    source = made.source
    roots = [*range(0, 900, 150), 5]
    problem, batch = device_problem("betweenness"), 2 if levels else 0
    found, runner = run_problem(problem, made.graph, roots, levels=levels, batch=batch)
    assert runner.level == "u16"
    assert runner.batches == (4 if levels else 1)
    if levels:
        assert found["level"].dtype == np.int16
        wanted = distances(source, roots)
        np.testing.assert_array_equal(found["level"].get(), wanted)
    parts = nx.betweenness_centrality_subset(
        network(source), roots, list(range(900)), normalized=False
    )
    value = 2 * np.array([parts[v] for v in range(900)])
    np.testing.assert_allclose(found["value"].get(), value, 1e-9, 1e-9)


def test_no_search_and_no_vertex(device):
    made = HostGraph(GRAPHS["grid"])
    found = run("paths", made, [], levels=True)
    assert [*found] == ["deepest"]
    assert found["deepest"].shape == (0,)
    assert not run("betweenness", made, [])["value"].get().any()
    assert run("reachability", made, []) == {}
    empty = HostGraph(NO_VERTEX)
    assert run("betweenness", empty, [])["value"].shape == (0,)


def test_results_to_a_sink(device):
    source = GRAPHS["two-components"]
    made = HostGraph(source)
    roots = roots_of(source, 5)
    kept = []
    runner = DeviceRunner(
        device_problem("reachability"),
        made.graph,
        roots,
        RunOptions(batch=3),
        lambda first, last, x: kept.append((first, last, x)),
        levels=True,
    )
    assert runner.run() == {}
    assert [(first, last) for first, last, _ in kept] == [(0, 3), (3, 6), (6, 7)]
    wanted = distances(source, roots)
    levels = np.concatenate([signed(x["level"]) for *_, x in kept])
    np.testing.assert_array_equal(levels, wanted)
    there = np.concatenate([x["reached"].get() for *_, x in kept])
    np.testing.assert_array_equal(there, wanted >= 0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("most", [0, 2, 300])
def test_levels_up_to(device, method, most):
    source = GRAPHS["grid"]
    made = HostGraph(source)
    roots = [0, 40, 100]
    wanted = distances(source, roots)
    deepest = np.minimum(wanted.max(axis=1), most)
    wanted[wanted > most] = -1
    options = {"method": method, "depth": most, "block": 256}
    found = run("paths", made, roots, levels=True, **options)
    np.testing.assert_array_equal(signed(found["level"]), wanted)
    np.testing.assert_array_equal(found["deepest"].get(), deepest)
    found = run("betweenness", made, roots, **options)
    assert found["value"].get().any() == (most > 1)


OWN = """
// counts the edges of each level, and who is last in its level
void init(Search &s) { s.best[s.source] = 3.5f; }
void prior(Search &s) {
    if (s.thread() == 0) s.rounds++;
}
void visit_vertex(Search &s, u32 u, u32 v) {
    atomicAdd(&s.edges_seen, 1ull);
    atomicAdd(&s.looks[v], 1u);
    if (s.id(u) == s.first) atomicAdd(&s.near, s.degree(u) > 0 ? 1u : 0u);
}
void post(Search &s) {
    if (s.thread() == 0) s.after += s.depth + 1;
}
void end(Search &s) {
    for (u32 d = 0; d <= s.depth; d++)
        s.each(d, [&](u32 v) { atomicAdd(&s.sum, (u64)d * s.id(v)); });
}
void finalize(Whole &w) {
    for (u64 i = w.thread(); i < w.k; i += w.threads()) w.rounds[i] *= 10;
    for (u64 v = w.thread(); v < w.n; v += w.threads())
        w.looks[v] = w.looks[v] * 2 + (w.id((u32)v) == 0);
}
"""
OWN_STATE = (
    State("rounds", "int16", "search"),
    State("after", "uint32", "search"),
    State("edges_seen", "uint64", "search"),
    State("near", "uint32", "search", fill=7),
    State("first", "uint32", "search", fill=0, result=False),
    State("sum", "uint64", "search"),
    State("looks", "uint32", "vertex"),
    State("best", "float32", "pair", fill=-float("inf")),
)


@pytest.mark.parametrize("method", METHODS)
def test_a_problem_of_ones_own(device, method):
    source = Tuples(9, [0, 0, 1, 2, 3, 5, 5, 5], [1, 2, 3, 3, 4, 6, 6, 5])
    made = HostGraph(source)
    problem = Problem("own", OWN_STATE, cuda=OWN)
    roots = [0, 4, 6, 8]
    found, _ = run_problem(problem, made.graph, roots, method=method, threshold=3)
    assert "first" not in found
    found = {name: array.get().tolist() for name, array in found.items()}
    assert found["rounds"] == [40, 40, 20, 10]
    assert found["after"] == [1 + 2 + 3 + 4, 1 + 2 + 3 + 4, 1 + 2, 1]
    assert found["edges_seen"] == [10, 10, 2, 0]
    assert found["near"] == [9, 9, 7, 7]
    assert found["sum"] == [1 + 2 + 2 * 3 + 3 * 4, 3 + 2 * (1 + 2), 5, 0]
    looks = np.array([2, 2, 2, 3, 1, 0, 0, 0, 0]) * 2  # of the first two searches
    looks[[5, 6]] += 1
    assert found["looks"] == (2 * looks + (np.arange(9) == 0)).tolist()
    best = np.full((4, 9), -np.inf, np.float32)
    best[range(4), roots] = 3.5
    assert found["best"] == best.tolist()


HIDING = """
void init(Search &s) { if (s.thread() == 0) s.depth = 5, s.order[s.source] = 1; }
void visit_vertex(Search &s, u32 u, u32 v) { s.size[v] = 1, s.at[v] = s.order[v] + 1; }
void finalize(Whole &w) {
    if (w.thread() < w.p[0]) w.k[w.thread()] = 9;
}
"""


def test_states_of_any_name(device):
    """A state hides the member of its name from the text, and from nothing else."""
    source = GRAPHS["grid"]
    states = [State(x, "uint32", "search") for x in ("depth", "starts", "k", "f", "i")]
    states += [State(x, "uint8", "pair") for x in ("order", "at", "v", "last")]
    states += [State(x, "uint32", "vertex", fill=1) for x in ("size", "bits", "p", "n")]
    problem = Problem("p", tuple(states), cuda=HIDING)
    options = {"levels": True, "method": "hybrid", "threshold": 3}
    found, _ = run_problem(problem, HostGraph(source).graph, [3, 40], **options)
    np.testing.assert_array_equal(signed(found["level"]), distances(source, [3, 40]))
    assert found["depth"].tolist() == [5, 5]
    assert found["k"].tolist() == [9, 0]
    assert found["size"].tolist() == [1] * source.n
    own = np.arange(source.n) == np.array([[3], [40]])
    np.testing.assert_array_equal(found["at"].get(), own + 1)


def test_refusals(device, monkeypatch):
    made = HostGraph(GRAPHS["grid"])

    def refused(match, state=(), text=OWN, **options):
        problem = Problem("p", tuple(state), cuda=text)
        with pytest.raises(UsageError, match=match):
            run_problem(problem, made.graph, [0], **options)

    refused("state 'é' is not an ASCII name", [State("é", "int8", "pair")])
    refused("dtype complex64; allowed: int8", [State("x", "complex64", "pair")])
    refused("'p' has none of the functions init", text="// init(\nint x;")
    for match, options in (
        ("method .*hybrid", {"method": "thread"}),
        ("threshold is -1", {"threshold": -1}),
        ("batch is -1", {"batch": -1}),
        ("depth is -1", {"depth": -1}),
    ):
        with pytest.raises(UsageError, match=match):
            run("paths", made, [0], **options)
    with pytest.raises(UsageError, match="source -1 is not a vertex"):
        run("paths", made, [-1])
    monkeypatch.setattr(cuda, "free_bytes", lambda: 1000)
    with pytest.raises(ResourceError, match=r"'paths' over 1 searches .* needs"):
        run("paths", made, [0], levels=True)


def test_memory_bounds_blocks_and_batches(device, monkeypatch):
    """What is there is what was counted, but that levels have a byte."""
    finish = DeviceRunner._finish

    def counted(run):
        arrays = [*run.held.values(), *run.small.values()]
        spare = 3 * run.small["level"].size - run.small["control"].nbytes
        need = run._bytes(run.blocks, run.rows)
        assert sum(x.nbytes for x in arrays) == need - spare
        return finish(run)

    monkeypatch.setattr(DeviceRunner, "_finish", counted)
    source = GRAPHS["grid"]
    made = HostGraph(source)
    roots = np.arange(40)
    device.multiprocessors = 8
    monkeypatch.setattr(cuda, "free_bytes", lambda: (256 << 20) + 60_000)
    problem = device_problem("paths")
    found, runner = run_problem(problem, made.graph, roots, levels=True)
    assert (runner.blocks, runner.batches) == (16, 14) or runner.batches > 1
    np.testing.assert_array_equal(signed(found["level"]), distances(source, roots))


@examples(15)
@given(source=sources(max_n=24), method=st.sampled_from(METHODS))
def test_any_graph(device, source, method):
    made = HostGraph(source)
    roots = np.arange(source.n)
    options = {"method": method, "levels": True}
    found = run("betweenness", made, roots, **options)
    np.testing.assert_array_equal(signed(found["level"]), distances(source, roots))
    wanted = nx.betweenness_centrality(network(source), normalized=False)
    wanted = 2 * np.array([wanted[v] for v in range(source.n)])
    np.testing.assert_allclose(found["value"].get(), wanted, 1e-9, 1e-9)
