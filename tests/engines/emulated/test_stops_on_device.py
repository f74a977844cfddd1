"""Searches on devices that the host ends between two levels, with kernels on the CPU.

Who is asked often says yes when the kernel has written some level, which a host sees in
memory here; the search is to end before it has found all, and the next one to be right.
"""

import time

import numpy as np
import pytest
from bit_searches import BitSearches
from device_graphs import HostGraph, hubs
from device_problems import device_problem, run_problem
from emulated_device import ask_once
from fast_graphs import HUGE, beside, chained, fault, path, shuffled, star
from graphs import complete, grid, uniform
from resident_parts import look, resident_driver

from distbfs.device import stop_word
from distbfs.device.stop_word import StopWord
from distbfs.engines.base import Until
from distbfs.engines.cuda.common.graph_engine import GraphEngine
from distbfs.engines.cuda.common.host_loop import LoopEngine
from distbfs.engines.cuda.xbfs.cluster import ClusterSearch
from distbfs.engines.cuda.xbfs.search import FastSearch
from distbfs.errors import SearchStopped
from distbfs.multisearch.cuda_meet import MeetingSearches
from distbfs.multisearch.cuda_problems import METHODS
from distbfs.options import SearchOptions
from distbfs.registry import ENGINES, lookup
from distbfs.search.runners.whole import OnDevice
from distbfs.service.shared_traversal import BatchSearcher

