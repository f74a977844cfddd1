"""Searches that look back from targets, with the kernels run on the CPU."""

import numpy as np
import pytest
from device_graphs import HostGraph, hubs, small
from fast_graphs import path
from graphs import NAMED, random_tuples, uniform

from distbfs.errors import SearchStopped, UsageError
from distbfs.multisearch import cuda_bits
from distbfs.multisearch.cuda_meet import MeetingSearches

GRAPHS = {
    **NAMED,
    **small(),
    "two-hubs-far": hubs(3, 2500),
    "path": path(300),
    "long-rows": uniform(60, 4000, 5),
}
ALWAYS_PULL, NEVER_PULL = 1, 1 << 62


def check(searches, source, count, seed, stop=None):
    """Levels of pairs, some of them twice, against the reference."""
    rng = np.random.default_rng(seed)
    roots = rng.integers(0, source.n, count)
    rows = rng.integers(0, count, 5 * count)
    targets = rng.integers(0, source.n, len(rows))
    targets[:count] = roots[rows[:count]]
    levels = searches.levels_at(roots, rows, targets, stop)
    wanted = {int(r): source.distances(int(r)) for r in roots}
    expected = [wanted[int(roots[i])][v] for i, v in zip(rows, targets, strict=True)]
    assert levels.tolist() == expected


@pytest.mark.parametrize("pull_edges", [None, ALWAYS_PULL, NEVER_PULL])
def test_every_graph(device, monkeypatch, pull_edges):
    monkeypatch.setattr(cuda_bits, "HUB_DEGREE", 300)
    for k, (name, source) in enumerate(GRAPHS.items()):
        made = HostGraph(source, wide=k % 3 == 1)
        if not made.graph.active:
            continue
        searches = MeetingSearches(made.graph, pull_edges=pull_edges)
        for seed, count in enumerate((1, 3, 64, 128, 2)):
            check(searches, source, min(count, 4 * source.n), seed)
        assert name


@pytest.mark.parametrize("edges", [100, 400, 1500])
def test_random_graphs(device, edges):
    """Sparse ones have many components; searches that are done leave the frontiers."""
    for seed in range(6):
        source = random_tuples(400, edges, seed)
        searches = MeetingSearches(HostGraph(source).graph)
        for again in range(3):
            check(searches, source, (5, 40, 128)[again], 10 * seed + again)


def test_stops(device):
    source = path(3000)
    searches = MeetingSearches(HostGraph(source).graph)
    calls = []
    ends = [0], [0], [source.n - 1]
    with pytest.raises(SearchStopped):
        searches.levels_at(*map(np.array, ends), lambda: calls.append(1) or True)
    with pytest.raises(SearchStopped):
        searches.levels_at(
            *map(np.array, ends), lambda: calls.append(1) or len(calls) > 2
        )
    check(searches, source, 9, 1)


def test_refusals(device):
    searches = MeetingSearches(HostGraph(random_tuples(40, 90, 1)).graph)
    one = np.array([0])
    with pytest.raises(UsageError, match="129 searches at once; allowed: 128"):
        searches.levels_at(np.zeros(129, np.int64), one, one)
    with pytest.raises(UsageError, match="source 40 is not a vertex"):
        searches.levels_at(one, one, np.array([40]))
