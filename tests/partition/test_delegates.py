"""Delegates on all ranks, and their numbers, of several vertices and of one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import on_ranks

from distbfs.partition.delegates import DelegateNumbers, gather_delegates


@pytest.mark.parametrize("n", [0, 20])
@pytest.mark.parametrize("limit", [0, 1 << 30])
@pytest.mark.parametrize(
    "delegates",
    [[], [-1, -1], [7], [9, 3, 12, 0], [2, -1, 0, 1], [5, -1, 2, -1, 1 << 41]],
)
def test_one_is_as_of_several(delegates, n, limit, monkeypatch):
    """Also below the smallest, between two, and above the largest; by a table, too."""
    monkeypatch.setattr("distbfs.partition.delegates.DENSE_VERTICES", limit)
    if max(delegates, default=0) >= n:
        n = 0
    numbers = DelegateNumbers(np.array(delegates, np.int64), n)
    held = [x for x in delegates if x >= 0]
    assert numbers.count == len(held)
    asked = sorted({0, 1, 4, 1 << 42, *held, *(x + 1 for x in held)})
    expected = [delegates.index(x) if x in held else -1 for x in asked]
    assert numbers.of(np.array(asked)).tolist() == expected
    assert [numbers.one(x) for x in asked] == expected


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
