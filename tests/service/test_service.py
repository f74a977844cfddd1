"""A service on a socket: right answers, and nobody harmed by anybody."""

import json
import logging
import re
import socket
import stat
import threading
import time
from io import BufferedReader
from itertools import pairwise

import numpy as np
import pytest
from drawn_examples import examples
from graphs import Tuples, check_search
from hypothesis import given
from hypothesis import strategies as st
from serving import (
    LONE,
    SECONDS,
    SOURCE,
    SlowSession,
    Talker,
    make_service,
    running,
    serving,
    wait_for,
)
from shortest_paths import diamonds
from test_operations import LIKELY

import distbfs
from distbfs.errors import InputError, ServiceError, UsageError, ValidationError
from distbfs.search.paths import NoPaths
from distbfs.search.result import Result
from distbfs.service import rank_calls
from distbfs.service.checker import Checker
from distbfs.service.client import Received, connect
from distbfs.service.doors import Door, listen
from distbfs.service.encoding import decode

N = SOURCE.n
WANTED = SOURCE.distances(3)
FAR = int(np.flatnonzero(WANTED < 0)[0])
NEAR = int(np.flatnonzero(WANTED.max() == WANTED)[0])


def code_of(answer):
    assert answer["ok"] is False
    return answer["error"]["code"]


def block(service):
    """Make searches wait until ``go``; ``begun`` counts from here."""
    service.ranks.session.begun = threading.Semaphore(0)
    service.ranks.session.slow = True


def test_answers(tmp_path):
    with serving(tmp_path) as (service, path), distbfs.connect(path) as client:
        assert client.health() == {"state": "ready"}
        assert client.distances(3, list(range(N))) == WANTED.tolist()
        assert client.path(3, FAR) is None
        assert client.path(3, 3) == [3]
        way = client.path(3, NEAR)
        assert (way[0], way[-1], len(way) - 1) == (3, NEAR, WANTED[NEAR])
        edges = set(map(tuple, SOURCE.edges.tolist()))
        assert all(pair in edges for pair in pairwise(way))
        answer = client.bfs(3)
        level = np.array(answer["level"], dtype=np.int32)
        check_search(SOURCE, 3, level, np.array(answer["parent"]))
        assert answer["levels"] == np.bincount(WANTED[WANTED >= 0]).tolist()
        assert answer["reached"] == (WANTED >= 0).sum()
        assert answer["depth"] == WANTED.max()
        assert answer["nedge"] == (WANTED[SOURCE.u] >= 0).sum()
        assert "parent" not in client.bfs(3, parents=False)
        assert "level" not in client.bfs(1, result="summary")
        stats = client.stats()
        assert stats["graph"] == {"vertices": N}
        assert stats["answers"]["path"] == {"ok": 3}
        assert stats["searches"] == 7
        assert stats["search"]["p50"] > 0
        assert service.metrics.last.source == 1


def test_a_graph_that_is_not_sound(tmp_path, monkeypatch):
    def no_way(*_):
        raise ValidationError("the way back from 7 ends at no source")

    with serving(tmp_path) as (_, path), connect(path) as client:
        with monkeypatch.context() as patch:
            patch.setattr(Result, "_walk_back", no_way)
            patch.setattr(SlowSession, "both_ends", False)
            with pytest.raises(ServiceError, match="the way back from 7") as caught:
                client.path(3, NEAR)
        assert caught.value.code == "broken"
        assert client.path(3, 3) == [3]


def test_sets_of_sources(tmp_path):
    """One search serves requests of the same set, and answers say what it began at."""
    several = [FAR, 3, FAR]
    wanted = SOURCE.distances(np.unique(several))
    with serving(tmp_path) as (service, path), connect(path) as client:
        assert client.distances(several, range(N)) == wanted.tolist()
        assert client.distances({3}, [NEAR]) == [int(WANTED[NEAR])]
        assert client.distances(np.array(several), [FAR, 3]) == [0, 0]
        assert client.path(several, FAR) == [FAR]
        answer = client.bfs(several, result="inline")
        check_search(SOURCE, np.unique(several), *map(as_ids, arrays_in(answer)))
        assert answer["sources"] == sorted({3, FAR})
        assert "source" not in answer
        before = service.ranks.session.searches
        with pytest.raises(ServiceError, match="not both"):
            client.call("bfs", source=1, sources=[2])
        assert service.ranks.session.searches == before


