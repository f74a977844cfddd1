"""The choice of each rank's devices, by its place among the ranks of its host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distbfs.device import cuda
from distbfs.errors import LaunchError
from distbfs.ranks.agreement import gather_texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from distbfs.types import World


def shared_device(world: World, uuids: Sequence[str]) -> str:
    """Return a text naming ranks that use the same device, "" if none do (collective).

    uuids: the UUIDs of this rank's devices
    """
    first: dict[tuple[str, str], int] = {}
    for rank, text in enumerate(gather_texts(world, " ".join(uuids))):
        for device in text.split():
            other = first.setdefault((world.hosts[rank], device), rank)
            if other != rank:
                return f"ranks {other} and {rank} use the same device, {device}"
    return ""


def take_devices(world: World, *, share: bool) -> list[int]:
    """Return this rank's devices and make the first one current (collective).

    The visible devices of a host are distributed to its ranks in order, the same number
    to each; if there are more ranks than devices, ranks share them. Raises LaunchError
    if two ranks would use the same device and ``share`` is false, DeviceMissing if
    there is no device.
    """
    hosts, host = world.hosts, world.hosts[world.rank]
    runtime = cuda.cupy().cuda.runtime
    count, ranks = int(runtime.getDeviceCount()), hosts.count(host)
    place, each = hosts[: world.rank].count(host), max(count // ranks, 1)
    devices = [(place * each + k) % count for k in range(each)]
    cuda.cupy().cuda.Device(devices[0]).use()
    problem = shared_device(world, cuda.uuids())
    if problem and not share:
        raise LaunchError(
            f"{problem}; start no more ranks on a host than it has devices, or give "
            "--share-device"
        )
    return devices
