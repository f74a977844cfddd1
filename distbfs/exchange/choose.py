"""Which exchange ``auto`` is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distbfs.errors import LaunchError
from distbfs.exchange.link import nccl_problem
from distbfs.exchange.peers import peer_problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from distbfs.types import World


def choose_exchange(
    world: World,
    name: str,
    on_device: bool,
    devices: Sequence[int] = (),
) -> tuple[str, str]:
    """Return (name in the registry, why); collective, the same on all ranks.

    devices: of each part of this rank, where arrays are on devices

    ``auto``: solo for one rank on one device or the host, host for arrays in host
    memory; for arrays on devices p2p where all devices of one host see each other's
    memory, else nccl where CuPy has NCCL and every rank a device of its own, else host.
    """
    if name == "p2p" and on_device and (problem := peer_problem(world, devices)):
        raise LaunchError(f"exchange 'p2p': {problem}; use --exchange nccl or host")
    if name != "auto":
        return name, "as asked for"
    if world.size == 1 and len(set(devices)) < 2:
        return "solo", "there is one rank"
    if not on_device:
        return "host", "arrays are in host memory"
    if not (problem := peer_problem(world, devices)):
        return "p2p", "all devices see each other's memory"
    return _without_peers(world, problem)


def _without_peers(world: World, problem: str) -> tuple[str, str]:
    """Return the exchange of parts on devices that do not see each other's memory."""
    if world.size == 1:
        return "solo", f"there is one rank; no p2p: {problem}"
    if other := nccl_problem(world):
        return "host", f"no p2p: {problem}; no nccl: {other}"
    return "nccl", f"every rank has a device of its own; no p2p: {problem}"
