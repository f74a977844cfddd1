"""The watchdog of ``tests/mpi``: a test that fails on one rank ends the whole run."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from launching import needs_mpi, run_ranks

CONFTEST = Path(__file__).resolve().parents[1] / "mpi" / "conftest.py"
TEST = """
def test_it(world):
    {body}
    world.barrier()
"""


@pytest.mark.thorough
@needs_mpi
@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("assert world.rank == 0, 'not here'", "not here"),
        ("assert False, 'everywhere'", "everywhere"),
        ("if world.rank: import time; time.sleep(200)", "Timeout"),
    ],
    ids=["one-rank", "all-ranks", "hangs"],
)
def test_run_ends(tmp_path: Path, body: str, text: str) -> None:
    conftest = CONFTEST.read_text().replace("TEST_SECONDS = 60", "TEST_SECONDS = 3")
    assert "TEST_SECONDS = 3" in conftest
    (tmp_path / "conftest.py").write_text(conftest)
    (tmp_path / "test_it.py").write_text(TEST.format(body=body))
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    argv = [sys.executable, "-m", "pytest", "--with-mpi", str(tmp_path)]
    done = run_ranks(2, argv)
    assert done.seconds < 60
    assert done.returncode != 0
    assert text in done.stderr
    shutil.rmtree(tmp_path)
