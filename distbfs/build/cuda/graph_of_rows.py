"""A graph on one CUDA device, from host rows with other vertex numbers."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from distbfs.build.cuda.chunks import Chunks
from distbfs.build.cuda.graph import (
    assemble,
    assemble_directed,
    check_size,
)
from distbfs.build.cuda.kernels import BLOCK, Kernels
from distbfs.build.cuda.room import Budget, Room
from distbfs.device import cuda
from distbfs.errors import InputError
from distbfs.graph.csr import CSR
from distbfs.graph.device_graph import DeviceGraph
from distbfs.timing import Stopwatch
from distbfs.types import Array, DeviceArray


class HostRows:
    """Pairs of ids, one for each entry of rows on the host.

    offsets: [rows + 1]; columns: numbers, uint32 [m]; vertices: number -> id, uint32
    [rows] on the device
    """

    def __init__(
        self, kernels: Kernels, offsets: Array, columns: Array, vertices: DeviceArray
    ) -> None:
        self._kernels, self._offsets = kernels, offsets
        self._columns, self._vertices = columns, vertices

    dtype = np.uint32

    def fill(self, start: int, stop: int, u: DeviceArray, v: DeviceArray) -> None:
        """Write the pairs of the entries start … stop-1 to CuPy uint32 arrays."""
        cupy = cuda.cupy()
        bounds = np.array([start, stop - 1], dtype=self._offsets.dtype)
        first, last = np.searchsorted(self._offsets, bounds, side="right") - 1
        local = self._offsets[first : last + 2].astype(np.uint64)
        base = int(local[0])
        self._kernels.launch(
            "expand_rows",
            stop - start,
            BLOCK,
            np.uint64(stop - start),
            np.uint64(last + 1 - first),
            np.uint64(start - base),
            cupy.asarray(local - np.uint64(base)),
            cupy.asarray(self._columns[start:stop].astype(np.uint32, copy=False)),
            self._vertices[int(first) :],
            self._vertices,
            u,
            v,
        )


def _by_id(kernels: Kernels, values: Array, ids: DeviceArray) -> DeviceArray:
    """Convert values by number to values by id, uint32 [n] in device memory."""
    cupy, n = cuda.cupy(), len(values)
    by_number = cupy.asarray(values.astype(np.uint32, copy=False))
    out = cupy.zeros(n, np.uint32)
    kernels.launch("scatter", n, BLOCK, np.uint64(n), by_number, ids, out)
    return out


def from_rows(
    n: int,
    offsets: Array,
    columns: Array,
    vertices: Array,
    tuple_degrees: Array,
    tuples: int,
    loops: int,
    source: dict[str, Any],
    *,
    incoming: CSR | None = None,
    buffer_bytes: int | None = None,
    wide: bool = False,
    room: Room | None = None,
) -> DeviceGraph:
    """Build a graph from rows on the host, renumbering its vertices.

    offsets: integers [n + 1]; columns: integers [m], numbers, with both directions of
    each edge and no loops; vertices: integers [n], number -> id
    tuple_degrees: integers [n], by number; other arguments: as in DeviceGraph and
    ``build``
    incoming: the incoming edges of a directed graph, whose other rows hold the outgoing
    edges
    """
    check_size(n)
    if len(offsets) != n + 1 or len(vertices) != n or len(tuple_degrees) != n:
        raise InputError(f"rows, vertices and degrees do not match {n} vertices")
    clock = Stopwatch()
    count = len(columns)
    with cuda.memory_of(f"building a graph of {n} vertices and {count} edges"):
        with clock("compile"):
            kernels = Kernels(clock)
        with kernels.phase("memory"):
            cuda.release()
            budget = Budget(n, count, count, buffer_bytes, cheap=False, room=room)
        rows = CSR(offsets, columns)
        with kernels.phase("degrees"):
            ids = cuda.cupy().asarray(vertices.astype(np.uint32, copy=False))
            ends = _by_id(kernels, tuple_degrees, ids)
            degrees = [_by_id(kernels, np.diff(offsets), ids)]
        if incoming is None:
            pairs = HostRows(kernels, offsets, columns, ids)
            chunks = Chunks(pairs, count, hold=budget.hold)
            made = assemble(kernels, chunks, degrees, budget, both=False, wide=wide)
        else:
            with kernels.phase("degrees"):
                degrees.append(_by_id(kernels, np.diff(incoming.offsets), ids))

            def side(rows: CSR) -> tuple[Chunks, Budget]:
                budget = Budget(n, count, count, buffer_bytes, cheap=False, room=room)
                pairs = HostRows(kernels, rows.offsets, rows.columns, ids)
                return Chunks(pairs, count, hold=budget.hold), budget

            sides = (partial(side, rows), partial(side, incoming))
            made = assemble_directed(kernels, sides, degrees, wide=wide, room=room)
    return DeviceGraph(
        n=n,
        tuples=tuples,
        loops=loops,
        tuple_degrees=ends,
        source=source,
        seconds=clock.seconds,
        **made,
    )
