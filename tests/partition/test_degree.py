"""Delegates are the same on all ranks."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import on_ranks

from distbfs.partition.degree import gather_delegates


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
