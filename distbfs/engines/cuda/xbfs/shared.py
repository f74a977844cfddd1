"""Memory of a device that the other devices of its domain read and write.

domain.cuh describes its contents. Every domain of several devices has this memory,
whether it searches alone or between domains.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from distbfs.device import cuda
from distbfs.device.array_table import ArrayPlan, places
from distbfs.device.structures import structure
from distbfs.engines.cuda.xbfs.arrays import KERNELS, Arrays
from distbfs.engines.cuda.xbfs.ranges import parted_bounds, range_count, range_group
from distbfs.errors import LaunchError
from distbfs.exchange.peer_memory import PeerGroup
from distbfs.partition.share import GRANULE, Share
from distbfs.plan import pull_shares
from distbfs.types import Array, Ids, World

HEADER = KERNELS / "domain.cuh"
MOST_PARTS, ALONE = 8, 4096  # as in domain.cuh
PATIENCE = 8_000_000_000  # ns that a device waits for another
WORDS = GRANULE // 32
RANGES = 2  # destination ranges of a block, at least
LINE = 256  # bytes


def shared_table(
    devices: int, granules: int, ranges: int, coded: int, direct: int = 0
) -> dict[str, ArrayPlan]:
    """Return the shared arrays of a device, each of which begins a new memory line.

    devices, granules, coded: as in ``SharedMemory``; ranges: of destinations
    direct: number of vertices whose levels pushes write there; 0: none
    """
    room, words = granules * GRANULE, granules * devices * WORDS
    return {
        "mailbox": ArrayPlan(np.uint8, ctypes.sizeof(structure(HEADER, "Mailbox"))),
        "replica": ArrayPlan(np.uint32, (2, words)),
        "inbox": ArrayPlan(np.uint64, (devices - 1, 2, room + ALONE)),
        "marks": ArrayPlan(np.uint32, devices * ranges),
        "code": ArrayPlan(np.uint64, devices * coded // 32),
        "direct": ArrayPlan(np.uint32, direct),
    }


class SharedMemory:
    """Memory that a device shares with its domain; methods need the device current.

    share: the rows of the device, which ``arrays`` are for
    coded: how many numbers of each device have levels that others look up for their
    leaves, if leaves are left out
    arguments: the members of ``Member`` except ``own`` and ``device``
    """

    def __init__(self, arrays: Arrays, share: Share, coded: int) -> None:
        self.arrays, self._domain, self.index = arrays, share.domain, share.device
        self.device = share.cuda_device
        self.devices, self.granules = share.domain.devices, share.domain.granules
        self._coded = coded if arrays.searched is not None else 0
        self.memory: Any = None
        self.arguments: dict[str, Any] = {"patience": PATIENCE}

    def facts(self) -> Array:
        """Return the counts to sum over all devices, then the longest row, float64."""
        arrays = self.arrays
        return np.array([arrays.squares, arrays.params.hubs, arrays.longest])

    def weights(self, hubs: int) -> Array:
        """Count the edges from hubs to each granule here, float64 [granules].

        hubs: the largest number of hubs on a device
        """
        below = -(-hubs // GRANULE) * self.devices * GRANULE
        weights = self.arrays.weights(below)
        out = np.zeros(self.granules * WORDS)
        out[: len(weights)] = weights[: len(out)]
        return out.reshape(-1, WORDS).sum(axis=1)

    def _places(self, ranges: int) -> tuple[dict[str, int], int]:
        """Return the offsets of shared arrays, equal on all devices, and the bytes."""
        table = shared_table(
            self.devices,
            self.granules,
            ranges,
            self._coded,
            direct=self.arrays.shape.room if self._coded else 0,
        )
        return places(table, LINE)  # "direct" alone differs between devices

    @property
    def failed(self) -> Any:
        """1 + the part for which a device waited in vain, or 0; CuPy uint64 [1]."""
        at = structure(HEADER, "Mailbox").failed.offset  # mailboxes come first
        return self.memory[at : at + 8].view(np.uint64)

    def shared_bytes(self, ranges: int) -> int:
        """Return the bytes of this device's memory that all devices map."""
        return self._places(ranges)[1]

    def connect(
        self,
        memory: Any,
        bases: Ids,
        bounds: Array,
        longest: int,
        own: int,
        group: int,
        facts: Array,
    ) -> None:
        """Set the shared memory, and the facts of all devices.

        memory: uint8 zeros, [shared_bytes]; bases: [devices] addresses of all devices'
        memory
        bounds, longest, own, group: those of destination ranges, as in ``Arrays.cut``
        facts: see ``facts``, the sums and the maximum over all devices
        """
        params, devices = self.arrays.params, self.devices
        domain = self._domain
        mean_next = float(facts[0]) / max(domain.edges, 1)
        share = pull_shares.DOMAIN if devices > 1 else pull_shares.DEVICE
        self.arrays.set_limits(domain.edges, mean_next, share, domain.active)
        self.arrays.cut(bounds, longest, own, group)
        begins, _ = self._places(params.cuts)
        self.memory = memory
        if self._coded:
            words = self._coded * devices // 32
            self.arrays.take_codes(memory.data.ptr + begins["code"], words)
            # levels of pushed vertices, which other devices read
            params.set(direct=memory.data.ptr + begins["direct"])
        self.arguments |= {
            **{name: (bases + at).tolist() for name, at in begins.items()},
            "magic": -(-(1 << 32) // devices),
            "active_all": devices * (self.arrays.searched or 0) or domain.active,
            "parts": devices,
            "index": self.index,
            "all_words": self.granules * devices * WORDS,
            "room": self.granules * GRANULE,
            "longest": min(int(facts[2]), 0xFFFFFFFF),
        }


def connect_devices(
    world: World, group: PeerGroup, devices: Sequence[SharedMemory]
) -> None:
    """Map the memory of each device of a domain on all others (collective).

    world: the ranks that have devices of the domain; devices: this rank's devices
    """
    mine = np.stack([one.facts() for one in devices])
    squares = world.allreduce(mine[:, 0].sum(keepdims=True))
    most = world.allreduce(mine[:, 1:].max(axis=0), "max")
    grids = np.array([one.arrays.grid for one in devices])
    ends = np.array([grids.max(), -grids.min()])
    if world.allreduce(ends, "max").sum():
        raise LaunchError("the devices of a domain are of different kinds")
    facts = np.concatenate([squares, most])
    cuts = _cut(world, devices, int(facts[1]))
    sizes = [one.shared_bytes(len(cuts[0]) - 1) for one in devices]
    arrays, tables = group.share(sizes, "memory that parts share")
    for one, array, table in zip(devices, arrays, tables, strict=True):
        with cuda.cupy().cuda.Device(one.device):
            one.connect(array, table, *cuts, facts)


def _cut(
    world: World, devices: Sequence[SharedMemory], hubs: int
) -> tuple[Array, int, int, int]:
    """Return destination ranges as in ``Arrays.cut``, words by position."""
    first = devices[0]
    load, mine = np.zeros((first.granules, first.devices)), []
    for one in devices:
        with cuda.cupy().cuda.Device(one.device):
            mine.append(one.weights(hubs))
    indices = world.allgather(np.array([one.index for one in devices]))
    weights = world.allgather(np.concatenate(mine))
    for on_rank, of_rank in zip(indices, weights, strict=True):
        load[:, on_rank] = of_rank.reshape(len(on_rank), -1).T
    flat, searched = load.ravel(), first.arrays.searched
    apart = len(flat) if searched is None else searched // GRANULE * first.devices
    room, grid = first.arrays.range_room // WORDS, first.arrays.grid
    least = RANGES * grid
    words = apart * WORDS // first.devices  # of a device
    group = range_group(words, range_count(apart, least, room - 1), grid)
    bounds, longest, own = parted_bounds(flat, apart, least, 1, room, group)
    return bounds * np.uint32(WORDS), longest * WORDS, own, group
