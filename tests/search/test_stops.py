"""What a service asks of a session: to stop, few values, no parents, a trace."""

from types import SimpleNamespace

import numpy as np
import pytest
from graphs import NAMED, Tuples, build, check_search, kronecker, some_roots
from sessions import open_parts
from test_ranks import threads_exchange  # noqa: F401
from test_session import HOSTED, session_of
from worlds import on_ranks

from distbfs.errors import SearchStopped
from distbfs.exchange.traffic import KINDS
from distbfs.generate.hashing import Permutation
from distbfs.options import SearchOptions
from distbfs.search.runners.base import Found
from distbfs.search.runners.whole import OnDevice, OnFirst
from distbfs.timing import Trace

WHOLE = ["fast", "push", "hybrid", "ordered"]
NONE = 10**9  # a threshold that leaves no delegates
EACH = pytest.mark.parametrize(
    ("parts", "options"),
    [
        *((1, {"method": name, "threshold": NONE}) for name in WHOLE),
        (1, {"engine": "reference", "threshold": NONE}),
        (1, {"engine": "openmp", "stepwise": True, "threshold": 3}),
        *((parts, {"engine": engine}) for engine in HOSTED for parts in (3, 4)),
    ],
)


class After:
    """Says stop when asked for the k-th time."""

    def __init__(self, k):
        self.left = k

    def __call__(self):
        self.left -= 1
        return self.left <= 0


@EACH
@pytest.mark.parametrize("level", [1, 2, 5])
def test_a_stopped_search_harms_no_later_one(parts, options, level):
    source = NAMED["grid"]
    session = session_of(source, parts, threads=2, **options)
    asked = After(level)
    with pytest.raises(SearchStopped, match="stopped"):
        session.search(7, stop=asked)
    assert asked.left == 0, "asked again after it said stop"
    for root in some_roots(source, 3):
        result = session.search(root, stop=lambda: False)
        check_search(source, root, *result.to_numpy())
    session.close()


