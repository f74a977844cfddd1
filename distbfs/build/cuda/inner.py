"""A degree-separated part as one graph, for an engine that searches between domains.

The inner graph has nd, dn, dd and the edges of nn that stay in the part.  Its vertices
are positions of 32 bits: the delegates by their global number, the same in every part,
so that a mask of delegates is the first words of a bitmap; a gap to a multiple of 64;
then the normal vertices with edges by falling class of their degree inside the part.  A
position may have no inner edge.  The outer edges, those of nn to other parts, are rows
by normal position.

Source: Pan, Pearce, Owens 2018, Section III (the subgraphs of a part).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from distbfs.build.cuda.kernels import BLOCK, BLOCKS_PER_MULTIPROCESSOR, Kernels
from distbfs.build.cuda.numbering import Numbering
from distbfs.device import cuda, programs
from distbfs.device.take import take
from distbfs.errors import UsageError
from distbfs.graph.device_graph import AT_LEAST, COLUMN_PAD, ISOLATED, DeviceGraph
from distbfs.partition.device_part import DevicePart, DeviceRows
from distbfs.partition.layout import Layout
from distbfs.partition.part import mask_words
from distbfs.timing import Stopwatch
from distbfs.types import Ids

KEYS = 1 << 28  # at a time; the longest row fits in any case
KEY_BYTES = 16  # a key and its place in the sort
WIDE = 1 << 32


@dataclass
class InnerPart:
    """One part on the device that is current when it is made; CuPy arrays.

    layout, index, delegates: as in DevicePart
    graph: the inner graph; rows and columns are positions, ``active`` counts them all;
        n, vertices and numbers go by local id; vertices is ISOLATED for delegates of
        other parts and in the gap
    ids: uint32 [slots + room], position -> vertex id; from ``slots`` on, room for an id
        of another part for each vertex here that has edges, and one more
    owned: int64, the delegates whose vertices this part serves, by rising id
    normals: first position of a normal vertex; place: uint32 [normal vertices], the
        number that other parts know it by -> position
    outer_offsets: uint64 [normal vertices + 1]; outer_columns: part << 32 | number,
        uint64 [outer edges], or uint32 [0] of the only part
    """

    layout: Layout
    index: int
    delegates: Ids
    graph: DeviceGraph
    ids: Any
    slots: int
    owned: Ids
    normals: int
    place: Any
    outer_offsets: Any
    outer_columns: Any

    @property
    def local_count(self) -> int:
        """Number of vertices that this part serves."""
        return self.graph.n

    @property
    def delegate_count(self) -> int:
        """Number of delegates of the whole graph (d)."""
        return len(self.delegates)

    def number_of(self, local: int) -> int:
        """Return the position of a local id; where it has no edges, WIDE + local id."""
        return int(self.numbers_of(np.array([local]))[0])

    def numbers_of(self, places: Ids) -> Ids:
        """Return the same of local ids, int64 [k] on the host."""
        numbers = take(self.graph.numbers, places).astype(np.int64)
        return np.where(numbers == ISOLATED, WIDE + places, numbers)


class InnerBuilder:
    """Makes the inner graph and the outer edges of one part."""

    def __init__(self, part: DevicePart) -> None:
        self._part, self._clock = part, Stopwatch()
        rows = {name: getattr(part, name) for name in ("nn", "nd", "dn", "dd")}
        if any(x.offsets.dtype.itemsize == 8 for x in rows.values()):
            rows = {
                name: DeviceRows(x.offsets.astype(np.uint64), x.columns)
                for name, x in rows.items()
            }
        self._rows = rows
        offset, nn = rows["nn"].offsets.dtype.itemsize, rows["nn"].columns.dtype
        self._module = programs.Module(
            Path(__file__).with_suffix(".cu"),
            OFFSET="u32" if offset == 4 else "u64",
            NN="u32" if nn.itemsize == 4 else "u64",
        )
        self._grid = cuda.multiprocessors() * BLOCKS_PER_MULTIPROCESSOR
        self._numbering = Kernels(self._clock)

    def _launch(self, name: str, *arguments: Any) -> None:
        self._module.kernel(name)(self._grid, BLOCK, *arguments)

    def build(self) -> InnerPart:
        """Return the part; UsageError where its positions do not fit 32 bits."""
        cp, part = cuda.cupy(), self._part
        active, index = np.uint32(part.active), np.uint32(part.index)
        nn, nd = self._rows["nn"], self._rows["nd"]
        normals = 64 * mask_words(part.delegate_count)
        count = normals + part.active
        if count + part.active + part.delegate_count + 512 >= WIDE:
            raise UsageError(
                f"part {part.index} has {part.delegate_count} delegates and "
                f"{part.active} normal vertices; allowed: about {WIDE // 2} together"
            )
        inside, outside = (cp.empty(max(part.active, 1), np.uint32) for _ in range(2))
        if part.active:
            rows = (nn.offsets, nn.columns, nd.offsets)
            self._launch("count_normals", active, index, *rows, inside, outside)
        inside, outside = inside[: part.active], outside[: part.active]
        # one more, so that those without inner edges come as a class of their own
        numbering = Numbering(self._numbering, inside + np.uint32(1))
        order, place = numbering.vertices, numbering.numbers + np.uint32(normals)
        at_least = np.append(numbering.at_least[1:], numbering.at_least[-1:]) + normals
        lengths = cp.zeros(count, np.uint32)
        d = part.delegate_count
        for name in ("dd", "dn"):
            lengths[:d] += cp.diff(self._rows[name].offsets[: d + 1]).astype(np.uint32)
        lengths[normals:] = numbering.sorted - np.uint32(1)
        offsets = self._sums(lengths)
        columns = self._columns(offsets, order, place, normals)
        outer_offsets, outer_columns = self._outer(order, outside)
        owned = np.flatnonzero(part.layout.part_of(part.delegates) == part.index)
        owned = owned[np.argsort(part.delegates[owned])]
        vertices, numbers, ids = self._names(order, normals, owned)
        m = len(columns) - COLUMN_PAD
        graph = DeviceGraph(
            n=part.local_count,
            active=count,
            m=m,
            tuples=0,
            loops=0,
            at_least=at_least[:AT_LEAST],
            offsets=offsets if m >= WIDE else offsets.astype(np.uint32),
            columns=columns,
            vertices=vertices,
            numbers=numbers,
            tuple_degrees=part.tuple_degrees,
            source={},
            seconds=self._clock.seconds,
        )
        return InnerPart(
            part.layout,
            part.index,
            part.delegates,
            graph,
            ids,
            slots_after(count),
            owned,
            normals,
            place,
            outer_offsets,
            outer_columns,
        )

    def _sums(self, lengths: Any) -> Any:
        """Return the sums before each length and of all, uint64 [lengths + 1]."""
        cp = cuda.cupy()
        sums = cp.zeros(len(lengths) + 1, np.uint64)
        sums[1:] = cp.cumsum(lengths, dtype=np.uint64)
        return sums

    def _columns(self, offsets: Any, order: Any, place: Any, normals: int) -> Any:
        """Return the columns of all positions, rising in each row, and the pad."""
        cp, part = cuda.cupy(), self._part
        nn, nd, dn, dd = (self._rows[name] for name in ("nn", "nd", "dn", "dd"))
        m, count, d = int(offsets[-1]), len(offsets) - 1, part.delegate_count
        columns = cp.zeros(m + COLUMN_PAD, np.uint32)
        room = min(max(cuda.free_bytes() // (2 * KEY_BYTES), 1), KEYS)
        low = 0
        while low < count:
            first = int(offsets[low])
            limit = cp.asarray(np.array([first + room], dtype=np.uint64))
            high = int(cp.searchsorted(offsets, limit, "right")[0]) - 1
            high = min(max(high, low + 1), count)
            keys = cp.empty(int(offsets[high]) - first, np.uint64)
            at = (place, np.uint64(first), offsets, keys)
            if low < d:
                delegates = (dd.offsets, dd.columns, dn.offsets, dn.columns)
                ends = np.uint32(low), np.uint32(min(high, d))
                self._launch("delegate_keys", *ends, *delegates, *at)
            if high > normals:
                rows = (order, nn.offsets, nn.columns, nd.offsets, nd.columns)
                start = max(low, normals)
                ends = np.uint32(start), np.uint32(high)
                own = np.uint32(normals), np.uint32(part.index)
                self._launch("normal_keys", *ends, *own, *rows, *at)
            keys.sort()
            into = columns[first : first + len(keys)]
            self._launch("low_halves", np.uint64(len(keys)), keys, into)
            del keys
            cuda.release()
            low = high
        return columns

    def _outer(self, order: Any, lengths: Any) -> tuple[Any, Any]:
        """Return offsets and columns of the outer edges, by normal position."""
        cp, nn = cuda.cupy(), self._rows["nn"]
        offsets = self._sums(lengths[order])
        columns = cp.empty(int(offsets[-1]), nn.columns.dtype)
        if len(columns):
            active, index = np.uint32(self._part.active), np.uint32(self._part.index)
            rows = (order, nn.offsets, nn.columns, offsets, columns)
            self._launch("outer_rows", active, index, *rows)
        return offsets, columns

    def _names(self, order: Any, normals: int, owned: Ids) -> tuple[Any, Any, Any]:
        """Return vertices and numbers of the inner graph, and ids."""
        cp, part = cuda.cupy(), self._part
        layout, d, count = part.layout, part.delegate_count, normals + part.active
        vertices = cp.full(count, ISOLATED, np.uint32)
        vertices[normals:] = part.vertices[order]
        local = layout.local_of(part.delegates[owned]).astype(np.uint32)
        vertices[cp.asarray(owned)] = cp.asarray(local)
        numbers = cp.full(max(part.local_count, 1), ISOLATED, np.uint32)
        named = cp.flatnonzero(vertices != np.uint32(ISOLATED))
        numbers[vertices[named]] = named.astype(np.uint32)
        ids = cp.zeros(slots_after(count) + part.active + len(owned) + 1, np.uint32)
        ids[:d] = cp.asarray(part.delegates.astype(np.uint32))
        ids[normals:count] = vertices[normals:] * np.uint32(layout.parts) + np.uint32(
            part.index
        )
        return vertices, numbers, ids


def slots_after(count: int) -> int:
    """Return the end of ids by position: a bitmap has whole tiles of 256."""
    return -(-count // 256) * 256


def inner_part(part: DevicePart) -> InnerPart:
    """Return a part as an inner graph with outer edges, on the same device."""
    with part.vertices.device, cuda.memory_of(f"the inner graph of part {part.index}"):
        return InnerBuilder(part).build()
