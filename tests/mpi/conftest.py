"""The ranks of a test run, and a watchdog against waiting for ever.

    mpiexec -n 4 python -m pytest --with-mpi tests/mpi

Without mpiexec the same tests run on one rank, but for those marked ``mpi``.  An
assert that fails on one rank would leave the others waiting: the rank prints its
report, waits a little for others that fail too, and ends them all.  A test that hangs
prints where each rank stands and ends the run.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from distbfs.ranks.abort import abort_ranks
from distbfs.ranks.launcher import find_launch
from distbfs.ranks.mpi import load_mpi
from distbfs.ranks.world import MpiWorld, Ranks, SoloWorld

if TYPE_CHECKING:
    from collections.abc import Iterator


TEST_SECONDS = 60
GRACE = 0.5
QUIET = pytest.StashKey[object]()


@pytest.hookimpl(trylast=True)  # when the reporter is there
def pytest_configure(config: pytest.Config) -> None:
    """Let only rank 0 print the progress."""
    launch = find_launch(os.environ)
    reporter = config.pluginmanager.getplugin("terminalreporter")
    if launch is not None and launch.rank > 0 and reporter is not None:
        nowhere = Path(os.devnull).open("w")  # noqa: SIM115
        config.stash[QUIET] = nowhere
        reporter._tw._file = nowhere


@pytest.fixture(scope="session")
def real_stderr(request: pytest.FixtureRequest) -> Iterator[int]:
    """The file descriptor of stderr that pytest does not capture."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        number = os.dup(2)
    yield number
    os.close(number)


@pytest.fixture(scope="session")
def world() -> Ranks:
    """All ranks that were started, or the single one."""
    launch = find_launch(os.environ)
    if launch is None:
        return SoloWorld()
    load_mpi(launch)
    return MpiWorld()


@pytest.fixture(autouse=True)
def watchdog(world: Ranks, real_stderr: int, request: pytest.FixtureRequest) -> None:
    """End the run where a test hangs, and all ranks where it fails on one."""
    faulthandler.dump_traceback_later(TEST_SECONDS, exit=True, file=real_stderr)
    yield
    faulthandler.cancel_dump_traceback_later()
    reports = request.node.stash.get(REPORTS, [])
    failed = [report for report in reports if report.failed]
    if failed and world.size > 1:
        time.sleep(GRACE * world.rank)  # ranks that fail alike: rank 0 tells it
        text = f"\nrank {world.rank} failed in {request.node.nodeid}\n"
        for report in failed:
            text += report.longreprtext + "\n"
        with contextlib.suppress(OSError):
            os.write(real_stderr, text.encode())
        abort_ranks(world.comm, 1)


REPORTS = pytest.StashKey[list[pytest.TestReport]]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Remember the reports of a test for the watchdog."""
    report = yield
    item.stash.setdefault(REPORTS, []).append(report)
    return report