def arrays_in(answer):
    return answer["level"], answer["parent"]


def as_ids(values):
    return np.array(values, dtype=np.int32)


def test_the_example_of_the_manual(tmp_path):
    with serving(tmp_path) as (_, path), Talker(path) as talker:
        assert talker.ask(
            {"id": 7, "op": "distances", "source": 3, "targets": [NEAR, FAR]}
        ) == {"id": 7, "ok": True, "distances": [int(WANTED.max()), -1]}
        assert talker.ask({"id": 8, "op": "path", "source": 3, "target": FAR}) == {
            "id": 8,
            "ok": True,
            "distance": -1,
            "path": None,
        }


def test_arrays_follow_their_answer(tmp_path):
    """More than a socket takes at once, between other answers, and never as text."""
    source = Tuples(1 << 18, [3], [5])
    wanted = source.distances(3)
    asked = {"op": "bfs", "source": 3, "arrays": "npy", "result": "inline"}
    with serving(tmp_path, source) as (_, path), Talker(path) as talker:
        for number in range(2):
            talker.say({"id": number, **asked}, {"id": 2 + number, "op": "health"})
        seen, stream = set(), BufferedReader(Received(talker.socket))
        for _ in range(4):
            line = stream.readline()
            answer = decode(line, stream)
            seen.add(answer["id"])
            if "level" in answer:
                assert b'"level":{"npy":0},"parent":{"npy":1}' in line
                assert answer["level"].dtype == np.int32
                np.testing.assert_array_equal(answer["level"], wanted)
                assert answer["parent"][[3, 5, 0]].tolist() == [3, 3, -1]
        assert seen == {0, 1, 2, 3}
        refused = talker.ask({**asked, "arrays": "json"})
        assert "524288 values inline; allowed: 65536" in refused["error"]["message"]


def test_arrays_for_the_client(tmp_path):
    with serving(tmp_path, binary=2 * N) as (_, path), connect(path) as client:
        many = np.resize(np.arange(N), 2000)
        assert client.distances(3, many) == WANTED[many].tolist()
        assert client.bfs(FAR)["level"].tolist() == SOURCE.distances(FAR).tolist()
        assert client.call("bfs", source=3)["level"] == WANTED.tolist()


def test_arrays_that_are_too_large(tmp_path):
    with serving(tmp_path, binary=2 * N - 1) as (_, path), connect(path) as client:
        with pytest.raises(ServiceError, match=f"{2 * N} values in arrays") as caught:
            client.bfs(3)
        assert caught.value.code == "too_large"
        assert client.bfs(3, parents=False)["level"].tolist() == WANTED.tolist()


def test_answers_that_are_too_large(tmp_path):
    limits = {"inline": 10, "binary": 10}
    with serving(tmp_path, **limits) as (_, path), connect(path) as client:
        searches = client.stats()["searches"]
        with pytest.raises(ServiceError, match="values inline; allowed: 10") as caught:
            client.call("bfs", source=3)
        assert caught.value.code == "too_large"
        with pytest.raises(ServiceError, match="in arrays; allowed: 10; ask for dist"):
            client.bfs(3)
        assert client.stats()["searches"] == searches, "searched for nothing"
        assert "level" not in client.bfs(3, result="summary")


def test_a_long_path_is_told_apart_from_none(tmp_path):
    source = Tuples(30, range(29), range(1, 30))
    with serving(tmp_path, source, inline=20) as (_, path), connect(path) as client:
        assert client.path(0, 19) == list(range(20))
        with pytest.raises(ServiceError, match="the path has 21 vertices") as caught:
            client.path(0, 20)
        assert caught.value.code == "too_large"


