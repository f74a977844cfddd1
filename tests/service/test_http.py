"""The HTTP service: token, statuses, limits, checks for machines, a page for people."""

import io
import json
import logging
import os
import re
import signal
import socket
import stat
import threading
import time
from contextlib import ExitStack, contextmanager

import pytest
from serving import LONE, SECONDS, SOURCE, make_service, running, wait_for

from distbfs.errors import InputError, ServiceError, UsageError
from distbfs.service.client import connect
from distbfs.service.doors import listen_http
from distbfs.service.encoding import MEDIA_TYPE, decode
from distbfs.service.openapi import CODES
from distbfs.service.operations import OPERATIONS
from distbfs.service.tokens import Guard, check_host, read_token, renewed

httpx = pytest.importorskip("httpx", reason="needs the extra 'test'")
module = pytest.importorskip("distbfs.service.http", reason="needs extra 'serve'")

TOKEN = "a-token-of-some-length"
WANTED = SOURCE.distances(3)
# of httpx, which reads all certificates for each client that verifies
DIRECT = {"trust_env": False, "timeout": SECONDS, "verify": False}


@contextmanager
def serving(**options):
    """Yield (service, address)."""
    service = make_service(**options)
    listening = listen_http("127.0.0.1", 0)
    address = f"http://127.0.0.1:{listening.getsockname()[1]}"
    with running(service, [module.http_door(service, listening, Guard(TOKEN))]):
        yield service, address


@pytest.fixture(scope="module")
def shared():
    with serving(line=2000) as (service, address):
        yield service, address


@pytest.fixture
def http(shared):
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with httpx.Client(base_url=shared[1], headers=headers, **DIRECT) as client:
        yield client


def code_of(answer):
    assert answer.json()["ok"] is False
    return answer.json()["error"]["code"]


def test_the_same_client(shared):
    with connect(shared[1], token=TOKEN) as client:
        assert client.distances(3, list(range(SOURCE.n))) == WANTED.tolist()
        assert client.bfs(3)["level"].tolist() == WANTED.tolist()
        assert client.health() == {"state": "ready"}
        with pytest.raises(ServiceError, match="source is -1") as caught:
            client.bfs(-1)
        assert caught.value.code == "bad_request"
    for token in (None, "wrong", TOKEN + "x"):
        with pytest.raises(ServiceError) as caught:
            connect(shared[1], token=token).bfs(3)
        assert caught.value.code == "unauthorized"
    with pytest.raises(ServiceError) as caught:
        connect("http://127.0.0.1:1", token=TOKEN).health()
    assert caught.value.code == "not_found"


@pytest.mark.parametrize("op", OPERATIONS)
@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer x", f"Basic {TOKEN}", TOKEN, "Bearer é"]
)
def test_no_operation_without_the_token(shared, op, header):
    headers = {} if header is None else {"Authorization": header.encode("latin-1")}
    ask = {"json": {"source": 0}, "headers": headers, **DIRECT}
    answer = httpx.post(f"{shared[1]}/v1/{op}", **ask)
    assert (answer.status_code, code_of(answer)) == (401, "unauthorized")
    assert answer.headers["www-authenticate"] == "Bearer"
    del ask["json"]
    assert httpx.get(f"{shared[1]}/metrics", **ask).status_code == 401
    assert not shared[0].draining


@pytest.mark.parametrize(
    "path", [*module.FILES, "/openapi.json", "/healthz", "/readyz"]
)
def test_what_needs_no_token(shared, path):
    answer = httpx.get(shared[1] + path, **DIRECT)
    assert answer.status_code == 200
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_pages_load_nothing_from_elsewhere():
    for name, _ in module.FILES.values():
        text = (module.PAGE / name).read_text()
        assert not re.findall(r"(?:src|href)=\"(?!/)|https?://", text)


