"""Degree histograms over any number of ranks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import on_ranks

from distbfs.graph.degrees import DegreeHistogram, histogram_of, merge, occurring

DEGREES = st.lists(st.integers(0, 1 << 40), max_size=12)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(DEGREES, max_size=3), min_size=1, max_size=4))
def test_histogram_over_ranks(ranks):
    def work(world):
        mine = [occurring(np.array(d, dtype=np.int64)) for d in ranks[world.rank]]
        return histogram_of(world, mine)

    histograms = on_ranks(len(ranks), work)
    every = np.array([d for rank in ranks for part in rank for d in part], np.int64)
    values, counts = np.unique(every, return_counts=True)
    for histogram in histograms:
        np.testing.assert_array_equal(histogram.degrees, values)
        np.testing.assert_array_equal(histogram.counts, counts)
        assert histogram.degrees.dtype == histogram.counts.dtype == np.int64
    histogram = histograms[0]
    assert histogram.n == len(every)
    assert histogram.m == every.sum()
    assert histogram.largest == every.max(initial=0)
    for threshold in (0, 1, 5, 1 << 39):
        assert histogram.above(threshold) == (every > threshold).sum()
    summary = histogram.summary()
    assert summary["isolated"] == (every == 0).sum()
    if len(every):
        assert summary["mean"] == pytest.approx(every.mean())
        assert summary["deviation"] == pytest.approx(every.std())


def test_nothing_at_all():
    histogram = DegreeHistogram(*merge([]))
    assert (histogram.n, histogram.m, histogram.largest, histogram.above(0)) == (0,) * 4
    assert histogram.summary() == {
        "largest": 0,
        "mean": 0.0,
        "deviation": 0.0,
        "isolated": 0,
    }
