"""Levels of a search that gave parents alone, as of derived.py, on CUDA devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from distbfs.device import cuda
from distbfs.device.structures import address, structure
from distbfs.types import UNREACHED
from distbfs.validation.cuda_device import (
    SOURCE,
    ResultShard,
    kernels_for,
)
from distbfs.validation.states import row_length

if TYPE_CHECKING:
    from distbfs.validation.between import Devices
    from distbfs.validation.cuda_device import CheckingDevice

MOST_NARROW = 126  # the last level that stays in a byte


def levels_on_devices(devices: Devices, n: int, parts: int, vertices: int) -> None:
    """Derive levels, int8 or int32, for the shards of all devices (collective).

    vertices: most of a part

    Level by level: each device has a bit of every vertex of the level before.
    """
    work = devices.each(lambda device: Derivation(device, n, parts, vertices))
    depth, more = 0, True
    while more:
        counts = devices.each(lambda _, one, k=depth: one.next(k), work)
        left = np.array([sum(counts)], dtype=np.int64)
        more = bool(devices.world.allreduce(left)[0])
        if more:
            # mutant: devices.spread(row_length(vertices) // 32) -> pass : test_depths
            devices.spread(row_length(vertices) // 32)
        depth += 1
    devices.each(lambda device, one: device.have(one.shards()), work)


class Derivation:
    """The levels of one device's vertices, while they are derived."""

    def __init__(
        self, device: CheckingDevice, n: int, parts: int, vertices: int
    ) -> None:
        cp, seat = cuda.cupy(), device.seat
        self._device, self._shards = device, seat.shards
        self._ids = np.dtype(seat.tuples.dtype)
        words = row_length(vertices) // 32
        device.states = cp.zeros((parts, words), np.uint32)
        self._fresh = cp.empty((len(self._shards), words), np.uint32)
        self._count = cp.empty(1, np.uint64)
        kinds = [np.dtype(f"i{self._ids.itemsize}")]
        kinds += [shard.parent.dtype for shard in self._shards]
        self._kind = max(kinds, key=lambda kind: kind.itemsize)
        self._parents = [x.parent.astype(self._kind, copy=False) for x in self._shards]
        self._levels = [cp.full(x.count, UNREACHED, np.int8) for x in self._shards]
        self._table = np.zeros((2, parts), np.uint64)
        self._params = structure(SOURCE, "Check")(
            n=n,
            per=32 * words,
            parts=parts,
            shift=5,
            split=parts.bit_length() - 1 if parts & (parts - 1) == 0 else 0,
            states=device.states,
            filled=self._count,
        )
        self._place()

    def _place(self) -> None:
        """Point at levels and parents."""
        cp, parts = cuda.cupy(), [shard.index for shard in self._shards]
        self._table[0, parts] = [address(x) for x in self._levels]
        self._table[1, parts] = [address(x) for x in self._parents]
        levels, parents = cp.asarray(self._table)
        self._params.set(level=levels, parent=parents)

    def next(self, depth: int) -> int:
        """Find the own vertices of a level; return their number."""
        cp = cuda.cupy()
        if depth == MOST_NARROW + 1:  # mutant: + 1: -> + 3: : test_depths
            self._levels = [x.astype(np.int32) for x in self._levels]
            self._place()
        kind = np.dtype(np.int8 if depth <= MOST_NARROW else np.int32)
        kernel = kernels_for(
            cp.cuda.Device().id, kind.name, self._kind.name, self._ids.name
        ).kernel("derive_levels")
        self._fresh.fill(0)
        self._count.fill(0)
        p, stream = self._params, cp.cuda.get_current_stream()
        p.depth = depth
        for fresh, shard in zip(self._fresh, self._shards, strict=True):
            p.set(part=shard.index, fresh=fresh)
            kernel.prepare(p, *self._device.grid)(stream.ptr)
        for fresh, shard in zip(self._fresh, self._shards, strict=True):
            self._device.states[shard.index][...] = fresh
        return int(self._count[0])

    def shards(self) -> list[ResultShard]:
        """Return the shards with their levels."""
        pairs = zip(self._shards, self._levels, strict=True)
        return [ResultShard(x.index, level, x.parent) for x, level in pairs]
