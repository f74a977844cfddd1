"""A part in the memory of one CUDA device: ``part.Part`` with CuPy arrays.

Numbers, rows and columns are those of ``part`` (Pan, Pearce, Owens 2018, Table I).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from distbfs.device import cuda, take
from distbfs.graph.csr import CSR
from distbfs.graph.device_graph import COLUMN_PAD
from distbfs.partition.layout import Layout
from distbfs.partition.part import Part
from distbfs.types import SUBGRAPHS, Array, Ids, World

UPLOAD_BYTES = 64 << 20  # of the pinned memory for a copy


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

    def let_go(self, *names: str) -> None:
        """Free the subgraphs, unless the part is kept."""
        if not self.kept:
            for name in names:
                rows: DeviceSubgraph = getattr(self, name)
                pad = cuda.cupy().zeros(COLUMN_PAD, rows.columns.dtype)
                setattr(self, name, DeviceSubgraph(rows.offsets[:1].copy(), pad))
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
        rows = (self.nn, self.nd, self.dn, self.dd)
        return sum(int(x.columns.nbytes) for x in rows if x.on_host)

    @property
    def graph_bytes(self) -> int:
        """Bytes of the four subgraphs as Table I counts them."""
        return sum(rows.nbytes for rows in (self.nn, self.nd, self.dn, self.dd))


class Upload:
    """A copy of an array to the device, piece by piece through pinned memory.

    array: CuPy [count]
    """

    def __init__(self, count: int, dtype: Any) -> None:
        cp = cuda.cupy()
        self.array: Any = cp.empty(count, dtype=dtype)
        self._step = max(UPLOAD_BYTES // np.dtype(dtype).itemsize, 1)
        size = min(self._step, count)
        self._pinned = [cuda.pinned_empty(size, dtype) for _ in range(2)]
        self._done: list[Any] = [None, None]
        self._turn = 0
        self._stream = cp.cuda.Stream(non_blocking=True)
        self._stream.wait_event(cp.cuda.get_current_stream().record())

    def put(self, start: int, values: Array) -> None:
        """Start to copy values; the caller may overwrite them at once."""
        for at in range(0, len(values), self._step):
            piece = values[at : at + self._step]
            pinned, done = self._pinned[self._turn], self._done[self._turn]
            if done is not None:
                done.synchronize()
            pinned[: len(piece)] = piece
            place = self.array[start + at : start + at + len(piece)]
            place.set(pinned[: len(piece)], self._stream)
            self._done[self._turn] = self._stream.record()
            self._turn ^= 1

    def finish(self) -> Any:
        """Wait for all copies and return the array."""
        self._stream.synchronize()
        self._pinned = []
        return self.array


def to_device(array: Array) -> Any:
    """Copy a host array to the current device."""
    upload = Upload(len(array), array.dtype)
    upload.put(0, array)
    return upload.finish()


def parts_to_host(world: World, parts: Sequence[DevicePart]) -> Iterator[Part]:
    """Yield this rank's parts in host memory, one after the other.

    It first sums the degrees of delegates over all parts (collective).
    """
    summed = np.zeros(parts[0].delegate_count, dtype=np.int64)
    for part in parts:
        with part.vertices.device:
            for rows in (part.dn, part.dd):
                summed += _lengths(rows)
    summed = world.allreduce(summed)
    for part in parts:
        with part.vertices.device:
            yield _to_host(part, summed)


def _to_host(part: DevicePart, delegate_degrees: Ids) -> Part:
    """Copy a part to host memory; see ``parts_to_host``."""
    degrees = _lengths(part.nn) + _lengths(part.nd)
    graphs: dict[str, Any] = {}
    for name in SUBGRAPHS:
        rows: DeviceSubgraph = getattr(part, name)
        graphs[name] = CSR(rows.offsets.get(), rows.columns[: rows.edges].get())
    own = np.flatnonzero(part.layout.part_of(part.delegates) == part.index)
    local = part.layout.local_of(part.delegates[own])
    degrees[part.numbers.get()[local]] = delegate_degrees[own]
    return Part(
        part.layout,
        part.index,
        part.threshold,
        part.delegates,
        delegate_degrees,
        **graphs,
        vertices=part.vertices.get(),
        degrees=degrees,
        tuple_degrees=part.tuple_degrees.get().astype(np.int64),
        active=part.active,
    )


def _lengths(rows: DeviceSubgraph) -> Ids:
    """Return row lengths, NumPy int64 [rows]."""
    return np.diff(rows.offsets.get().astype(np.int64))
