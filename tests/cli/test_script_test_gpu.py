"""scripts/test_gpu with stand-ins for pytest and for compute-sanitizer."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "test_gpu"
PYTHON = """#!/bin/sh
case $* in
*pytest*) echo "{tests}${{CUDA_MPS_PIPE_DIRECTORY:+ by MPS}}" ;;
*cupy*) exit {serves} ;;
*doctor*) echo "9 kernels compile" ;;
*--list*) exec {python} "$@" ;;
esac
"""
MPS = """#!/bin/sh
[ "$1" = -d ] && exit
read -r word rest
echo "$word $CUDA_MPS_PIPE_DIRECTORY" >>{log}
"""
SANITIZER = """#!/bin/sh
for kind; do :; done
case "$2 $kind" in
"{wrong}") echo "a race"; exit 9 ;;
*) echo "0 s, $kind: right" ;;
esac
"""


def run_script(folder, *, tests, wrong="none", serves=0, mps=None, **more):
    """Run the script with stand-ins; of MPS only with a file for what it is told."""
    made = {"python": PYTHON, "compute-sanitizer": SANITIZER}
    if mps is not None:
        made["nvidia-cuda-mps-control"] = MPS
    told = {"tests": tests, "wrong": wrong, "serves": serves, "log": mps}
    for name, text in made.items():
        path = folder / name
        path.write_text(text.format(python=sys.executable, **told))
        path.chmod(0o755)
    environment = os.environ | {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "PYTHON": str(folder / "python"),
        "JOBS": "2",
        **more,
    }
    environment.pop("CUDA_MPS_PIPE_DIRECTORY", None)
    return subprocess.run(
        [SCRIPT], env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("tests", "wrong", "code", "lines"),
    [
        ("3 passed", "none", 0, ["memcheck: 6 kinds right; none wrong"]),
        (
            "3 passed",
            "racecheck store",
            1,
            [
                "memcheck: 6 kinds right; none wrong",
                "racecheck: 5 kinds right; store (exit code 9)",
                "a race",
            ],
        ),
        (
            "1 failed, 2 passed",
            "none",
            1,
            ["tests that share devices: 1 failed, 2 passed"],
        ),
        (
            "killed",
            "none",
            1,
            ["tests of waiting devices: killed", "tests that do not share: killed"],
        ),
    ],
)
def test_summary_and_exit_code(tmp_path, tests, wrong, code, lines):
    done = run_script(tmp_path, tests=tests, wrong=wrong, KINDS="store engines")
    assert done.returncode == code, done.stderr
    for line in lines:
        assert line in done.stdout


@pytest.mark.parametrize("serves", [True, False])
def test_mps_is_for_tests_that_share_devices(tmp_path, serves):
    """It is asked to end in any case."""
    log = tmp_path / "said"
    done = run_script(
        tmp_path, tests="3 passed", serves=int(not serves), TOOLS="", mps=log
    )
    assert done.returncode == 0, done.stderr
    for name, by in (
        ("kernels: 9 kernels compile\ntests that share devices", serves),
        ("tests of waiting devices", serves),
        ("tests that do not share", False),
    ):
        assert f"\n{name}: 3 passed{' by MPS' * by}\n" in done.stdout
    [said] = log.read_text().splitlines()
    assert said.startswith("quit /")


@pytest.mark.thorough
def test_racecheck_leaves_out_what_has_races_as_published(tmp_path):
    listed = subprocess.run(
        [sys.executable, "tests/gpu/sanitize.py", "--list", "-bfs4k"],
        cwd=SCRIPT.parents[1],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert "engines:hub" in listed
    assert "store" in listed
    assert not [kind for kind in listed if kind.startswith(("bfs4k", "sweep"))]
    assert "-bfs4k" in SCRIPT.read_text()
