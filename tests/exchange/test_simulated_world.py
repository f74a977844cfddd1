"""What one rank of a large world does in a level with few partners.

MPI runs in processes of their own, not in that of other tests.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mpi4py")
PROGRAM = Path(__file__).with_name("simulated.py")
BENCH = Path(__file__).parents[2] / "scripts" / "bench_level.py"


def run(*words):
    command = [sys.executable, *map(str, words)]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_calls_into_mpi_do_not_grow_with_the_world():
    small, *larger = json.loads(run(PROGRAM, "calls", 8, 64, 2048))
    assert all(calls == small for calls in larger)
    for exchange in ("host", "device"):
        assert small[f"{exchange} none"] == {"Reduce_scatter_block": 1}
        assert small[f"{exchange} some"].pop("Reduce_scatter_block") == 1
        assert set(small[f"{exchange} some"].values()) == {4}


def test_a_rank_that_is_ahead_mixes_nothing_up():
    levels = json.loads(run(PROGRAM, "ahead"))
    assert levels == [
        [[1, [10]], [2, [10]]],
        [[1, [20]], [2, [20]], [3, [11]]],
        [[1, [30]], [2, [30]], [3, [21]]],
    ]


@pytest.mark.thorough
def test_the_measurement_of_a_level():
    head, *rows = run(BENCH, "--worlds", 8, 32, "--searches", 1).splitlines()
    assert "exchange" in head
    assert [row.split()[0] for row in rows] == ["8", "32"]
    assert all(float(number) > 0 for row in rows for number in row.split()[1:])