def test_all_paths(tmp_path):
    source = diamonds(70)
    edges = [[0, 1], [0, 2], [1, 3], [2, 3], [3, 4], [3, 5], [4, 6], [5, 6]]
    none = {"distance": -1, "count": 0, "edges": None}
    with (
        serving(tmp_path, source, inline=16) as (service, path),
        connect(path) as client,
    ):
        four = {"distance": 4, "count": 4, "edges": edges}
        assert client.all_paths(0, 6) == four
        assert client.all_paths(3, 3) == {"distance": 0, "count": 1, "edges": []}
        with pytest.raises(ServiceError, match="more than 8 edges") as caught:
            client.all_paths(0, 7)
        assert caught.value.code == "too_large"
        service.ranks.session._paths = NoPaths("none here")
        with pytest.raises(ServiceError, match="none here") as caught:
            client.all_paths(0, 6)
        assert caught.value.code == "bad_request"
    with serving(tmp_path) as (_, path), connect(path) as client:
        assert client.all_paths(3, FAR) == none


def test_deadlines_are_answered_while_a_search_is_stuck(tmp_path):
    with serving(tmp_path, queue=2) as (service, path), Talker(path) as talker:
        session = service.ranks.session
        session.slow = session.deaf = True
        for number in range(4):  # a late one leaves its place in the queue
            talker.say({"id": number, "op": "bfs", "source": number, "deadline": 0.1})
            answer = talker.hear()
            assert (answer["id"], code_of(answer)) == (number, "deadline")
        talker.say({"id": 7, "op": "bfs", "source": 7, "result": "summary"})
        session.go.set()
        assert talker.hear()["reached"] > 0
        assert service.stats()["answers"]["bfs"] == {"deadline": 4, "ok": 1}


def test_levels_only(tmp_path):
    options = {"parents": False}
    with serving(tmp_path, options=options) as (_, path), connect(path) as client:
        assert client.distances(3, [NEAR]) == [WANTED[NEAR]]
        assert "parent" not in client.bfs(3)
        with pytest.raises(ServiceError, match="--no-parents"):
            client.path(3, NEAR)


def test_wrong_requests_harm_nobody(tmp_path):
    with serving(tmp_path, line=300) as (service, path), Talker(path) as talker:
        talker.say(b"x" * 1000, b"\x00\xff", b"[1]", {"op": "no"}, b"y" * 299)
        codes = [code_of(talker.hear()) for _ in range(5)]
        assert codes == ["too_large", *["bad_request"] * 2, "unknown_op", "bad_request"]
        assert talker.ask({"id": 1, "op": "health"})["ok"]
        assert service.stats()["answers"]["unknown"] == {
            "bad_request": 3,
            "too_large": 1,
            "unknown_op": 1,
        }


def test_lone_surrogates(tmp_path):
    with serving(tmp_path) as (_, path), Talker(path) as talker:
        for line in LONE:
            talker.say(line)
            answer = talker.hear()
            assert code_of(answer) == "bad_request"
            text = answer["error"]["message"]
            assert text.startswith("not JSON: ")
        whole = rb'{"id": "\ud83d\ude00", "op": "health"}'
        talker.say(whole)
        assert talker.hear() == {"id": "\U0001f600", "ok": True, "state": "ready"}


def test_one_search_for_one_source(tmp_path):
    with serving(tmp_path) as (service, path), Talker(path) as talker:
        block(service)
        talker.say({"id": 0, "op": "bfs", "source": 9, "result": "summary"})
        service.ranks.session.begun.acquire()
        talker.say(
            {"id": 1, "op": "distances", "source": 3, "targets": [NEAR]},
            {"id": 2, "op": "path", "source": 3, "target": NEAR},
            {"id": 3, "op": "distances", "source": 4, "targets": [4]},
            {"id": 4, "op": "bfs", "source": 3},
        )
        wait_for(lambda: len(service.tickets) == 4)
        service.ranks.session.go.set()
        answers = {a["id"]: a for a in (talker.hear() for _ in range(5))}
        assert all(answer["ok"] for answer in answers.values())
        assert answers[1]["distances"] == [answers[2]["distance"]]
        assert answers[4]["level"] == WANTED.tolist()
        assert service.ranks.session.searches == 3


