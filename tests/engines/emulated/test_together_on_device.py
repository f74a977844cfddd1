"""Small queries of a service that one traversal on devices answers."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from device_graphs import HostGraph
from graphs import NO_VERTEX, random_tuples
from resident_parts import resident_parts
from sessions import open_tuples, query_session
from thread_peers import ThreadPeers
from worlds import on_ranks

from distbfs.device import cuda
from distbfs.errors import SearchStopped
from distbfs.multisearch import cuda_bits
from distbfs.ranks.signals import StopFlag
from distbfs.search import choose, domain_group
from distbfs.search.choose import Request
from distbfs.service import service as service_module
from distbfs.service.limits import Limits
from distbfs.service.rank_calls import ServiceRank
from distbfs.service.service import Service
from distbfs.service.shared_traversal import MOST, batch_searcher

SOURCE = random_tuples(400, 500, 3)


def session_of(made):
    return query_session(made.graph)


def asked_of(source):
    """Sources, and (source, targets) for each, in another order, some of them twice."""
    sources = np.random.default_rng(1).permutation(source.n)[:MOST].tolist()
    return sources, [(s, [0, s, source.n - 1, 0]) for s in [*sources[::-1], sources[0]]]


def check_answers(source, asked, answers):
    for (root, targets), levels in zip(asked, answers, strict=True):
        assert levels == source.distances(root)[targets].tolist()


def test_levels_of_many_sources(device):
    at_once = batch_searcher(session_of(HostGraph(SOURCE)))
    _, asked = asked_of(SOURCE)
    for _ in range(2):
        seconds, levels = at_once.levels(asked, lambda: False)
        assert seconds > 0
        check_answers(SOURCE, asked, levels)
    with pytest.raises(SearchStopped):
        at_once.levels(asked, lambda: True)


def test_where_it_cannot_be(device):
    assert batch_searcher(session_of(HostGraph(NO_VERTEX))) is None


def domain(monkeypatch, count):
    """A session of one domain of several devices, which are one."""
    monkeypatch.setattr(choose, "take_devices", lambda *_, **__: [0] * count)
    monkeypatch.setattr("distbfs.exchange.peer_memory.peer_problem", lambda *_: "")
    return open_tuples(SOURCE, request=Request(domain=count))


@pytest.mark.parametrize("count", [2, 3])
def test_a_domain_of_devices(device, monkeypatch, count):
    """Beside searches of the session, again and again."""
    session = domain(monkeypatch, count)
    at_once = batch_searcher(session)
    sources, asked = asked_of(SOURCE)
    for root in sources[:2]:
        seconds, levels = at_once.levels(asked, lambda: False)
        assert seconds > 0
        check_answers(SOURCE, asked, levels)
        level, _ = session.search(root).to_numpy()
        np.testing.assert_array_equal(level, SOURCE.distances(root))
    with pytest.raises(SearchStopped):
        at_once.levels(asked, lambda: True)
    session.close()


def test_a_service_on_several_devices(device, monkeypatch):
    """What waits, for many sources, is answered by one traversal."""
    session = domain(monkeypatch, 2)
    ranks = ServiceRank(session, StopFlag())
    service = Service(ranks, Limits(), {"n": SOURCE.n})
    searched, answers = [], {}
    monkeypatch.setattr(session, "search", lambda *_, **__: searched.append(1))
    targets = list(range(SOURCE.n))
    for k in range(12):
        told = {"id": k, "op": "distances", "source": 7 * k, "targets": targets}
        request = service.checker.check(json.dumps(told).encode())
        client = SimpleNamespace(answer=lambda x: answers.update({x.id: x}), gone=False)
        service.submit(request, client, "r")
    service.drain()
    service.run(StopFlag())
    assert service.stats()["searches"] == 1
    assert not searched
    for k in range(12):
        assert answers[k].distances == SOURCE.distances(7 * k).tolist()
    session.close()


@pytest.mark.parametrize("half", [False, True])
def test_a_service_whose_searches_fly(device, monkeypatch, half):
    """Requests come while others are searched for; all are answered, also the last."""
    monkeypatch.setattr(service_module, "halves_pay", lambda *_: half)
    session = session_of(HostGraph(SOURCE))
    session.options = SimpleNamespace(parents=False)
    session.paths = SimpleNamespace(refusal="")
    service = Service(ServiceRank(session, StopFlag()), Limits(), {"n": SOURCE.n})
    answers, targets = {}, [0, 1, SOURCE.n - 1]
    left = iter(range(300))

    def submit(k):
        told = {"id": k, "op": "distances", "source": k % SOURCE.n, "targets": targets}
        request = service.checker.check(json.dumps(told).encode())
        service.submit(request, SimpleNamespace(answer=answered, gone=False), "r")

    def answered(answer):
        """Keep an answer and ask the next, as a client does."""
        answers[answer.id] = answer.distances
        following = next(left, None)
        if following is None:
            service.draining = True
        elif not service.draining:
            submit(following)

    for _ in range(40):
        submit(next(left))
    service.run(StopFlag())
    assert sorted(answers) == list(range(300))
    for k, levels in answers.items():
        assert levels == SOURCE.distances(k % SOURCE.n)[targets].tolist()
    sizes = service.stats()["batch"]["p50"]
    assert sizes == (20 if half else 40)


def test_a_domain_without_room_for_it(device, monkeypatch):
    session = domain(monkeypatch, 2)
    monkeypatch.setattr(cuda, "free_bytes", lambda: cuda_bits.RESERVE)
    assert batch_searcher(session) is None
    session.close()


def test_ranks_follow_the_first(device, monkeypatch):
    """Also in a traversal that the first gives up, and in the next."""
    monkeypatch.setattr(domain_group, "PeerGroup", ThreadPeers)
    _, asked = asked_of(SOURCE)
    call = {"do": "batch", "asked": asked}

    def rank(world):
        rows, _ = resident_parts(SOURCE, world.size, world)
        held = SimpleNamespace(shares=rows, parts=())
        session = SimpleNamespace(
            world=world,
            held=held,
            vertices=SimpleNamespace(inside=lambda ids: ids),
            layout=SimpleNamespace(n=SOURCE.n, parts=world.size),
            options=SimpleNamespace(engine="xbfs"),
            separated=None,
            at_close=[],
        )
        ranks = ServiceRank(session, StopFlag())
        if world.rank:
            ranks.follow()
        else:
            with pytest.raises(SearchStopped):
                ranks.start(call, lambda: True).finish()
            _, levels = ranks.start(call, lambda: False).finish()
            check_answers(SOURCE, asked, levels)
            ranks.end()
        [close] = session.at_close
        close()

    on_ranks(3, rank)
