"""The threshold that is suggested, and the delegates above it."""

from functools import cache

import numpy as np
import pytest
from graphs import build, kronecker
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import on_ranks

from distbfs.generate.expected import expected_histogram
from distbfs.graph.degrees import DegreeHistogram
from distbfs.partition.degree import (
    DelegateIndex,
    expect,
    gather_delegates,
    suggest_threshold,
)


def histogram(degrees):
    values, counts = np.unique(np.asarray(degrees, np.int64), return_counts=True)
    return DegreeHistogram(values, counts.astype(np.int64))


@cache
def expected(scale):
    degrees, vertices = expected_histogram(scale)
    return DegreeHistogram(degrees, np.rint(vertices).astype(np.int64))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 60), min_size=1, max_size=80), st.integers(2, 64))
def test_constraints_hold_where_they_can(degrees, parts):
    counts = histogram(degrees)
    best = suggest_threshold(counts, parts)
    every = [expect(counts, parts, t) for t in range(counts.largest + 1)]
    few = [x for x in every if x.delegates <= 4 * counts.n / parts]
    both = [x for x in few if x.nn_edges <= 0.1 * counts.m]
    assert best.delegates <= 4 * counts.n / parts
    if both:
        assert best.nn_edges <= 0.1 * counts.m
        assert best.stored_bytes == min(x.stored_bytes for x in both)
    else:
        assert best.nn_edges == min(x.nn_edges for x in few)


def test_what_is_expected_of_a_threshold():
    counts = histogram([0, 0, 1, 1, 2, 2, 5, 5])
    one = expect(counts, 4, 2)
    assert one.delegates == 2
    assert one.nn_edges == pytest.approx(6 * 6 / 16)
    assert one.stored_bytes == pytest.approx(8 * 8 + 8 * 2 * 4 + 4 * 16 + 4 * 36 / 16)


@pytest.mark.parametrize("degrees", [[], [0], [0, 0, 0], [3, 1, 1, 1]])
def test_one_part_has_no_delegates(degrees):
    best = suggest_threshold(histogram(degrees), 1)
    assert best.delegates == 0
    assert best.threshold == max(degrees, default=0)


@pytest.mark.parametrize(("scale", "parts"), [(12, 2), (13, 4), (14, 8), (14, 16)])
def test_built_graphs_keep_the_constraints(scale, parts):
    """With the counts of the parts themselves, not the expected ones."""
    _, summary = build(kronecker(scale), parts)
    assert summary.delegates <= 4 * summary.n / parts
    assert summary.edges["nn"] <= 0.1 * summary.m
    wanted = expect(summary.histogram, parts, summary.threshold)
    assert wanted.delegates == summary.delegates
    assert 0.5 < summary.edges["nn"] / wanted.nn_edges < 1.05


@pytest.mark.parametrize("first", [1, 2, 4])
def test_weak_scaling_follows_the_paper(first):
    """Section VI-B, Fig. 7: TH grows by about the square root of 2 per scale."""
    thresholds = []
    for step, scale in enumerate(range(26, 34)):
        parts = first << step
        degrees = expected(scale)
        best = suggest_threshold(degrees, parts)
        if parts == 1:
            continue
        assert best.delegates <= 4 * degrees.n / parts
        assert best.nn_edges <= 0.1 * degrees.m
        thresholds.append(best.threshold)
    assert thresholds == sorted(thresholds)
    growth = (thresholds[-1] / thresholds[0]) ** (1 / (len(thresholds) - 1))
    assert 1.2 < growth < 1.8


def test_scale_33_of_the_paper():
    """Fig. 7 and Section VI-B: about 1.75 % delegates or fewer, some 6.3 % nn edges."""
    degrees = expected(33)
    best = suggest_threshold(degrees, 128)
    assert best.delegates / degrees.n < 0.0175
    assert 0.03 < best.nn_edges / degrees.m < 0.1


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 12), max_size=40), st.integers(1, 4), st.integers(0, 12))
def test_delegates_are_the_same_on_all_ranks(degrees, ranks, threshold):
    degrees = np.array(degrees, np.int64)
    parts = 2 * ranks

    def work(world):
        mine = [
            np.arange(k, len(degrees), parts) for k in (world.rank, world.rank + ranks)
        ]
        high = [ids[degrees[ids] > threshold] for ids in mine]
        return gather_delegates(world, high, [degrees[ids] for ids in high])

    high = [v for v in range(len(degrees)) if degrees[v] > threshold]
    high.sort(key=lambda v: (-degrees[v], v))
    for ids, degrees_there in on_ranks(ranks, work):
        assert ids.dtype == degrees_there.dtype == np.int64
        assert ids.tolist() == high
        assert degrees_there.tolist() == degrees[high].tolist()


@pytest.mark.parametrize("limit", [0, 1 << 30])
@pytest.mark.parametrize("delegates", [[], [5], [9, 0, 3], [99, 1]])
def test_numbers_of_delegates(limit, delegates, monkeypatch):
    monkeypatch.setattr(DelegateIndex, "DENSE_LIMIT", limit)
    index = DelegateIndex(100, np.array(delegates, dtype=np.int64))
    wanted = [delegates.index(v) if v in delegates else -1 for v in range(100)]
    assert index.find(np.arange(100)).tolist() == wanted
    assert index.find(np.zeros(0, np.int64)).shape == (0,)
