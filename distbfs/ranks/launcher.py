"""The launcher of this process, found from the environment without importing MPI.

The innermost launcher counts: ``mpiexec`` inside a Slurm job starts its own helpers
with ``srun``, whose variables the ranks inherit, so MPI launchers are checked first.
``srun`` and Flux also set variables of PMI, with the same number of ranks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

# launcher, variable with the number of ranks, variable with the rank, variables that
# must also be set
INNER = (
    ("mpirun (Open MPI)", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", ()),
    ("mpiexec", "PMI_SIZE", "PMI_RANK", ("MPI_LOCALNRANKS",)),
    # prterun provides only the rank
    ("prterun", None, "PMIX_RANK", ("PRTE_LAUNCHED",)),
)
# these count where no mpiexec runs inside them, which sets MPI_LOCALNRANKS or another
# PMI_SIZE
OUTER = (
    ("mpirun (MVAPICH2)", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", ()),
    ("PALS", "PALS_SIZE", "PALS_RANKID", ("PALS_RANKID",)),
    ("Flux", "FLUX_JOB_SIZE", "FLUX_TASK_RANK", ("FLUX_TASK_RANK",)),
    # a batch script has SLURM_PROCID too; only srun sets the variables of a step
    ("srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", ("SLURM_STEP_ID", "SLURM_PROCID")),
)
OTHERS = (
    ("mpiexec", "PMI_SIZE", "PMI_RANK", ()),
    ("PMIx", None, "PMIX_RANK", ()),
    ("PALS", None, "PALS_RANKID", ()),
)
OUTER_NAMES = {row[0] for row in OUTER}
PMI_VARIABLES = ("PMI_RANK", "PMI_FD", "PMI_PORT", "PMI_SIZE")


@dataclass(frozen=True)
class RankLaunch:
    """A launcher and the ranks that it started.

    ranks: number of ranks; a lower bound if ``exact`` is false
    """

    name: str
    rank: int
    ranks: int
    exact: bool = True

    def agrees(self, size: int) -> bool:
        """Return whether ``size``, the ranks of MPI, matches the number started."""
        return size == self.ranks if self.exact else size >= self.ranks

    @property
    def single(self) -> bool:
        """Whether this is certainly the only rank."""
        return self.exact and self.ranks == 1

    @property
    def shell(self) -> bool:
        """Whether this program may run in a shell that Slurm or Flux started.

        Only the first program of such a shell can initialise MPI.
        """
        return self.single and self.name in {"srun", "Flux"}

    @property
    def count(self) -> str:
        """The number of ranks as text."""
        ranks = f"{self.ranks} rank{'' if self.ranks == 1 else 's'}"
        return ranks if self.exact else f"{ranks} or more"


def find_launch(environment: Mapping[str, str]) -> RankLaunch | None:
    """Return the launcher of this process, or None."""

    def number(name: str) -> int | None:
        text = environment.get(name, "")
        return int(text) if text.isascii() and text.isdigit() else None

    local, pmi_size = number("MPI_LOCALNRANKS"), number("PMI_SIZE")
    for name, ranks, rank, needed in (*INNER, *OUTER, *OTHERS):
        size, index = number(ranks) if ranks else None, number(rank)
        if not all(item in environment for item in needed):
            continue
        inside = local is not None or pmi_size not in {None, size}
        if size and not (inside and name in OUTER_NAMES):
            return RankLaunch(name, index or 0, size)
        if ranks is None and index is not None:
            return RankLaunch(name, index, index + 1, exact=False)
    if local:
        return RankLaunch("mpiexec", number("MPI_LOCALRANKID") or 0, local, exact=False)
    return None


def foreign(environment: Mapping[str, str], vendor: str, version: str) -> bool:
    """Return whether an MPI library certainly cannot talk to the launcher.

    This is called before MPI_Init, which would end the process in C. MPICH speaks PMIx
    (the protocol of Open MPI's mpirun and of ``srun --mpi=pmix``) only if its version
    text names it. Open MPI does not speak the PMI of MPICH's mpiexec, and may speak
    that of ``srun`` and Flux.
    """
    pmi = any(name in environment for name in PMI_VARIABLES)
    pmix = "PMIX_RANK" in environment or "OMPI_COMM_WORLD_SIZE" in environment
    if vendor == "MPICH":
        return pmix and not pmi and "pmix" not in version.lower()
    if vendor == "Open MPI":
        launch = find_launch(environment)
        return pmi and not pmix and not (launch and launch.name in OUTER_NAMES)
    return False
