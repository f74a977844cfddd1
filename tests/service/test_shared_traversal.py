"""Small requests for many sources, answered by one traversal."""

import re
import threading

import numpy as np
import pytest
from graphs import build, random_tuples
from hypothesis import given
from hypothesis import strategies as st
from serving import SECONDS, Talker, listen, running, slow_session
from sessions import parts_in_threads
from test_request_queue import numbers, ticket
from worlds import on_ranks

from distbfs.errors import SearchStopped, UsageError
from distbfs.generate.hashing import Permutation
from distbfs.options import SearchOptions
from distbfs.plan import memory
from distbfs.ranks.signals import StopFlag
from distbfs.service import shared_traversal
from distbfs.service.doors import Door
from distbfs.service.limits import Limits
from distbfs.service.rank_calls import ServiceRank
from distbfs.service.request_queue import Tickets
from distbfs.service.service import Service
from distbfs.service.shared_traversal import FEWEST, batch_searcher

SOURCE = random_tuples(300, 500, seed=3)
WHOLE = 1 << 62


def session(parts=1, seed=None, threshold=WHOLE, **options):
    made, _ = build(SOURCE, parts, threshold=threshold, permute_seed=seed)
    permutation = None if seed is None else Permutation(SOURCE.n, seed)
    chosen = SearchOptions.named(threads=1, **options)
    return slow_session(made, chosen, permutation)


@pytest.mark.parametrize("seed", [None, 5])
def test_levels_of_many_sources(seed):
    at_once = batch_searcher(session(seed=seed))
    rng = np.random.default_rng(1)
    sources = rng.permutation(SOURCE.n)[:64].tolist()
    asked = [(sources[k % 64], rng.integers(0, SOURCE.n, k % 5)) for k in range(90)]
    seconds, answers = at_once.levels(asked, lambda: False)
    assert seconds > 0
    for (source, targets), levels in zip(asked, answers, strict=True):
        assert levels == SOURCE.distances(source)[targets].tolist()
    with pytest.raises(SearchStopped):
        at_once.levels(asked, lambda: True)


@pytest.mark.parametrize("seed", [None, 5])
@pytest.mark.parametrize("parents", [True, False])
@pytest.mark.parametrize("few", [1, FEWEST - 1, FEWEST])
def test_pairs_that_lookups_leave_open(seed, parents, few):
    """A few are searched from both ends, others share a traversal."""
    own = session(seed=seed, parents=parents)
    levels = np.stack([SOURCE.distances(v) for v in range(SOURCE.n)])
    far = np.argwhere(levels > 5)[::7][:few].tolist()
    asked = [(7, [7]), *((source, [target]) for source, target in far)]
    _, answers = batch_searcher(own).levels(asked, lambda: False)
    assert answers == [levels[source][targets].tolist() for source, targets in asked]
    assert own._searches == (few if few < FEWEST else 0)
    with pytest.raises(SearchStopped):
        batch_searcher(own).levels(asked, lambda: True)


def test_with_lookups_two_sources_share_a_search(monkeypatch):
    at_once = batch_searcher(session())
    assert at_once.fewest == 2

    def in_another_order(*_):
        raise UsageError("neighbours are not in the order of their degrees")

    monkeypatch.setattr(shared_traversal, "Lookups", in_another_order)
    assert batch_searcher(session()).fewest > 2


@pytest.mark.parametrize("seed", [None, 5])
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_parts_of_any_number_of_ranks(ranks, seed):
    roots = np.random.default_rng(1).permutation(SOURCE.n)[:64].tolist()
    asked = [(root, [0, root, SOURCE.n - 1, 0]) for root in (*roots, roots[3])]

    def rank(world):
        permutation = None if seed is None else Permutation(SOURCE.n, seed)
        made, _ = build(SOURCE, 2 * ranks, world, threshold=4, permute_seed=seed)
        at_once = batch_searcher(parts_in_threads(world, made, permutation))
        answers = [at_once.levels(asked, lambda: False)[1] for _ in range(2)]
        with pytest.raises(SearchStopped):
            at_once.levels(asked, lambda: world.rank == 0)
        return answers

    wanted = [SOURCE.distances(root)[targets].tolist() for root, targets in asked]
    for answers in on_ranks(ranks, rank):
        assert answers == [wanted, wanted]


def test_parts_without_room(monkeypatch, caplog):
    """It is said, and small queries are searched one by one."""
    monkeypatch.setattr(memory, "machine_memory", lambda: (1 << 16, "physical"))
    assert batch_searcher(session(parts=2, threshold=4)) is None
    assert re.search(
        r"one by one: 64 searches at once take \S+ KiB, and a rank may fill \S+ KiB "
        r"beside parts \(80% of physical\)",
        caplog.text,
    )


def test_where_it_cannot_be():
    assert batch_searcher(session(engine="reference")) is None
    assert batch_searcher(session(parts=2, engine="reference")) is None


