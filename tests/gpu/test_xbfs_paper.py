"""XBFS as published: every strategy against levels from scipy, and what it records."""

from functools import cache

import numpy as np
import pytest
from device_graphs import HostGraph, small
from graphs import kronecker

from distbfs.device import cuda
from distbfs.engines.cuda import paper
from distbfs.engines.cuda.paper import PaperSearch
from distbfs.errors import ResourceError, UsageError

PAIRS = [(f, d) for d in paper.DIRECTIONS for f in paper.ALLOWED[d]]
SMALL = small()
ALPHA = 0.1


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
@pytest.mark.parametrize("stepwise", [True, False], ids=["stepwise", "resident"])
@pytest.mark.parametrize("asynchronous", [True, False], ids=["async", "sync"])
@pytest.mark.parametrize("balance", paper.BALANCES)
@pytest.mark.parametrize(("frontier", "direction"), PAIRS)
def test_every_combination(
    frontier, direction, balance, asynchronous, stepwise, parents
):
    for name in SMALL:
        host = made(name)
        search = PaperSearch(
            host.graph,
            frontier=frontier,
            balance=balance,
            asynchronous=asynchronous,
            direction=direction,
            parents=parents,
            stepwise=stepwise,
        )
        for root in roots_of(host):
            found = search.search(root)
            host.check(root, found)
            assert (found.parent is not None) == parents
            assert found.records == []
            assert found.work is None


@pytest.mark.parametrize("alpha", [1e-9, 0.001, 0.02, 0.4, 1.0])
@pytest.mark.parametrize("stepwise", [True, False], ids=["stepwise", "resident"])
@pytest.mark.parametrize("asynchronous", [True, False], ids=["async", "sync"])
@pytest.mark.parametrize("frontier", paper.FRONTIERS)
def test_switches_at_any_level(frontier, asynchronous, stepwise, alpha):
    for name in SMALL:
        host = made(name)
        search = PaperSearch(
            host.graph,
            frontier=frontier,
            asynchronous=asynchronous,
            stepwise=stepwise,
            alpha=alpha,
            blocks=1,
        )
        for root in roots_of(host):
            host.check(root, search.search(root))
            host.check(root, search.search(root, records=True))


@pytest.mark.parametrize("stepwise", [True, False], ids=["stepwise", "resident"])
def test_wide_offsets(stepwise):
    for name in SMALL:
        host = made(name, wide=True)
        search = PaperSearch(host.graph, stepwise=stepwise)
        for root in roots_of(host):
            host.check(root, search.search(root, records=True))


def edges_of_levels(host, root):
    """Edges out of the vertices of each level."""
    level = host.levels(root)
    reached = level >= 0
    return np.bincount(level[reached], weights=host.degrees[reached]).astype(np.int64)


def pull_checks(host, root, depth):
    """Checks of a pull of a level by one thread a row, for each unvisited vertex."""
    level = host.levels(root)
    hit = level[host.columns] == depth - 1
    place = np.arange(host.m) - host.offsets[host.rows]
    first = np.where(hit, place + 1, host.degrees[host.rows])
    checks = np.minimum.reduceat(first, host.offsets[:-1])
    return checks[(level < 0) | (level >= depth)]


def figure_7(host, root, frontier, direction):
    """Directions of the levels, from the levels of scipy."""
    edges = edges_of_levels(host, root)
    modes, pulled = [], False
    for depth in range(1, len(edges) + 1):
        now, before = edges[depth - 1], edges[max(depth - 2, 0)]
        much = now / host.m >= ALPHA
        pull = depth > 1 if frontier == "double-scan" else much
        if direction != "auto":
            pull = direction == "pull"
        soon = now / host.m * (now / before) >= ALPHA
        if pull:
            mode = "pull"
        elif frontier == "single-scan":
            mode = "push-single-scan"
        elif pulled and frontier in {"auto", "no-queue"}:
            mode = "push-no-queue"
        elif frontier == "auto" and (much or soon):
            mode = "push-single-scan"
        else:
            mode = "push-scan-free"
        modes.append(mode)
        pulled = pull
    return modes


