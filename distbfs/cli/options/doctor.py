"""The options of ``distbfs doctor``."""

from __future__ import annotations

from dataclasses import dataclass

from distbfs.cli.command import command_of
from distbfs.cli.options import Speech
from distbfs.options import ADVANCED, option


@dataclass(frozen=True, kw_only=True)
class DoctorOptions(Speech):
    """Show what this installation can use, and what to install for the rest.

    Starts MPI, compiles every C kernel and searches a small graph with every engine.
    On several ranks it says how they would search together, and by which exchange.

    Exit code 0 if at least the reference engine works.

    With --compile: exit code 0 if every CUDA kernel compiles, 3 without NVRTC.
    Kernels of exchange nvshmem are left out where NVSHMEM is not installed.

    compile: Only compile the CUDA kernels, for ARCH such as sm_90, or 'all'; no device
        is needed.  May be repeated.
    """

    compile: tuple[str, ...] = option(ADVANCED, default=(), metavar="ARCH")


command = command_of("doctor", DoctorOptions)