@EACH
def test_what_stop_raises_is_raised(parts, options, capfd):
    source, asked = NAMED["grid"], After(3)
    session = session_of(source, parts, threads=2, **options)
    with pytest.raises(ZeroDivisionError):
        session.search(7, stop=lambda: asked() and 1 // 0)
    assert "Exception ignored" not in capfd.readouterr().err
    for root in some_roots(source, 2):
        check_search(source, root, *session.search(root).to_numpy())
    session.close()


@EACH
def test_one_question_a_level(parts, options):
    ring = np.arange(258)
    source = Tuples(258, ring, np.roll(ring, -1))
    session = session_of(source, parts, threads=1, **options)
    asked = After(10**9)
    result = session.search(0, stop=asked)
    assert result.depth + 1 == 130
    assert 10**9 - asked.left in (130, 131)


@pytest.mark.parametrize(
    "options", [*({"method": name} for name in WHOLE), {"engine": "reference"}]
)
def test_a_search_ends_at_whichever_comes_first(options):
    source = NAMED["path"]
    session = session_of(source, threads=2, threshold=NONE, **options)
    wanted = source.distances(0)
    five = {"depth_limit": 5}
    for until in (five, {"targets": [5]}, {"depth_limit": 9, "targets": [5, 3]}):
        with pytest.raises(SearchStopped):
            session.search(0, **until, stop=After(5))
        asked = After(6)
        result = session.search(0, **until, stop=asked)
        assert (result.depth, asked.left) == (5, 1), "asked after the last level"
        level, _ = result.to_numpy()
        np.testing.assert_array_equal(level, np.where(wanted <= 5, wanted, -1))
        np.testing.assert_array_equal(result.level_counts(), np.ones(6))
    check_search(source, 7, *session.search(7).to_numpy())


def test_a_device_is_asked_before_it_begins():
    search = OnDevice(SimpleNamespace(path=None))  # which would fail if it is called
    with pytest.raises(SearchStopped, match="before it began"):
        search.search(0, stop=lambda: True)


@pytest.mark.parametrize("who", [0, 1])
def test_a_search_of_one_rank_stops_all(who):
    """Rank 0 searches; the others wait and are asked before it alone."""

    class Device:
        def answer(self, root, query):
            assert query.stop is stops[0]
            if root == 0:
                raise SearchStopped("the search was stopped at level 7")
            return Found([], [], 3, 0.5)

    stops = [lambda: False, lambda: False]

    def work(world):
        runner = OnFirst(world, None if world.rank else Device())
        with pytest.raises(SearchStopped, match="level 7"):
            runner.search(0, stop=stops[world.rank])
        result = runner.search(1, stop=stops[world.rank])
        assert (result.levels, result.seconds) == (3, 0.5)
        yes = (lambda: True) if world.rank == who else stops[world.rank]
        with pytest.raises(SearchStopped, match="before it began"):
            runner.search(1, stop=yes)

    on_ranks(2, work)


@pytest.mark.parametrize("who", [0, 1, 2])
def test_one_rank_stops_all(who):
    source = NAMED["path"]

    def work(world):
        made, _ = build(source, 3, world)
        options = SearchOptions.named(exchange="threads", threads=1)
        session = open_parts(world, made, options)
        stop = After(4) if world.rank == who else (lambda: False)
        with pytest.raises(SearchStopped, match="level 3"):
            session.search(0, stop=stop)
        level, _ = session.search(64).to_numpy()
        session.close()
        return level.copy()

    values = np.concatenate(on_ranks(3, work))
    np.testing.assert_array_equal(values, source.distances(64))


@EACH
@pytest.mark.parametrize("seed", [None, 5])
def test_a_few_values(parts, options, seed):
    source = kronecker(9)
    session = session_of(source, parts, seed=seed, **options)
    for root in some_roots(source, 3):
        result = session.search(root)
        whole, parent = result.to_numpy()
        check_search(source, root, whole, parent)
        ids = np.random.default_rng(root).integers(0, source.n, 70)
        level, above = result.at(ids)
        assert (level.dtype, above.dtype) == (np.int32, np.int64)
        np.testing.assert_array_equal(level, whole[ids])
        np.testing.assert_array_equal(above, parent[ids])
        counts = np.bincount(whole[whole >= 0])
        np.testing.assert_array_equal(result.level_counts(), counts)
    empty = result.at(np.zeros(0, np.int64))
    assert [x.shape for x in empty] == [(0,), (0,)]


@EACH
def test_a_search_without_parents(parts, options):
    source = NAMED["kronecker"]
    session = session_of(source, parts, **options)
    result = session.search(3, parents=False)
    np.testing.assert_array_equal(result.to_numpy()[0], source.distances(3))
    assert result.to_numpy()[1] is None
    assert result.at(np.arange(4))[1] is None
    check_search(source, 3, *session.search(3).to_numpy())


def test_a_few_values_of_ranks():
    source = kronecker(8)
    permutation = Permutation(source.n, 3)

    def work(world):
        made, _ = build(source, 4, world, threshold=10, permute_seed=3)
        options = SearchOptions.named(exchange="threads", threads=1)
        session = open_parts(world, made, options, permutation)
        result = session.search(5)
        level, parent = result.at(np.arange(source.n))
        counts = result.level_counts()
        session.close()
        return level, parent, counts

    for level, parent, counts in on_ranks(2, work):
        check_search(source, 5, level, parent)
        np.testing.assert_array_equal(counts, np.bincount(level[level >= 0]))


def test_phases_go_into_a_trace():
    source = NAMED["grid"]
    shown = []
    trace = Trace(push=shown.append, pop=lambda: shown.append("end"))
    session = session_of(source, 2)
    session.watch(trace)
    result = session.search(0)
    names = [span.name for span in trace.spans]
    assert names.count("work") == result.depth + 1 + 1
    spans = [span.values for span in trace.spans if span.name == "level"]
    assert [values["level"] for values in spans] == list(range(1, result.depth + 2))
    for values in spans:
        for sent in ("bytes_sent", "messages_sent"):
            assert values[sent] == dict.fromkeys(KINDS, 0)
    assert names[-1] == "search"
    assert trace.spans[-1].values == {"root": 0}
    assert all(span.begin <= span.end for span in trace.spans)
    whole = trace.spans[-1]
    assert all(whole.begin <= s.begin <= s.end <= whole.end for s in trace.spans)
    assert shown.count("end") == len(names) == len(shown) - len(names)
    alone = session_of(source)
    trace = Trace(limit=2)
    alone.watch(trace)
    for root in range(3):
        alone.search(root)
    assert [span.values["root"] for span in trace.spans] == [1, 2]
