"""The service as users start it: alone and under mpiexec, by signals and by faults."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np
import psutil
import pytest
from commands import (
    DISTBFS,
    FRESH,
    alone,
    begin,
    environment,
    finish,
    here,
    injected,
    ranks_below,
    wait_until,
)
from graphs import kronecker
from launching import end_tree, needs_mpi, run

from distbfs.errors import ServiceError
from distbfs.service.client import connect

SCALE = 9
SOURCE = kronecker(SCALE)
RANKS = [1, pytest.param(2, marks=needs_mpi)]
TARGETS = list(range(0, SOURCE.n, 7))


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stores")
    for parts in (1, 2):
        arguments = ("--scale", SCALE, "--parts", parts, "-o", folder / str(parts))
        assert here("generate", "kronecker", *arguments).code == 0
    return folder


@contextlib.contextmanager
def serving(ranks, stores, folder, *arguments, env=None, start=DISTBFS):
    """Start ``distbfs serve`` and wait until it is ready; yields (process, socket)."""
    path = folder / "s"
    command = [*start, "serve", stores / str(ranks), "--socket", path, *arguments]
    process = begin(ranks, [str(word) for word in command], env or environment())
    try:
        line = process.stdout.readline()
        assert line == "ready\n", (line, process.stderr.read())
        yield process, path
    finally:
        if process.poll() is None:
            end_tree(process)
            process.communicate()


def check_answers(path, source=SOURCE):
    with connect(path) as client:
        for root in (0, 5):
            wanted = source.distances(root)
            assert client.distances(root, TARGETS) == wanted[TARGETS].tolist()
            way = client.path(root, int(wanted.argmax()))
            assert len(way) == wanted.max() + 1
            answer = client.bfs(root)
            assert answer["level"].tolist() == wanted.tolist()


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_signals_end_it_with_0(ranks, number, stores, tmp_path):
    with serving(ranks, stores, tmp_path) as (process, path):
        check_answers(path)
        process.send_signal(number)
        done = finish(process)
    assert (done.code, done.out) == (0, "")
    assert "r1 distances: ok, waited" in done.err
    assert not path.exists()


@pytest.mark.thorough
@needs_mpi
def test_a_signal_at_another_rank(stores, tmp_path):
    with serving(2, stores, tmp_path) as (process, path):
        check_answers(path)
        ranks_below(process)[1].send_signal(signal.SIGTERM)
        assert finish(process).code == 0


@pytest.mark.parametrize("ranks", RANKS)
def test_query(ranks, stores, tmp_path):
    with serving(ranks, stores, tmp_path) as (process, path):
        ask = ("query", path)
        report = here(
            *ask, "distances", "source=5", "targets=0,5,9", "deadline=5"
        ).values
        wanted = SOURCE.distances(5)[[0, 5, 9]].tolist()
        assert report == {"distances": wanted}
        report = here(*ask, "bfs", "sources=3,4").values
        assert report["level"] == SOURCE.distances([3, 4]).tolist()
        graph = here(*ask, "stats").values["graph"]
        assert graph["ranks"] == ranks
        pairs = SOURCE.edges[SOURCE.edges[:, 0] < SOURCE.edges[:, 1]]
        assert graph["edges"] == len(np.unique(pairs, axis=0))
        assert (graph["vertices"], graph["directed"]) == (SOURCE.n, False)
        refused = here(*ask, "path", "source=0", f"target={SOURCE.n}")
        assert refused.refusal.startswith("distbfs: bad_request: target is 512; allow")
        for words, text in [
            (["bfs", "source"], "'source' is not a field of bfs; allowed: deadline, "),
            (["bfs", "size=1"], "'size=1' is not a field of bfs"),
            (["bfs", "source=x"], 'source is "x"; allowed: vertices 0 to 511'),
            (
                ["bfs", "source=1", "deadline=x"],
                'deadline is "x"; allowed: 0.001',
            ),
            (["bfs", "source=1", "parents=2"], "parents is 2; allowed: true, false"),
            (["go"], "'go' is not one of"),
        ]:
            assert text in here(*ask, *words).refusal
        assert here(*ask, "shutdown").values == {"state": "draining"}
        assert finish(process).code == 0
    assert "no service" in here("query", path, "health").refusal or not path.exists()


def test_no_service(tmp_path):
    assert "No such file" in here("query", tmp_path / "s", "health").refusal


@pytest.mark.thorough
@pytest.mark.parametrize("ranks", RANKS)
def test_standard_streams(ranks, stores, tmp_path):
    lines = [
        {"id": 7, "op": "distances", "source": 0, "targets": TARGETS},
        {"id": 8, "op": "bfs", "source": 1},
        {"id": 9, "op": "nothing"},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "in").write_text(text)
    shell = f"{' '.join(DISTBFS)} serve {stores / str(ranks)} < {tmp_path / 'in'}"
    if ranks > 1:
        shell = f"mpiexec -n {ranks} {shell}"
    done = run(["sh", "-c", shell], 60, environment())
    assert done.returncode == 0, done.stderr
    ready, *answers = done.stdout.splitlines()
    assert ready == "ready"
    report = {answer["id"]: answer for answer in map(json.loads, answers)}
    assert report[7]["distances"] == SOURCE.distances(0)[TARGETS].tolist()
    assert report[8]["level"] == SOURCE.distances(1).tolist()
    assert report[9]["error"]["code"] == "unknown_op"


def test_counts_at_the_end(stores, tmp_path):
    with serving(1, stores, tmp_path, "--json") as (process, path):
        check_answers(path)
        process.terminate()
        report = finish(process).values
    assert report["answers"]["path"] == {"ok": 2}
    assert report["state"] == "draining"


def test_log_lines_have_request_names(stores, tmp_path):
    with serving(1, stores, tmp_path, "--log-format", "json") as (process, path):
        with connect(path) as client:
            client.distances(0, [1])
        process.terminate()
        lines = [json.loads(line) for line in finish(process).err.splitlines()]
    [line] = [line for line in lines if line.get("request") == "r1"]
    assert line["message"].startswith("r1 distances: ok, waited ")


@pytest.mark.thorough
@needs_mpi
@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize(
    ("what", "code"), [("error", 1), ("exit-3", 3)], ids=["error", "exit-3"]
)
def test_a_fault_ends_it_with_its_code(rank, what, code, stores, tmp_path):
    env = injected(tmp_path / "log", fault=f"{what}:{rank}:2")
    with serving(2, stores, tmp_path, env=env) as (process, path):
        done = here("query", path, "distances", "source=0", "targets=1")
        assert done.code == 1
        assert "distbfs: broken:" in done.err
        assert finish(process).code == code


@pytest.mark.thorough
@needs_mpi
@pytest.mark.parametrize("rank", [0, 1])
def test_a_killed_rank_ends_it_and_it_starts_again(rank, stores, tmp_path):
    with serving(2, stores, tmp_path) as (process, path):
        ranks_below(process)[rank].kill()
        assert finish(process).code != 0
    with serving(2, stores, tmp_path) as (process, path):
        check_answers(path)
        process.terminate()
        assert finish(process).code == 0


DEAF = """
import functools, sys, threading
from distbfs.cli import main, serve
from distbfs.service.rank_calls import ServiceRank
from distbfs.cli.streams import run_program

