"""Numbers by degree inside blocks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distbfs.graph.relabel import degree_order

BLOCKS = [1, 2, 7, 16, 1 << 15]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.integers(0, 9), max_size=60),
    st.sampled_from(BLOCKS),
    st.sampled_from([1, 2, 5]),
)
def test_properties(items, block, threads):
    degrees = np.array(items, dtype=np.int64)
    numbering = degree_order(degrees, block, threads)
    vertices, numbers = numbering.vertices, numbering.numbers
    count = len(degrees)
    assert vertices.dtype == numbers.dtype == numbering.falling.dtype == np.uint32
    assert numbering.active == (degrees > 0).sum()
    np.testing.assert_array_equal(np.sort(vertices), np.arange(count))
    np.testing.assert_array_equal(numbers[vertices], np.arange(count))
    order = [v for v in range(count) if degrees[v]]
    order.sort(key=lambda v: (v // block, -degrees[v], v))
    order += [v for v in range(count) if not degrees[v]]
    assert vertices.tolist() == order
    by_degree = sorted(range(count), key=lambda v: (-degrees[v], v))
    assert numbering.falling.tolist() == by_degree


@pytest.mark.parametrize("high", [1, (1 << 31) - 1, 1 << 40])
def test_wide_degrees(high):
    degrees = np.array([0, high, 3, high - 1, 1], dtype=np.int64)
    numbering = degree_order(degrees, 1 << 15)
    wanted = sorted(np.flatnonzero(degrees), key=lambda v: (-degrees[v], v))
    assert numbering.vertices[: numbering.active].tolist() == wanted


def test_results_stay_near_their_ids():
    """A number is never farther from its id than a block and the inactive ids."""
    rng = np.random.default_rng(0)
    degrees = rng.integers(0, 50, 5000)
    numbering = degree_order(degrees, 64)
    ids = np.flatnonzero(degrees)
    numbered = numbering.vertices[: numbering.active].astype(int)
    assert np.abs(numbered - ids).max() < 64 * 1.5
