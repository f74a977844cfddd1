"""Edge lookups, and searches that look back from targets, run on the CPU."""

from functools import cache

import numpy as np
import pytest
from device_graphs import HostGraph, hubs, small
from directed_graphs import directed, distances, part_of
from drawn_examples import examples
from fast_graphs import path
from graphs import NAMED, Tuples, last_in_common, random_tuples, uniform
from hypothesis import given
from hypothesis import strategies as st

from distbfs.build.cuda.graph_of_rows import graph_of_part
from distbfs.engines.cuda.xbfs.lookups import STEPS
from distbfs.errors import SearchStopped, UsageError
from distbfs.multisearch import domain_share
from distbfs.multisearch.cuda_meet import MeetingSearches

GRAPHS = {
    **NAMED,
    **small(),
    "hubs": hubs(3, 700),
    "wide-star": Tuples(1003, [7] * 1003, range(1003)),
    "path": path(60),
    "long-rows": uniform(60, 4000, 5),
}
ALWAYS_PULL, NEVER_PULL = 1, 1 << 62


@cache
def host(name):
    return HostGraph(GRAPHS[name], wide=[*GRAPHS].index(name) % 3 == 1)


def meeting(graph, lookups=STEPS, pull_edges=None):
    """Searches with so many lookups, which pull frontiers of so many edges."""
    searches = MeetingSearches(graph)
    searches._lookups.pairs.lookups = lookups
    if pull_edges is not None:
        searches._meet.p.pull_edges = pull_edges
    return searches


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


@pytest.mark.parametrize(
    ("pull_edges", "lookups"),
    [(None, STEPS), (None, 0), (ALWAYS_PULL, 0), (NEVER_PULL, 0), (None, 3)],
)
def test_every_graph(device, monkeypatch, pull_edges, lookups):
    monkeypatch.setattr(domain_share, "HUB_DEGREE", 300)
    for name, source in GRAPHS.items():
        made = host(name)
        if not made.graph.active:
            continue
        searches = meeting(made.graph, lookups, pull_edges)
        for seed, count in enumerate((3, 128, 2)):
            check(searches, source, min(count, 4 * source.n), seed)
        assert name


@pytest.mark.parametrize("edges", [100, 400, 1500])
def test_random_graphs(device, edges):
    """Sparse ones have many components; searches that are done leave the frontiers."""
    for seed in range(4):
        source = random_tuples(400, edges, seed)
        searches = meeting(HostGraph(source).graph, (STEPS, 0)[seed % 2])
        for again in range(3):
            check(searches, source, (5, 40, 128)[again], 10 * seed + again)


@examples(30)
@given(matrix=directed(), lookups=st.sampled_from((0, 2, STEPS)), wide=st.booleans())
def test_any_directed_graph(device, matrix, lookups, wide):
    graph = graph_of_part("xbfs", part_of(matrix))
    if not graph.active:
        return
    if wide:
        for side in graph.sides:
            widened = side.offsets.astype(np.uint64)
            object.__setattr__(side, "offsets", widened)
    n = matrix.shape[0]
    rows, targets = np.divmod(np.arange(n * n), n)
    searches = meeting(graph, lookups)
    levels = searches.levels_at(np.arange(n), rows, targets)
    wanted = [distances(matrix, root) for root in range(n)]
    assert levels.reshape(n, n).tolist() == np.array(wanted).tolist()


def searched(searches):
    """Whether a traversal ran after the lookups: its visited bits are there."""
    return bool(searches._bits._seen.get().any())


def test_levels_up_to_five_need_no_traversal(device):
    """Nor do vertices without edges, and those of components of two vertices."""
    u, v = [*range(8), 9], [*range(1, 9), 10]
    source = Tuples(12, np.array(u), np.array(v))
    for target, level in [*((k, k) for k in range(6)), (9, -1), (10, -1), (11, -1)]:
        searches = MeetingSearches(HostGraph(source).graph)
        pairs = ([0, target], [0, 1], [target, 0])
        assert searches.levels_at(*map(np.array, pairs)).tolist() == [level] * 2
        assert not searched(searches)
    searches = MeetingSearches(HostGraph(source).graph)
    assert searches.levels_at(*map(np.array, ([0], [0], [6]))).tolist() == [6]
    assert searched(searches)


def test_all_columns_count(device):
    searches = MeetingSearches(HostGraph(last_in_common(50)).graph)
    assert searches.near(2, np.array([3])).tolist() == [4]


def test_stops(device):
    source = path(1000)
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
    with pytest.raises(UsageError, match="target 40 is not a vertex"):
        searches.levels_at(one, one, np.array([40]))
