"""The client: numbers of NumPy, plain messages, and types for those who check them."""

import doctest
import re
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from graphs import Tuples
from serving import SOURCE, serving

import distbfs
from distbfs.errors import ServiceError
from distbfs.formats.ids import CountedIds
from distbfs.service import client as module
from distbfs.service.fields import Served
from distbfs.service.limits import Limits
from distbfs.service.openapi import request_schemas
from distbfs.service.vertex_names import Names

WANTED = SOURCE.distances(3)
PROGRAM = """\
import numpy as np
import distbfs

client = distbfs.connect("x")
levels: list[int] = client.distances(0, [1])
levels = client.distances(np.int64(0), np.array([3, 9]))
levels = distbfs.connect("x", token="y", timeout=1.0).distances("a", ["b"])
client.path(0)  # wrong
client.distances(0.5, [1])  # wrong
"""
BODY = b"Content-Length: 1\r\n\r\nx"
TWICE = b'{"id":1,"ok":true} {}\n'
JUNK = [b"junk\r\n", b"[]\n", TWICE, b"\xff\n", b"HTTP/1.1 502 Bad Gateway\r\n" + BODY]
MOVED = b"HTTP/1.1 302 Moved\r\nLocation: http://127.0.0.1:1\r\n" + BODY


def test_numbers_of_numpy(tmp_path):
    with serving(tmp_path) as (_, path), distbfs.connect(path) as client:
        targets = np.array([3, 9, 11])
        wanted = WANTED[targets].tolist()
        for kind in (np.int64, np.uint8, np.int32):
            assert client.distances(kind(3), targets.astype(kind)) == wanted
        assert client.distances(3, tuple(targets)) == wanted
        assert client.path(np.int64(3), np.int32(3)) == [3]
        answer = client.bfs(
            np.int64(3), parents=np.bool_(False), deadline=np.float32(5)
        )
        assert answer["level"].tolist() == WANTED.tolist()
        several = client.bfs(targets, result="summary")
        assert several["sources"] == targets.tolist()
        with pytest.raises(ServiceError, match="complex cannot be sent") as caught:
            client.call("distances", source=3, targets=[1j])
        assert caught.value.code == "bad_request"
        assert client.health() == {"state": "ready"}
        assert repr(client) == f"<distbfs.SocketClient of {path}>"


def test_vertices_that_count_from_1(tmp_path):
    """The path 1 2 3 and the vertex 4, as arrays and as JSON."""
    path = Tuples(4, np.array([0, 1]), np.array([1, 2]))
    ids = CountedIds(4)
    with (
        serving(tmp_path, path, ids=ids) as (_, address),
        distbfs.connect(address) as client,
    ):
        assert client.distances(3, [1, 2, 4]) == [2, 1, -1]
        assert client.distances(1, np.array([3, 4])) == [2, -1]
        assert client.path(3, 1) == [3, 2, 1]
        assert client.all_paths(3, 1)["edges"] == [[2, 1], [3, 2]]
        for arrays in ("npy", "json"):
            one = client.call("bfs", source=3, arrays=arrays)
            assert (one["source"], one["first_id"]) == (3, 1)
            assert list(one["level"]) == [2, 1, 0, -1]
            assert list(one["parent"]) == [2, 3, 3, -1]
        several = client.bfs([4, 1], result="summary")
        assert (several["sources"], "first_id" in several) == ([1, 4], False)
        assert client.bfs([1, 4])["first_id"] == 1
        for wrong in (0, 5, "1"):
            with pytest.raises(ServiceError, match="allowed: vertices 1 to 4"):
                client.distances(wrong, [1])
            with pytest.raises(ServiceError, match="allowed: vertices 1 to 4"):
                client.distances(1, [wrong])
    schema = request_schemas(Served(Names(4, ids), Limits()))[0]
    vertex = schema["properties"]["source"]
    assert {"minimum": 1, "maximum": 4}.items() <= vertex.items()


def test_examples_in_docstrings(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with serving(tmp_path, Tuples(4, [0, 1], [1, 2])) as (_, path):
        Path("graph.sock").symlink_to(path)
        done = doctest.testmod(module)
    assert done.attempted > 20
    assert not done.failed


@contextmanager
def answering(reply, listening):
    """Something that answers one client with bytes, None for never."""
    listening.settimeout(20)
    over = threading.Event()

    def answer():
        connection, _ = listening.accept()
        with connection:
            connection.recv(1 << 16)
            if reply is None:
                over.wait(20)
            else:
                connection.sendall(reply)

    thread = threading.Thread(target=answer)
    with listening:
        thread.start()
        yield
        over.set()
        thread.join()


@pytest.mark.thorough
@pytest.mark.parametrize("way", ["http", "socket"])
@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (b"", "the connection ended"),
        (None, "no answer within 0.5 seconds"),
        (MOVED, "the answer is not from a service of distbfs"),
        *((reply, "the answer is not from a service of distbfs") for reply in JUNK),
    ],
)
def test_messages_are_our_own(way, reply, text, tmp_path):
    if way == "http":
        listening = socket.create_server(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
    else:
        address = str(tmp_path / "s")
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.bind(address)
        listening.listen()
    with answering(reply, listening):
        seconds = 0.5 if reply is None else 30
        client = distbfs.connect(address, token="t", timeout=seconds)
        with pytest.raises(ServiceError, match=text) as caught:
            client.health()
        client.close()
    assert caught.value.code == "broken"
    assert not re.search("urlopen|Errno|HTTP Error|Expecting|codec", str(caught.value))


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("http://127.0.0.1:1", "http://127.0.0.1:1: no service: Connection refused"),
        ("http://127.0.0.1:x", "'http://127.0.0.1:x' is not an address; allowed: h"),
        *((f"http://{host}", "is not an address") for host in ("", "[::1", "a b")),
    ],
)
def test_addresses_without_a_service(address, text):
    with pytest.raises(ServiceError) as caught:
        distbfs.connect(address).health()
    assert text in str(caught.value)
    assert caught.value.code == "not_found"


def test_a_token_that_no_header_takes():
    with pytest.raises(ServiceError, match="a token must be printable ASCII"):
        distbfs.connect("http://127.0.0.1:1", token="a\nb")


def test_stubs_have_every_name():
    stub = Path(distbfs.__file__).with_suffix(".pyi").read_text()
    named = re.findall(r"^from (\S+) import (\w+) as \2$", stub, re.MULTILINE)
    assert {name: home for home, name in named} == distbfs._HOMES


@pytest.mark.skipif(find_spec("mypy") is None, reason="needs mypy")
@pytest.mark.thorough
def test_mypy_sees_connect(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    root = Path(distbfs.__file__).resolve().parents[1]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", str(program)],
        cwd=root,
        capture_output=True,
        text=True,
    )
    wrong = [n for n, line in enumerate(PROGRAM.splitlines(), 1) if "# wrong" in line]
    lines = re.findall(r"program\.py:(\d+): error", done.stdout)
    assert [int(number) for number in lines] == wrong, done.stdout + done.stderr


def test_a_call_is_one_system_call_each_way(tmp_path):
    """The kernel watches the time, of what is sent, too; Python would ask before."""
    address = str(tmp_path / "s")
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(address)
    listening.listen()
    with listening:
        client = distbfs.connect(address, timeout=0.2)
        assert client._socket.gettimeout() is None
        with pytest.raises(ServiceError, match=r"no answer within 0\.2 seconds"):
            client.distances(0, list(range(1 << 18)))  # more than anybody takes
        client.close()