IN_IDS = pytest.mark.parametrize("in_ids", [True, False], ids=["ids", "numbers"])
LONG = shuffled(chained(path(1500), complete(40)))  # not what a cluster searches
WAYS = {
    "alone": (
        shuffled(chained(path(60), complete(40))),
        {"overrides": {"mark_edges": 50, "pull_edges": 400}},
    ),
    "by-queue": (
        shuffled(chained(star(3000), path(20))),
        {"overrides": {"mark_edges": HUGE, "pull_edges": HUGE}},
    ),
    "push": (shuffled(chained(uniform(2000, 20_000), path(15))), {"direction": "push"}),
    "mark": (
        hubs(3, 1200),
        {"overrides": {"mark_edges": 0, "pull_edges": HUGE}},
    ),
    "pull": (shuffled(chained(complete(60), path(25))), {"direction": "pull"}),
    "pull-last": (
        shuffled(chained(uniform(3000, 45_000), path(20))),
        {"overrides": {"pull_edges": 0}},
    ),
    "pull-early": (
        shuffled(chained(complete(60), path(70), complete(90))),
        {"overrides": {"mark_edges": HUGE, "pull_edges": 50}},
    ),
}


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Ask from the first moment on."""
    monkeypatch.setattr(stop_word, "ALONE", 0)


def always():
    return True


def never():
    return False


class After:
    """Says yes when asked for the k-th time."""

    def __init__(self, k):
        self.left = k

    def __call__(self):
        self.left -= 1
        return self.left <= 0


class Seen:
    """Says yes when an array has a level from ``least`` to ``most``."""

    def __init__(self, levels, least, most):
        self.levels, self.least, self.most = levels, least, most
        levels[...] = 0

    def __call__(self):
        now = np.array(self.levels).view(np.uint32)  # as it is at one time
        return bool(((now >= self.least) & (now <= self.most)).any())


def stopped_at(search, *arguments, **options):
    """Return the level that a search tells it was stopped at."""
    with pytest.raises(SearchStopped, match=r"stopped at level \d+$") as stopped:
        search(*arguments, **options)
    return int(str(stopped.value).rpartition(" ")[2])


def hold(made, root, found, in_ids=True, **options):
    """Assert that a result is right."""
    told = fault(made, root, found, in_ids=in_ids, **options)
    assert told is None, f"root {root}: {told}"


def far_root(source):
    """A vertex far from one with most neighbours, and how far the others are."""
    root = int(source.distances(int(source.degrees.argmax())).argmax())
    return root, int(source.distances(root).max())


@pytest.mark.parametrize("named", WAYS)
@IN_IDS
def test_every_kind_of_level(device, named, in_ids):
    """The first one is the last; bitmaps and counters serve all searches after it."""
    source, told = WAYS[named]
    made = HostGraph(source)
    search = FastSearch(made.whole, in_ids=in_ids, **told)
    roots = int(source.degrees.argmax()), int(made.vertices[-1]), far_root(source)[0]
    for k, root in enumerate(roots):
        assert source.distances(root).max() > 1
        for _ in range(k % 2 + 1):
            assert stopped_at(search.search, root, stop=always) == 1
        hold(made, root, search.search(root, stop=never), in_ids)
        hold(made, roots[k % 2], search.search(roots[k % 2]), in_ids)


@IN_IDS
def test_far_from_the_root(device, in_ids):
    """Also where levels are too deep for bytes, which no room was made for yet."""
    made = HostGraph(LONG)
    search = FastSearch(made.graph, in_ids=in_ids)
    assert search._cluster is None
    root, deepest = far_root(LONG)
    direct = search.arrays.held["direct"]
    for least in (300, 700):
        level = stopped_at(search.search, root, stop=Seen(direct, least, deepest))
        assert least <= level < deepest
    hold(made, root, search.search(root, stop=never), in_ids)
    hold(made, root, search.search(root), in_ids)


@IN_IDS
def test_searches_with_records(device, in_ids):
    source = WAYS["pull-early"][0]
    made = HostGraph(source)
    search = FastSearch(made.graph, in_ids=in_ids)
    root, deepest = far_root(source)
    for _ in range(3):
        stop = After(1)
        assert stopped_at(search.search, root, records=True, stop=stop) < deepest
        hold(made, root, search.search(root, records=True, stop=never), in_ids)


def test_a_search_that_has_ended_is_not_stopped(device):
    """Neither by its depth nor by its targets nor as there is no more to find."""
    made = HostGraph(LONG)
    search = FastSearch(made.graph)
    root, _ = far_root(LONG)
    near = int(np.flatnonzero(LONG.distances(root) == 1)[0])
    for until in (Until(0), Until(1), Until(None, np.array([near]))):
        found = search.search(root, until=until, stop=always)
        hold(made, root, found, until=until)
    small = HostGraph(shuffled(beside(star(30), complete(40))))
    search = FastSearch(small.graph)
    centre = int(small.source.distances(0).argmax())
    hold(
        small,
        centre,
        search.search(centre, until=Until(1), stop=always),
        until=Until(1),
    )


@pytest.mark.parametrize("capability", ["90", "80"])
@IN_IDS
def test_by_a_cluster(device, in_ids, capability):
    device.capability = capability
    for source in (shuffled(path(150)), shuffled(grid(20))):
        made = HostGraph(source)
        search = FastSearch(made.graph, in_ids=in_ids)
        assert search._cluster is not None
        root, deepest = far_root(source)
        for _ in range(2):
            assert stopped_at(search.search, root, stop=always) == 1
        hold(made, root, search.search(root, stop=never), in_ids)
        level = deepest
        for _ in range(30):  # a search may be at its end before its host comes to look
            stop = Seen(search.arrays.wide, deepest // 3, deepest)
            try:
                hold(made, root, search.search(root, stop=stop), in_ids)
            except SearchStopped as stopped:
                level = int(str(stopped).rpartition(" ")[2])
            if level < deepest:
                break
        assert deepest // 3 - 2 <= level < deepest, "shown levels may be two ahead"
        hold(made, root, search.search(root), in_ids)
        assert isinstance(search._cluster, ClusterSearch)


@pytest.mark.thorough
@pytest.mark.parametrize("parts", [2, 3])
@pytest.mark.parametrize("named", WAYS)
def test_parts_end_at_the_same_level(device, parts, named):
    """One host is asked; every device ends there, and searches on afterwards."""
    source, told = WAYS[named]
    driver = resident_driver(source, parts, internal_ids=parts == 2, **told)
    ends = []
    for part in driver._parts:
        part.start = asking(part.start, part)
        part.wait = noting(part.wait, ends)
    roots = int(source.degrees.argmax()), far_root(source)[0]
    for root in roots:
        del ends[:]
        level = stopped_at(driver.search, root, stop=After(2))
        assert level < source.distances(root).max()
        assert ends == [1 + level] * parts
        look(driver, source, root, stop=never)
    look(driver, source, roots[0])
    driver.close()


def asking(start, part):
    """Return ``start`` of a part that asks once before it."""

    def started():
        ask_once(part._word)
        start()

    return started


def noting(wait, ends):
    """Return ``wait`` of a part that notes where the part was stopped."""

    def noted():
        told = wait()
        ends.append(told[3])
        return told

    return noted


class Planted:
    """In the place of a word: a place where the search itself writes an odd number."""

    stop = None

    def __init__(self, address):
        self._address = address

    @property
    def address(self):
        return self._address()

    def watch(self, ended):
        pass

    def clear(self):
        pass


def place_of_level(part, levels, least):
    """Return (where the first part writes an odd level, the level), from ``least``."""
    parts = part.part.layout.parts
    own = part.part.numbers.get()
    for level in range(least | 1, levels.max() + 1, 2):
        for v in np.flatnonzero(levels == level):
            if v % parts == 0 and own[v // parts] % 2 == 0:
                return part.own.direct + 4 * int(own[v // parts]), level
    raise LookupError(f"no vertex of a level from {least} on")


@pytest.mark.parametrize("parts", [2, 3])
@pytest.mark.parametrize("kind", ["post", "tally", "exchange"])
def test_parts_learn_at_each_kind_of_meeting(device, parts, kind):
    """Of block 0 of each, of all blocks by sums, and of all blocks by messages."""
    by_queue = {"overrides": {"mark_edges": HUGE, "pull_edges": HUGE}}
    source, told, least = {
        "post": (shuffled(chained(path(120), complete(30))), by_queue, 61),
        "tally": (chained(complete(60), path(30)), {"direction": "pull"}, 3),
        "exchange": (
            chained(uniform(9000, 60_000, hub=4000), path(12)),
            by_queue,
            3,
        ),
    }[kind]
    driver = resident_driver(source, parts, **told)
    first = driver._parts[0]
    root = int(source.degrees[::parts].argmax()) * parts  # the first vertex of a part
    if kind == "post":
        root, _ = far_root(source)
    place, level = 0, least
    if kind != "tally":
        place, level = place_of_level(first, source.distances(root), least)
    row = 4 * first.own.stride * level  # of snapshots: that the root is visited
    word = first._word
    first._word = Planted(
        lambda: first.own.snapshot + row if kind == "tally" else place
    )
    found_late = kind == "post"  # by pairs, which come with the messages of that level
    assert level <= stopped_at(driver.search, root) <= level + found_late
    first._word = word
    look(driver, source, root, stop=never)
    look(driver, source, root)
    driver.close()


@pytest.mark.parametrize("pull_edges", [1, 1 << 62], ids=["pull", "push"])
def test_bit_parallel_searches(device, pull_edges):
    source = shuffled(path(200))
    searches = BitSearches(HostGraph(source).graph, counts=True, pull_edges=pull_edges)
    sources = [far_root(source)[0], 3, 5]
    wanted = source.levels_from(sources)
    for k in (1, 2):  # by the host and by the kernel
        level = stopped_at(searches.search, sources, stop=After(k))
        assert (level == 0) == (k == 1)
        assert level < wanted.max()
        batch = searches.search(sources, stop=never)
        np.testing.assert_array_equal(batch.levels_by_id().get(), wanted)
        assert batch.counts().sum() == wanted.size


@pytest.mark.parametrize("method", METHODS)
def test_a_block_for_each_search(device, method):
    source = shuffled(path(150))
    made, wanted = HostGraph(source), source.distances(2)

    def levels(stop):
        problem, ways = device_problem("paths"), {"method": method, "stop": stop}
        found, _ = run_problem(problem, made.graph, [2, 2, 2], levels=True, **ways)
        return found["level"].get()

    with pytest.raises(SearchStopped, match="stopped after 0 of 3 sources"):
        levels(always)
    np.testing.assert_array_equal(levels(never), np.stack([wanted] * 3))


@pytest.mark.parametrize(
    ("engine", "method"),
    [
        (name, method)
        for name in ENGINES
        for kind in [lookup(ENGINES, "engine", name)]
        if issubclass(kind, GraphEngine)
        for method in kind.methods
    ],
)
def test_every_engine_of_one_device(device, engine, method):
    kind = lookup(ENGINES, "engine", engine)
    options = SearchOptions(engine=engine, method=method)
    source = shuffled(path(40))
    made = HostGraph(source)
    search = kind(options).on_graph(made.graph)
    root, deepest = far_root(source)
    once = not issubclass(kind, LoopEngine)  # is asked while it runs
    assert stopped_at(search.search, root, stop=After(1 if once else 3)) < deepest
    hold(made, root, search.search(root, stop=never))


def test_what_sessions_call(device):
    """All of them hand on who is asked: once by the host, then while a kernel runs."""
    source = shuffled(path(80))
    made = HostGraph(source)
    root, deepest = far_root(source)
    device_search = FastSearch(made.graph)
    driver = resident_driver(source, 2)
    driver._parts[0].start = asking(driver._parts[0].start, driver._parts[0])
    for search in (
        OnDevice(device_search),
        driver,
    ):
        stop = After(2)
        assert 0 <= stopped_at(search.search, root, stop=stop) < deepest
        assert stop.left <= 0
        assert search.search(root, stop=never).levels == deepest + 1
    meeting = MeetingSearches(made.graph)
    record = meeting._lookups.near.record

    def recorded(*arguments, **form):
        launches = record(*arguments, **form)
        launches.launch = asking(launches.launch, meeting)
        return launches

    meeting._lookups.near.record = recorded  # they may have ended before they are asked
    searcher = BatchSearcher(meeting.start, meeting.near, ahead=True)
    with pytest.raises(SearchStopped, match="before they began"):
        searcher.levels([(root, [3])], After(1))
    with pytest.raises(SearchStopped, match=r"were stopped$"):
        searcher.levels([(root, [3])], After(2))
    wanted = [[source.distances(root)[3]]]
    assert searcher.levels([(root, [3])], never)[1] == wanted


def test_what_a_question_raises_is_raised(device):
    """When the search has ended, so that the next one is right."""

    left = [False]

    def broken():
        if not left:
            raise KeyError("a client")
        return left.pop()

    made = HostGraph(LONG)
    search = FastSearch(made.graph)
    root, _ = far_root(LONG)
    with pytest.raises(KeyError, match="a client"):
        search.search(root, stop=broken)
    hold(made, root, search.search(root))


def interrupted():
    raise KeyboardInterrupt


def test_the_word(device):
    word = StopWord()
    assert word.address == 0, "nobody is asked"
    word.watch(lambda: pytest.fail("nobody is asked, so nobody waits"))
    word.stop = After(3)
    assert word.address
    ends = time.perf_counter() + 60
    word.watch(lambda: time.perf_counter() > ends)
    assert word.stop.left == 0
    assert word._word.get().tolist() == [1]
    word.clear()
    assert word._word.get().tolist() == [0]
    with pytest.raises(KeyboardInterrupt):
        word.watch(interrupted)
    assert word._word.get().tolist() == [1], "what runs is to end"
    word.clear()
    asked = After(1)
    word.stop = asked
    word.watch(lambda: True)
    assert asked.left == 1, "a launch that has ended is not asked about"
    word.stop = None
    assert word.address == 0