def test_a_full_queue_is_busy_and_health_still_answers(tmp_path):
    with serving(tmp_path, queue=2) as (service, path), Talker(path) as talker:
        block(service)
        talker.say({"id": 0, "op": "distances", "source": 0, "targets": [0]})
        service.ranks.session.begun.acquire()
        for k in (1, 2, 3):
            talker.say({"id": k, "op": "distances", "source": k, "targets": [0]})
        refused = talker.hear()
        assert (refused["id"], code_of(refused)) == (3, "busy")
        assert talker.ask({"id": 4, "op": "health"})["state"] == "ready"
        service.ranks.session.go.set()
        assert sorted(talker.hear()["id"] for _ in range(3)) == [0, 1, 2]


def test_the_log_has_the_seconds_of_a_search(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("distbfs"), "propagate", True)
    caplog.set_level(logging.INFO, logger="distbfs")
    with serving(tmp_path) as (_, path), connect(path) as client:
        spent = client.bfs(1, result="summary")["seconds"]
        wait_for(lambda: "bfs: ok" in caplog.text)
    told = re.search(r"bfs: ok, .*searched ([\d.]+) ms", caplog.text)
    assert float(told[1]) == pytest.approx(1e3 * spent, abs=6e-4)
    assert spent > 0


def test_deadlines_stop_searches(tmp_path):
    with serving(tmp_path) as (service, path), Talker(path) as talker:
        block(service)
        for request in (
            {"op": "distances", "source": 1, "targets": [0]},
            {"op": "bfs", "source": 1, "result": "summary"},
            {"op": "bfs", "sources": [1, 2]},
            {"op": "distances", "sources": [1, 2], "targets": [0]},
            {"op": "path", "source": 1, "target": 2},
            {"op": "all_paths", "source": 1, "target": 2},
        ):
            answer = talker.ask({"id": 5, "deadline": 0.05, **request})
            assert (answer["id"], code_of(answer)) == (5, "deadline")
        assert service.ranks.session.searches == 6
        service.ranks.session.go.set()
        assert talker.ask({"op": "distances", "source": 1, "targets": [1]})["ok"]


def test_deadlines_stop_what_follows_a_search(tmp_path, monkeypatch):
    """A long walk along parents, and the step after a slow one."""
    counts, parent_of, calls = Result.level_counts, Result._parent_of, []

    def slow(method):
        def call(*arguments):
            calls.append(method)
            time.sleep(0.001 if method is parent_of else 0.1)
            return method(*arguments)

        return call

    monkeypatch.setattr(Result, "_parent_of", slow(parent_of))
    monkeypatch.setattr(Result, "level_counts", slow(counts))
    monkeypatch.setattr(Result, "nedge", property(slow(lambda _: 0)))
    monkeypatch.setattr(rank_calls, "OFTEN", 5)
    monkeypatch.setattr(SlowSession, "both_ends", False)  # as of parts and devices
    source = Tuples(1000, range(999), range(1, 1000))
    with serving(tmp_path, source) as (service, path), Talker(path) as talker:
        for request, most in (
            ({"op": "path", "source": 0, "target": 999}, 60),
            ({"op": "bfs", "source": 0, "result": "summary"}, 1),
        ):
            calls.clear()
            answer = talker.ask({"deadline": 0.05, **request})
            assert code_of(answer) == "deadline"
            wait_for(lambda: service.stats()["running"] == 0)
            assert 0 < len(calls) <= most


def test_a_late_request_does_not_stop_one_that_shares_its_search(tmp_path):
    with serving(tmp_path) as (service, path), Talker(path) as talker:
        block(service)
        talker.say({"id": 0, "op": "distances", "source": 9, "targets": [0]})
        service.ranks.session.begun.acquire()
        same = {"op": "distances", "source": 3, "targets": [NEAR]}
        talker.say({"id": 1, **same}, {"id": 2, "deadline": 0.2, **same})
        wait_for(lambda: len(service.tickets) == 2)
        service.ranks.session.slow = False
        service.ranks.session.go.set()
        answers = {a["id"]: a for a in (talker.hear() for _ in range(3))}
        assert answers[1]["ok"]


