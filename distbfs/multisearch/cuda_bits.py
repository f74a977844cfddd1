"""Bit-parallel traversals on CUDA devices: their constants, arrays and memory.

The devices of a domain hold the rows of one inner graph and map each other's memory, in
one process or in several. ``domain_bits`` searches them.

For each 128 searches, a device needs 32.5 bytes for each position of any device of its
domain: two frontiers and their marks. For each own vertex it needs 16 bytes for visited
bits and 16 for each binary digit of the levels; to send words, it needs 48 for each
target of outer edges and 16 for each delegate. For each own vertex, queues take 8 bytes
and outer edges 8; reading levels takes 4 for each id.

Source: Then et al., The more the merrier, VLDB 2014.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from distbfs.device import cuda
from distbfs.device.array_table import ArrayPlan, ArrayTable, total_bytes
from distbfs.errors import OutOfMemory
from distbfs.exchange.peer_memory import on_device
from distbfs.multisearch.base import SUMS, check_sources
from distbfs.partition.share import GRANULE, Share, ShareCounts
from distbfs.ranks.agreement import first_reason

if TYPE_CHECKING:
    from distbfs.types import Ids, World

KERNELS = Path(__file__).parent
LEVELS = KERNELS / "bits_levels.cu"
SEARCHES = 128  # of a lane
LANES = (1, 2, 4)  # of a row
THREADS = 1024
MARKS = 4
MORE_PLANES = 4  # added at a time
MORE_LEVELS = 64  # counted at first; doubled as needed
WIDE_DEGREE = 32  # degree from which a warp pulls a row
HUB_DEGREE = 2048  # degree from which a block, or all, read a row
NO_LIMIT = 0xFFFFFFFF
RESERVE = 256 << 20


def check_ids(graph: Share, vertices: ArrayLike, what: str = "source") -> Ids:
    """Return ids as int64 [k]; raise UsageError about ``what`` if one is no vertex."""
    ids = np.asarray(vertices, dtype=np.int64).ravel()
    check_sources(ids, graph.n, what)
    return ids


def shared_table(lanes: int, granules: int, devices: int) -> ArrayTable:
    """Return the arrays of searches that other devices access, in one allocation.

    granules: number of granules of each device; devices: number of devices of the
    domain
    """
    words, own = SEARCHES // 32 * lanes, granules * GRANULE
    positions = own * devices
    return {
        "front": [ArrayPlan(np.uint32, words * positions)] * 2,
        "mark": [ArrayPlan(np.uint32, positions // 32)] * MARKS,
        "seen": ArrayPlan(np.uint32, words * own),
    }


def own_table(
    lanes: int, n: int, active: int, *, levels: bool, sums: int
) -> ArrayTable:
    """Return the arrays of searches that only this device accesses.

    n, active: those of its rows, as in ``Share``
    """
    row = max(active, 1) * SEARCHES // 32 * lanes
    return {
        "queue": [ArrayPlan(np.uint32, max(active, 1))] * 2,
        "plane": [ArrayPlan(np.uint32, row, later=True)] * (2 * MORE_PLANES * levels),
        "sums": [ArrayPlan(np.uint64, max(active, 1), later=True)] * sums,
        # an element more takes vertices of other devices
        "by_id": [ArrayPlan(np.uint32, n + 1, later=True)] * levels,
    }


def outer_table(lanes: int, active: int, targets: int, normals: int) -> ArrayTable:
    """Return the arrays of messages to other domains."""
    row = max(targets, 1) * SEARCHES // 32 * lanes
    return {
        "row": ArrayPlan(np.uint64, active + 1),
        "seen": ArrayPlan(np.uint32, row),
        "sends": ArrayPlan(np.uint32, row),
        "sending": ArrayPlan(np.uint32, targets // 32 + 1),
        "box": ArrayPlan(np.uint64, (targets + normals) * (1 + 2 * lanes)),
    }


def bytes_beside(share: ShareCounts) -> int:
    """Return the bytes of a traversal of SEARCHES searches, as ``Request.beside``."""
    lanes, active, targets = LANES[0], share.active, share.targets
    shared = shared_table(lanes, -(-active // GRANULE) + 1, share.devices)
    own = own_table(lanes, share.local, active, levels=True, sums=len(SUMS))
    outer = outer_table(lanes, active, targets, active) if targets else {}
    return RESERVE + sum(map(total_bytes, (shared, own, outer)))


def shared_of(share: Share, lanes: int) -> ArrayTable:
    """Return the arrays that other devices access, see ``shared_table``."""
    return shared_table(lanes, share.domain.granules, share.domain.devices)


def bytes_needed(share: Share, lanes: int, *, levels: bool, sums: int = 0) -> int:
    """Return the bytes of searches, with room to add planes once."""
    n, active, outer = share.n, share.active, {}
    own = own_table(lanes, n, active, levels=levels, sums=sums)
    if share.domain.several:
        outer = outer_table(lanes, active, len(share.out.outer.targets), share.normals)
    return sum(map(total_bytes, (shared_of(share, lanes), own, outer)))


def lanes_that_fit(
    world: World, shares: Sequence[Share], *, levels: bool, most: int = LANES[-1]
) -> int:
    """Return the largest number of lanes whose searches fit all devices (collective).

    Raises OutOfMemory on all ranks if not even one lane fits.
    """
    return largest_that_fits(
        world,
        [lanes for lanes in LANES if lanes <= most],
        [share.cuda_device for share in shares],
        lambda place, lanes: bytes_needed(
            shares[place], lanes, levels=levels, sums=len(SUMS)
        ),
        "bit-parallel searches",
    )


def largest_that_fits(
    world: World,
    sizes: Sequence[int],
    devices: Sequence[int],
    bytes_needed: Callable[[int, int], int],
    what: str,
) -> int:
    """Return the largest size for which all devices have the memory (collective).

    sizes: sizes to try, ascending; devices: this rank's devices; bytes_needed(place,
    size): bytes that a size needs on the device at a place
    Raises OutOfMemory on all ranks if the smallest does not fit one device.
    """
    fits, reason = 0, ""
    for size in reversed(sizes):
        need: dict[int, int] = {}
        for place, device in enumerate(devices):
            need[device] = need.get(device, RESERVE) + bytes_needed(place, size)
        fits, reason = size, ""
        for device, count in need.items():
            with on_device(device):
                free = cuda.free_bytes()
            if count > free:
                fits = 0
                reason = f"{what} need {count} bytes of device memory; {free} are free"
        if fits:
            break
    if reason := first_reason(world, reason):
        raise OutOfMemory(reason)
    return int(world.allreduce(np.array([fits]), "min")[0])
