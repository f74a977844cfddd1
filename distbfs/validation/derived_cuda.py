"""Levels of a search that gave only parents, derived on CUDA devices.

The rules are those of derived.py.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from distbfs.device import cuda
from distbfs.types import UNREACHED
from distbfs.validation.cuda_device import ResultShard
from distbfs.validation.states import StateLayout

if TYPE_CHECKING:
    from distbfs.validation.between import Devices
    from distbfs.validation.cuda_device import CheckingDevice

BITS = StateLayout(bits=1, code=0)


def levels_on_devices(devices: Devices) -> None:
    """Derive levels, int32, for the shards of all devices (collective).

    They are derived level by level; each device has a bit for every vertex of the
    graph, which is set if the vertex is on the previous level.
    """
    devices.each(begin)
    depth, more = 0, True
    while more:
        counts = devices.each(partial(next_level, depth=depth))
        left = np.array([sum(counts)], dtype=np.int64)
        more = bool(devices.world.allreduce(left)[0])
        if more:
            # mutant: devices.spread(BITS) -> pass : test_depths
            devices.spread(BITS)
        depth += 1


def begin(device: CheckingDevice) -> None:
    """Set the levels of a device to unreached, and allocate the bits."""
    cp = cuda.cupy()
    device.have(
        [
            ResultShard(x.index, cp.full(x.count, UNREACHED, np.int32), x.parent)
            for x in device.seat.shards
        ]
    )
    device.take(BITS, chunk=1)
    device.states.fill(0)


def next_level(device: CheckingDevice, depth: int) -> int:
    """Find a device's vertices on level ``depth``; return their number."""
    shards, check, states = device.seat.shards, device.check, device.states
    fresh = cuda.cupy().zeros((len(shards), states.shape[1]), np.uint32)
    check.depth = depth
    check.held["filled"].fill(0)
    for row, shard in zip(fresh, shards, strict=True):
        check.set(fresh=row)
        device.of_part("derive_levels", shard.index, 0, shard.count)
    for row, shard in zip(fresh, shards, strict=True):
        states[shard.index][...] = row
    return int(check.held["filled"][0])
