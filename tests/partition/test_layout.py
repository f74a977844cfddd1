"""Who owns what: P and G of the paper, there and back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distbfs.errors import LaunchError, UsageError
from distbfs.partition.layout import Layout, Placement


@given(st.integers(0, 10**12), st.integers(1, 30), st.integers(1, 8), st.data())
def test_p_and_g(n, ranks, per_rank, data):
    """P(v) = v mod p_rank, G(v) = (v / p_rank) mod p_gpu (Algorithm 1)."""
    n = min(n, ranks * per_rank << 32)
    layout, placement = Layout(n, ranks * per_rank), Placement(ranks * per_rank, ranks)
    assert placement.per_rank == per_rank
    if not n:
        return
    v = data.draw(st.integers(0, n - 1))
    part = layout.part_of(v)
    assert placement.rank_of(part) == v % ranks
    assert placement.device_of(part) == (v // ranks) % per_rank
    assert layout.global_of(part, layout.local_of(v)) == v
    assert layout.local_of(v) < layout.local_count(part)


@pytest.mark.parametrize("n", [0, 1, 2, 7, 8, 9, 100])
@pytest.mark.parametrize("parts", [1, 2, 3, 8, 64])
def test_parts_share_the_vertices(n, parts):
    layout = Layout(n, parts)
    served = []
    for part in range(parts):
        local = np.arange(layout.local_count(part))
        ids = layout.global_of(part, local)
        assert ids.dtype == np.int64
        np.testing.assert_array_equal(layout.part_of(ids), part)
        np.testing.assert_array_equal(layout.local_of(ids), local)
        served += ids.tolist()
    assert sorted(served) == list(range(n))


def test_local_ids_of_32_bits_become_ids_of_64():
    layout = Layout(5 << 32, 5)
    ids = layout.global_of(4, np.array([(1 << 32) - 1], dtype=np.uint32))
    assert ids.tolist() == [(5 << 32) - 1]


@pytest.mark.parametrize(("n", "parts"), [(-1, 1), (5, 0), (5, -2)])
def test_layouts_that_are_refused(n, parts):
    with pytest.raises(UsageError, match=f"not {n}, {parts}"):
        Layout(n, parts)


def test_too_many_vertices_a_part():
    assert Layout(3 << 32, 3).local_count(0) == 1 << 32
    with pytest.raises(UsageError, match="need at least 4 parts"):
        Layout((3 << 32) + 1, 3)


@pytest.mark.parametrize(("parts", "ranks"), [(1, 1), (4, 1), (4, 2), (12, 3), (5, 5)])
def test_parts_of_ranks(parts, ranks):
    placement = Placement(parts, ranks)
    seen = []
    for rank in range(ranks):
        mine = placement.parts_of(rank)
        assert [placement.rank_of(k) for k in mine] == [rank] * placement.per_rank
        assert [placement.device_of(k) for k in mine] == list(range(placement.per_rank))
        seen += mine
    assert sorted(seen) == list(range(parts))


@pytest.mark.parametrize(("parts", "ranks"), [(1, 2), (4, 3), (5, 2)])
def test_parts_that_do_not_divide(parts, ranks):
    with pytest.raises(LaunchError, match=f"{parts} parts do not divide by {ranks}"):
        Placement(parts, ranks)
