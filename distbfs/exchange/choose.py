"""Which exchange ``auto`` is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distbfs.exchange.link import nccl_problem

if TYPE_CHECKING:
    from distbfs.types import World


def choose_exchange(world: World, name: str, on_device: bool) -> tuple[str, str]:
    """Return (name in the registry, why); collective, the same on all ranks.

    ``auto``: solo for one rank, host for arrays in host memory; for arrays on devices
    nccl where CuPy has NCCL and every rank a device of its own, else host.
    """
    if name != "auto":
        return name, "as asked for"
    if world.size == 1:
        return "solo", "there is one rank"
    if not on_device:
        return "host", "arrays are in host memory"
    if problem := nccl_problem(world):
        return "host", f"no nccl: {problem}"
    return "nccl", "every rank has a device of its own"
