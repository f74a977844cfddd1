"""The whole graph of a store on one device, see build/cuda/graph.py.

Row lengths give degrees and numbers before any column is read. Then columns are turned
into keys as they arrive; if the keys do not fit into memory at once, columns are read
again for each group of keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from distbfs.build.cuda.graph import assemble, check_size
from distbfs.build.cuda.kernels import Kernels
from distbfs.build.cuda.room import VERTEX_BYTES, Budget, Room
from distbfs.build.cuda.rows import Side
from distbfs.device import cuda
from distbfs.partition.share import Share
from distbfs.progress import Sum
from distbfs.store.cuda_files import TupleEnds
from distbfs.store.cuda_rows import StoreRows
from distbfs.store.schema import SLICE_BYTES
from distbfs.timing import Stopwatch
from distbfs.types import SUBGRAPHS, DeviceArray

if TYPE_CHECKING:
    from distbfs.store.hdf5 import Store

MOST = SLICE_BYTES // 4  # edges of a slice
ROW_BYTES = 16  # approximate bytes a vertex of names and offsets while columns are read


class EachEdge:
    """The edges of some subgraphs as (u, v), slice by slice (see ``Chunks``)."""

    def __init__(self, rows: StoreRows, parts: int, names: Sequence[str]) -> None:
        self._rows: StoreRows | None = rows
        self._parts, self._names = parts, names
        every = [rows.count(part, [name]) for part in range(parts) for name in names]
        size, cupy = min(MOST, max(every)), cuda.cupy()
        self._room = tuple(cupy.empty(size, np.uint32) for _ in range(2))
        self.expect(1)

    def _give(self, start: int, stop: int) -> tuple[DeviceArray, DeviceArray]:
        u, v = self._room
        return u[: stop - start], v[: stop - start]

    def __iter__(self) -> Iterator[tuple[DeviceArray, DeviceArray]]:
        for part in range(self._parts):
            if self._rows is not None:
                yield from self._rows.pairs(part, self._give, self._names)

    def expect(self, passes: int) -> None:
        """Announce ``passes`` more passes."""
        if self._rows is not None:
            for part in range(self._parts):
                self._rows.expect(passes, part, self._names)

    def drop(self) -> None:
        """Free the memory; no pass may follow."""
        self._rows = None
        self._room = ()


def graph_of_store(
    store: Store,
    *,
    buffer_bytes: int | None = None,
    room: Room | None = None,
    done: Sum | None = None,
) -> Share:
    """Load the graph of a store to the current device, in input ids.

    buffer_bytes, room: as in ``build``; done: called with the number of bytes to read,
    and with the bytes that have been read. Raises StoreError if a file does not match
    the manifest, ResourceError if device memory is short.
    """
    manifest = store.manifest
    n, m = manifest.n, manifest.m
    check_size(n)
    cupy, clock = cuda.cupy(), Stopwatch()
    what = f"building a graph of {n} vertices and {m} directed edges"
    with cuda.memory_of(what):
        with clock("compile"):
            kernels = Kernels(clock)
        names = manifest.records[0].subgraphs
        sides = [names[:4], names[4:]] if manifest.directed else [SUBGRAPHS]
        with kernels.phase("memory"):
            cuda.release()
            by_vertex = VERTEX_BYTES + len(sides) * ROW_BYTES
            columns = len(sides) * 4 * m if room is None else 0
            cuda.require(by_vertex * n + columns, what)
            degrees = [cupy.zeros(n, np.uint32) for _ in sides]
            ends = cupy.zeros(n, np.uint32)
        with kernels.phase("rows"):
            parts, kept = range(manifest.parts), [TupleEnds(1, 0, ends)]
            rows = StoreRows(store, parts, degrees=degrees, ends=kept, done=done)
            held, todo = [rows] * len(sides), sides[::-1]
            del rows

        def side() -> Side:
            edges = EachEdge(held.pop(), manifest.parts, todo.pop())
            budget = Budget(n, m, MOST, buffer_bytes, cheap=True, room=room)
            return Side(edges, budget)

        return assemble(
            kernels,
            side(),
            degrees,
            ends,
            tuples=manifest.tuples,
            source=dict(manifest.source),
            back=side if manifest.directed else None,
            room=room,
        )
