"""Launcher and MPI that do not belong together end every process with 2 and one line.

Three lonely rank 0 would each write the same results.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from launching import needs_mpi, run, run_ranks

HERE = Path(__file__).parent
PROGRAM = [sys.executable, str(HERE / "program.py"), "end", "0"]
GUARDED = [sys.executable, str(HERE / "guarded.py"), "none", "0"]

pytest.importorskip("mpi4py")


@pytest.mark.thorough
@pytest.mark.parametrize("argv", [PROGRAM, GUARDED], ids=["script", "command"])
@pytest.mark.parametrize(
    "env",
    [
        {"PMI_SIZE": "3", "PMI_RANK": "0"},
        {"OMPI_COMM_WORLD_SIZE": "3", "OMPI_COMM_WORLD_RANK": "1"},
        {"PMIX_RANK": "1"},
        {"SLURM_STEP_ID": "0", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2"},
    ],
    ids=["pmi", "open-mpi", "pmix", "srun"],
)
def test_launched_ranks_that_mpi_does_not_see(
    argv: list[str], env: dict[str, str]
) -> None:
    done = run(argv, env=env)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1, done.stderr
    assert "started" in done.stderr
    assert done.stdout == ""


@pytest.fixture
def without_mpi4py(tmp_path: Path) -> dict[str, str]:
    """An environment in which ``import mpi4py`` fails."""
    package = tmp_path / "mpi4py"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('not installed here')\n")
    return {"PYTHONPATH": f"{tmp_path}:{HERE.parents[1]}"}


@pytest.mark.thorough
@needs_mpi
def test_without_mpi4py_under_a_launcher(without_mpi4py: dict[str, str]) -> None:
    done = run_ranks(2, PROGRAM, env=without_mpi4py)
    assert done.returncode == 2
    assert "mpi4py cannot be used (not installed here)" in done.stderr
    assert 1 <= done.said.count("\n") <= 2


@needs_mpi
def test_one_rank_without_mpi4py_works(without_mpi4py: dict[str, str]) -> None:
    done = run_ranks(1, PROGRAM, env=without_mpi4py)
    assert (done.returncode, done.stderr) == (0, "")


SHELL = {"SLURM_STEP_ID": "0", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"}


@pytest.mark.parametrize("more", [{}, SHELL], ids=["plain", "srun-shell"])
def test_without_launcher_mpi_is_not_imported(
    without_mpi4py: dict[str, str], more: dict[str, str]
) -> None:
    code = (
        "import sys; from distbfs.ranks import world; w = world.start();"
        "assert w.size == 1; assert not any('mpi4py' in m for m in sys.modules)"
    )
    done = run([sys.executable, "-c", code], env={**without_mpi4py, **more})
    assert (done.returncode, done.stderr) == (0, "")


def test_batch_script_without_srun_is_alone() -> None:
    env = {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "8", "SLURM_PROCID": "0"}
    done = run(PROGRAM, env=env)
    assert (done.returncode, done.stderr) == (0, "")
