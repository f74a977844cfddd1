"""The devices of a rank by domain: shared memory and barriers.

The devices of a domain map each other's memory. A rank may have devices of several
domains.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from distbfs.device import cuda
from distbfs.errors import LaunchError, ResourceError
from distbfs.exchange.peer_memory import PeerGroup, on_device
from distbfs.ranks.agreement import errors_of_all
from distbfs.ranks.world import SoloWorld
from distbfs.search.domains import split_by_domain

if TYPE_CHECKING:
    from distbfs.partition.layout import Placement
    from distbfs.types import DeviceArray, Ids, World

Shared = TypeVar("Shared")


class DomainGroup:
    """The devices of all ranks; creation and methods are collective.

    devices: this rank's devices, in the order of ``placement``
    placement: where the devices of several domains are; None if all are one domain

    ranks: the ranks that have devices of this rank's domains
    domains: for each domain, the places of its devices on this rank, and their group

    Raises LaunchError on all ranks of a domain whose devices have no peer access.
    """

    def __init__(
        self,
        world: World,
        devices: Sequence[int],
        placement: Placement | None,
    ) -> None:
        self.world, self.devices = world, list(devices)
        self.ranks: World = world
        self.domains: list[tuple[list[int], PeerGroup]] = []
        places = [list(range(len(devices)))]
        if placement is not None:
            places = list(placement.places_of(world.rank).values())
            self.ranks = SoloWorld()
            if max(placement.domains.sizes) > 1:
                self.ranks = split_by_domain(world, placement)
        try:
            for some in places:
                group = PeerGroup(self.ranks, [devices[place] for place in some])
                self.domains.append((some, group))
        except LaunchError:
            self.close()
            raise

    def make(
        self,
        sizes: Sequence[int],
        what: str,
        make: Callable[[int, DeviceArray, Ids], Shared],
    ) -> list[Shared]:
        """Allocate memory on each device of this rank, and make the device's share.

        sizes: bytes on each device; what: name of the memory in messages
        make: function of (place of the device, its memory uint8 [bytes], addresses of
        the memory of all devices of its domain); called while the device is current

        Raises ResourceError on all ranks if memory is short on one.
        """
        memory: dict[int, tuple[DeviceArray, Ids]] = {}
        for places, group in self.domains:
            held = group.share([sizes[place] for place in places], what)
            memory.update(zip(places, zip(*held, strict=True), strict=True))
        shares: list[Shared] = []
        with errors_of_all(self.world, ResourceError):
            for place, device in enumerate(self.devices):
                with on_device(device), cuda.memory_of(what):
                    shares.append(make(place, *memory[place]))
        return shares

    def each(
        self, shares: Sequence[Shared], work: Callable[[Shared], Any]
    ) -> list[Any]:
        """Call ``work`` with each share while the device of the share is current."""
        results = []
        for device, share in zip(self.devices, shares, strict=True):
            with on_device(device):
                results.append(work(share))
        return results

    def meet(self) -> None:
        """Wait until the devices of a domain have finished their steps."""
        if self.ranks.size > 1 or any(len(some) > 1 for some, _ in self.domains):
            for device in self.devices:
                with on_device(device):
                    cuda.cupy().cuda.Device().synchronize()
            self.ranks.barrier()

    def close(self) -> None:
        """Free the shared memory."""
        for _, group in self.domains:
            group.close()
        self.domains = []
        if self.ranks is not self.world:
            self.ranks.free()
            self.ranks = self.world
