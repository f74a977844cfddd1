"""Which devices of ranks and hosts are cut into domains together."""

from types import SimpleNamespace

import numpy as np
import pytest

from distbfs.errors import UsageError
from distbfs.search.domains import HostDevices, described


def devices_of(names, counts, most=8):
    """The devices of ranks on hosts of some names, as rank 0 sees them."""
    world = SimpleNamespace(rank=0, size=len(counts), hosts=list(names))
    world.allgather = lambda _: [np.array([count]) for count in counts]
    return HostDevices(world, tuple(range(counts[0])), SimpleNamespace(devices=most))


@pytest.mark.parametrize(
    ("names", "counts", "size", "owners"),
    [
        ("a", [5], 2, [(0, 0), (0, 0), (0,)]),
        ("ab", [8, 4], 8, [(0,) * 8, (1,) * 4]),
        ("ab", [8, 4], 4, [(0,) * 4, (1,) * 4, (0,) * 4]),
        ("aabb", [1, 1, 1, 1], 2, [(0, 1), (2, 3)]),
        ("abab", [1, 1, 1, 1], 2, [(0, 2), (1, 3)]),
        ("aaa", [1, 1, 1], 2, [(0, 1), (2,)]),
        ("aaa", [2, 2, 2], 4, [(0, 1, 0, 1), (2, 2)]),
        ("aaa", [2, 2, 2], 3, [(0, 0), (1, 1), (2, 2)]),
        ("aab", [3, 1, 2], 4, [(0, 1, 0, 0), (2, 2)]),
        ("aa", [4, 4], 2, [(0, 0), (1, 1), (0, 0), (1, 1)]),
        ("ab", [1, 3], 1, [(0,), (1,), (1,), (1,)]),
    ],
)
def test_domains_have_devices_of_a_host(names, counts, size, owners):
    assert list(devices_of(names, counts).cut(size).owners) == owners


@pytest.mark.parametrize(
    ("names", "counts", "size", "sizes"),
    [
        ("a", [9], 8, (5, 4)),
        ("a", [12], 8, (6, 6)),
        ("a" * 12, [1] * 12, 8, (6, 6)),
        ("aa", [8, 4], 8, (8, 4)),
        ("aa", [4, 8], 8, (4, 8)),
        ("ab", [8, 4], 8, (8, 4)),
        ("ab", [4, 2], 2, (2, 2, 2)),
    ],
)
def test_domains_of_a_host_are_even(names, counts, size, sizes):
    assert devices_of(names, counts).cut(size, even=True).domains.sizes == sizes


def test_sizes_that_may_be_asked_for():
    """Those that some domain has."""
    for names, counts, allowed in (
        ("a", [5], "1, 2, 3, 4, 5"),
        ("ab", [2, 1], "1, 2"),
        ("aaa", [2, 2, 2], "1, 2, 4, 6"),
    ):
        hosts = devices_of(names, counts)
        hosts.check(None, "xbfs")
        hosts.check(2, "xbfs")
        with pytest.raises(UsageError) as raised:
            hosts.check(7, "xbfs")
        wanted = f"domain is 7; allowed with engine xbfs: {allowed}"
        assert str(raised.value) == wanted
    with pytest.raises(UsageError, match=r"engine pan: 1$"):
        devices_of("ab", [2, 1], most=1).check(2, "pan")


def test_sizes_in_words():
    for names, counts, words in (
        ("ab", [2, 2], "domains of 2 devices"),
        ("abc", [4, 2, 1], "1 domain of 4 devices and 1 of 2 devices and 1 of one"),
        ("abc", [2, 2, 1], "2 domains of 2 devices and 1 of one device"),
    ):
        placement = devices_of(names, counts).cut(8)
        assert described(placement.domains).startswith(words)
