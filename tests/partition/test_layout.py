"""Who owns what: P and G of the paper, there and back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distbfs.errors import LaunchError, UsageError
from distbfs.partition.layout import Domains, Layout, Placement, in_turn


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
    with pytest.raises(
        LaunchError, match=f"{parts} parts cannot be split evenly over {ranks}"
    ):
        Placement(parts, ranks)


def test_turns():
    assert in_turn([2, 0, 3]) == [(0, 0), (2, 0), (0, 1), (2, 1), (2, 2)]


@pytest.mark.parametrize("sizes", [(1,), (2, 1), (1, 3), (3, 2, 1), (2, 2), (4,)])
def test_shares_of_domains(sizes):
    """Each device has one; of p domains of D, share q is q mod p's device q div p."""
    domains = Domains(sizes)
    shares = np.arange(domains.shares)
    at = list(zip(domains.domain_of(shares), domains.device_of(shares), strict=True))
    assert sorted(at) == [(k, d) for k, size in enumerate(sizes) for d in range(size)]
    for domain, size in enumerate(sizes):
        own = domains.shares_of(domain)
        assert [domains.domain_of(share) for share in own.tolist()] == [domain] * size
        assert [domains.device_of(share) for share in own.tolist()] == list(range(size))
    if len(set(sizes)) == 1:
        np.testing.assert_array_equal(domains.domain_of(shares), shares % len(sizes))
        np.testing.assert_array_equal(domains.device_of(shares), shares // len(sizes))


@pytest.mark.parametrize(
    "owners",
    [
        [(0, 0), (1,)],
        [(0, 1), (2, 3), (4,)],
        [(0, 0), (1, 1), (0,)],
        [(1, 0, 1), (2, 2)],
        [(0,), (1,), (1,)],
    ],
)
def test_shares_on_ranks(owners):
    """A rank has those of one of its domains after the other."""
    ranks = 1 + max(map(max, owners))
    placement = Placement.of_domains(owners, ranks)
    domains = placement.domains
    assert domains.sizes == tuple(map(len, owners))
    assert placement.parts == sum(domains.sizes)
    assert placement.per_rank == np.bincount(np.concatenate(owners)).max()
    for rank in range(ranks):
        mine = placement.parts_of(rank)
        of_domains = [domains.domain_of(share) for share in mine]
        assert of_domains == sorted(of_domains)
        assert [placement.rank_of(share) for share in mine] == [rank] * len(mine)
        assert [placement.device_of(share) for share in mine] == list(range(len(mine)))
        for share, domain in zip(mine, of_domains, strict=True):
            assert owners[domain][domains.device_of(share)] == rank
        places = placement.places_of(rank)
        assert [k for x in places.values() for k in x] == list(range(len(mine)))
        assert [k for k, x in places.items() for _ in x] == of_domains
    every = np.arange(placement.parts)
    np.testing.assert_array_equal(
        placement.rank_of(every), [placement.rank_of(k) for k in every.tolist()]
    )


def test_vertices_that_items_cannot_name():
    placement = Placement(4, 2)
    placement.check_items(1 << 31)
    with pytest.raises(UsageError, match="2 parts per rank are too many"):
        placement.check_items((1 << 31) + 1)