def test_statuses(http):
    def post(path, **options):
        return http.post(path, **options)

    answer = post("/v1/path", json={"source": 3, "target": 3, "id": "x"})
    assert answer.json() == {"id": "x", "ok": True, "distance": 0, "path": [3]}
    assert answer.headers["x-request-id"].startswith("r")
    for wanted, code, answer in [
        (400, "bad_request", post("/v1/bfs", json={})),
        (400, "bad_request", post("/v1/bfs", json={"op": "path", "source": 1})),
        (400, "bad_request", post("/v1/bfs", json={"op": None, "source": 1})),
        (413, "too_large", post("/v1/bfs", json={"name": "x" * 3000})),
        (404, "unknown_op", post("/v1/none", json={})),
        (404, "unknown_op", http.get("/v1/bfs/")),
        (404, "not_found", http.get("/v2/bfs")),
        (405, "not_allowed", http.get("/v1/bfs")),
        (405, "not_allowed", http.delete("/healthz")),
    ]:
        assert (answer.status_code, code_of(answer)) == (wanted, code)
        assert CODES[code] == wanted
    assert http.get("/v1/bfs").headers["allow"] == "POST"
    form = {"content-type": "application/json"}
    for headers, text in [
        ({}, "Content-Type is missing; send Content-Type: application/json"),
        ({"content-type": "text/x"}, "Content-Type is text/x; send Content-Type: app"),
        ({**form, "content-encoding": "gzip"}, "Content-Encoding is gzip; send the bo"),
    ]:
        answer = post("/v1/bfs", content="{}", headers=headers)
        assert (answer.status_code, code_of(answer)) == (415, "not_json")
        assert text in answer.text
    for text in (b"", b"[", b"\xff", b"[" * 1900, *LONE):
        assert post("/v1/bfs", content=text, headers=form).status_code == 400


def test_arrays(http):
    """The media type says whether an answer has some."""
    arrays = {"arrays": "npy"}
    answer = http.post("/v1/bfs", json={"source": 3, **arrays})
    assert answer.headers["content-type"] == MEDIA_TYPE
    body = io.BytesIO(answer.content)
    found = decode(body.readline(), body)
    assert found["level"].tolist() == WANTED.tolist()
    assert not body.read()
    for ask in ({"source": 3, "result": "summary"}, {"source": -1, **arrays}):
        answer = http.post("/v1/bfs", json=ask)
        assert answer.headers["content-type"] == "application/json"
    assert isinstance(http.post("/v1/bfs", json={"source": 3}).json()["level"], list)


def test_metrics(http, shared):
    http.post("/v1/bfs", json={"source": 3, "result": "summary"})
    text = http.get("/metrics").text
    for line in (
        'distbfs_answers_total{code="ok",op="bfs"}',
        "distbfs_queue_wait_seconds_bucket",
        "distbfs_search_seconds_sum",
        "distbfs_search_gteps_count",
        'distbfs_batch_requests_bucket{le="1.0"}',
        "distbfs_batch_sources_count",
        f"distbfs_graph_vertices {SOURCE.n}.0",
        "distbfs_queue_length 0.0",
    ):
        assert line in text


def test_metrics_are_in_the_format_of_prometheus(http):
    parser = pytest.importorskip("prometheus_client.parser")
    http.post("/v1/bfs", json={"source": 3, "result": "summary"})
    families = parser.text_string_to_metric_families(http.get("/metrics").text)
    kinds = {family.name: family.type for family in families}
    assert kinds["distbfs_answers"] == "counter"
    assert kinds["distbfs_search_seconds"] == "histogram"
    assert kinds["distbfs_stuck"] == "gauge"


def test_one_connection_takes_any_requests(http, shared):
    """One by one, several at once; bodies in pieces, on demand, and too long."""
    auth = f"Host: x\r\nAuthorization: Bearer {TOKEN}\r\n"
    post = f"POST /v1/health HTTP/1.1\r\n{auth}Content-Type: application/json\r\n"
    with dial(shared[1]) as talker:
        stream = talker.makefile("rb")

        def hear():
            head = b"".join(iter(stream.readline, b"\r\n")).decode()
            length = re.search(r"Content-Length: (\d+)", head)
            return head, int(length[1]) if length else 0

        talker.sendall(f"{post}Content-Length: 2\r\n\r\n{{}}".encode() * 3)
        for _ in range(3):
            head, length = hear()
            assert head.startswith("HTTP/1.1 200 OK\r\n")
            assert json.loads(stream.read(length))["state"] == "ready"
        talker.sendall(f"HEAD /healthz HTTP/1.1\r\n{auth}\r\n".encode())
        assert hear()[1] > 0  # of a body that does not come
        talker.sendall(
            f"{post}Expect: 100-continue\r\nContent-Length: 9999\r\n\r\n".encode()
        )
        assert hear()[0].startswith("HTTP/1.1 100 Continue")
        talker.sendall(b"x" * 9999)  # of which 2000 bytes may be
        head, length = hear()
        assert head.startswith("HTTP/1.1 413 ")
        stream.read(length)
        talker.sendall(f"{post}Transfer-Encoding: chunked\r\n\r\n".encode())
        for piece in (b"1\r\n{\r\n", b"1\r\n}\r\n", b"0\r\n\r\n"):
            talker.sendall(piece)
        head, length = hear()
        assert head.startswith("HTTP/1.1 200 ")
        stream.read(length)
        closing = f"GET /healthz HTTP/1.1\r\n{auth}Connection: close\r\n\r\n"
        talker.sendall(closing.encode())
        head, length = hear()
        assert "Connection: close" in head
        assert stream.read()[length:] == b""


