"""Betweenness against NetworkX: the kernel for CPUs, and the problem on each runner."""

import os
import random
import signal
import threading
import time
from itertools import pairwise
from types import SimpleNamespace
from unittest.mock import patch

import networkx as nx
import numpy as np
import pytest
from graphs import NAMED, Tuples, grid, sources
from hypothesis import given, settings
from hypothesis import strategies as st
from wholes import HOSTS, by_networkx, whole

import distbfs
from distbfs.errors import SearchStopped, UsageError
from distbfs.multisearch.apps import betweenness
from distbfs.multisearch.apps.betweenness import PROBLEM, dependencies, scaled
from distbfs.multisearch.base import RunOptions
from distbfs.multisearch.library import searching
from distbfs.networkx_backend.nodes import BEFORE_3_5
from distbfs.ranks.world import SoloWorld
from distbfs.search.choose import choose_searcher

CLOSE = {"rtol": 1e-9, "atol": 1e-14}
WAYS = ("kernel", *HOSTS)
DIAMOND = [(0, 1), (0, 2), (1, 3), (2, 3)]


def sums(way, part, roots, **options):
    roots = np.asarray(roots, dtype=np.int64)
    if way == "kernel":
        return dependencies(part, roots, RunOptions(**options))
    kind, _ = choose_searcher(way)
    return kind(SoloWorld(), part, RunOptions(**options)).run(PROBLEM, roots)["value"]


@pytest.mark.parametrize("name", [n for n in NAMED if n not in ("kronecker", "path")])
@pytest.mark.parametrize("way", WAYS)
def test_named_graphs(name, way):
    source = NAMED[name]
    every, part = np.arange(source.n), whole(source)
    values = sums(way, part, every)
    for normalized in (True, False):
        wanted = nx.betweenness_centrality(by_networkx(source), normalized=normalized)
        got = scaled(values, every, normalized=normalized, directed=False)
        np.testing.assert_allclose(got, list(wanted.values()), **CLOSE)


@pytest.mark.parametrize("way", WAYS)
def test_edges_inside_a_level_are_on_no_path(way):
    """From each side, a ring of five with a chord has an edge between equal levels."""
    ring = Tuples(8, [0, 1, 2, 3, 4, 1, 2, 3, 0], [1, 2, 3, 4, 0, 4, 5, 6, 7])
    every = np.arange(ring.n)
    wanted = nx.betweenness_centrality(by_networkx(ring), normalized=False)
    values = sums(way, whole(ring), every)
    got = scaled(values, every, normalized=False, directed=False)
    np.testing.assert_allclose(got, list(wanted.values()), **CLOSE)


def diamonds(count, tail):
    """Return a chain of diamonds, 2^count shortest paths, beside a path."""
    pairs = [(3 * k + i, 3 * k + j) for k in range(count) for i, j in DIAMOND]
    nodes = [0, *range(3 * count + 1, 3 * count + 1 + tail)]
    return np.array([*pairs, *pairwise(nodes)])


def by_fractions(edges, source):
    """Return dependencies of a source, counted by Python's integers."""
    graph = nx.Graph(edges.tolist())
    levels = dict(nx.single_source_shortest_path_length(graph, source))
    count = {source: 1}
    below = {u: [v for v in graph[u] if levels[v] > levels[u]] for u in levels}
    for u in levels:
        for v in below[u]:
            count[v] = count.get(v, 0) + count[u]
    sums = dict.fromkeys(levels, 0.0)
    for u in reversed(levels):
        sums[u] = sum(count[u] / count[v] * (1 + sums[v]) for v in below[u])
    sums[source] = 0
    return [sums[k] for k in range(len(graph))]


@pytest.mark.thorough
@pytest.mark.parametrize(("count", "tail"), [(1100, 0), (1520, 3060)])
def test_more_paths_than_float64_has(count, tail):
    """The path has one each, where the diamonds beside it have 2^1500."""
    edges = diamonds(count, tail)
    graph = distbfs.Graph.from_edges(edges)
    wanted = by_fractions(edges, 0)
    for engine in HOSTS:
        with searching(graph, engine, RunOptions(), SoloWorld()) as searcher:
            got = betweenness.sums(searcher, np.array([0]))
        np.testing.assert_allclose(got, wanted, **CLOSE)


