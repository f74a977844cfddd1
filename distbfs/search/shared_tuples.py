"""Edges of a store's parts in memory that the devices of all ranks read.

Each rank reads the parts that are its own and copies their edges to its devices; all
devices take them from there, over peer memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.device import cuda
from distbfs.device.peers import foreign_array
from distbfs.exchange.peers import PeerGroup, on_device
from distbfs.types import Ids

if TYPE_CHECKING:
    from distbfs.store.tuples import StoreTuples
    from distbfs.types import World

PAIR_BYTES = 8


class SharedTuples:
    """A TupleSource of the edges of all parts; made and closed by all ranks.

    edges: those of the store, of any number of parts; devices: of this rank, as many
        on each

    Raises ResourceError where device memory is short, LaunchError where it cannot be
    mapped, on all ranks.
    """

    lent = True  # u and v lie in device memory, see generate/cuda.py

    def __init__(
        self, world: World, edges: StoreTuples, devices: Sequence[int]
    ) -> None:
        self._edges, self.n, self.tuples = edges, edges.n, edges.tuples
        each = max(-(-edges.parts // world.size), len(devices))  # of a rank
        none = (edges.tuples, edges.tuples)
        self.bounds = [
            edges.bounds(part) if part < edges.parts else none
            for part in range(each * world.size)
        ]
        mine = range(world.rank, len(self.bounds), world.size)
        sizes = [PAIR_BYTES * max(b - a, 1) for a, b in (self.bounds[x] for x in mine)]
        dealt = [devices[k % len(devices)] for k in range(each)]
        self._group = PeerGroup(world, dealt)
        arrays, tables = self._group.share(sizes, "edges of parts")
        for part, device, array in zip(mine, dealt, arrays, strict=True):
            if part < edges.parts:
                with on_device(device):
                    self._copy(part, array.view(np.uint32))
                    cuda.cupy().cuda.Device().synchronize()
        self._addresses = dict(zip(dealt, tables, strict=True))
        self._held = arrays
        world.barrier()

    def _copy(self, part: int, words: Any) -> None:
        """Copy the edges of a part: all u, then all v."""
        start, stop = self.bounds[part]
        at, count = 0, stop - start
        for u, v in self._edges.chunks(start, stop):
            for ids, first in ((u, at), (v, at + count)):
                words[first : first + len(ids)].set(ids.astype(np.uint32))
            at += len(u)

    def describe(self) -> dict[str, Any]:
        """Return what recreates the original tuples."""
        return self._edges.describe()

    def chunks(self, start: int, stop: int) -> Iterator[tuple[Ids, Ids]]:
        """Yield (u, v) int64 arrays of the edges start … stop-1."""
        return self._edges.chunks(start, stop)

    def pieces(self, start: int, stop: int) -> Iterator[tuple[Any, Any]]:
        """Yield (u, v) CuPy uint32 arrays of the edges start … stop-1.

        They are memory of all devices, as the current one sees it.
        """
        table = self._addresses[cuda.cupy().cuda.Device().id]
        for (first, last), address in zip(self.bounds, table.tolist(), strict=True):
            low, high = max(start, first), min(stop, last)
            if low >= high:
                continue
            words = foreign_array(address, 2 * (last - first), np.uint32)
            u, v = words[: last - first], words[last - first :]
            yield u[low - first : high - first], v[low - first : high - first]

    def close(self) -> None:
        """Give the memory back (collective)."""
        self._held.clear()
        self._group.close()