def test_answers_do_not_wait_for_each_other(http):
    """A kept connection has no pauses of tens of milliseconds, as without NODELAY."""
    taken = []
    for _ in range(21):
        began = time.monotonic()
        assert http.post("/v1/health", json={}).status_code == 200
        taken.append(time.monotonic() - began)
    assert sorted(taken)[len(taken) // 2] < 0.03


def test_a_body_without_end():
    with serving(patience=0.2) as (_, address):
        port = int(address.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=10) as slow:
            head = (
                f"POST /v1/bfs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
            )
            more = "Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{"
            slow.sendall((head + more).encode())
            assert slow.recv(1000) == b""


def dial(address):
    """A connection that may say anything."""
    return socket.create_connection(
        ("127.0.0.1", int(address.rpartition(":")[2])), timeout=20
    )


def ended(talker, more):
    """Whether a service has let go of a client, which says more."""
    try:
        talker.sendall(more)
        talker.settimeout(0.1)
        return talker.recv(1 << 16) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


REFUSED = b"POST /v1/bfs HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\n"
HEADS = {"nothing": b"", "half a head": b"GET / HTTP/1.1\r\nHost:", "body": REFUSED}


@pytest.mark.thorough
@pytest.mark.parametrize("head", HEADS)
def test_idle_connections_keep_nobody_out(head):
    with serving(clients=8) as (_, address), ExitStack() as stack:
        for _ in range(64):
            stack.enter_context(dial(address)).sendall(HEADS[head])
        wait_for(lambda: httpx.get(f"{address}/readyz", **DIRECT).is_success)
        with connect(address, token=TOKEN) as client:
            assert client.distances(3, [3]) == [0]


@pytest.mark.thorough
@pytest.mark.parametrize("head", HEADS)
def test_idle_connections_end(head):
    with serving(patience=0.4) as (_, address), dial(address) as talker:
        talker.sendall(HEADS[head])
        wait_for(lambda: ended(talker, b"x" if HEADS[head] else b""))


@pytest.mark.thorough
def test_a_client_that_takes_no_answer():
    with serving(patience=0.4) as (service, address), dial(address) as talker:
        ask = b"GET /page.js HTTP/1.1\r\nHost: x\r\n\r\n" * 100
        with pytest.raises(ConnectionError):
            any(talker.sendall(ask) for _ in iter(int, 1))
        assert service.health() == {"state": "ready"}


def test_all_connections_at_work():
    with serving(clients=2) as (service, address):
        service.ranks.session.slow = True
        auth = {"Authorization": f"Bearer {TOKEN}"}
        ask = {"json": {"source": 1}, "headers": auth, **DIRECT}
        asked = [
            threading.Thread(target=httpx.post, args=(f"{address}/v1/bfs",), kwargs=ask)
            for _ in range(2)
        ]
        for thread in asked:
            thread.start()
        wait_for(
            lambda: service.stats()["running"] + len(service.tickets) == len(asked)
        )
        busy = httpx.get(f"{address}/healthz", **DIRECT)
        assert (busy.status_code, code_of(busy)) == (503, "busy")
        assert "2 connections are open" in busy.text
        with pytest.raises(ServiceError, match="are open") as caught:
            connect(address, token=TOKEN).bfs(1)
        assert caught.value.code == "busy"
        service.ranks.session.go.set()
        for thread in asked:
            thread.join()
        assert connect(address, token=TOKEN).health() == {"state": "ready"}


def ask(talker, source):
    """Ask for a search; the answer is not read."""
    body = json.dumps({"source": source})
    head = (
        f"POST /v1/bfs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    talker.sendall((head + body).encode())


def test_busy_deadline_and_clients_that_leave():
    with serving(queue=1) as (service, address), dial(address) as one:
        session = service.ranks.session
        session.slow = True
        auth = {"Authorization": f"Bearer {TOKEN}"}
        with httpx.Client(base_url=address, headers=auth, **DIRECT) as http:
            late = http.post("/v1/bfs", json={"source": 1, "deadline": 0.05})
            assert (late.status_code, code_of(late)) == (504, "deadline")
            wait_for(lambda: service.stats()["running"] == 0)
            ask(one, 0)
            wait_for(lambda: service.stats()["running"] == 1)
            other = dial(address)
            ask(other, 1)
            wait_for(lambda: len(service.tickets) == 1)
            busy = http.post("/v1/bfs", json={"source": 5})
            assert (busy.status_code, code_of(busy)) == (503, "busy")
            assert busy.headers["retry-after"] == "1"
            assert http.get("/readyz").status_code == 200
            one.close()
            other.close()
            wait_for(lambda: service.stats()["answers"]["bfs"].get("gone") == 2)
            service.drain()
            wait_for(lambda: service.draining)


def test_not_ready_while_it_drains():
    with serving() as (service, address):
        service.ranks.session.slow = True
        auth = {"Authorization": f"Bearer {TOKEN}"}
        with httpx.Client(base_url=address, headers=auth, **DIRECT) as http:
            asked = threading.Thread(
                target=lambda: http.post("/v1/bfs", json={"source": 1})
            )
            asked.start()
            wait_for(lambda: service.stats()["running"] == 1)
            assert http.post("/v1/shutdown", json={}).json()["state"] == "draining"
            assert http.get("/readyz").status_code == 503
            assert http.get("/healthz").status_code == 200
            refused = http.post("/v1/bfs", json={"source": 1})
            assert (refused.status_code, code_of(refused)) == (503, "draining")
            service.ranks.session.go.set()
            asked.join()


def test_tokens(tmp_path):
    path = tmp_path / "token"
    made = read_token(path)
    assert len(made) >= 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_token(path) == made
    path.chmod(0o640)
    with pytest.raises(UsageError, match="others may read"):
        read_token(path)
    path.chmod(0o600)
    path.write_text("short")
    with pytest.raises(UsageError, match="16 to 4096"):
        read_token(path)
    with pytest.raises(InputError):
        read_token(tmp_path / "no" / "token")
    guard = Guard(made)
    assert guard.allows(f"Bearer {made}")
    assert guard.allows(f"bearer  {made} ")
    assert not any(guard.allows(x) for x in (None, "", made, f"Bearer {made[:-1]}"))


def test_a_token_is_read_again_at_sighup(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("distbfs"), "propagate", True)
    path = tmp_path / "token"
    old, before = read_token(path), signal.getsignal(signal.SIGHUP)
    guard = Guard(old)
    with renewed(guard, path):
        path.write_text("another-token-of-some-length")
        os.kill(os.getpid(), signal.SIGHUP)
        wait_for(lambda: guard.allows("Bearer another-token-of-some-length"))
        assert not guard.allows(f"Bearer {old}")
        path.unlink()
        os.kill(os.getpid(), signal.SIGHUP)
        wait_for(lambda: "the old token stays valid" in caplog.text)
        assert guard.allows("Bearer another-token-of-some-length")
        assert not path.exists()
    assert signal.getsignal(signal.SIGHUP) == before


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.9.9.9"])
def test_near_addresses(host):
    check_host(host, remote=False)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1"])
def test_far_addresses(host):
    with pytest.raises(UsageError, match="add --allow-remote"):
        check_host(host, remote=False)
    check_host(host, remote=True)
    with pytest.raises(UsageError, match="give an IP address"):
        check_host("example.org", remote=True)


def test_a_port_that_is_taken():
    taken = listen_http("127.0.0.1", 0)
    with taken, pytest.raises(InputError, match="in use"):
        listen_http("127.0.0.1", taken.getsockname()[1])


def test_the_description_fits_the_operations(shared):
    api = httpx.get(f"{shared[1]}/openapi.json", **DIRECT).json()
    assert {path for path in api["paths"] if path.startswith("/v1/")} == {
        f"/v1/{op}" for op in OPERATIONS
    }
    for op in OPERATIONS.keys() - {"shutdown"}:
        content = api["paths"][f"/v1/{op}"]["post"]["requestBody"]["content"]
        [example] = content["application/json"]["schema"]["examples"]
        auth = {"Authorization": f"Bearer {TOKEN}"}
        answer = httpx.post(
            f"{shared[1]}/v1/{op}", json=example, headers=auth, **DIRECT
        )
        assert answer.status_code == 200, answer.text
    error = api["components"]["schemas"]["Refusal"]["properties"]["error"]
    codes = set(error["properties"]["code"]["enum"])
    assert codes == set(CODES)
    assert set(ServiceError.CODES) - codes == {"gone"}
    json.dumps(api)