@pytest.mark.parametrize("asynchronous", [True, False], ids=["async", "sync"])
@pytest.mark.parametrize("stepwise", [True, False], ids=["stepwise", "resident"])
@pytest.mark.parametrize(("frontier", "direction"), PAIRS)
def test_records_add_up(frontier, direction, stepwise, asynchronous):
    seen = set()
    for host in [*map(made, SMALL), kronecker_graph(14)]:
        search = PaperSearch(
            host.graph,
            frontier=frontier,
            direction=direction,
            stepwise=stepwise,
            asynchronous=asynchronous,
        )
        for root in roots_of(host):
            found = search.search(root, records=True)
            host.check(root, found)
            records = found.records
            names = [record["direction"] for record in records]
            seen |= set(names)
            assert names == figure_7(host, root, frontier, direction)
            assert len(records) == found.levels
            assert [r["level"] for r in records] == list(range(1, found.levels + 1))
            sizes = np.bincount(host.levels(root)[host.levels(root) >= 0])
            sizes = [*sizes.tolist(), 0]
            edges = edges_of_levels(host, root)
            known, pulled_before, work = 0, 0, np.zeros(2, np.int64)
            for r in records:
                depth = r["level"]
                assert r["found"] + known == sizes[depth]
                assert r["seconds"] >= 0
                if r["direction"] == "pull":
                    checks = pull_checks(host, root, depth)
                    assert r["frontier"] == len(checks) - known
                    assert r["repeats"] == 0
                    if asynchronous:
                        assert r["checks"] <= checks.sum()
                    else:
                        assert r["checks"] == checks.sum()
                        assert r["found_early"] == 0
                    work[1] += r["checks"]
                    work[0] += r["frontier"]
                    pulled_before = r["frontier"]
                else:
                    assert r["checks"] <= edges[depth - 1]
                    if not asynchronous or r["direction"] != "push-no-queue":
                        assert r["checks"] == edges[depth - 1]
                    assert r["found_early"] == 0
                    wanted = sizes[depth - 1]
                    if r["direction"] == "push-no-queue":
                        wanted = pulled_before
                    assert r["frontier"] == wanted
                    if r["direction"] != "push-single-scan":
                        assert r["repeats"] == 0
                known = r["found_early"]
            assert known == 0
            reached = (host.levels(root) >= 0).sum()
            total = sum(r["found"] + r["found_early"] for r in records)
            assert total + 1 == reached
            np.testing.assert_array_equal(found.work.sum(axis=0), work)
    allowed = {
        "scan-free": {"push-scan-free"},
        "single-scan": {"push-single-scan"},
        "no-queue": {"push-scan-free", "push-no-queue"},
        "double-scan": {"push-scan-free"},
        "auto": {"push-scan-free", "push-single-scan", "push-no-queue"},
    }[frontier]
    if direction == "auto":
        assert seen == allowed | {"pull"}
    elif direction == "push":
        assert seen == allowed - {"push-no-queue"}
    else:
        assert seen == {"pull"}


@pytest.mark.parametrize("balance", paper.BALANCES)
def test_checks_of_each_balance(balance):
    host = kronecker_graph(12)
    search = PaperSearch(
        host.graph, balance=balance, direction="pull", asynchronous=False
    )
    for root in roots_of(host):
        for r in search.search(root, records=True).records:
            least = pull_checks(host, root, r["level"]).sum()
            if balance == "donation":  # the last row of a warp goes 32 at a time
                warps = r["frontier"] // 32 + 1
                assert least <= r["checks"] <= least + 31 * warps
            else:
                assert r["checks"] == least


@pytest.mark.parametrize("balance", paper.BALANCES)
def test_asynchronous_pull_finds_the_next_level(balance):
    host = kronecker_graph(17)
    both = {}
    for asynchronous in (True, False):
        search = PaperSearch(
            host.graph, balance=balance, asynchronous=asynchronous, blocks=1
        )
        found = search.search(5, records=True)
        host.check(5, found)
        both[asynchronous] = found.records
    early = sum(r["found_early"] for r in both[True])
    checks = {key: sum(r["checks"] for r in log) for key, log in both.items()}
    assert early > 0
    if balance != "donation":
        assert checks[True] < checks[False]


@pytest.mark.parametrize("stepwise", [True, False], ids=["stepwise", "resident"])
def test_many_searches_in_a_row(stepwise):
    host = kronecker_graph(14)
    search = PaperSearch(host.graph, stepwise=stepwise)
    roots = np.random.default_rng(2).integers(0, host.active, 30).tolist()
    host.check(roots[0], search.search(roots[0]))
    pool = cuda.cupy().get_default_memory_pool()
    before = pool.used_bytes(), pool.total_bytes()
    for k in range(300):
        found = search.search(roots[k % len(roots)])
        host.check(roots[k % len(roots)], found)
    assert (pool.used_bytes(), pool.total_bytes()) == before


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"frontier": "scan"}, "frontier is 'scan'; allowed: auto, scan-free"),
        ({"balance": "block"}, "balance is 'block'; allowed: static, thread"),
        ({"direction": "down"}, "direction is 'down'; allowed: auto, push, pull"),
        (
            {"frontier": "double-scan", "direction": "push"},
            "'double-scan' with direction 'push'; allowed: auto, scan-free, single",
        ),
        ({"frontier": "no-queue", "direction": "push"}, "allowed: auto, scan-free"),
        ({"frontier": "no-queue", "direction": "pull"}, "allowed: auto, double-scan"),
        ({"frontier": "scan-free", "direction": "pull"}, "allowed: auto, double-scan"),
        ({"alpha": 0}, "alpha is 0; allowed: above 0, up to 1"),
        ({"alpha": float("nan")}, "alpha is nan; allowed"),
        ({"blocks": 9}, "blocks is 9; allowed: 0 to 8"),
    ],
)
def test_contradictions_are_refused(options, words):
    with pytest.raises(UsageError, match=words):
        PaperSearch(made("grid").graph, **options)


def test_numbers_that_are_not_there_are_refused():
    search = PaperSearch(made("one-edge").graph)
    for number in (-1, 2):
        with pytest.raises(UsageError, match="allowed: 0 to 1"):
            search.search(number)


def test_memory_is_asked_for_in_one_line():
    graph = made("grid").graph
    huge = type(graph)(**{**vars(graph), "m": 1 << 50})
    with pytest.raises(ResourceError, match="a search by the paper's method"):
        PaperSearch(huge)
