"""The exchange through an MPI that takes pointers to device memory.

It works like ``host`` without the copies to pinned memory; only the nonblocking
reduction of masks still copies, since CUDA-aware libraries may lack nonblocking
collectives for device memory (Open MPI's documentation, "Running CUDA-aware Open MPI").

A library that does not recognise a device pointer reads it as a host address, and the
process crashes, so the exchange is created only where MPI itself confirms support: by
``mpi_memory_alloc_kinds`` (MPI 4.1, Section 12.4.3), or by ``MPIX_Query_cuda_support``
of Open MPI and MPICH.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from distbfs.errors import LaunchError
from distbfs.exchange.host import HostExchange
from distbfs.exchange.staging import DeviceSlot, HostSlot, PinnedSlot
from distbfs.ranks.agreement import first_reason
from distbfs.ranks.mpi import MpiWorld, library_name

if TYPE_CHECKING:
    from types import ModuleType

    from distbfs.options import ExchangeOptions
    from distbfs.types import World

KINDS = "mpi_memory_alloc_kinds"
QUERY = "MPIX_Query_cuda_support"


class CudaAwareExchange(HostExchange):
    """Serves ranks of MPI with arrays in device memory; see ``base.Exchange``."""

    name = "cuda_aware"
    needs_devices = True

    def check(self, world: World, options: ExchangeOptions) -> None:
        """Raise LaunchError unless the MPI library takes device pointers."""
        proof = "" if options.trust_mpi else missing_proof(world)
        if reason := first_reason(world, proof):
            raise LaunchError(
                f"exchange 'cuda_aware': {reason}; use --exchange host, an MPI library "
                "built for CUDA, or --trust-mpi where it is one"
            )

    def _slots(self) -> tuple[HostSlot, HostSlot, HostSlot]:
        """Return slots that copy nothing."""
        if self._options.mask_reduce == "blocking":
            return DeviceSlot(), DeviceSlot(), DeviceSlot()
        stream = self.xp.cuda.Stream(non_blocking=True)
        return PinnedSlot(stream), DeviceSlot(), DeviceSlot()


def missing_proof(world: World) -> str:
    """Return the reason not to pass device pointers to MPI; "" if it supports them."""
    if not isinstance(world, MpiWorld):
        return "there is no MPI in a single process"
    from mpi4py import MPI  # noqa: PLC0415

    return unproven(MPI)


def unproven(mpi: Any) -> str:
    """Return the reason not to pass device pointers to an MPI that was initialised."""
    if kinds_have_cuda(memory_kinds(mpi.COMM_WORLD)):
        return ""
    supported = query_cuda_support(mpi)
    if supported:
        return ""
    why = f"{QUERY} is not there" if supported is None else f"{QUERY} says no"
    name = library_name(mpi)
    return (
        f"{name} does not report that it takes device pointers: {KINDS} has no cuda, "
        f"{why}"
    )


def memory_kinds(comm: Any) -> str:
    """Return the memory kinds that a communicator supports, "" if it lists none."""
    info = comm.Get_info()
    try:
        return str(info.Get(KINDS) or "")
    finally:
        info.Free()


def kinds_have_cuda(text: str) -> bool:
    """Return whether a list like "system,mpi,cuda:device" includes cudaMalloc memory.

    A kind without restrictors includes all memory of that kind.
    """
    for item in text.split(","):
        kind, *restrictors = item.strip().split(":")
        if kind == "cuda" and (not restrictors or "device" in restrictors):
            return True
    return False


def query_cuda_support(mpi: ModuleType) -> bool | None:
    """Return the answer of the MPI library; None if it has no such function."""
    try:
        ask = getattr(ctypes.CDLL(mpi.__file__), QUERY)  # finds that of its library
    except (OSError, AttributeError):
        return None
    ask.argtypes, ask.restype = [], ctypes.c_int
    return bool(ask())
