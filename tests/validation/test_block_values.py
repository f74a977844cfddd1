import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import on_ranks

from distbfs.types import slice_bounds
from distbfs.validation.block_values import Replicated, Routed, make_lookup


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
        for kind in (Replicated, Routed):
            table = kind(world, n, level[low:high], parent[low:high])
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


def test_limit_chooses_the_lookup():
    def work(world):
        level = np.zeros(10, np.int32)
        return [type(make_lookup(world, 10, level, None, x)) for x in (119, 120)]

    assert on_ranks(1, work) == [[Routed, Replicated]]
