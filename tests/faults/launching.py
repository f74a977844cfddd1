"""Start real ranks and see how they end.  Shared by all tests of faults."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).resolve().parents[2]
# left behind in this environment they would make a process look launched
LAUNCHER_PREFIXES = ("PMI", "OMPI_", "MPI_LOCAL", "HYD", "SLURM_", "PALS_", "FLUX_")
# for MPICH, Open MPI 4 and 5: as root, more ranks than cores, and no ssh to start them
ONE_HOST = {
    "HYDRA_LAUNCHER": "fork",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_orte_base_help_aggregate": "0",  # in full, between lines of dashes
    "OMPI_MCA_plm_rsh_agent": "sh",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_ALLOW_RUN_AS_ROOT": "1",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_plm_ssh_agent": "sh",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}
LAUNCHER_LINE = re.compile(r"^\[[^\]\n]*\] .*ORTE_ERROR_LOG.*\n?", re.MULTILINE)
LOST = re.compile(r"lost at (\d+\.\d+)")
BANNER = re.compile(r"^[-=]{40,}\n.*?^[-=]{40,}\n", re.MULTILINE | re.DOTALL)


@dataclass
class Finished(subprocess.CompletedProcess):
    """A process that ended.

    seconds: how long it ran; ended: when, by ``time.monotonic``, which all processes of
    a host have alike
    ``said``: stderr without what the launcher adds between lines of dashes
    """

    args: list[str]
    returncode: int
    stdout: str
    stderr: str
    seconds: float
    ended: float

    @property
    def seconds_after_loss(self) -> float:
        """Seconds since the first moment at which a rank printed that it is lost."""
        return self.ended - min(map(float, LOST.findall(self.stdout)))

    @property
    def said(self) -> str:
        """What the ranks themselves printed on stderr."""
        text = BANNER.sub("", self.stderr).replace("\0", "")
        return LAUNCHER_LINE.sub("", text).lstrip()


@cache
def find_mpiexec() -> str | None:
    """Return the mpiexec beside this Python, else the one on the path."""
    beside = Path(sys.executable).parent / "mpiexec"
    return str(beside) if beside.exists() else shutil.which("mpiexec")


@cache
def is_open_mpi() -> bool:
    """Tell whether mpiexec is Open MPI's."""
    version = subprocess.run(
        [str(find_mpiexec()), "--version"], capture_output=True, text=True
    )
    return any(name in version.stdout for name in ("Open MPI", "OpenRTE"))


needs_mpi = pytest.mark.skipif(
    find_mpiexec() is None or importlib.util.find_spec("mpi4py") is None,
    reason="needs mpiexec and mpi4py",
)


def clean_environment(extra: dict[str, str] | None = None) -> dict[str, str]:
    """Return the environment without a launcher, with the package on the path."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(LAUNCHER_PREFIXES)
    }
    path = [str(ROOT), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    environment.update(ONE_HOST)
    environment.update(extra or {})
    return environment


def end_tree(process: subprocess.Popen[str]) -> None:
    """Kill a process that we started, and everything that it started."""
    with contextlib.suppress(psutil.NoSuchProcess):
        for child in psutil.Process(process.pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
    process.kill()


def run(
    argv: list[str], timeout: float = 100, env: dict[str, str] | None = None
) -> Finished:
    """Run a command to its end; the test fails when it takes over ``timeout`` s."""
    start = time.monotonic()
    process = subprocess.Popen(
        argv,
        env=clean_environment(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        end_tree(process)
        out, err = process.communicate()
        pytest.fail(f"still running after {timeout} s: {argv}\n{out}\n{err}")
    ended = time.monotonic()
    return Finished(argv, process.returncode, out, err, ended - start, ended)


def run_ranks(
    ranks: int, argv: list[str], timeout: float = 100, env: dict[str, str] | None = None
) -> Finished:
    """Run a command under ``mpiexec -n ranks``; argv as for ``subprocess.run``."""
    mpiexec = find_mpiexec()
    if mpiexec is None:
        pytest.skip("needs mpiexec")
    return run([mpiexec, "-n", str(ranks), *argv], timeout, env)
