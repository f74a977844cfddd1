"""A team of threads does all of the work once, sleeps between, and survives a fork."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from launching import clean_environment

import distbfs
from distbfs.device import cc

SOURCE = Path(__file__).with_name("team_checks.c")
SECONDS = 20


@pytest.fixture(scope="module")
def team():
    library = cc.load(SOURCE)
    for name in ("mark_all", "meet_all", "mark_beside_another"):
        getattr(library, name).restype = cc.ctypes.c_int64
    library.all_sleep.argtypes = [cc.ctypes.c_double]
    return library


def mark_all(team, threads, count, grain):
    marks = np.zeros(count, dtype=np.int64)
    sizes = (cc.ctypes.c_int64(count), cc.ctypes.c_int64(grain))
    total = team.mark_all(threads, *sizes, cc.pointer(marks))
    return total == count and bool((marks == 1).all())


@pytest.mark.parametrize("threads", [0, 1, 2, 3, 40])
@pytest.mark.parametrize(("count", "grain"), [(0, 1), (1, 1), (1000, 1), (10**5, 7)])
def test_every_piece_is_taken_once(team, threads, count, grain):
    assert all(mark_all(team, threads, count, grain) for _ in range(20))


def test_threads_come_and_are_waited_for(team):
    ids = np.zeros(4, dtype=np.int64)
    assert team.meet_all(4, 3, cc.pointer(ids)) >= 3
    assert ids[0] == 1
    assert 2 <= ids[1:].sum() <= 3
    assert ids.max() == 1


@pytest.mark.thorough
def test_who_does_not_come_is_not_waited_for(team):
    """The caller alone does it all before a worker can have come."""
    for _ in range(200):
        ids = np.zeros(4, dtype=np.int64)
        assert 1 <= team.meet_all(4, 1, cc.pointer(ids)) <= 4
        assert ids.max() == 1


def test_workers_sleep_between_runs(team):
    mark_all(team, 4, 10**5, 1)
    assert team.workers() >= 3
    assert team.all_sleep(cc.ctypes.c_double(60.0))
    assert mark_all(team, 4, 10**5, 1)


def test_a_second_caller_works_alone(team):
    marks = np.zeros(1000, dtype=np.int64)
    assert team.mark_beside_another(cc.pointer(marks)) == 2000
    assert (marks == 2).all()


def test_several_callers_at_once(team):
    wrong = []

    def call():
        wrong.extend(not mark_all(team, 3, 10**4, 3) for _ in range(50))

    callers = [threading.Thread(target=call) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not any(wrong)


def large_graph():
    """A graph whose searches are shared out, also the first ones."""
    rng = np.random.default_rng(5)
    ends = rng.integers(0, 1 << 15, (2, 5 << 19))
    return distbfs.Graph.from_edges(*ends)


def in_child(work):
    """Run a function in a forked child; returns how that ended."""
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        code = 1
        try:
            code = 0 if work() else 1
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1]


@pytest.mark.parametrize("method", ["fast", "push", "hybrid"])
def test_a_child_process_searches_after_its_parent(method):
    graph = large_graph()
    options = {"threads": 4, "method": method}
    levels = distbfs.bfs(graph, 0, **options).level.copy()

    def search():
        right = np.array_equal(distbfs.bfs(graph, 0, **options).level, levels)
        return right and len(os.listdir("/proc/self/task")) >= 4

    assert in_child(search) == 0
    assert in_child(lambda: in_child(search) == 0) == 0
    assert search()


def test_a_child_process_searches_many(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    graph = large_graph()
    lengths = distbfs.path_lengths(graph, range(70))

    def search():
        return np.array_equal(distbfs.path_lengths(graph, range(70)), lengths)

    assert in_child(search) == 0


SMALL_AND_LARGE = """
import os, numpy as np, distbfs
def threads():
    return len(os.listdir("/proc/self/task"))
for scale in (12, 17):
    ends = np.random.default_rng(5).integers(0, 1 << scale, (2, 1 << (scale + 5)))
    graph = distbfs.Graph.from_edges(*ends)
    distbfs.bfs(graph, 0, threads=1)
    before = threads()
    distbfs.bfs(graph, 0, threads=4)
    print(threads() - before)
"""


def test_small_graphs_start_no_threads():
    done = subprocess.run(
        [sys.executable, "-c", SMALL_AND_LARGE],
        env=clean_environment({"OMP_NUM_THREADS": "1"}),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout == "0\n3\n", done.stdout + done.stderr


LIMITED = """
import resource, threading
import numpy as np, distbfs
ends = np.random.default_rng(5).integers(0, 1 << 15, (2, 1 << 20))
graph = distbfs.Graph.from_edges(*ends)
levels = distbfs.bfs(graph, 0, threads=1).level.copy()
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (600 << 10), resource.RLIM_INFINITY))
try:
    threading.Thread(target=print).start()
    print("a thread was started")
except (RuntimeError, MemoryError):
    pass
again = distbfs.bfs(graph, 0, threads=4).level
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
print("right" if np.array_equal(again, levels) else "wrong")
"""


def test_where_no_thread_can_be_started_the_caller_works_alone():
    done = subprocess.run(
        [sys.executable, "-c", LIMITED],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout == "right\n", done.stdout + done.stderr


def test_threads_leave_signals_to_the_program():
    graph = large_graph()
    distbfs.bfs(graph, 0, threads=4)
    time.sleep(0.5)  # a thread that begins has all signals blocked anyway
    blocked = []
    for task in Path("/proc/self/task").iterdir():
        text = (task / "status").read_text()
        mask = next(line for line in text.splitlines() if line.startswith("SigBlk"))
        blocked.append(int(mask.split()[1], 16) >> (signal.SIGTERM - 1) & 1)
    assert sum(blocked) >= 3
