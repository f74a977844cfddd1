"""XBFS as published: every strategy against levels from scipy, by many threads."""

from functools import cache

import numpy as np
import pytest
from device_graphs import HostGraph, small
from graphs import kronecker

from distbfs.device import cuda
from distbfs.engines.base import Query
from distbfs.engines.cuda.papers.xbfs import search as paper
from distbfs.engines.cuda.papers.xbfs.search import PaperSearch
from distbfs.errors import ResourceError

PAIRS = [(f, d) for d in paper.DIRECTIONS for f in paper.ALLOWED[d]]
SMALL = small()


@cache
def made(name, wide=False):
    return HostGraph(SMALL[name], wide)


@cache
def kronecker_graph(scale):
    return HostGraph(kronecker(scale))


def roots_of(host, count=3):
    """Return the first number (a hub), the last, and some between."""
    between = np.random.default_rng(1).integers(0, host.active, count - 2)
    return [0, host.active - 1, *between.tolist()]


@pytest.mark.parametrize("parents", [True, False], ids=["parents", "levels"])
@pytest.mark.parametrize("asynchronous", [True, False], ids=["async", "sync"])
@pytest.mark.parametrize("balance", paper.BALANCES)
@pytest.mark.parametrize(("frontier", "direction"), PAIRS)
def test_every_combination(frontier, direction, balance, asynchronous, parents):
    for name in SMALL:
        host = made(name)
        search = PaperSearch(
            host.graph,
            frontier=frontier,
            balance=balance,
            asynchronous=asynchronous,
            direction=direction,
            parents=parents,
        )
        for root in roots_of(host):
            found = search.answer(root, Query())
            host.check(root, found)
            assert (found.parent is not None) == parents
            assert found.records == []
            assert found.work is None


@pytest.mark.parametrize("alpha", [1e-9, 0.001, 0.02, 0.4, 1.0])
@pytest.mark.parametrize("asynchronous", [True, False], ids=["async", "sync"])
@pytest.mark.parametrize("frontier", paper.FRONTIERS)
def test_switches_at_any_level(monkeypatch, frontier, asynchronous, alpha):
    monkeypatch.setattr(paper, "MAX_BLOCKS", 1)
    for name in SMALL:
        host = made(name)
        search = PaperSearch(
            host.graph,
            frontier=frontier,
            asynchronous=asynchronous,
            alpha=alpha,
        )
        for root in roots_of(host):
            host.check(root, search.search(root))
            host.check(root, search.search(root, records=True))


def test_wide_offsets():
    for name in SMALL:
        host = made(name, wide=True)
        search = PaperSearch(host.graph)
        for root in roots_of(host):
            host.check(root, search.search(root, records=True))


@pytest.mark.parametrize("balance", paper.BALANCES)
def test_asynchronous_pull_finds_the_next_level(monkeypatch, balance):
    monkeypatch.setattr(paper, "MAX_BLOCKS", 1)
    host = kronecker_graph(17)
    both = {}
    for asynchronous in (True, False):
        form = {"balance": balance, "asynchronous": asynchronous}
        search = PaperSearch(host.graph, **form)
        found = search.search(5, records=True)
        host.check(5, found)
        both[asynchronous] = found.records
    early = sum(r.extra["found_early"] for r in both[True])
    checks = {key: sum(r.checks for r in log) for key, log in both.items()}
    assert early > 0
    if balance != "donation":
        assert checks[True] < checks[False]


def test_many_searches_in_a_row():
    host = kronecker_graph(14)
    search = PaperSearch(host.graph)
    roots = np.random.default_rng(2).integers(0, host.active, 30).tolist()
    host.check(roots[0], search.search(roots[0]))
    pool = cuda.cupy().get_default_memory_pool()
    before = pool.used_bytes(), pool.total_bytes()
    for k in range(300):
        found = search.search(roots[k % len(roots)])
        host.check(roots[k % len(roots)], found)
    assert (pool.used_bytes(), pool.total_bytes()) == before


def test_memory_is_asked_for_in_one_line(monkeypatch):
    graph = made("grid").graph
    monkeypatch.setattr(type(graph), "m", 1 << 50)
    with pytest.raises(ResourceError, match="a search"):
        PaperSearch(graph)
