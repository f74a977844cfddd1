"""Which device a rank uses: by its place among the ranks of its host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distbfs.device import cuda
from distbfs.errors import LaunchError
from distbfs.exchange.link import shared_device

if TYPE_CHECKING:
    from distbfs.types import World


def take_device(world: World, *, share: bool) -> int:
    """Make a device of this host the current one; return its index (collective).

    The k-th rank of a host takes the k-th visible device.  LaunchError where two ranks
    would use the same device, unless ``share``; DeviceMissing where there is none.
    """
    hosts = list(getattr(world, "hosts", [""] * world.size))
    here = hosts[world.rank]
    runtime = cuda.cupy().cuda.runtime
    count = int(runtime.getDeviceCount())
    index = hosts[: world.rank].count(here) % count
    cuda.cupy().cuda.Device(index).use()
    problem = shared_device(world, cuda.uuid())
    if problem and not share:
        raise LaunchError(
            f"{problem}; start no more ranks on a host than it has devices, or give "
            "--share-device"
        )
    return index
