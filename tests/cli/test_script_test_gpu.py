"""scripts/test_gpu with stand-ins for pytest and for compute-sanitizer."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "test_gpu"
PYTHON = """#!/bin/sh
case $* in
*pytest*) echo "{tests}" ;;
*--list*) exec {python} "$@" ;;
esac
"""
SANITIZER = """#!/bin/sh
for kind; do :; done
case "$2 $kind" in
"{wrong}") echo "a race"; exit 9 ;;
*) echo "0 s, $kind: right" ;;
esac
"""


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
        ("killed", "none", 1, ["tests of waiting devices: killed"]),
    ],
)
def test_summary_and_exit_code(tmp_path, tests, wrong, code, lines):
    for name, text in (("python", PYTHON), ("compute-sanitizer", SANITIZER)):
        path = tmp_path / name
        path.write_text(text.format(tests=tests, wrong=wrong, python=sys.executable))
        path.chmod(0o755)
    environment = os.environ | {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHON": str(tmp_path / "python"),
        "KINDS": "store engines",
        "JOBS": "2",
    }
    done = subprocess.run(
        [SCRIPT], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    for line in lines:
        assert line in done.stdout


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