def test_a_client_that_leaves_costs_no_search(tmp_path):
    with serving(tmp_path) as (service, path), Talker(path) as other:
        block(service)
        with Talker(path) as talker:
            for k in range(3):
                talker.say({"id": k, "op": "distances", "source": k, "targets": [0]})
            service.ranks.session.begun.acquire()
        wait_for(lambda: service.stats()["answers"].get("distances") == {"gone": 3})
        assert service.ranks.session.searches == 1, "searched for nobody"
        service.ranks.session.go.set()
        assert other.ask({"op": "distances", "source": 3, "targets": [3]})["ok"]


def test_a_client_that_has_said_all_gets_all(tmp_path):
    with serving(tmp_path) as (_, path), Talker(path) as talker:
        talker.say({"id": 1, "op": "distances", "source": 3, "targets": [NEAR]})
        talker.socket.sendall(b'{"id": 2, "op": "health"}')  # without an end of line
        talker.socket.shutdown(socket.SHUT_WR)
        assert {talker.hear()["id"] for _ in range(2)} == {1, 2}
        assert talker.hear() is None


def test_a_client_that_does_not_read_is_dropped(tmp_path):
    with serving(tmp_path, patience=0.3) as (service, path), Talker(path) as other:
        assert other.ask({"op": "health"})["ok"]
        with Talker(path) as talker:
            talker.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            everything = {"op": "bfs", "source": 3}
            wait = json.dumps(everything).encode() + b"\n"
            with pytest.raises(OSError, match=r"[Bb]roken pipe|reset"):
                talker.socket.sendall(wait * 20_000)
            # its requests are open while it does not read; the others go on
            assert other.ask({"op": "health"})["ok"]
            wait_for(lambda: service.stats()["queue"] == 0)
        assert other.ask({"op": "distances", "source": 3, "targets": [3]})["ok"]


def test_an_answer_leaves_while_the_front_is_held_up(tmp_path, monkeypatch):
    with serving(tmp_path) as (service, path), Talker(path) as talker:
        assert talker.ask({"op": "health"})["ok"]
        block(service)
        talker.say({"op": "distances", "source": 3, "targets": [3]})
        session, held = service.ranks.session, threading.Event()
        assert session.begun.acquire(timeout=SECONDS)
        holds = threading.Event()
        monkeypatch.setattr(
            service, "expire", lambda: holds.set() or held.wait(SECONDS)
        )
        assert holds.wait(SECONDS)
        session.go.set()
        talker.socket.settimeout(SECONDS / 2)
        try:
            assert talker.hear()["distances"] == [0]
        finally:
            held.set()


def test_a_lone_request_wakes_no_other_thread(tmp_path, monkeypatch):
    """The searching thread reads and answers it; the front reads while it searches."""
    readers, line = [], Checker.check

    def noted(checker, data):
        readers.append(threading.current_thread().name)
        return line(checker, data)

    monkeypatch.setattr(Checker, "check", noted)
    asked = {"op": "distances", "source": 3, "targets": [3]}
    with serving(tmp_path) as (service, path), Talker(path) as talker:
        answering = []
        end = service._end

        def finished(*arguments):
            answering.append(threading.current_thread().name)
            end(*arguments)

        monkeypatch.setattr(service, "_end", finished)
        for _ in range(20):
            assert talker.ask(asked)["ok"]
            assert talker.ask({"op": "health"})["ok"]
        assert answering
        assert "front" not in {*readers, *answering}
        readers.clear()
        block(service)
        talker.say(asked)
        assert service.ranks.session.begun.acquire(timeout=SECONDS)
        with Talker(path) as other:
            assert other.ask({"op": "health"})["ok"]
        assert readers[1:] == ["front"]
        service.ranks.session.go.set()
        assert talker.hear()["ok"]


def test_what_waits_is_read_while_an_expired_search_goes_on(tmp_path):
    """A deadline that passes in a stuck search answers it, and the front reads on."""
    with serving(tmp_path) as (service, path), Talker(path) as talker:
        session = service.ranks.session
        session.slow = session.deaf = True
        asked = {"op": "distances", "source": 3, "targets": [3], "deadline": 0.05}
        assert code_of(talker.ask(asked)) == "deadline"
        for _ in range(3):
            assert talker.ask({"op": "health"})["ok"]
        session.go.set()


