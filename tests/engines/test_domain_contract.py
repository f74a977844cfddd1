"""What engines that search domains do under the loop, and what the loop does itself."""

import numpy as np
import pytest
from covering import covered
from graphs import (
    NAMED,
    Tuples,
    build,
    grid,
    kronecker,
    random_tuples,
    some_roots,
    some_sets,
)
from variants import make_engine, on_a_device

from distbfs.engines.base import COUNTS, Until, Work
from distbfs.exchange.host import HostExchange
from distbfs.options import SearchOptions
from distbfs.partition.layout import Placement
from distbfs.ranks.world import SoloWorld
from distbfs.registry import ENGINES, lookup
from distbfs.search.runners.between import BetweenDomains

DOMAINS = [1, 2, 3, 5, 8, 16]
THRESHOLDS = [0, 4, 1 << 40]
HOSTED = [
    name
    for name in ENGINES
    if lookup(ENGINES, "engine", name).domains and not on_a_device(name)
]
GRAPHS = {
    "kronecker": kronecker(8),
    "path": Tuples(40, range(39), range(1, 40)),
    "grid": grid(9),
    "two-components": NAMED["two-components"],
    "isolated": NAMED["isolated"],
    "random": random_tuples(90, 140, seed=5),
    "fewer vertices than domains": Tuples(4, [0, 1], [1, 2]),
}
EACH = pytest.mark.parametrize("engine", HOSTED)


def runner_of(searches, exchange=HostExchange, **options):
    options = SearchOptions.named(threads=1, **options)
    part = searches[0].part
    placement = Placement(part.layout.parts, 1)
    made = exchange(SoloWorld(), placement, part.delegate_count, options)
    return BetweenDomains(SoloWorld(), searches, made, options)


def domains_of(source, engine, count, threshold):
    made = make_engine(engine, threads=1)
    parts, _ = build(source, count, threshold=threshold)
    return [made.domain(part, Placement(count, 1)) for part in parts]


def joined(arrays, n):
    """An array by vertex id from those of the domains by local id."""
    out = np.empty(n, dtype=np.int64)
    for k, array in enumerate(arrays):
        out[k :: len(arrays)] = array
    return out


def check(runner, source, root, depth=None, targets=None, **more):
    """Search; no array may hold a level beyond the last one that is wanted."""
    wanted = source.distances(root).astype(np.int64)
    last = wanted.max() if depth is None else min(depth, wanted.max())
    if targets is not None and len(targets) and (wanted[targets] >= 0).all():
        last = min(last, wanted[targets].max())
    found = runner.search(root, until=Until(depth, targets), **more)
    level = joined(found.level, source.n)
    np.testing.assert_array_equal(level, np.where(wanted <= last, wanted, -1))
    assert found.levels == last + 1
    parent = joined(found.parent, source.n)
    reached = np.flatnonzero(level > 0)
    np.testing.assert_array_equal(parent[root], root)
    assert (parent[level < 0] == -1).all()
    assert (level[parent[reached]] == level[reached] - 1).all()
    assert source.has_edges(parent[reached], reached).all()
    return found


def aims(source, root):
    """Depths and targets from a root: none, near, far, several, unreachable."""
    wanted = source.distances(root)
    order = np.argsort(wanted)
    far, lost = int(order[-1]), np.flatnonzero(wanted < 0)
    yield 0, None
    yield 1, None
    yield 2, None
    yield int(wanted.max()), None
    yield None, np.array([root])
    yield None, np.array([far, root, far])
    yield None, np.flatnonzero(wanted == 1)
    yield None, np.zeros(0, dtype=np.int64)
    yield 2, np.array([far])
    if len(lost):
        yield None, np.array([root, lost[0]])
    yield None, None


@pytest.mark.parametrize(
    ("engine", "count", "name", "threshold"),
    covered(HOSTED, DOMAINS, list(GRAPHS), THRESHOLDS),
)
def test_levels_parents_and_where_searches_end(engine, count, name, threshold):
    source = GRAPHS[name]
    runner = runner_of(domains_of(source, engine, count, threshold))
    for root in some_roots(source, 2)[:1]:
        for depth, targets in aims(source, root):
            check(runner, source, root, depth, targets)


