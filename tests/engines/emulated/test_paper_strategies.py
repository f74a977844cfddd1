"""What engine ``xbfs-paper`` does at each level, as its records tell it.

Strategies of frontiers, directions, balances and asynchronous pulls, each against what
its definition gives for the levels that SciPy finds.
"""

from functools import cache

import numpy as np
import pytest
from device_graphs import HostGraph, small
from fast_graphs import chained, path
from graphs import Tuples, complete, kronecker

from distbfs.engines.cuda.papers.xbfs import search as paper
from distbfs.engines.cuda.papers.xbfs.search import PaperSearch
from distbfs.errors import UsageError

PAIRS = [(f, d) for d in paper.DIRECTIONS for f in paper.ALLOWED[d]]
ALPHA = 0.1
BEFORE_COUNT, WARP = 5, 32  # as in balance_donation.cuh
# a root, 19 children and 760 grandchildren: a small level that grows fast
BRANCHES = [*[0] * 19, *np.repeat(range(1, 20), 40)]
GRAPHS = {
    **{name: source for name, source in small().items() if name != "wide-star"},
    "kronecker": kronecker(9),
    "fan": chained(Tuples(780, BRANCHES, range(1, 780)), complete(100)),
    "clique-path": chained(complete(90), path(7), complete(60)),
}


pytestmark = pytest.mark.usefixtures("device")


@cache
def made(name):
    return HostGraph(GRAPHS[name])


def roots_of(host):
    """The first number (a hub), and the last."""
    return [0, host.active - 1]


def edges_of_levels(host, root):
    """Edges out of the vertices of each level."""
    level = host.levels(root)
    reached = level >= 0
    return np.bincount(level[reached], weights=host.degrees[reached]).astype(np.int64)


def pull_checks(host, root, depth):
    """Checks of a pull of a level by one thread per row, for each unvisited vertex."""
    level = host.levels(root)
    hit = level[host.columns] == depth - 1
    place = np.arange(host.m) - host.offsets[host.rows]
    first = np.where(hit, place + 1, host.degrees[host.rows])
    checks = np.minimum.reduceat(first, host.offsets[:-1])
    return checks[(level < 0) | (level >= depth)]


def figure_7(host, root, frontier, direction):
    """Directions of the levels from those of SciPy; why a push of auto is so."""
    edges = edges_of_levels(host, root)
    modes, reasons, pulled = [], set(), False
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
            reasons.add("alpha" if much else "lambda")
        else:
            mode = "push-scan-free"
        modes.append(mode)
        pulled = pull
    return modes, reasons


@pytest.mark.pairs
@pytest.mark.parametrize("asynchronous", [True, False], ids=["async", "sync"])
@pytest.mark.parametrize(("frontier", "direction"), PAIRS)
def test_records_add_up(frontier, direction, asynchronous):
    seen, reasons = set(), set()
    form = {"frontier": frontier, "direction": direction, "alpha": ALPHA}
    for k, name in enumerate(GRAPHS):
        host = made(name)
        search = PaperSearch(host.graph, **form, asynchronous=asynchronous)
        for root in [roots_of(host)[(k + asynchronous) % 2]]:
            found = search.search(root, records=True)
            host.check(root, found)
            wanted, why = figure_7(host, root, frontier, direction)
            names = [record.direction for record in found.records]
            assert names == wanted
            seen |= set(names)
            reasons |= why
            check_records(host, root, found, asynchronous)
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
    if frontier == "auto":
        wanted = {"auto": {"lambda"}, "push": {"alpha", "lambda"}, "pull": set()}
        assert reasons == wanted[direction]


def check_records(host, root, found, asynchronous):
    """Frontier, checks and found vertices of each level."""
    records = found.records
    assert len(records) == found.levels
    sizes = np.bincount(host.levels(root)[host.levels(root) >= 0])
    sizes = [*sizes.tolist(), 0]
    edges = edges_of_levels(host, root)
    known, pulled_before, work = 0, 0, np.zeros(2, np.int64)
    for depth, r in enumerate(records, 1):
        early = r.extra["found_early"]
        assert r.found - early + known == sizes[depth]
        assert r.seconds >= 0
        if r.direction == "pull":
            checks = pull_checks(host, root, depth)
            assert r.frontier == len(checks) - known
            assert r.extra["repeats"] == 0
            if asynchronous:
                assert r.checks <= checks.sum()
            else:
                assert r.checks == checks.sum()
                assert r.extra["found_early"] == 0
            work += r.frontier, r.checks
            pulled_before = r.frontier
        else:
            assert r.checks <= edges[depth - 1]
            if not asynchronous or r.direction != "push-no-queue":
                assert r.checks == edges[depth - 1]
            assert r.extra["found_early"] == r.extra["handed_out"] == 0
            wanted = sizes[depth - 1]
            if r.direction == "push-no-queue":
                wanted = pulled_before
            assert r.frontier == wanted
            if r.direction != "push-single-scan":
                assert r.extra["repeats"] == 0
            assert 0 <= r.extra["repeats"] <= r.checks
        known = r.extra["found_early"]
    assert known == 0
    np.testing.assert_array_equal(found.work[:, :2].sum(axis=0), work)
    by_checks = found.work[:, 2:]
    np.testing.assert_array_equal(by_checks.sum(axis=1), found.work[:, 0])
    least = by_checks @ (1 << np.arange(32))
    assert (least <= found.work[:, 1]).all()
    assert (found.work[:, 1] <= 2 * least).all()