serve.Limits = functools.partial(serve.Limits, patience=0.2)
ServiceRank._between = lambda *_: threading.Event().wait()
run_program(lambda: main.run(sys.argv[1:]))
"""


@pytest.mark.thorough
def test_a_search_that_hears_nothing_ends_by_sigterm(stores, tmp_path):
    path = str(tmp_path / "s")
    words = ["serve", str(stores / "1"), "--socket", path, "--deadline", "0.2"]
    process = begin(1, [sys.executable, "-c", DEAF, *words], environment())
    assert process.stdout.readline() == "ready\n"
    with connect(path) as client, pytest.raises(ServiceError) as caught:
        client.path(0, 1)
    assert caught.value.code == "deadline"
    process.terminate()
    done = finish(process)
    assert done.code == 143
    assert done.err.endswith("distbfs: ended by SIGTERM\n")


STUCK = r"rank (\d) has given no sign of life for \d+ s"


def ends_stuck(process, rank):
    """Wait for the end of a job that names a rank which is stuck, in one line."""
    done = finish(process, ranks=ranks_below(process).values())
    assert done.code == 1
    [line] = [x for x in done.err.splitlines() if "sign of life" in x]
    assert re.search(STUCK, line)[1] == str(rank)
    assert "Traceback" not in done.err
    return line


def healthy_page(address, name):
    """Return (status, JSON) of a page."""
    try:
        with urlopen(f"{address}/{name}") as page:
            return page.status, json.load(page)
    except HTTPError as refused:
        return refused.code, json.load(refused)


@pytest.mark.thorough
@needs_mpi
@pytest.mark.parametrize("by", ["signal", "request"])
def test_a_stuck_rank_is_told_and_the_end_comes_when_asked_for(by, stores, tmp_path):
    token = tmp_path / "token"
    ways = ("--http", 0, "--token-file", token)
    env = injected(tmp_path / "log", fault="stop:1:2")
    with serving(2, stores, tmp_path, *ways, env=env) as (process, path):
        lines = iter(process.stderr.readline, "")
        address = next(x for x in lines if "http://" in x).split()[-1]
        with connect(path) as client:
            assert client.health() == {"state": "ready"}
            began = time.monotonic()
            with pytest.raises(ServiceError, match="within 2 seconds") as caught:
                client.bfs(0, deadline=2)
            assert caught.value.code == "deadline"
            assert time.monotonic() - began < 30
            wait_until(lambda: client.health()["state"] == "stuck", process)
            health = client.health()
            assert re.match(STUCK, health["why"])[1] == "1"
            assert re.search("rank 0 waits in .* of level [012]$", health["why"])
            assert client.stats()["state"] == "stuck"
        assert here("query", path, "health").code == 1
        for name in ("healthz", "readyz"):
            status, facts = healthy_page(address, name)
            assert (status, facts["state"]) == (503, "stuck")
        auth = {"Authorization": f"Bearer {token.read_text().strip()}"}
        with urlopen(Request(f"{address}/metrics", headers=auth)) as page:
            assert b"distbfs_stuck 1.0" in page.read()
        began = time.monotonic()
        if by == "signal":
            process.terminate()
        else:
            assert here("query", path, "shutdown").values["state"] == "stuck"
        assert "asked to end, but rank 1" in ends_stuck(process, 1)
        assert time.monotonic() - began < 40


@pytest.mark.thorough
@needs_mpi
@pytest.mark.parametrize("rank", [0, 1])
def test_patience_ends_a_service_with_a_stuck_rank(rank, stores, tmp_path):
    options = ("--patience", 2)
    with serving(2, stores, tmp_path, *options, start=FRESH) as (process, path):
        check_answers(path)
        ranks_below(process)[rank].suspend()
        ends_stuck(process, rank)


@pytest.mark.thorough
@needs_mpi
def test_slow_ranks_and_suspended_jobs_are_not_stuck(stores, tmp_path):
    env = injected(tmp_path / "log", fault="sleep-5:1:2")
    ways = {"env": env, "start": FRESH}
    with serving(2, stores, tmp_path, "--patience", 2, **ways) as (process, path):
        with connect(path) as client:
            asked = threading.Thread(target=check_answers, args=(path,))
            asked.start()
            while asked.is_alive():
                assert client.health() == {"state": "ready"}
                time.sleep(0.1)
            ranks = ranks_below(process).values()
            for rank in ranks:
                rank.suspend()
            time.sleep(4)
            for rank in ranks:
                rank.resume()
            assert client.health() == {"state": "ready"}
            check_answers(path)
        process.terminate()
        assert finish(process).code == 0


@pytest.mark.thorough
@needs_mpi
@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("command", ["bfs", "graph500", "multisearch"])
def test_patience_ends_commands(rank, command, stores, tmp_path):
    words = {
        "bfs": ["bfs", stores / "2", "-s", 1],
        "graph500": ["graph500", "--graph", stores / "2", "--stepwise"],
        "multisearch": ["multisearch", "apsp", stores / "2", "--divide", "parts"],
    }[command]
    env = injected(tmp_path / "log", fault=f"stop:{rank}:2")
    arguments = [*DISTBFS, *map(str, words), "--patience", "2"]
    ends_stuck(begin(2, arguments, env), rank)


@pytest.mark.thorough
@pytest.mark.parametrize("ranks", RANKS)
def test_ranks_that_wait_leave_their_core(ranks, stores, tmp_path):
    """Processor time, not wall time, of two idle seconds: under 10 % of a core."""
    with serving(ranks, stores, tmp_path, start=FRESH) as (process, path):
        check_answers(path)
        watched = list(ranks_below(process).values()) or [psutil.Process(process.pid)]
        before = [sum(one.cpu_times()[:2]) for one in watched]
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(2)
        after = [sum(one.cpu_times()[:2]) for one in watched]
        assert max(np.subtract(after, before)) < 0.1 * 2


@pytest.mark.thorough
@pytest.mark.parametrize("ranks", RANKS)
def test_trace(ranks, stores, tmp_path):
    file = tmp_path / "trace.json"
    with serving(ranks, stores, tmp_path, "--trace", file) as (process, path):
        check_answers(path)
        process.terminate()
        assert finish(process).code == 0
    events = json.loads(file.read_text())["traceEvents"]
    searches = {}
    for event in events:
        if event["name"] == "search":
            searches.setdefault(event["pid"], []).append(event)
    assert sorted(searches) == list(range(ranks))
    for each in zip(*searches.values(), strict=True):
        assert len({event["args"]["root"] for event in each}) == 1
        begins = [event["ts"] for event in each]
        ends = [event["ts"] + event["dur"] for event in each]
        assert max(begins) < min(ends), "one clock: the ranks search together"


def test_graph500_writes_a_trace(tmp_path):
    file = tmp_path / "trace.json"
    ask = ("graph500", "--scale", 7, "--roots", 3, "--stepwise", "--trace", file)
    assert here(*ask).code == 0
    events = json.loads(file.read_text())["traceEvents"]
    assert sum(x["name"] == "search" for x in events) == 4, "one more to warm up"
    assert "give the name of a file" in here(*ask[:-1], tmp_path).refusal


@pytest.mark.thorough
def test_bfs_writes_a_trace(stores, tmp_path):
    file = tmp_path / "trace.json"
    ask = ("bfs", stores / "1", "-s", 3, "--stepwise", "--trace", file)
    assert here(*ask).code == 0
    names = {event["name"] for event in json.loads(file.read_text())["traceEvents"]}
    assert {"search", "work", "advance", "parents"} <= names
    assert here("plot", "trace", file, "-o", tmp_path / "t.png").code == 0
    assert (tmp_path / "t.png").stat().st_size > 5000
    assert "allowed: .png" in here("plot", "trace", file, "-o", tmp_path / "t").refusal
    piped = alone(*ask[:-1], "-")
    assert {x["name"] for x in json.loads(piped.out)["traceEvents"]} == names
    figure = alone("plot", "trace", file, "-o", "-")
    assert figure.out.startswith("<?xml")
    assert figure.out.endswith("</svg>\n")
    said = here(*ask[:-1], "-", "--records", "-").refusal
    assert "- is stdout, for one output alone" in said
    assert "give the name of a file" in here(*ask[:-1], tmp_path).refusal


@pytest.mark.parametrize("ranks", RANKS)
def test_http(ranks, stores, tmp_path):
    token = tmp_path / "token"
    ways = ("--http", 0, "--token-file", token)
    with serving(ranks, stores, tmp_path, *ways) as (process, path):
        lines = iter(process.stderr.readline, "")
        address = next(x for x in lines if "http://" in x).split()[-1]
        ask = ("query", address, "distances", "source=5", "targets=0,9")
        report = here(*ask, "--token-file", token).values
        assert report == {"distances": SOURCE.distances(5)[[0, 9]].tolist()}
        assert "unauthorized" in here(*ask).refusal
        check_answers(path)
        process.terminate()
        assert finish(process).code == 0


@pytest.mark.thorough
@pytest.mark.parametrize("ends", [False, True], ids=["goes-on", "ends"])
def test_no_more_descriptors(ends, stores, tmp_path):
    token = tmp_path / "token"
    ways = ("--http", 0, "--token-file", token)
    with serving(1, stores, tmp_path, *ways, start=FRESH) as (process, path):
        lines = iter(process.stderr.readline, "")
        address = next(x for x in lines if "http://" in x).split()[-1]
        served = psutil.Process(process.pid)
        most = served.num_fds() + 8
        served.rlimit(psutil.RLIMIT_NOFILE, (most, most))
        port = int(address.rpartition(":")[2])
        with contextlib.ExitStack() as stack:
            for _ in range(12):
                idle = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                stack.enter_context(idle).connect(str(path))
                stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            time.sleep(3)
            if ends:
                process.terminate()
                done = finish(process)
        if not ends:
            check_answers(path)
            with connect(address, token=token.read_text().strip()) as client:
                assert client.health() == {"state": "ready"}
            process.terminate()
            done = finish(process)
    assert done.code == 0
    assert done.err.count("distbfs: Too many open files: no clients are accepted") == 1
    assert "Traceback" not in done.err
    assert len(done.err) < 5000


def test_what_is_refused(stores, tmp_path):
    (tmp_path / "file").write_text("")
    store = stores / "1"
    for arguments, text in [
        (["--socket", tmp_path / "file"], "is not a socket"),
        (["--socket", tmp_path / "s", "--queue", 0], "'--queue': 0 is not in"),
        (["--socket", tmp_path / "s", "--deadline", 0], "'--deadline': 0.0 is not in"),
        (["--http", 0], "--http needs --token-file"),
        (["--http", 0, "--http-host", "::"], "add --allow-remote"),
        (["--http", 0, "--token-file", tmp_path / "file"], "others may read"),
        (["--json"], "--json needs --socket"),
        (["--trace", "-"], "--trace - needs --socket"),
        (["--trace", tmp_path], "give the name of a file"),
        (["--internal-ids", "--engine", "openmp"], "answers in input ids"),
        (["--no-levels"], "a service answers with levels; leave out --no-levels"),
    ]:
        assert text in alone("serve", store, *arguments).refusal
    assert not os.path.lexists(tmp_path / "s")


@pytest.mark.thorough
@needs_mpi
def test_many_clients_at_once(tmp_path):
    """``scripts/check_service.py``, whose figures a busy machine may miss."""
    script = Path(__file__).resolve().parents[2] / "scripts" / "check_service.py"
    report = tmp_path / "told.json"
    arguments = ("--scale", 8, "--queries", 160, "--sources", 8, "--json", report)
    done = run([sys.executable, str(script), *map(str, arguments)], 120, environment())
    assert done.returncode in (0, 1), done.stderr
    rows = {row["what"]: row for row in json.loads(report.read_text())["rows"]}
    for name in ("queries answered", "answers wrong", "serves again and ends"):
        assert rows[name]["good"], (rows, done.stdout)
