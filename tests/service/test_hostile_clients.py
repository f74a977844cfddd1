"""Clients that say nothing, too much or nonsense: they harm nobody, nor the log."""

import io
import logging
import re
import socket
import time
from contextlib import ExitStack

import pytest
from serving import SECONDS, Talker, make_service, running, serving, wait_for
from test_http import REFUSED, TOKEN, dial
from test_http import serving as serving_http

from distbfs.cli.shared import TextLines
from distbfs.errors import legible
from distbfs.service.client import connect
from distbfs.service.doors import StreamDoor

HEALTH = {"op": "health"}
HALVES = {"nothing": b"", "half a line": b'{"op":', "no line": b"x" * 3000}


@pytest.mark.parametrize("half", HALVES)
def test_idle_clients_keep_nobody_out(half, tmp_path):
    with serving(tmp_path, clients=4, line=300) as (_, path), ExitStack() as stack:
        for _ in range(32):
            stack.enter_context(Talker(path)).socket.sendall(HALVES[half])
        with connect(path) as client:
            assert client.distances(3, [3]) == [0]


@pytest.mark.thorough
@pytest.mark.parametrize("half", HALVES)
def test_idle_clients_are_dropped(half, tmp_path):
    """Also one that goes on with its line all the time."""
    with serving(tmp_path, patience=0.2, line=300) as (_, path), Talker(path) as talker:
        say = HALVES[half] or b"\n"
        with pytest.raises(ConnectionError):
            any(talker.socket.sendall(say) or time.sleep(0.02) for _ in range(3000))


def test_the_first_to_become_idle_gives_way(tmp_path):
    with (
        serving(tmp_path, clients=2) as (_, path),
        Talker(path) as one,
        Talker(path) as two,
    ):
        for talker in (two, one):
            assert talker.ask(HEALTH)["ok"]
        with Talker(path) as three:
            assert two.hear() is None
            for talker in (one, three, one):
                assert talker.ask(HEALTH)["ok"]


def test_clients_may_wait_between_requests(tmp_path):
    with serving(tmp_path, patience=0.1) as (_, path), Talker(path) as talker:
        for _ in range(2):
            assert talker.ask(HEALTH)["ok"]
            time.sleep(0.3)
        assert talker.ask(HEALTH)["ok"]


@pytest.mark.thorough
def test_a_line_has_its_time_from_its_beginning(tmp_path):
    """Others have come whole before it and, in one piece with it, after it."""
    whole = b'{"op": "health"}\n'
    with serving(tmp_path, patience=0.3) as (_, path), Talker(path) as talker:
        for _ in range(6):
            talker.socket.sendall(whole[5:] if _ else whole)
            time.sleep(0.05)
            talker.socket.sendall(whole[:5])
            assert talker.hear()["ok"]
        began = time.monotonic()
        assert talker.hear() is None
        assert 0.1 < time.monotonic() - began < SECONDS


def test_the_client_in_python_comes_back(tmp_path):
    """After it was dropped, and where three share two places."""
    with (
        serving(tmp_path, clients=2, patience=0.4) as (_, path),
        connect(path) as one,
        connect(path) as two,
        connect(path) as three,
    ):
        time.sleep(0.6)
        for client in (one, two, three) * 2:
            assert client.distances(3, [3]) == [0]


def test_stdin_may_wait():
    mine, other = socket.socketpair()
    service = make_service(patience=0.1)
    with running(service, [StreamDoor(service, mine)]), other:
        for piece in (b'{"op":', b' "health"}\n'):
            time.sleep(0.3)
            other.sendall(piece)
        assert b'"ok":true' in other.recv(1000)


def test_texts_from_outside():
    assert legible("é a\tb\n\x1b[2K\u202e\udc80") == r"é a\tb\n\x1b[2K\u202e\udc80"
    assert legible("x" * 101) == "x" * 97 + "..."
    assert legible("\0" * 1_000_000, 10) == r"\x00\x0..."
    assert legible("x" * 9999 + "\n", None) == "x" * 9999 + r"\n"


@pytest.fixture
def log(monkeypatch):
    """What the log of "serve" gets."""
    said = io.StringIO()
    handler = logging.StreamHandler(said)
    handler.setFormatter(TextLines())
    for name in ("distbfs", "uvicorn", "asyncio"):
        monkeypatch.setattr(logging.getLogger(name), "handlers", [handler])
        monkeypatch.setattr(logging.getLogger(name), "propagate", False)
    logging.getLogger("distbfs").setLevel(logging.INFO)
    return said


CHUNKED = "Transfer-Encoding: chunked\r\n\r\n"
AUTHORISED = f"Host: x\r\nAuthorization: Bearer {TOKEN}\r\n"
POST = f"POST /v1/bfs HTTP/1.1\r\n{AUTHORISED}Content-Type: application/json\r\n"
SAID = [
    b"GET /%1b[2K%0Adistbfs:%20r1%20ok HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /" + b"x" * 60_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    b"POST /v1/\xe2 HTTP/1.1\r\nHost: x\r\nContent-Type: \x1b[2K\r\n\r\n",
    f"{POST.replace('json', chr(155) * 999)}\r\n".encode("latin-1"),
    b"B" * 9999 + b" / HTTP/1.1\r\nHost: x\r\n\r\n",
    b"\x1b[2K\n\n",
    f"{POST}Content-Length: 50\r\n\r\n{{".encode(),
    f"{POST}{CHUNKED}5\r\n{{".encode(),
    f"{POST}{CHUNKED}\x1b\r\n".encode(),
    REFUSED,
    REFUSED.replace(b"Content-Length: 9999\r\n\r\n", CHUNKED.encode() + b"z\r\n"),
    b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
]


def test_the_log_has_short_lines_that_can_be_printed(log):
    with serving_http() as (service, address):
        for data in SAID:
            for leaves in (True, False):
                with dial(address) as talker:
                    talker.sendall(data)
                    if not leaves:
                        talker.shutdown(socket.SHUT_WR)
                        while talker.recv(1 << 16):
                            pass
        wait_for(lambda: service.stats()["answers"]["bfs"].get("gone", 0) >= 4)
        lines = log.getvalue().splitlines()
    assert len(lines) > len(SAID)
    for line in lines:
        assert re.fullmatch(r"distbfs: r\d+ [a-z_]+: .*", line), line
        assert line.isprintable()
        assert len(line) < 300


def test_what_is_no_http_is_answered_in_json():
    with serving_http() as (_, address), dial(address) as talker:
        talker.sendall(b"GET\r\n\r\n")
        heard = b"".join(iter(lambda: talker.recv(9999), b""))
        assert heard.startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert b'"code":"bad_request"' in heard
