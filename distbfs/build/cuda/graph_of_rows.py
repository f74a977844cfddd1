"""A graph on one CUDA device, from host rows with other vertex numbers."""

from __future__ import annotations

from functools import partial

import numpy as np

from distbfs.build.cuda.chunks import Chunks
from distbfs.build.cuda.graph import assemble, check_size
from distbfs.build.cuda.kernels import Kernels
from distbfs.build.cuda.room import Budget, Room
from distbfs.build.cuda.rows import Side
from distbfs.device import cuda
from distbfs.errors import UsageError
from distbfs.graph.csr import CSR
from distbfs.partition.part import Part
from distbfs.partition.share import Share
from distbfs.timing import Stopwatch
from distbfs.types import Array, DeviceArray


class HostRows:
    """Pairs of ids, one for each entry of rows on the host.

    rows: rows of numbers; vertices: number -> id, uint32 [rows] on the device
    """

    def __init__(self, kernels: Kernels, rows: CSR, vertices: DeviceArray) -> None:
        self._kernels, self._offsets = kernels, rows.offsets
        self._columns, self._vertices = rows.columns, vertices

    dtype = np.uint32

    def fill(self, start: int, stop: int, u: DeviceArray, v: DeviceArray) -> None:
        """Write the pairs of the entries start … stop-1 to CuPy uint32 arrays."""
        cupy = cuda.cupy()
        bounds = np.array([start, stop - 1], dtype=self._offsets.dtype)
        first, last = np.searchsorted(self._offsets, bounds, side="right") - 1
        local = self._offsets[first : last + 2].astype(np.uint64)
        base = int(local[0])
        self._kernels.over(
            "expand_rows",
            stop - start,
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
    cupy = cuda.cupy()
    out = cupy.zeros(len(values), np.uint32)
    kernels.scatter(cupy.asarray(values.astype(np.uint32, copy=False)), ids, out)
    return out


def graph_of_part(
    engine: str,
    part: Part,
    room: Room | None = None,
    buffer_bytes: int | None = None,
) -> Share:
    """Build a graph on the current device from a part that is whole, by new numbers.

    engine: its name, for messages; room, buffer_bytes: as in ``build``
    """
    if part.layout.parts != 1 or part.delegate_count:
        raise UsageError(
            f"engine {engine} searches a graph that is one part without delegates"
        )
    n, count = part.nn.rows, part.nn.edges
    check_size(n)
    clock = Stopwatch()
    with cuda.memory_of(f"building a graph of {n} vertices and {count} edges"):
        with clock("compile"):
            kernels = Kernels(clock)
        with kernels.phase("memory"):
            cuda.release()
        with kernels.phase("degrees"):
            ids = cuda.cupy().asarray(part.vertices.astype(np.uint32, copy=False))

        def pairs_of(rows: CSR) -> Side:
            budget = Budget(n, count, count, buffer_bytes, cheap=False, room=room)
            pairs = HostRows(kernels, rows, ids)
            return Side(Chunks(pairs, count, hold=budget.hold), budget)

        sides = [side["nn"] for side in part.sides]
        pairs = pairs_of(part.nn)
        with kernels.phase("degrees"):
            degrees = [_by_id(kernels, np.diff(x.offsets), ids) for x in sides]
            ends = _by_id(kernels, part.tuple_degrees, ids)
        return assemble(
            kernels,
            pairs,
            degrees,
            ends,
            tuples=int(part.tuple_degrees.sum()) // 2,
            source={},
            back=partial(pairs_of, sides[-1]) if len(sides) > 1 else None,
            room=room,
        )
