"""A rank that fails in the middle of a search ends all ranks, soon.

Real processes, started in the three ways there are: the console script, ``python -m``
and a program that imports the package.  Faults come from ``injected/sitecustomize.py``.
"""

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

import psutil
import pytest
from launching import BANNER, clean_environment, end_tree, find_mpiexec, needs_mpi

HERE = Path(__file__).parent
LIMIT = 40.0  # of a run that would take minutes
MARK = "DISTBFS_TEST_MARK"
WAYS = ["console-script", "module", "program"]
# as pip writes it for [project.scripts]
CONSOLE_SCRIPT = """\
import sys
from distbfs.cli.main import entry
if __name__ == "__main__":
    sys.exit(entry())
"""

pytestmark = needs_mpi


def command_line(way, folder, scale):
    """Return what starts a benchmark that would take minutes."""
    if way == "program":
        return [sys.executable, str(HERE / "searching.py"), str(scale)]
    words = ["graph500", "--scale", str(scale), "--roots", "2000"]
    if way == "module":
        return [sys.executable, "-m", "distbfs", *words]
    installed = Path(sys.executable).with_name("distbfs")
    if installed.exists():
        return [str(installed), *words]
    script = folder / "distbfs"
    script.write_text(CONSOLE_SCRIPT)
    return [sys.executable, str(script), *words]


class Run:
    """A command on some ranks whose processes can be found again."""

    def __init__(self, ranks, argv, log, **faults):
        self.ranks = ranks
        self.log = log
        self.mark = uuid4().hex
        path = [str(HERE / "injected"), clean_environment()["PYTHONPATH"]]
        more = {
            "PYTHONPATH": os.pathsep.join(path),
            "OMP_NUM_THREADS": "1",
            "INJECT_LOG": str(log),
            MARK: self.mark,
            **{f"INJECT_{name.upper()}": value for name, value in faults.items()},
        }
        self.process = subprocess.Popen(
            [str(find_mpiexec()), "-n", str(ranks), *argv],
            env=clean_environment(more),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def left(self):
        """Return the processes of this run that are there."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                zombie = process.status() == psutil.STATUS_ZOMBIE
                if not zombie and process.environ().get(MARK) == self.mark:
                    found.append(process)
        return found

    def rank(self, number):
        """Return the process of a rank."""
        for process in self.left():
            with contextlib.suppress(psutil.Error):
                names = process.environ()
                rank = names.get("PMI_RANK", names.get("OMPI_COMM_WORLD_RANK"))
                if rank == str(number):
                    return process
        return pytest.fail(f"there is no rank {number}")

    def wait_for_searches(self, seconds=60):
        """Wait until every rank has begun its third search."""
        end = time.monotonic() + seconds
        for rank in range(self.ranks):
            path = Path(f"{self.log}.{rank}")
            while not path.exists() or path.read_text().count("search") < 3:
                if time.monotonic() > end or self.process.poll() is not None:
                    self.fail("no search begins")
                time.sleep(0.01)

    def fail(self, why):
        """End what is left and let the test fail."""
        end_tree(self.process)
        for process in self.left():
            process.kill()
        out, err = self.process.communicate()
        pytest.fail(f"{why}\n{out}\n{err}")

    def fault_time(self, rank):
        """Return when a rank met its injected fault, in seconds of ``time.time``."""
        lines = Path(f"{self.log}.{rank}").read_text().splitlines()
        return float(lines[-1].removeprefix("fault "))

    def end(self, limit):
        """Wait until no process is left; returns exit code, stdout and stderr."""
        try:
            out, err = self.process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            self.fail(f"still running after {limit} s")
        last = time.monotonic() + LIMIT
        while self.left():
            if time.monotonic() > last:
                self.fail("processes are left")
            time.sleep(0.01)
        return self.process.returncode, out, BANNER.sub("", err).replace("\0", "")


FAULTS = {
    "error": (1, "RuntimeError: injected"),
    "exit-3": (None, ""),
    "exit-0": (None, "ended while other ranks still worked"),
}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("what", "way"),
    [
        *(("error", way) for way in WAYS),
        *(("exit-3", way) for way in WAYS),
        ("exit-0", "module"),  # waits for the others first
        ("exit-0", "program"),
    ],
)
def test_a_rank_that_fails_in_a_search(tmp_path, what, way):
    code, said = FAULTS[what]
    argv = command_line(way, tmp_path, 8)
    run = Run(2, argv, tmp_path / "log", fault=f"{what}:1:20")
    found, out, err = run.end(limit=60)
    assert time.time() - run.fault_time(1) < LIMIT
    assert found != 0
    assert code is None or found == code
    assert err.count(said) == 1 or not said
    assert "NBFS" not in out
    assert "done" not in out


@pytest.mark.thorough
def test_rank_0_of_four_fails_in_a_search(tmp_path):
    argv = command_line("module", tmp_path, 8)
    run = Run(4, argv, tmp_path / "log", fault="error:0:20")
    found, out, err = run.end(limit=60)
    assert time.time() - run.fault_time(0) < LIMIT
    assert (found, out) == (1, "")
    assert err.count("RuntimeError: injected") == 1


@pytest.mark.parametrize(
    ("ranks", "way", "killed"),
    [
        pytest.param(2, "console-script", 1, marks=pytest.mark.thorough),
        (2, "module", 0),
        pytest.param(4, "module", 2, marks=pytest.mark.thorough),
        (3, "program", 1),
    ],
)
def test_a_rank_is_killed_in_a_benchmark(tmp_path, ranks, way, killed):
    run = Run(ranks, command_line(way, tmp_path, 12), tmp_path / "log")
    run.wait_for_searches()
    run.rank(killed).kill()
    began = time.monotonic()
    code, out, _ = run.end(limit=60)
    assert time.monotonic() - began < LIMIT
    assert code != 0
    assert "NBFS" not in out
    assert "done" not in out