@pytest.mark.parametrize("options", [{"stepwise": True}, {"threshold": 4}])
def test_one_part_searched_level_by_level(options):
    asked = [(root, [0, root, SOURCE.n - 1]) for root in range(0, SOURCE.n, 9)]
    _, answers = batch_searcher(session(**options)).levels(asked, lambda: False)
    assert answers == [SOURCE.distances(x)[ends].tolist() for x, ends in asked]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["distances", "bfs", "path"]),
            st.integers(0, 4),
        ),
        max_size=14,
    ),
    st.integers(1, 3),
    st.integers(0, 2),
)
def test_groups(asked, fewest, more):
    """Each ticket is answered once; groups of many sources are small and bounded."""
    most, queue = fewest + more, Tickets(20, (fewest, fewest + more))
    for k, (op, source) in enumerate(asked):
        queue.put(ticket(k, op, source))
    seen, left = [], list(range(len(asked)))
    while group := numbers(queue.take(0)):
        assert group[0] == left[0]
        sources = {asked[k][1] for k in group}
        small = [k for k in left if asked[k][0] == "distances"]
        waiting = {asked[k][1] for k in small}
        if group[0] in small and len(waiting) >= fewest:
            assert all(k in small for k in group)
            assert len(sources) == min(most, len(waiting))
            assert group == [k for k in small if asked[k][1] in sources]
        else:
            assert len(sources) == 1
            assert group == [k for k in left if asked[k][1] in sources]
        left = [k for k in left if k not in group]
        seen += group
    assert sorted(seen) == list(range(len(asked)))


def test_a_service_answers_them_by_one_traversal(tmp_path):
    ranks = ServiceRank(session(), StopFlag())
    service = Service(ranks, Limits(), {"n": SOURCE.n})
    slow = ranks.session
    slow.slow = True
    door = Door(service, listen(tmp_path / "s"))
    targets = list(range(SOURCE.n))
    with running(service, [door]), Talker(tmp_path / "s") as talker:
        talker.say({"id": 0, "op": "bfs", "source": 0, "result": "summary"})
        assert slow.begun.acquire(timeout=SECONDS)
        for k in range(1, 13):
            own = {"source": 7 * k, "targets": targets}
            talker.say({"id": k, "op": "distances", **own})
        waited = threading.Event()
        while len(service.tickets) < 12:
            waited.wait(0.002)
        slow.go.set()
        answers = {}
        while len(answers) < 13:
            answer = talker.hear()
            answers[answer["id"]] = answer
        assert slow.searches == 1
        stats = service.stats()
        assert (stats["searches"], stats["shared"]) == (2, 12)
        assert stats["batch"] == {"p50": 1, "p99": 12}
        for k in range(1, 13):
            assert answers[k]["distances"] == SOURCE.distances(7 * k).tolist()
        talker.say({"id": 20, "op": "path", "source": 3, "target": 3})
        assert talker.hear()["path"] == [3]
        assert slow.searches == 2


@pytest.mark.parametrize("seed", [None, 5])
def test_one_target_is_searched_from_both_ends(seed, monkeypatch):
    """Its level and path are those of a search; several targets share one."""
    ranks, paths = ServiceRank(session(seed=seed), StopFlag()), []
    ranks.batches.by_lookups = lambda *_: None
    whole = type(ranks.session).path

    def path(own, source, target, **options):
        paths.append((source, target))
        return whole(own, source, target, **options)

    monkeypatch.setattr(type(ranks.session), "path", path)

    def ask(source, *steps):
        return ranks.search(source, steps, lambda: False)[1]

    for source in (7, (7, 8)):
        for target in range(0, SOURCE.n, 9):
            paths.clear()
            [[level]] = ask(source, ["at", [target]])
            [(distance, way)] = ask(source, ["path", target, 4])
            assert paths == [(source, target)] * 2
            both = ask(source, ["path", target, 4], ["at", [target]])
            assert len(paths) == 2
            assert both[0][0] == both[1][0] == level == distance
            assert (way is None) == (not 0 <= distance < 4) == (both[0][1] is None)
            if source == 7:
                assert level == SOURCE.distances(7)[target]
    with pytest.raises(SearchStopped):
        ranks.search(7, [["path", 8, 4]], lambda: True)


@pytest.mark.parametrize("seed", [None, 5])
def test_lone_requests_are_answered_by_lookups(tmp_path, seed):
    """Where these suffice; the answers are those of searches."""
    ranks = ServiceRank(session(seed=seed), StopFlag())
    service = Service(ranks, Limits(), {"n": SOURCE.n})
    wanted = SOURCE.distances(7)
    known = [int(v) for v in range(SOURCE.n) if 0 <= wanted[v] <= 4]
    far = [int(v) for v in range(SOURCE.n) if wanted[v] > 5][:2]
    with (
        running(service, [Door(service, listen(tmp_path / "s"))]),
        Talker(tmp_path / "s") as talker,
    ):
        for searches, targets in enumerate([known, [*known, *far]]):
            talker.say({"op": "distances", "source": 7, "targets": targets})
            assert talker.hear()["distances"] == wanted[targets].tolist()
            assert ranks.session.searches == searches
        talker.say({"op": "distances", "sources": [7, 8], "targets": [7, 8]})
        assert talker.hear()["distances"] == [0, 0]
        assert ranks.session.searches == 2
