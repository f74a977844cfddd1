import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import on_ranks

from distbfs.types import slice_bounds
from distbfs.validation.block_values import Lookup


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 200), st.integers(1, 4), st.data())
def test_lookups_agree(n, size, data):
    level = np.array(data.draw(st.lists(st.integers(-1, 9), min_size=n, max_size=n)))
    level = level.astype(np.int32)
    parent = np.arange(n)[::-1].copy()
    ids = np.array(data.draw(st.lists(st.integers(0, n - 1))), dtype=np.int64)

    def work(world):
        low, high = slice_bounds(n, world.size, world.rank)
        out = []
        for limit in (1 << 30, 0):
            table = Lookup(world, n, level[low:high], parent[low:high], limit)
            mine = ids[world.rank :: world.size]
            fetched = table.fetch(mine)
            assert np.array_equal(fetched[0], level[mine])
            assert np.array_equal(fetched[1], parent[mine])
            table.mark(mine)
            out.append(table.marked())
        assert np.array_equal(out[0], out[1])
        return out[0]

    marked = np.concatenate(on_ranks(size, work))
    assert np.array_equal(np.flatnonzero(marked), np.unique(ids))


@pytest.mark.parametrize("size", [1, 2])
def test_limit_chooses_the_lookup(size):
    def work(world):
        level = np.zeros(10 // size, np.int32)
        return [Lookup(world, 10, level, None, x).whole for x in (119, 120)]

    assert on_ranks(size, work) == [[size == 1, True]] * size
