"""What the environment says of the launcher."""

import pytest

from distbfs.exchange.launcher import Launch, find_launch, foreign

SRUN = {"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "2"}
HYDRA = {"PMI_SIZE": "3", "PMI_RANK": "1", "MPI_LOCALNRANKS": "3"}
OPEN_MPI = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1"}


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({"PMI_SIZE": ""}, None),
        ({"PMI_SIZE": "many"}, None),
        (HYDRA, Launch("mpiexec", 1, 3)),
        (OPEN_MPI, Launch("mpirun (Open MPI)", 1, 2)),
        ({**OPEN_MPI, "PMIX_RANK": "1"}, Launch("mpirun (Open MPI)", 1, 2)),
        (SRUN, Launch("srun", 2, 4)),
        ({**SRUN, **HYDRA}, Launch("mpiexec", 1, 3)),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}, None),
        ({"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "8"}, None),
        ({"PMIX_RANK": "2"}, Launch("PMIx", 2, 3, exact=False)),
        ({"MPI_LOCALNRANKS": "2"}, Launch("mpiexec", 0, 2, exact=False)),
        (
            {"FLUX_JOB_SIZE": "2", "FLUX_TASK_RANK": "1"},
            Launch("Flux", 1, 2),
        ),
        ({"FLUX_JOB_SIZE": "2"}, None),
        ({"PALS_RANKID": "1"}, Launch("PALS", 1, 2, exact=False)),
    ],
)
def test_find_launch(environment: dict[str, str], expected: Launch | None) -> None:
    assert find_launch(environment) == expected


def test_agreement() -> None:
    assert Launch("x", 0, 3).agrees(3)
    assert not Launch("x", 0, 3).agrees(1)
    assert not Launch("x", 0, 3).agrees(4)
    at_least = Launch("x", 2, 3, exact=False)
    assert at_least.agrees(4)
    assert not at_least.agrees(2)
    assert at_least.count == "3 ranks or more"


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
        (SRUN, "MPICH", "MPICH 5.0", False),
        (HYDRA, "Intel MPI", "Intel", False),
    ],
)
def test_foreign(
    environment: dict[str, str], vendor: str, version: str, expected: bool
) -> None:
    assert foreign(environment, vendor, version) is expected
