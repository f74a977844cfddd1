"""The start of the ranks, for commands and for programs that use the library.

Without a launcher everything runs as one process, and MPI is not imported.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from distbfs.errors import LaunchError
from distbfs.ranks.endings import (
    GRACE,
    AbortHook,
    explain_launch_error,
    run_guarded,
)
from distbfs.ranks.launcher import RankLaunch, find_launch
from distbfs.ranks.mpi import MAX_ELEMENTS, MpiWorld, load_mpi
from distbfs.ranks.reduction import check_reduction, json_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from distbfs.types import Array, Reduction

__all__ = ["MpiWorld", "Ranks", "SoloWorld", "run_guarded", "start"]


class SoloWorld:
    """A single process; see ``types.World``. Results are always copies."""

    def __init__(self) -> None:
        self.rank = 0
        self.size = 1
        self.local_rank = 0
        self.local_size = 1
        self.hosts = [platform.node()]
        self.library = "none"
        self.doing = ""

    def describe(self) -> dict[str, Any]:
        """Return library, number of ranks, and ranks per host (JSON values)."""
        return {"library": self.library, "ranks": 1, "hosts": {self.hosts[0]: 1}}

    def barrier(self) -> None:
        """Return at once."""

    def allreduce(self, values: Array, op: Reduction = "sum") -> Array:
        """Return a copy."""
        return check_reduction(values, op)

    def allgather(self, values: Array) -> list[Array]:
        """Return a copy as the only array."""
        return [np.array(values, order="C", copy=True)]

    def alltoall(self, outgoing: Sequence[Array]) -> list[Array]:
        """Return a copy of the only array."""
        return [np.array(array, order="C", copy=True) for array in outgoing]

    def broadcast(self, value: Any, root: int = 0, *, patient: bool = False) -> Any:  # noqa: ARG002
        """Return a copy of the object, by way of JSON."""
        return json.loads(json_text(value))

    def split(self, group: int) -> SoloWorld:  # noqa: ARG002
        """Return a world of this process alone."""
        return SoloWorld()

    def free(self) -> None:
        """Return at once."""

    def abort(self, code: int) -> NoReturn:
        """End the process with an exit code; 0 counts as 1."""
        raise SystemExit(min(max(code, 1), 255))

    def finish(self) -> None:
        """Return at once."""


Ranks: TypeAlias = SoloWorld | MpiWorld


def _mpi_runs() -> bool:
    """Return whether the program itself has initialised MPI with several ranks."""
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None or not mpi.Is_initialized() or mpi.Is_finalized():
        return False
    return bool(mpi.COMM_WORLD.Get_size() > 1)


def start(chunk_elements: int = MAX_ELEMENTS, grace: float = GRACE) -> Ranks:
    """Return the world of all ranks; collective. Later calls return the same.

    chunk_elements: length of the longest message, in elements
    grace: seconds for which a rank that ends without ``world.finish()`` waits for the
    others before it ends them all with code 1

    From here on an error on one rank ends every rank (see ``guard``). Raises
    LaunchError if the launcher and mpi4py use different MPIs; uncaught, it is
    printed as one line and ends every process with code 2.
    """
    hook = AbortHook.installed()
    if hook is not None and hook.world is not None:
        return hook.world
    launch = find_launch(os.environ)
    if (launch is None or launch.shell) and not _mpi_runs():
        return SoloWorld()
    try:
        comm = load_mpi(launch or RankLaunch("MPI", 0, 1, exact=False)).COMM_WORLD
        # before anything else that can fail on one rank alone
        hook = AbortHook(comm, grace)
        hook.install()
        hook.world = MpiWorld(comm, chunk_elements)
        return hook.world
    except LaunchError:
        if launch is not None and launch.single and not _mpi_runs():
            return SoloWorld()  # no other rank exists
        explain_launch_error(launch)
        raise