@EACH
@pytest.mark.parametrize("name", GRAPHS)
def test_sets(engine, name):
    source, count = GRAPHS[name], 3
    for threshold in THRESHOLDS:
        runner = runner_of(domains_of(source, engine, count, threshold))
        for roots in some_sets(source):
            for depth in (None, 0, 1):
                check(runner, source, roots, depth)
            far = np.setdiff1d(np.array([source.distances(roots).argmax()]), roots)
            check(runner, source, roots, None, far, records=True)
            check(runner, source, int(roots[-1]))


@EACH
@pytest.mark.parametrize("direction", ["push", "pull"])
def test_an_early_end_in_each_direction(engine, direction):
    source = GRAPHS["kronecker"]
    searches = domains_of(source, engine, 3, 6)
    runner = runner_of(searches, direction=direction)
    for root in some_roots(source, 2):
        for depth, targets in aims(source, root):
            check(runner, source, root, depth, targets, records=True)


class StandIn:
    """A domain whose calls are noted."""

    def __init__(self, search, log):
        self.search, self.log = search, log
        self.part = search.part

    def __getattr__(self, name):
        return getattr(self.search, name)

    def note(self, call):
        self.log.append((self.part.index, call))

    def start(self, *arguments, **options):
        self.note("start")
        self.search.start(*arguments, **options)

    def work(self):
        self.note("work")
        return self.search.work()

    def advance(self, choice):
        self.note("advance")
        yield from self.search.advance(choice)
        self.note("advanced")

    def accept(self, bits, items):
        self.note("accept")
        self.search.accept(bits, items)

    def finish(self):
        self.note("finish")
        return self.search.finish()


class NotedExchange(HostExchange):
    """Notes what begins and ends, which must be in pairs."""

    calls: list

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.calls = []

    def start_masks(self, masks):
        self.calls.append("start masks")
        super().start_masks(masks)

    def finish_masks(self):
        self.calls.append("finish masks")
        return super().finish_masks()

    def start_normals(self, bins):
        self.calls.append("start normals")
        super().start_normals(bins)

    def finish_normals(self):
        self.calls.append("finish normals")
        return super().finish_normals()


@EACH
@pytest.mark.parametrize("name", ["kronecker", "path", "grid"])
def test_steps_of_a_level_once_and_in_order(engine, name):
    source, log = GRAPHS[name], []
    for threshold in THRESHOLDS:
        searches = [
            StandIn(search, log) for search in domains_of(source, engine, 3, threshold)
        ]
        runner = runner_of(searches, NotedExchange, direction="push")
        log.clear()
        found = check(runner, source, 1)
        for index in range(3):
            calls = [call for part, call in log if part == index]
            level = ["work", "advance", "advanced", "accept"]
            assert calls == ["start", *level * found.levels, "work", "finish"]
        turns = [call for _, call in log if call not in ("start", "finish")]
        steps = ("work", "advance", "advanced", "accept")
        assert turns[:12] == [step for step in steps for _ in range(3)]
        legal = {
            ("start normals", "start masks", "finish masks", "finish normals"),
            ("start normals", "finish normals"),
            ("start masks", "finish masks"),
        }
        seen, calls = [], runner.exchange.calls
        while calls:
            match = [x for x in legal if tuple(calls[: len(x)]) == x]
            seen.append(max(match, key=len))
            del calls[: len(seen[-1])]
        assert len(seen) <= found.levels


@EACH
def test_a_domain_that_owns_nothing_and_one_alone_with_work(engine):
    """All vertices with edges are of one domain; one domain has no vertex at all."""
    source = Tuples(9, [0, 5], [5, 0])  # in 5 domains: both of domain 0
    for count in (5, 16):
        log = []
        runner = runner_of(
            [StandIn(x, log) for x in domains_of(source, engine, count, 1 << 40)]
        )
        found = check(runner, source, 0)
        assert found.levels == 2
        for index in range(count):
            assert [call for part, call in log if part == index].count("accept") == 2
        check(runner, source, 8)  # which has no edge
        check(runner, source, 8, targets=np.array([8]))
        check(runner, source, 0, targets=np.array([8]))


def test_counts_are_in_the_order_of_work():
    work = Work(*range(COUNTS))
    assert work[Work._fields.index("dn_forward")] == work.dn_forward == 7
    assert Work._fields[3:7] == ("dd_forward", "dd_q", "dd_s", "dd_u")
    assert Work._fields[-2:] == ("targets", "open")
