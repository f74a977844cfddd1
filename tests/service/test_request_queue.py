"""The queue: bounded, in order, one search for one source."""

import threading
import time
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distbfs.errors import ServiceError
from distbfs.service.fields import Served
from distbfs.service.limits import Limits
from distbfs.service.operations import OPERATIONS
from distbfs.service.request_queue import Ticket, Tickets
from distbfs.service.vertex_names import Names

SERVED = Served(Names(99), Limits())
MODELS = {name: operation.model(SERVED) for name, operation in OPERATIONS.items()}


def ticket(number, op="distances", source=0):
    several = isinstance(source, list)
    values = {"sources": source} if several else {"source": source}
    if op == "distances":
        values["targets"] = [source]
    if op in ("path", "all_paths"):
        values["target"] = source
    request = MODELS[op](id=number, **values)
    return Ticket(request, SimpleNamespace(gone=False), f"r{number}", 0.0, 1e18)


def numbers(group):
    return [one.request.id for one in group]


def test_one_source_is_searched_once():
    queue = Tickets(9)
    for k, (op, source) in enumerate(
        [("bfs", 3), ("path", 4), ("bfs", [3]), ("distances", 3), ("path", 3)]
    ):
        queue.put(ticket(k, op, source))
    queue.put(ticket(5, "bfs", [3, 4]))
    assert [numbers(queue.take(0)) for _ in range(4)] == [[0, 2, 3, 4], [1], [5], []]


def test_a_full_queue_is_busy():
    queue = Tickets(2)
    queue.put(ticket(1))
    queue.put(ticket(2, source=1))
    with pytest.raises(ServiceError, match="2 requests wait already") as caught:
        queue.put(ticket(3))
    assert (caught.value.code, caught.value.id) == ("busy", 3)
    queue.take(0)
    queue.put(ticket(4))
    assert len(queue) == 2


def test_waiting_ends_with_a_ticket_or_a_wake():
    queue = Tickets(2)
    for act in (lambda: queue.put(ticket(1)), queue.arrivals.ring):
        timer = threading.Timer(0.02, act)
        timer.start()
        began = time.monotonic()
        queue.take(60)
        assert time.monotonic() - began < 30
        timer.join()


def test_late_and_lost():
    one = ticket(1)
    assert not one.late
    assert not one.lost
    one.client.gone = True
    assert one.lost
    one.until = time.monotonic()
    assert one.late


@given(st.lists(st.tuples(st.sampled_from(["bfs", "path"]), st.integers(0, 3))))
def test_nothing_is_lost_and_the_oldest_goes_first(wanted):
    queue = Tickets(1000)
    for number, (op, source) in enumerate(wanted):
        queue.put(ticket(number, op, source))
    left = list(range(len(wanted)))
    while group := numbers(queue.take(0)):
        assert group[0] == left[0]
        assert len({wanted[number][1] for number in group}) == 1
        for number in group:
            left.remove(number)
    assert not left