@cache
def ladders(rungs):
    """A hub whose neighbours have a tail each: all others have rows of two."""
    ends = np.arange(1, rungs + 1)
    u = np.concatenate([np.zeros(rungs, np.int64), ends])
    host = HostGraph(Tuples(2 * rungs + 1, u, np.concatenate([ends, ends + rungs])))
    assert host.degrees[0] == rungs
    return host


def shared_checks(place, degree):
    """Checks of a row by one lane, then by its warp, whose hit is at a place."""
    own = min(place + 1, BEFORE_COUNT, degree)
    if place < BEFORE_COUNT:
        return own
    steps = (place - BEFORE_COUNT) // WARP + 1
    return min(BEFORE_COUNT + WARP * steps, degree)


@pytest.mark.parametrize("rungs", [5, 6, 36, 37, 100])
def test_donated_rows_are_looked_at_to_their_end(rungs):
    """From a tail the hub is found by one neighbour alone, at places near each step."""
    host, near, seen = ladders(rungs), (0, BEFORE_COUNT - 1, rungs - 1), set()
    form = {"balance": "donation", "direction": "pull", "asynchronous": False}
    search = PaperSearch(host.graph, **form)
    tails = np.flatnonzero(host.degrees == 1)
    for tail in tails.tolist():
        own = np.flatnonzero(host.levels(tail) == 1)
        place = np.flatnonzero(host.columns[: host.degrees[0]] == own[0])[0]
        if place not in near and (place - BEFORE_COUNT) % WARP not in (0, WARP - 1):
            continue
        seen.add(place)
        found = search.search(tail, records=True)
        host.check(tail, found)
        second = found.records[1]
        donated = place >= BEFORE_COUNT
        assert second.extra["donations"] == donated
        others = pull_checks(host, tail, 2)[1:].sum()
        assert second.checks == others + shared_checks(place, rungs)
    assert seen >= {*near}


@pytest.mark.parametrize(("rungs", "step"), [(31, 1), (32, 32), (100, 32), (600, 256)])
def test_classes_of_degrees_are_looked_at_together(device, rungs, step):
    """The hub is taken by a thread, a warp or a block; found by one neighbour alone."""
    host = ladders(rungs)
    form = {"balance": "degree", "direction": "pull", "asynchronous": False}
    search = PaperSearch(host.graph, **form)
    tails = np.flatnonzero(host.degrees == 1)
    for tail in tails[:: len(tails) // 6].tolist():
        found = search.search(tail, records=True)
        host.check(tail, found)
        own = np.flatnonzero(host.levels(tail) == 1)
        place = np.flatnonzero(host.columns[: host.degrees[0]] == own[0])[0]
        others = pull_checks(host, tail, 2)[1:].sum()
        looked = min(step * (place // step + 1), rungs)
        assert found.records[1].checks == others + looked


@pytest.mark.parametrize("asynchronous", [True, False], ids=["async", "sync"])
@pytest.mark.parametrize("balance", paper.BALANCES)
def test_how_balances_hand_entries_out(balance, asynchronous):
    """static: none; thread: each in turn; warp and donation: 32 at a time."""
    host, donations = HostGraph(kronecker(10)), 0
    form = {"balance": balance, "direction": "pull", "asynchronous": asynchronous}
    search = PaperSearch(host.graph, **form)
    for root in roots_of(host):
        found = search.search(root, records=True)
        host.check(root, found)
        for depth, r in enumerate(found.records, 1):
            size = r.frontier
            bulks = WARP * -(-size // WARP)
            wanted = {"static": 0, "degree": 0, "thread": size}.get(balance, bulks)
            assert r.extra["handed_out"] == wanted
            donations += r.extra["donations"]
            if asynchronous:
                continue
            least = pull_checks(host, root, depth).sum()
            more = size if balance == "degree" else r.extra["donations"]
            assert least <= r.checks <= least + (WARP - 1) * more
    assert bool(donations) == (balance == "donation")


@pytest.mark.parametrize("balance", paper.BALANCES)
def test_an_asynchronous_pull_finds_the_next_level(monkeypatch, balance):
    """Vertices that follow what the same pull has found; so rows are looked at less."""
    monkeypatch.setattr(paper, "MAX_BLOCKS", 1)
    host, logs = HostGraph(kronecker(10)), {}
    for asynchronous in (True, False):
        form = {"balance": balance, "asynchronous": asynchronous}
        search = PaperSearch(host.graph, direction="pull", **form)
        found = search.search(host.active - 1, records=True)
        host.check(host.active - 1, found)
        logs[asynchronous] = found.records
    early = {key: sum(r.extra["found_early"] for r in log) for key, log in logs.items()}
    looked = {key: sum(r.frontier for r in log) for key, log in logs.items()}
    assert early[True] > 0
    assert early[False] == 0
    assert looked[True] == looked[False] - early[True]


def test_double_scan_queues_are_sorted(device):
    """The queue of a pull holds the unvisited vertices in order."""
    host = made("disconnected")
    search = PaperSearch(host.graph, direction="pull", asynchronous=False)
    search.search(0)
    beyond = np.flatnonzero(host.levels(0) < 0)
    assert len(beyond) > 32
    queue = search.params.held["queues"][0]
    np.testing.assert_array_equal(queue[: len(beyond)], beyond)


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
