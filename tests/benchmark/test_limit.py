"""The limit of a search: what is counted, and the time of it."""

import pytest

from distbfs.benchmark.limit import need_of
from distbfs.device.rates import Rates

SEARCH = {"m": 1000, "checks": 300, "reached": 101, "result_bytes": 800}


def test_what_is_counted():
    need = need_of(**SEARCH)
    assert need.tests == 300
    assert need.bytes == 4 * 300 + 2 * 13 + 800


def test_each_vertex_needs_one_check_and_no_edge_two():
    assert need_of(**SEARCH | {"checks": 7}).tests == 100
    assert need_of(**SEARCH | {"checks": 5000}).tests == 1000
    alone = need_of(m=0, checks=0, reached=1, result_bytes=8)
    assert (alone.tests, alone.bytes) == (0, 10)


def test_vertices_of_trees_are_read_but_not_tested():
    """A square, stored as 8 edges, with two leaves and a path of two on it."""
    square = {"m": 16, "reached": 8, "result_bytes": 64, "pruned": 4}
    fewest = need_of(checks=0, **square)
    assert (fewest.tests, fewest.bytes) == (3, 4 * 3 + 2 * 1 + 5 * 4 + 64)
    middle = need_of(checks=5, **square)
    assert (middle.tests, middle.bytes) == (5, 4 * 5 + 2 * 1 + 5 * 4 + 64)
    most = need_of(checks=100, **square)
    assert (most.tests, most.bytes) == (8, 4 * 8 + 2 * 1 + 5 * 4 + 64)
    path = need_of(m=4, checks=0, reached=3, result_bytes=24, pruned=2)
    assert (path.tests, path.bytes) == (0, 2 + 5 * 2 + 24), "there is no core"


def test_seconds():
    rates = Rates("cpu", copy=1e3, bits=101, tests=50.0)
    need = need_of(**SEARCH)
    assert need.seconds(rates) == pytest.approx(2026 / 1e3 + 300 / 50)


def test_columns_in_host_memory_come_over_the_link():
    need = need_of(**SEARCH, link=1280)
    assert (need.bytes, need.tests) == (2026, 300), "the rest is as without"
    rates = Rates("cuda", copy=1e3, bits=101, tests=50.0, link=64.0)
    assert need.copy_seconds(rates) == pytest.approx(2026 / 1e3)
    assert need.seconds(rates) == pytest.approx(2026 / 1e3 + 300 / 50 + 1280 / 64)
    assert need_of(**SEARCH).seconds(rates) == pytest.approx(2026 / 1e3 + 300 / 50)
    with pytest.raises(ValueError, match="need the rate of the link"):
        need.seconds(Rates("cuda", copy=1e3, bits=101, tests=50.0))
