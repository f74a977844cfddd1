"""Numbers by degree inside blocks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distbfs.graph.relabel import degree_order

BLOCKS = [1, 2, 7, 16, 1 << 15]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=60),
    st.sampled_from(BLOCKS),
)
def test_properties(items, block):
    degrees = np.array([d for d, _ in items], dtype=np.int64)
    last = np.array([x for _, x in items], dtype=bool)
    vertices, numbers, active = degree_order(degrees, last, block)
    count = len(degrees)
    assert vertices.dtype == numbers.dtype == np.uint32
    assert active == (~last).sum()
    np.testing.assert_array_equal(np.sort(vertices), np.arange(count))
    np.testing.assert_array_equal(numbers[vertices], np.arange(count))
    order = [v for v in range(count) if not last[v]]
    order.sort(key=lambda v: (v // block, -degrees[v], v))
    order += [v for v in range(count) if last[v]]
    assert vertices.tolist() == order


@pytest.mark.parametrize("high", [1, (1 << 31) - 1, 1 << 40])
def test_wide_degrees(high):
    degrees = np.array([0, high, 3, high - 1, 1], dtype=np.int64)
    vertices, _, active = degree_order(degrees, degrees == 0, 1 << 15)
    wanted = sorted(np.flatnonzero(degrees), key=lambda v: (-degrees[v], v))
    assert vertices[:active].tolist() == wanted


def test_results_stay_near_their_ids():
    """A number is never farther from its id than a block and the inactive ids."""
    rng = np.random.default_rng(0)
    degrees = rng.integers(0, 50, 5000)
    vertices, _, active = degree_order(degrees, degrees == 0, 64)
    ids = np.flatnonzero(degrees)
    assert np.abs(vertices[:active].astype(int) - ids).max() < 64 * 1.5
