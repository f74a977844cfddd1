"""Limits of one client: in flight, a second, and what is forgotten."""

import json

import pytest
from serving import Talker, serving, wait_for

from distbfs.errors import ServiceError
from distbfs.service.limits import KEPT, Limits, Quota, Quotas


class Clock:
    """A clock that tests set."""

    now = 100.0

    def __call__(self):
        return self.now


def refused(quota):
    with pytest.raises(ServiceError) as caught:
        quota.begin()
    assert caught.value.code == "too_many"
    return caught.value


def test_requests_in_flight():
    quota = Quota(Limits(in_flight=2), Clock())
    quota.begin()
    quota.begin()
    assert "2 requests of this client are in flight; allowed: 2" in str(refused(quota))
    quota.end()
    quota.begin()
    refused(quota)


@pytest.mark.parametrize(("rate", "burst"), [(4.0, 4), (0.5, 1)])
def test_requests_a_second(rate, burst):
    clock = Clock()
    quota = Quota(Limits(rate=rate), clock)
    for _ in range(burst):
        quota.begin()
    assert refused(quota).retry == pytest.approx(1 / rate)
    clock.now += 0.5 / rate
    assert f"more than {rate:g} requests a second" in str(error := refused(quota))
    assert error.retry == pytest.approx(0.5 / rate)
    clock.now += 0.51 / rate
    quota.begin()
    clock.now += 1000  # no more than a burst is saved
    for _ in range(burst):
        quota.begin()
    refused(quota)


def test_no_limits():
    quota = Quota(Limits(), Clock())
    for _ in range(1000):
        quota.begin()


def test_clients_that_are_quiet_are_forgotten():
    clock = Clock()
    quotas = Quotas(Limits(rate=1.0), clock)
    busy = quotas.of("busy")
    busy.begin()
    for k in range(3 * KEPT):
        clock.now += 2
        quotas.of(str(k)).begin()
        quotas.of(str(k)).end()
    assert len(quotas._known) <= KEPT
    assert quotas.of("busy") is busy


def test_each_connection_has_its_own(tmp_path):
    """What is refused is answered with its id, and harms no other client."""
    with serving(tmp_path, in_flight=2) as (service, path):
        session = service.ranks.session
        session.slow = True
        with Talker(path) as one, Talker(path) as other:
            for k in range(4):
                one.say({"id": k, "op": "bfs", "source": k, "result": "summary"})
            for number in (2, 3):
                answer = one.hear()
                assert (answer["id"], answer["error"]["code"]) == (number, "too_many")
            other.say({"id": 7, "op": "bfs", "source": 7, "result": "summary"})
            wait_for(lambda: len(service.tickets) == 2)
            session.go.set()
            assert other.hear()["ok"]
            assert {one.hear()["id"], one.hear()["id"]} == {0, 1}
            for op in ("bfs", "health"):
                assert one.ask({"op": op, "source": 1} if op == "bfs" else {"op": op})
        counts = service.stats()["answers"]["bfs"]
        assert counts["too_many"] == 2
        json.dumps(counts)


def test_wrong_requests_are_not_in_flight(tmp_path):
    with serving(tmp_path, in_flight=1) as (_, path), Talker(path) as one:
        for wrong in ({"op": "no"}, {"op": "bfs", "source": 1, "result": "auto"}):
            for _ in range(3):
                code = one.ask(wrong)["error"]["code"]
                assert code in ("unknown_op", "bad_request")
        assert one.ask({"op": "health"})["ok"]
