"""A part in the memory of one CUDA device: ``part.Part`` with CuPy arrays.

Numbers, rows and columns are those of ``part`` (Pan, Pearce, Owens 2018, Table I).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from distbfs.device import cuda, take
from distbfs.device.pinned_ring import PinnedRing
from distbfs.graph.csr import CSR
from distbfs.graph.device_graph import COLUMN_PAD
from distbfs.partition.layout import Layout
from distbfs.partition.part import Part
from distbfs.types import SUBGRAPHS, Array, Ids, World

UPLOAD_BYTES = 64 << 20  # of a pinned buffer


@dataclass
class DeviceSubgraph:
    """One subgraph, in CuPy arrays.

    offsets: uint32 (uint64 from 2^32 edges on) [rows + 1]
    columns: uint32 [edges + COLUMN_PAD]; uint64 in nn of several parts
    on_host: whether columns lie in pinned host memory, which kernels read in place
    """

    offsets: Any
    columns: Any
    on_host: bool = False

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

    def emptied(self) -> DeviceSubgraph:
        """Return a subgraph without rows."""
        pad = cuda.cupy().zeros(COLUMN_PAD, self.columns.dtype)
        return DeviceSubgraph(self.offsets[:1].copy(), pad)


@dataclass
class DevicePart:
    """One part on the device that is current when it is created.

    layout, threshold: as in the whole graph; index: index of the part
    active: rows 0 … active-1 of nn and nd are the normal vertices with at least one
    edge
    delegates: NumPy int64 [d], global ids, the same on every part
    nn, nd: rows by number [local count]; dn, dd: rows by delegate [d]
    vertices: uint32 [local count], number -> local id; numbers: the inverse
    tuple_degrees: uint32 [local count], by number: ends of input tuples at the vertex
    kept: whether searches must not change the part; otherwise they may free subgraphs,
    which then have no rows
    incoming: of a directed graph, the subgraphs by name of the reversed edges; empty if
    edges lead both ways. In a directed graph, ``tuple_degrees`` counts both ends of a
    tuple at its source.
    """

    layout: Layout
    index: int
    threshold: int
    active: int
    delegates: Ids
    nn: DeviceSubgraph
    nd: DeviceSubgraph
    dn: DeviceSubgraph
    dd: DeviceSubgraph
    vertices: Any
    numbers: Any
    tuple_degrees: Any
    kept: bool = True
    incoming: dict[str, DeviceSubgraph] = field(default_factory=dict)

    @property
    def sides(self) -> list[dict[str, DeviceSubgraph]]:
        """The subgraphs by name: of edges out and, in a directed graph, of edges in."""
        out = {name: getattr(self, name) for name in SUBGRAPHS}
        return [out, self.incoming] if self.incoming else [out]

    @property
    def subgraphs(self) -> list[DeviceSubgraph]:
        """All subgraphs."""
        return [rows for side in self.sides for rows in side.values()]

    def let_go(self, *names: str) -> None:
        """Free the subgraphs, unless the part is kept."""
        if not self.kept:
            for name in names:
                setattr(self, name, getattr(self, name).emptied())
                if self.incoming:
                    self.incoming[name] = self.incoming[name].emptied()
            cuda.release()

    @property
    def local_count(self) -> int:
        """Number of vertices of this part, including delegates and isolated ones."""
        return len(self.vertices)

    @property
    def delegate_count(self) -> int:
        """Number of delegates of the whole graph (d)."""
        return len(self.delegates)

    def number_of(self, local: int) -> int:
        """Return the number of a local id."""
        return int(self.numbers[local])

    def numbers_of(self, places: Ids) -> Ids:
        """Return the numbers of local ids, int64 [k] on the host."""
        return take.take(self.numbers, places).astype(np.int64)

    @property
    def host_bytes(self) -> int:
        """Bytes of columns in host memory."""
        return sum(int(x.columns.nbytes) for x in self.subgraphs if x.on_host)

    @property
    def graph_bytes(self) -> int:
        """Bytes of the subgraphs as Table I counts them."""
        return sum(rows.nbytes for rows in self.subgraphs)


def to_device(array: Array) -> Any:
    """Copy a host array to the current device."""
    cp, step = cuda.cupy(), max(UPLOAD_BYTES // array.itemsize, 1)
    out = cp.empty(len(array), array.dtype)
    ring = PinnedRing(min(step, len(array)) * array.itemsize, 2)
    for start in range(0, len(array), step):
        piece = array[start : start + step]
        pinned = ring.place(array.dtype)(0, len(piece))
        pinned[:] = piece
        ring.copy(pinned, out[start : start + len(piece)])
    cp.cuda.get_current_stream().synchronize()
    return out


def parts_to_host(world: World, parts: Sequence[DevicePart]) -> Iterator[Part]:
    """Yield this rank's parts in host memory, one after the other.

    It first sums the degrees of delegates over all parts (collective).
    """
    summed = np.zeros(parts[0].delegate_count, dtype=np.int64)
    for part in parts:
        with part.vertices.device:
            for side in part.sides:
                summed += _lengths(side["dn"]) + _lengths(side["dd"])
    summed = world.allreduce(summed)
    for part in parts:
        with part.vertices.device:
            yield _to_host(part, summed)


def _to_host(part: DevicePart, delegate_degrees: Ids) -> Part:
    """Copy a part to host memory; see ``parts_to_host``."""
    degrees = np.zeros(part.local_count, dtype=np.int64)
    for side in part.sides:
        degrees += _lengths(side["nn"]) + _lengths(side["nd"])
    graphs: list[dict[str, Any]] = [
        {
            name: CSR(rows.offsets.get(), rows.columns[: rows.edges].get())
            for name, rows in side.items()
        }
        for side in part.sides
    ]
    own = np.flatnonzero(part.layout.part_of(part.delegates) == part.index)
    local = part.layout.local_of(part.delegates[own])
    degrees[part.numbers.get()[local]] = delegate_degrees[own]
    return Part(
        part.layout,
        part.index,
        part.threshold,
        part.delegates,
        delegate_degrees,
        **graphs[0],
        incoming=graphs[1] if part.incoming else {},
        vertices=part.vertices.get(),
        degrees=degrees,
        tuple_degrees=part.tuple_degrees.get().astype(np.int64),
        active=part.active,
    )


def _lengths(rows: DeviceSubgraph) -> Ids:
    """Return row lengths, NumPy int64 [rows]."""
    return np.diff(rows.offsets.get().astype(np.int64))
