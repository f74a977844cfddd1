"""What stands for ``distbfs`` in tests does what ``distbfs`` does."""

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import warm
from launching import clean_environment

FRESH = [sys.executable, "-m", "distbfs"]
WAITS = """
import os, signal, sys, time
from pathlib import Path
signal.signal(signal.SIGUSR1, lambda *_: sys.exit(7))
Path("ready").write_text(str(os.getpid()))
time.sleep(60)
"""
SHOWS = """
import os, resource, sys
print(os.getcwd(), os.environ["WORD"], sys.argv[1:], sys.stdin.read())
print(resource.getrlimit(resource.RLIMIT_NOFILE), os.umask(0))
print(sorted(os.sched_getaffinity(0)), os.read(int(sys.argv[1]), 9))
print("said", file=sys.stderr)
sys.exit(5)
"""


def ended(words, **options):
    done = subprocess.run(words, capture_output=True, timeout=100, **options)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "words", [("bfs", "nowhere"), ("plan", "--scale", "9", "--json")]
)
def test_streams_and_codes(words):
    options = {"env": clean_environment({"COLUMNS": "70"}), "input": b""}
    fresh = ended([*FRESH, *words], **options)
    assert ended([*warm.Command(), *words], **options) == fresh


def limited():
    resource.setrlimit(resource.RLIMIT_NOFILE, (77, 88))
    os.umask(0o27)


def test_what_a_process_has_of_its_own(tmp_path):
    (tmp_path / "program.py").write_text(SHOWS)
    programs, seen = (sys.executable, str(warm.folder() / "python")), []
    for program in programs:
        ours, theirs = os.pipe()
        os.write(theirs, b"a pipe")
        words = [program, "program.py", str(ours)]
        options = {"env": clean_environment({"WORD": "a"}), "pass_fds": [ours]}
        options |= {"cwd": tmp_path, "preexec_fn": limited, "input": b"in"}
        code, out, said = ended(words, **options)
        seen.append((code, out.replace(f"'{ours}'".encode(), b"N"), said))
        os.close(ours)
        os.close(theirs)
    assert seen[0] == seen[1]
    assert (seen[0][0], seen[0][2]) == (5, b"said\n")


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGUSR1, 7), (signal.SIGTERM, -15), (signal.SIGKILL, -9)],
)
def test_signals(tmp_path, number, code):
    """The process that does the work has ended, too."""
    (tmp_path / "program.py").write_text(WAITS)
    words = [warm.folder() / "python", "program.py"]
    with subprocess.Popen(words, cwd=tmp_path) as process:
        ready = Path(tmp_path / "ready")
        while not (ready.exists() and ready.read_text()):
            time.sleep(0.01)
        worker = psutil.Process(int(ready.read_text()))
        process.send_signal(number)
        assert process.wait(60) == code
    assert not psutil.wait_procs([worker], 60)[1]


def test_another_python_runs_what_is_no_program():
    assert ended([warm.folder() / "python", "-c", "print(5)"]) == (0, b"5\n", b"")
