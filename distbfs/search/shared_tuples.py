"""Edges of a store's parts, in memory that the devices of all ranks can read.

Each rank reads a share of the parts, and its devices write their edges, which all
devices can read over peer memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.device import cuda
from distbfs.device.peers import foreign_array
from distbfs.exchange.peer_memory import PeerGroup, on_device
from distbfs.partition.edge_keys import names_read
from distbfs.partition.layout import Layout
from distbfs.progress import Sum
from distbfs.store.cuda_files import TupleEnds
from distbfs.store.cuda_rows import StoreRows
from distbfs.store.tuples import StoreTuples
from distbfs.types import Ids

if TYPE_CHECKING:
    from distbfs.store.hdf5 import Store
    from distbfs.types import World

PAIR_BYTES = 8


def slots(parts: int, world: World, devices: int) -> int:
    """Return the largest number of parts that a rank reads, at least one per device."""
    return max(-(-parts // world.size), devices)


def edge_bytes(store: Store, world: World, devices: int) -> int:
    """Return the largest number of bytes of edges that a device reads."""
    edges = StoreTuples(store)
    sizes = [end - start for start, end in map(edges.bounds, range(edges.parts))]
    of_device = -(-slots(edges.parts, world, devices) // devices)
    return PAIR_BYTES * of_device * max(sizes, default=0)


class SharedTuples:
    """A TupleSource of the edges of all parts; created and closed by all ranks.

    store: a store of any number of parts
    devices: the devices of this rank; every rank has the same number of them
    done: called with the number of bytes that devices have read, and the total
    input_tuples: number of tuples the store was built from
    ends: numbers of their ends by local id, in parts built from these edges, one per
    device: index -> CuPy uint32 [local count]

    Raises StoreError if a file does not match the manifest, ResourceError if
    device memory is short, LaunchError if it cannot be mapped, on all ranks.
    """

    lent = True  # u and v are in device memory, see generate/cuda.py

    def __init__(
        self,
        world: World,
        store: Store,
        devices: Sequence[int],
        done: Sum,
    ) -> None:
        edges = StoreTuples(store)
        self._store, self._edges, self._done = store, edges, done
        self.n, self.tuples = edges.n, edges.tuples
        self.input_tuples = store.manifest.tuples
        each = slots(edges.parts, world, len(devices))
        none = (edges.tuples, edges.tuples)
        self.bounds = [
            edges.bounds(part) if part < edges.parts else none
            for part in range(each * world.size)
        ]
        own_parts = range(world.rank, len(self.bounds), world.size)
        sizes = [
            PAIR_BYTES * max(b - a, 1) for a, b in (self.bounds[x] for x in own_parts)
        ]
        dealt = [devices[k % len(devices)] for k in range(each)]
        self._group = PeerGroup(world, dealt)
        arrays, tables = self._group.share(sizes, "edges of parts")
        self._held = dict(zip(own_parts, arrays, strict=True))
        self._addresses = dict(zip(dealt, tables, strict=True))
        layout = Layout(self.n, world.size * len(devices))

        def read(slot: int, device: int) -> tuple[int, Any]:
            index = world.rank + slot * world.size
            parts = [
                part for part in own_parts[slot :: len(devices)] if part < edges.parts
            ]
            with on_device(device), cuda.memory_of("the rows of a store"):
                ends = cuda.cupy().zeros(layout.local_count(index), np.uint32)
                self._copy(parts, TupleEnds(layout.parts, index, ends))
                cuda.cupy().cuda.Device().synchronize()
            return index, ends

        with ThreadPoolExecutor(len(devices)) as pool:
            self.ends = dict(pool.map(read, range(len(devices)), devices))
        world.barrier()

    def _copy(self, parts: Sequence[int], ends: TupleEnds) -> None:
        """Write the edges of parts to the current device: all u, then all v."""
        rows = StoreRows(self._store, parts, ends=[ends], done=self._done)
        names = names_read(directed=self._store.manifest.directed)
        for part in parts:
            words = self._held[part].view(np.uint32)
            count = rows.count(part, names)
            rows.expect(1, part, names)
            u, v = words[:count], words[count:]
            for _ in rows.pairs(part, lambda a, b, u=u, v=v: (u[a:b], v[a:b]), names):  # type: ignore[misc]
                pass

    def describe(self) -> dict[str, Any]:
        """Return the description of the original tuples."""
        return self._edges.describe()

    def chunks(self, start: int, stop: int) -> Iterator[tuple[Ids, Ids]]:
        """Yield (u, v) int64 arrays of the edges start … stop-1."""
        return self._edges.chunks(start, stop)

    def pieces(self, start: int, stop: int) -> Iterator[tuple[Any, Any]]:
        """Yield (u, v) CuPy uint32 arrays of the edges start … stop-1.

        The arrays lie in the memory of any device, mapped on the current one.
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
        """Free the memory (collective)."""
        self._held.clear()
        self._group.close()