def test_clients_are_heard_while_ranks_are_waited_for(tmp_path, monkeypatch):
    """The look for signals on other ranks, of which one may be stuck."""
    with serving(tmp_path) as (service, path), Talker(path) as talker:
        looks, go = threading.Semaphore(0), threading.Event()

        def look():
            looks.release()
            go.wait(SECONDS)
            return False

        monkeypatch.setattr(service.ranks, "look", look)
        assert looks.acquire(timeout=SECONDS)
        talker.socket.settimeout(SECONDS / 2)
        assert talker.ask({"op": "health"})["ok"]
        go.set()
        assert talker.ask({"op": "distances", "source": 3, "targets": [3]})["ok"]


def test_a_client_may_say_more_than_may_be_open(tmp_path):
    """What is beyond the pipeline is read later, also after the end was said."""
    with serving(tmp_path, pipeline=2) as (service, path), Talker(path) as talker:
        block(service)
        asked = {"op": "distances", "source": 3, "targets": [3]}
        talker.say(*({"id": k, **asked} for k in range(9)))
        talker.socket.shutdown(socket.SHUT_WR)
        assert service.ranks.session.begun.acquire(timeout=SECONDS)
        assert len(service.tickets.unanswered) == 2
        service.ranks.session.go.set()
        assert [talker.hear()["id"] for _ in range(9)] == list(range(9))
        assert talker.hear() is None


def test_a_client_that_says_much_holds_up_no_search(tmp_path, monkeypatch):
    """A few of its lines are handled at once, then others get their turn."""
    handled, line = [], Checker.check

    def noted(checker, data):
        handled.append(data)
        return line(checker, data)

    monkeypatch.setattr(Checker, "check", noted)
    asked = {"op": "distances", "source": 3, "targets": [3]}
    with (
        serving(tmp_path) as (service, path),
        Talker(path) as talker,
        Talker(path) as other,
    ):
        for each in (talker, other):
            assert each.ask({"op": "health"})["ok"]
        handled.clear()
        arrivals = service.tickets.arrivals
        wait_for(lambda: arrivals._asleep)
        with arrivals.turn:
            arrivals.ring()  # then it sees the lines of both at once
            wait_for(lambda: not arrivals._asleep)
            talker.say(*[b"x"] * 200)
            other.say(asked)
        assert other.hear()["ok"]
        for _ in range(200):
            assert code_of(talker.hear()) == "bad_request"
        assert handled.index(json.dumps(asked).encode()) <= service.limits.pipeline
        assert len(handled) == 201


def test_a_fault_in_a_connection_harms_nobody_else(tmp_path, monkeypatch, capfd):
    line = Checker.check

    def broken(checker, data):
        if b"break" in data:
            raise ZeroDivisionError("a fault")
        return line(checker, data)

    monkeypatch.setattr(Checker, "check", broken)
    with serving(tmp_path) as (_, path), Talker(path) as other:
        with Talker(path) as talker:
            talker.say(b"break")
            assert talker.hear() is None
        assert other.ask({"op": "health"})["ok"]


@pytest.mark.thorough
def test_answers_stay_whole_however_late_a_client_reads(tmp_path):
    rng = np.random.default_rng(3)
    with serving(tmp_path, inline=1 << 20) as (_, path), Talker(path) as talker:
        sources = rng.integers(0, N, 1500).tolist()
        asked = {"op": "bfs", "result": "inline"}

        def say():
            for k, source in enumerate(sources):
                health = {"id": -1 - k, "op": "health"}
                talker.say({"id": k, "source": source, **asked}, health)

        saying = threading.Thread(target=say)
        saying.start()
        time.sleep(0.5)  # the client is behind
        answers = {}
        for _ in range(2 * len(sources)):
            answer = talker.hear()
            answers[answer["id"]] = answer
        saying.join()
        assert answers.keys() == set(range(-len(sources), len(sources)))
        for k, source in enumerate(sources):
            assert answers[k]["level"] == SOURCE.distances(source).tolist()