def test_engines_that_overflow_refuse():
    searcher = SimpleNamespace(dependencies=lambda _: np.array([1, np.nan]))
    with pytest.raises(UsageError, match=r"counts at most 1\.8e308"):
        betweenness.sums(searcher, np.array([0]))


def sampled(graph, roots, normalized):
    """Return what NetworkX finds when its sample is these vertices."""

    class Fixed(random.Random):
        def sample(self, population, k, *, counts=None):
            return roots

    values = nx.betweenness_centrality(
        graph, k=len(roots), normalized=normalized, seed=Fixed(0)
    )
    return list(values.values())


@pytest.mark.skipif(BEFORE_3_5, reason="NetworkX 3.4 scales samples its way")
@settings(max_examples=60, deadline=None)
@given(sources(max_n=20), st.sampled_from(WAYS), st.data())
def test_any_graph_and_any_sources(source, way, data):
    directed, normalized = data.draw(st.booleans()), data.draw(st.booleans())
    roots = data.draw(
        st.lists(st.integers(0, source.n - 1), unique=True, max_size=source.n)
    )
    part, threads = whole(source, directed), data.draw(st.integers(1, 3))
    # in dense graphs large levels are found first, then counted
    with patch.object(betweenness, "DENSE", data.draw(st.sampled_from([0, 8]))):
        values = sums(way, part, roots, threads=threads)
    got = scaled(values, np.array(roots, int), normalized=normalized, directed=directed)
    if not roots:
        assert not got.any()
        return
    wanted = sampled(by_networkx(source, directed), roots, normalized)
    np.testing.assert_allclose(got, wanted, **CLOSE)


def test_more_paths_than_a_double_can_count():
    """A chain of 1,100 diamonds has 2^1100 shortest paths from end to end."""
    count = 1100
    joint = np.arange(count) * 3
    u = np.concatenate([joint, joint, joint + 1, joint + 2])
    v = np.concatenate([joint + 1, joint + 2, joint + 3, joint + 3])
    source = Tuples(3 * count + 1, u, v, size=1 << 20)
    got = sums("kernel", whole(source), [0], threads=1)
    left = source.n - 1 - np.arange(source.n)
    wanted = left.astype(float)  # of a joint: all vertices behind it
    side = np.arange(source.n) % 3 > 0
    behind = source.n - 3 * (np.arange(source.n) // 3 + 1)
    wanted[side] = behind[side] / 2
    wanted[0] = wanted[-1] = 0
    np.testing.assert_allclose(got, wanted, rtol=1e-9)


def test_results_do_not_change_from_run_to_run():
    part = whole(grid(30))
    first, again = (sums("kernel", part, range(200), threads=3) for _ in range(2))
    assert (first == again).all()


def test_one_call_of_c_ends_early():
    """By a signal and by ``stop``; it would take minutes."""
    n = 60_000
    part, asked = whole(Tuples(n, range(n - 1), range(1, n))), iter([False])
    began = time.monotonic()
    with pytest.raises(SearchStopped, match="60000 searches were stopped"):
        sums("kernel", part, range(n), threads=2, stop=lambda: next(asked, True))
    before = signal.signal(signal.SIGUSR2, signal.default_int_handler)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR2))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        sums("kernel", part, range(n), threads=2)
    signal.signal(signal.SIGUSR2, before)
    assert time.monotonic() - began < 20
    assert not sums("kernel", part, [], threads=2).any()
    few = sums("kernel", part, [1, 2], threads=2)
    assert few[1:3].tolist() == [1, n - 3]


def test_a_run_that_is_stopped():
    part = whole(NAMED["grid"])
    with pytest.raises(SearchStopped, match="144 searches were stopped"):
        sums("kernel", part, range(144), threads=1, stop=lambda: True)
