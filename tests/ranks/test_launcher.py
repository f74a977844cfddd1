"""What the environment says of the launcher."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "faults"))
from launching import clean_environment, is_open_mpi

from distbfs.ranks.launcher import RankLaunch, find_launch, foreign

SRUN = {"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "2"}
HYDRA = {"PMI_SIZE": "3", "PMI_RANK": "1", "MPI_LOCALNRANKS": "3"}
FLUX = {"FLUX_JOB_SIZE": "2", "FLUX_TASK_RANK": "1"}
PRTERUN = {"PRTE_LAUNCHED": "1", "PMIX_RANK": "5"}
OPEN_MPI = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1"}


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({"PMI_SIZE": ""}, None),
        ({"PMI_SIZE": "many"}, None),
        (HYDRA, RankLaunch("mpiexec", 1, 3)),
        (OPEN_MPI, RankLaunch("mpirun (Open MPI)", 1, 2)),
        ({**OPEN_MPI, "PMIX_RANK": "1"}, RankLaunch("mpirun (Open MPI)", 1, 2)),
        (SRUN, RankLaunch("srun", 2, 4)),
        ({**SRUN, **HYDRA}, RankLaunch("mpiexec", 1, 3)),
        ({**SRUN, "PMI_SIZE": "4", "PMI_RANK": "2"}, RankLaunch("srun", 2, 4)),
        ({**SRUN, "PMI_SIZE": "3", "PMI_RANK": "1"}, RankLaunch("mpiexec", 1, 3)),
        ({**SRUN, "PMIX_RANK": "2"}, RankLaunch("srun", 2, 4)),
        ({**SRUN, **PRTERUN}, RankLaunch("prterun", 5, 6, exact=False)),
        ({**SRUN, **PRTERUN, **OPEN_MPI}, RankLaunch("mpirun (Open MPI)", 1, 2)),
        (
            {**SRUN, "PMI_PORT": "vm:1", "MPI_LOCALNRANKS": "2"},
            RankLaunch("mpiexec", 0, 2, exact=False),
        ),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}, None),
        ({"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "8"}, None),
        ({"PMIX_RANK": "2"}, RankLaunch("PMIx", 2, 3, exact=False)),
        ({"MPI_LOCALNRANKS": "2"}, RankLaunch("mpiexec", 0, 2, exact=False)),
        (FLUX, RankLaunch("Flux", 1, 2)),
        ({**FLUX, "PMI_SIZE": "2", "PMI_RANK": "1"}, RankLaunch("Flux", 1, 2)),
        ({**FLUX, "PMIX_RANK": "1"}, RankLaunch("Flux", 1, 2)),
        ({**FLUX, **HYDRA}, RankLaunch("mpiexec", 1, 3)),
        ({**SRUN, **FLUX}, RankLaunch("Flux", 1, 2)),
        ({"FLUX_JOB_SIZE": "2"}, None),
        ({"PALS_RANKID": "1"}, RankLaunch("PALS", 1, 2, exact=False)),
    ],
)
def test_find_launch(environment: dict[str, str], expected: RankLaunch | None) -> None:
    assert find_launch(environment) == expected


def test_agreement() -> None:
    assert RankLaunch("x", 0, 3).agrees(3)
    assert not RankLaunch("x", 0, 3).agrees(1)
    assert not RankLaunch("x", 0, 3).agrees(4)
    at_least = RankLaunch("x", 2, 3, exact=False)
    assert at_least.agrees(4)
    assert not at_least.agrees(2)
    assert at_least.count == "3 ranks or more"
    assert RankLaunch("x", 0, 1, exact=False).count == "1 rank or more"


@pytest.mark.parametrize(
    ("launch", "expected"),
    [
        (RankLaunch("srun", 0, 1), True),
        (RankLaunch("Flux", 0, 1), True),
        (RankLaunch("srun", 0, 2), False),
        (RankLaunch("mpiexec", 0, 1), False),
    ],
)
def test_shells(launch: RankLaunch, expected: bool) -> None:
    assert launch.shell is expected


@pytest.mark.parametrize(
    ("environment", "vendor", "version", "expected"),
    [
        (HYDRA, "MPICH", "MPICH 5.0", False),
        (HYDRA, "Open MPI", "Open MPI v5", True),
        (OPEN_MPI, "MPICH", "MPICH 5.0", True),
        (OPEN_MPI, "Open MPI", "Open MPI v5", False),
        ({"PMIX_RANK": "0"}, "MPICH", "MPICH 4.2 --with-pmix=/usr", False),
        ({"PMIX_RANK": "0"}, "MPICH", "MPICH 4.2 --with-pm=hydra", True),
        ({**SRUN, "PMI_RANK": "0"}, "Open MPI", "Open MPI v4", False),
        ({**FLUX, "PMI_RANK": "0"}, "Open MPI", "Open MPI v4", False),
        ({**SRUN, **HYDRA}, "Open MPI", "Open MPI v5", True),
        ({**SRUN, **PRTERUN}, "MPICH", "MPICH 5.0", True),
        (SRUN, "MPICH", "MPICH 5.0", False),
        (HYDRA, "Intel MPI", "Intel", False),
    ],
)
def test_foreign(
    environment: dict[str, str], vendor: str, version: str, expected: bool
) -> None:
    assert foreign(environment, vendor, version) is expected


@pytest.mark.parametrize(
    ("program", "exact"),
    [("mpiexec", True), ("prterun", False), ("flux", True)],
)
def test_launchers_that_are_installed(program: str, exact: bool) -> None:
    """Each starts two processes, which need no MPI to find it."""
    beside = Path(sys.executable).with_name(program)
    path = str(beside) if beside.exists() else shutil.which(program)
    if path is None:
        pytest.skip(f"needs {program}")
    before = ["start", path, "run"] if program == "flux" else []
    code = "import os; from distbfs.ranks.launcher import find_launch; "
    code += "launch = find_launch(os.environ); "
    code += "told = launch.name.split()[0], launch.rank, launch.ranks, launch.exact; "
    code += "os.write(1, ('%s %d %d %s\\n' % told).encode())"  # in one piece
    found = subprocess.run(
        [path, *before, "-n", "2", sys.executable, "-c", code],
        env=clean_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    name = {"flux": "Flux"}.get(program, program)
    if program == "mpiexec" and is_open_mpi():
        name = "mpirun"
    assert sorted(found.stdout.splitlines()) == [
        f"{name} {rank} {2 if exact else rank + 1} {exact}" for rank in (0, 1)
    ], found.stderr
