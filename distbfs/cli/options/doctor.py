"""The options of ``distbfs doctor``."""

from __future__ import annotations

from typing import Any

from distbfs.cli.options import carry_out
from distbfs.terminal.command import ADVANCED, grouped_command
from distbfs.terminal.options import output_options


@grouped_command("doctor")
@ADVANCED.option(
    "--compile",
    "wanted",
    multiple=True,
    metavar="ARCH",
    help="Only compile the CUDA kernels, for ARCH as sm_90, or 'all'; no device is "
    "needed.  May be repeated.",
)
@output_options
def command(**values: Any) -> Any:
    """Show what this installation can use, and what to install for the rest.

    Starts MPI, compiles every C kernel and searches a small graph with every engine.
    On several ranks it measures how they talk to each other, pair by pair.

    Exit code 0 where at least the reference engine works.

    With --compile: exit code 0 where every CUDA kernel compiles, 3 without NVRTC.
    Kernels of exchange nvshmem are left out where NVSHMEM is not installed.
    """
    return carry_out("doctor", values)