def test_too_many_clients(tmp_path):
    with serving(tmp_path, clients=2) as (service, path):
        block(service)
        with Talker(path) as one, Talker(path) as two:
            for talker in (one, two):
                talker.say({"op": "distances", "source": 3, "targets": [3]})
            wait_for(lambda: len(service.tickets.unanswered) == 2)
            with Talker(path) as three:
                assert code_of(three.ask({"op": "health"})) == "busy"
                assert three.hear() is None
            with pytest.raises(ServiceError, match="are open already") as caught:
                connect(path).health()
            assert caught.value.code == "busy"
            service.ranks.session.go.set()
            assert one.hear()["ok"]
        with Talker(path) as again:
            wait_for(lambda: (again.ask({"op": "health"}) or {}).get("ok"))


def test_draining_answers_what_waits(tmp_path):
    with serving(tmp_path) as (service, path), Talker(path) as talker:
        block(service)
        for k in range(3):
            talker.say({"id": k, "op": "distances", "source": k, "targets": [k]})
        service.ranks.session.begun.acquire()
        wait_for(lambda: len(service.tickets) == 2)
        talker.say({"id": 3, "op": "shutdown"})
        assert talker.hear() == {"id": 3, "ok": True, "state": "draining"}
        refused = talker.ask({"id": 4, "op": "distances", "source": 1, "targets": [1]})
        assert code_of(refused) == "draining"
        service.ranks.session.go.set()
        assert [talker.hear()["distances"] for _ in range(3)] == [[0]] * 3
        assert talker.hear() is None


def test_an_error_of_a_search_ends_the_service(tmp_path, monkeypatch):
    service = make_service()

    def fault(*_, **__):
        raise MemoryError("gone")

    monkeypatch.setattr(service.ranks.session, "path", fault)
    door = Door(service, listen(tmp_path / "s"))
    heard = []

    def ask():
        with running(service, [door]), Talker(tmp_path / "s") as talker:
            talker.say({"op": "distances", "source": 1, "targets": [1]})
            heard.append(talker.hear())

    with pytest.raises(MemoryError):
        ask()
    assert heard == [None]


def test_the_socket(tmp_path):
    with serving(tmp_path) as (_, path):
        mode = path.stat().st_mode
        assert stat.S_ISSOCK(mode)
        assert stat.S_IMODE(mode) == 0o600
        with pytest.raises(UsageError, match="answers there already"):
            listen(path)
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(path))
    dead.close()
    listen(path).close()
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UsageError, match="is not a socket"):
        listen(tmp_path / "file")
    with pytest.raises(UsageError, match="up to 107 bytes"):
        listen(tmp_path / ("x" * 107))
    with pytest.raises(InputError, match="there is no folder"):
        listen(tmp_path / "no" / "s")


def test_no_service(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "none", tmp_path / "file"):
        with pytest.raises(ServiceError) as caught:
            connect(path)
        assert caught.value.code == "not_found"


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz")
    with serving(folder) as (service, path):
        yield service, path


@examples(60)
@given(
    st.lists(
        st.binary(max_size=60).filter(lambda x: b"\n" not in x)
        | LIKELY.filter(lambda x: x["op"] != "shutdown").map(
            lambda x: json.dumps(x).encode()
        ),
        max_size=12,
    ),
    st.booleans(),
)
def test_anything_on_the_socket(shared, lines, leaves):
    """One answer for each line, however the client ends."""
    service, path = shared
    with Talker(path) as talker:
        talker.say(*lines)
        if leaves:
            return
        talker.socket.shutdown(socket.SHUT_WR)
        answers = []
        while (answer := talker.hear()) is not None:
            answers.append(answer)
        assert len(answers) == sum(1 for line in lines if line.strip())
        for answer in answers:
            assert answer["ok"] or answer["error"]["code"] in ServiceError.CODES
    with connect(path) as client:
        assert client.distances(3, [NEAR]) == [WANTED[NEAR]]
        assert not service.draining
