"""Who reads what arrives: the thread that waits for it, else the front."""

import contextlib
import select
import socket
import threading
import time
from types import SimpleNamespace

import pytest

from distbfs.service import arrivals as arrivals_of
from distbfs.service.arrivals import Arrivals

LONG = 60.0  # seconds, which no test waits


class Client:
    """Two ends of a socket, and what was read at one of them by which thread."""

    def __init__(self, arrivals):
        self.here, self.there = socket.socketpair()
        self.here.setblocking(False)
        self.read = []
        self.arrivals = arrivals
        arrivals.add(self.here.fileno(), self.take)

    def take(self):
        self.read.append((threading.get_ident(), self.here.recv(1 << 10)))


@pytest.fixture
def arrivals():
    return Arrivals()


@pytest.fixture
def client(arrivals):
    made = Client(arrivals)
    with made.here, made.there:
        yield made


def shown(arrivals):
    """Whether the front would be woken."""
    return bool(select.select([arrivals], [], [], 0)[0])


def later(act):
    timer = threading.Timer(0.02, act)
    timer.start()
    return timer


def test_the_thread_that_waits_reads_and_the_front_sleeps(arrivals, client):
    timer = later(lambda: client.there.send(b"request"))
    began = time.monotonic()
    arrivals.wait(LONG, [])
    assert time.monotonic() - began < LONG / 2
    assert client.read == [(threading.get_ident(), b"request")]
    timer.join()
    client.there.send(b"next")
    assert not shown(arrivals), "the next one is for the searching thread, too"


def test_the_front_reads_while_the_other_thread_is_away(arrivals, client):
    client.there.send(b"before")
    assert not shown(arrivals)
    arrivals.leave()
    assert shown(arrivals), "also what came before"
    arrivals.read()
    assert not shown(arrivals)
    client.there.send(b"after")
    assert shown(arrivals)
    arrivals.stay()
    assert not shown(arrivals)
    arrivals.wait(LONG, [])
    assert [data for _, data in client.read] == [b"before", b"after"]


def test_waiting_lets_the_front_sleep(arrivals, client):
    arrivals.leave()
    arrivals.wait(0, [])
    client.there.send(b"x")
    assert not shown(arrivals)


def test_a_ring_ends_one_wait(arrivals):
    timer = later(arrivals.ring)
    arrivals.wait(LONG, [])
    timer.join()
    began = time.monotonic()
    arrivals.wait(0.05, [])
    assert time.monotonic() - began > 0.04


def test_a_ring_that_nobody_waits_for_wakes_nobody(arrivals):
    arrivals.ring()
    arrivals.leave()
    assert not shown(arrivals)


def test_nothing_is_waited_for_where_there_is_work(arrivals, client):
    client.there.send(b"x")
    began = time.monotonic()
    arrivals.wait(LONG, ["a ticket"])
    assert time.monotonic() - began < LONG / 2
    assert len(client.read) == 1


def test_what_is_removed_is_left_alone(arrivals, client):
    handle = client.here.fileno()
    client.there.send(b"x")
    for _ in range(2):
        arrivals.remove(handle)
        arrivals.wait(0, [])
        arrivals.leave()
        assert not shown(arrivals)
    assert not client.read
    arrivals.add(handle, client.take)
    arrivals.add(handle, client.take)
    arrivals.wait(LONG, [])
    assert len(client.read) == 1


def test_an_end_is_read_as_well(arrivals, client):
    client.there.close()
    arrivals.wait(LONG, [])
    assert client.read == [(threading.get_ident(), b"")]


def test_many_clients_of_two_threads_lose_nothing(arrivals):
    """Both threads read in turns; every byte is read once and in order."""
    clients = [Client(arrivals) for _ in range(8)]
    locks = {id(x): threading.Lock() for x in clients}
    for x in clients:

        def take(x=x):
            with locks[id(x)], contextlib.suppress(BlockingIOError):
                Client.take(x)

        arrivals.remove(x.here.fileno())
        arrivals.add(x.here.fileno(), take)
    over = threading.Event()

    def front():
        while not over.is_set():
            if select.select([arrivals], [], [], 0.01)[0]:
                arrivals.read()

    def say(x):
        for k in range(200):
            x.there.send(bytes([k]))

    def total():
        return sum(len(data) for x in clients for _, data in x.read)

    threads = [threading.Thread(target=say, args=(x,)) for x in clients]
    threads.append(threading.Thread(target=front))
    for thread in threads:
        thread.start()
    end = time.monotonic() + 60
    while total() < 200 * len(clients):
        assert time.monotonic() < end
        arrivals.wait(0.01, [])
        arrivals.leave()
        time.sleep(0.001)
    over.set()
    for thread in threads:
        thread.join()
    for x in clients:
        assert b"".join(data for _, data in x.read) == bytes(range(200))
        x.here.close()
        x.there.close()


class Polled:
    """An epoll that is asked ``after`` times before it has something, or never."""

    def __init__(self, after=None):
        self.after, self.timeouts = after, []

    def poll(self, timeout):
        self.timeouts.append(timeout)
        if timeout:  # it sleeps, and is woken
            return [(-1, select.EPOLLIN)] if self.after is not None else []
        if self.after is not None and len(self.timeouts) > self.after:
            return [(-1, select.EPOLLIN)]
        return []


def waits(arrivals, after=None):
    """How often a wait looks, and whether it sleeps in the end."""
    arrivals._sockets = polled = Polled(after)
    arrivals.wait(LONG, [])
    *looks, last = polled.timeouts
    assert not any(looks), "it sleeps once, at the end"
    return len(polled.timeouts) - (last == LONG), last == LONG


@pytest.fixture
def clock(monkeypatch):
    """A clock that goes on by 1/10 of SPIN at each look at it."""
    ticks = iter(range(10_000))
    tick = arrivals_of.SPIN / 10
    stand_in = SimpleNamespace(perf_counter=lambda: next(ticks) * tick)
    monkeypatch.setattr(arrivals_of, "time", stand_in)


def test_a_client_that_asks_again_at_once_wakes_nobody(arrivals, clock):
    arrivals._alone = False
    assert waits(arrivals, 0) == (0, True), "the first time, it sleeps"
    assert waits(arrivals, 3) == (4, False), "the last wait was short"
    assert waits(arrivals, 3) == (4, False)
    looks, sleeps = waits(arrivals)
    assert sleeps
    assert 5 < looks < 12, "for SPIN seconds"
    assert waits(arrivals) == (0, True), "the last wait was long"
    assert waits(arrivals, 0) == (0, True)
    assert waits(arrivals, 2) == (3, False)


def test_a_lone_processor_is_left_to_the_client(arrivals, clock):
    arrivals._alone = True
    for _ in range(3):
        assert waits(arrivals, 0) == (0, True)
