"""A part in the memory of one CUDA device: ``part.Part`` with CuPy arrays.

Numbers, rows and columns are those of ``part`` (Pan, Pearce, Owens 2018, Table I).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from distbfs.device import cuda
from distbfs.graph.csr import CSR
from distbfs.partition.layout import Layout
from distbfs.partition.part import Part
from distbfs.types import Array, Ids

COLUMN_PAD = 256  # columns that may be read past the end
UPLOAD_BYTES = 64 << 20  # of pinned memory that an array passes through


@dataclass
class DeviceRows:
    """One subgraph; CuPy arrays.

    offsets: uint32 (uint64 from 2^32 edges on) [rows + 1]
    columns: uint32 [edges + COLUMN_PAD]; of nn uint64 where there are several parts
    """

    offsets: Any
    columns: Any

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.offsets) - 1

    @property
    def edges(self) -> int:
        """Number of stored edges."""
        return len(self.columns) - COLUMN_PAD

    @property
    def nbytes(self) -> int:
        """Bytes as Table I counts them."""
        width = self.columns.dtype.itemsize
        return int(self.offsets.nbytes) + self.edges * width


@dataclass
class DevicePart:
    """One part on the device that is current when it is made.

    layout, threshold: global; index: which part; active: rows 0 … active-1 of nn and nd
        are the normal vertices with at least one edge
    delegates: NumPy int64 [d], global ids, the same on every part
    nn, nd: rows by number [local count]; dn, dd: rows by delegate [d]
    vertices: uint32 [local count], number -> local id; numbers: the inverse
    tuple_degrees: uint32 [local count], by number: ends of input tuples at the vertex
    """

    layout: Layout
    index: int
    threshold: int
    active: int
    delegates: Ids
    nn: DeviceRows
    nd: DeviceRows
    dn: DeviceRows
    dd: DeviceRows
    vertices: Any
    numbers: Any
    tuple_degrees: Any

    @property
    def local_count(self) -> int:
        """Number of vertices that this part serves, delegates and isolated included."""
        return len(self.vertices)

    @property
    def delegate_count(self) -> int:
        """Number of delegates of the whole graph (d)."""
        return len(self.delegates)

    def number_of(self, local: int) -> int:
        """Return the number of a local id."""
        return int(self.numbers[local])

    @property
    def graph_bytes(self) -> int:
        """Bytes of the four subgraphs as Table I counts them."""
        return sum(rows.nbytes for rows in (self.nn, self.nd, self.dn, self.dd))


def to_device(array: Array, pad: int = 0) -> Any:
    """Copy a host array, piece by piece through pinned memory; zeros follow it."""
    cp = cuda.cupy()
    found = cp.zeros(len(array) + pad, dtype=array.dtype)
    step = max(UPLOAD_BYTES // array.dtype.itemsize, 1)
    pinned = [cuda.pinned_empty(min(step, len(array)), array.dtype) for _ in range(2)]
    done: list[Any] = [None, None]
    stream = cp.cuda.Stream(non_blocking=True)
    stream.wait_event(cp.cuda.get_current_stream().record())
    for k, start in enumerate(range(0, len(array), step)):
        piece = array[start : start + step]
        turn = k & 1
        if done[turn] is not None:
            done[turn].synchronize()
        pinned[turn][: len(piece)] = piece
        found[start : start + len(piece)].set(pinned[turn][: len(piece)], stream)
        done[turn] = stream.record()
    stream.synchronize()
    return found


def rows_to_device(graph: CSR) -> DeviceRows:
    """Copy one subgraph."""
    return DeviceRows(to_device(graph.offsets), to_device(graph.columns, COLUMN_PAD))


def part_to_device(part: Part) -> DevicePart:
    """Copy a part to the current device; ResourceError where memory is short."""
    with cuda.memory_of(f"part {part.index}"):
        nn, nd, dn, dd = map(rows_to_device, (part.nn, part.nd, part.dn, part.dd))
        return DevicePart(
            part.layout,
            part.index,
            part.threshold,
            part.active,
            part.delegates,
            nn,
            nd,
            dn,
            dd,
            to_device(part.vertices),
            to_device(part.numbers),
            to_device(part.tuple_degrees.astype(np.uint32)),
        )
