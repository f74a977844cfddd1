"""The devices that search the parts of a graph together: memory and barriers.

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

    Raises LaunchError on all ranks of a domain whose devices have no peer access.
    """

    def __init__(
        self,
        world: World,
        devices: Sequence[int],
        placement: Placement | None,
    ) -> None:
        self.world, self.devices = world, list(devices)
        self._ranks: World = world
        self._groups: list[tuple[list[int], PeerGroup]] = []
        places = [list(range(len(devices)))]
        if placement is not None:
            places = list(placement.places_of(world.rank).values())
            self._ranks = SoloWorld()
            if max(placement.domains.sizes) > 1:
                self._ranks = split_by_domain(world, placement)
        try:
            for some in places:
                group = PeerGroup(self._ranks, [devices[place] for place in some])
                self._groups.append((some, group))
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
        for places, group in self._groups:
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
        if self._ranks.size > 1 or any(len(some) > 1 for some, _ in self._groups):
            for device in self.devices:
                with on_device(device):
                    cuda.cupy().cuda.Device().synchronize()
            self._ranks.barrier()

    def close(self) -> None:
        """Free the shared memory."""
        for _, group in self._groups:
            group.close()
        self._groups = []
        if self._ranks is not self.world:
            self._ranks.free()
            self._ranks = self.world
