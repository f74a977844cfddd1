"""Edges listed forth and back: compiled as by whole arrays, differences are seen."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distbfs.device import cc
from distbfs.formats import symmetry as mirror
from distbfs.formats.symmetry import Mirror
from formats.reading import compiling

WAYS = [True, False] if cc.load_or_none(mirror.SOURCE) else [False]
ID, MOST = st.integers(0, 40), 2**63 - 1


def columns(pairs):
    return np.array(pairs, dtype=np.int64).reshape(-1, 2).T


def listed(one, pairs, way, kind=np.int64):
    """Count pairs as lists of neighbours; return those that are kept."""
    u, v = columns(sorted(pairs))
    first = int(u.min(initial=0))
    counts = np.bincount(u - first) if len(u) else np.zeros(0, dtype=np.int64)
    lists = one.lists(first, counts, v.astype(kind), MOST, way)
    assert lists.bad == -1
    return one.count(lists).tolist()


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(ID, st.integers(0, MOST - 1))), st.integers(0, 9))
def test_an_edge_that_is_listed_from_both_ends_is_kept_once(pairs, cut):
    both = pairs + [(v, u) for u, v in pairs if u != v and v <= 40]
    pairs = [x for x in pairs if x[::-1] in both]
    both = [x for x in both if x[::-1] in both]
    kept, sums = [], []
    for compiled in WAYS:
        with compiling(compiled):
            one, half = Mirror(), Mirror()
        once = listed(one, both[:cut], mirror.ONCE)
        once += listed(one, both[cut:], mirror.ONCE)
        assert one.even()
        kept.append(once)
        assert listed(half, pairs, mirror.FORTH) == [list(x) for x in sorted(pairs)]
        assert listed(half, [x[::-1] for x in pairs[::-1]], mirror.BACK) == []
        assert half.even()
        listed(half, [(1, 2)], mirror.FORTH, np.int32)
        sums.append((half._sum & mirror.MASK, half._count))
    assert sorted(kept[0]) == sorted(list(x) for x in both if x[0] <= x[1])
    assert all(x == kept[0] for x in kept)
    assert all(x == sums[0] for x in sums)


@pytest.mark.parametrize("compiled", WAYS)
@pytest.mark.parametrize(
    "pairs", [[(0, 1)], [(1, 0)], [(0, 1), (2, 0)], [(0, 1), (1, 0), (0, 1)]]
)
def test_a_difference_is_seen(compiled, pairs):
    with compiling(compiled):
        one = Mirror()
    listed(one, pairs, mirror.ONCE)
    assert not one.even()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.integers(-1, 9), max_size=4), min_size=1, max_size=8),
    st.integers(0, 5),
    st.sampled_from([1, 2]),
    st.sampled_from([mirror.ONCE, mirror.FORTH, mirror.BACK]),
    st.sampled_from([np.int32, np.int64]),
)
def test_lists_are_counted_alike(rows, first, stride, way, kind):
    counts = np.array([len(row) for row in rows], dtype=np.int64)
    near = np.array([v for row in rows for v in row], dtype=np.int32)
    data = np.repeat(near, stride).astype(kind)
    answers = []
    for compiled in WAYS:
        with compiling(compiled):
            one = Mirror()
        out = np.empty((len(near), 2), dtype=np.int64)
        lists = one.lists(first, counts, data[::stride], 9, way, out)
        one.count(lists)
        if lists.bad >= 0:
            answers.append(lists.bad)
        else:
            sums = one._sum & mirror.MASK, one._count
            answers.append((lists.pairs.tolist(), sums))
    assert all(x == answers[0] for x in answers)
    outside = [k for k, v in enumerate(near.tolist()) if not 0 <= v < 9]
    if outside:
        assert answers[0] == outside[0]
    elif way != mirror.BACK:
        pairs = [[first + k, v] for k, row in enumerate(rows) for v in row]
        kept = [x for x in pairs if way == mirror.FORTH or x[0] <= x[1]]
        assert answers[0][0] == kept
