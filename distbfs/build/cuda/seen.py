"""Bits of the edges that searches on devices see (seen.cu)."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from distbfs.device import cuda, programs
from distbfs.device.host_memory import pinned
from distbfs.errors import InputError
from distbfs.graph.device_graph import COLUMN_PAD, DeviceGraph
from distbfs.types import Array, DeviceArray, Ids, Marks

SOURCE = Path(__file__).with_name("seen.cu")
BLOCK, BLOCKS = 256, 16  # of a multiprocessor
PAIRS = 1 << 23  # edges that go to the device at once
KEYS = 1 << 26  # of edges that are sorted at once, unless one range of ids has more
KEY_BYTES = 8 + 8 + 1  # a key, its place in the sort, a flag
RANGES = 16  # log2 of the ranges of ids of which keys are counted
SCRATCH = 4  # 1 / SCRATCH of what is free is for bits of tails while they are made


class SeenParams(ctypes.Structure):
    """``Seen`` in seen.cu."""

    _fields_ = (
        *((x, ctypes.c_void_p) for x in ("row", "adj", "tail_row", "tails")),
        *((x, ctypes.c_void_p) for x in ("bits", "tail_bits", "u", "v")),
        *(
            (x, ctypes.c_void_p)
            for x in ("numbers", "vertices", "ids", "flags", "ends")
        ),
        *((x, ctypes.c_void_p) for x in ("buckets", "keys", "filled", "chosen")),
        *((x, ctypes.c_uint64) for x in ("low", "high", "count", "from_id", "to_id")),
        *((x, ctypes.c_uint32) for x in ("active", "tailed", "shift")),
    )


@dataclass
class SeenEdges:
    """Which edges of the rows on a device are seen.

    bits: uint32, a bit for each column, in the order of ``DeviceGraph.columns``: bit
        k % 32 of word k / 32
    tails: the same of ``DeviceGraph.tails``, NumPy in pinned host memory beside them,
        as the columns on the device leave no room; None where there are none
    ends: uint32 [active], how many edges of each row are seen
    """

    bits: DeviceArray
    tails: Array | None
    ends: DeviceArray


def bytes_of_bits(count: int) -> int:
    """Return the bytes of the bits of so many columns."""
    return 4 * (count // 32 + 1)


def mask_bytes(n: int, active: int, columns: int) -> int:
    """Return the bytes of a mask on the device: bits, and ends of seen edges.

    n, active: of the graph; columns: that lie on the device
    """
    bits = bytes_of_bits(columns + COLUMN_PAD) + bytes_of_bits(active)
    return bits + 4 * active + 4 * n


def runs_of(sizes: Ids, most: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield (first, last + 1, items before, items up to) of runs of buckets.

    sizes: int64 [buckets]; most: items of a run, unless one bucket has more
    """
    ends = np.cumsum(sizes)
    first = begin = 0
    while first < len(sizes):
        last = int(np.searchsorted(ends, begin + most, side="right"))
        last = max(last, first + 1)
        end = int(ends[last - 1])
        if end > begin:
            yield first, last, begin, end
        first, begin = last, end


class SeenMaker:
    """Makes bits for one graph; its methods with the device current."""

    def __init__(self, graph: DeviceGraph) -> None:
        self._graph = graph
        offset = "u32" if graph.offsets.dtype.itemsize == 4 else "u64"
        self._module = programs.Module(SOURCE, OFFSET=offset)
        tails = graph.tails
        self._columns = graph.m - graph.held_back
        self._ids: Any = None  # flags of vertices, by id and by number
        self._flags: Any = None
        self._params = SeenParams(
            row=graph.offsets.data.ptr,
            adj=graph.columns.data.ptr,
            tail_row=0 if tails is None else tails.offsets.data.ptr,
            tails=0 if tails is None else tails.columns.ctypes.data,
            numbers=graph.numbers.data.ptr,
            vertices=graph.vertices.data.ptr,
            active=graph.active,
            tailed=0 if tails is None else tails.tailed,
        )

    def of_vertices(self, vertices: Marks) -> SeenEdges:
        """Return the edges between vertices, bool [n] by id, that are seen."""
        with self._room(len(vertices) // 8 + self._graph.active // 8):
            self._flag(vertices)

            def fill() -> None:
                self._launch("see_ends", 32 * self._graph.active)

            return self._made(fill)

    def of_edges(self, edges: Marks, vertices: Marks | None) -> SeenEdges:
        """Return the edges that are seen of an undirected graph.

        edges: bool [m / 2], by (smaller, larger id) as they rise
        vertices: bool [n] by id, whose edges alone are seen; None for all
        Raises InputError for another number of flags.
        """
        cp, p, n = cuda.cupy(), self._params, self._graph.n
        if len(edges) != self._graph.m // 2:
            raise InputError(
                f"edges has {len(edges)} flags; allowed: one for each of "
                f"{self._graph.m // 2} edges"
            )
        p.shift = max((n - 1).bit_length() - RANGES, 0)
        buckets = cp.zeros((n >> p.shift) + 1, np.uint64)
        p.buckets = buckets.data.ptr
        self._launch("count_keys", 32 * self._graph.active)
        runs = list(runs_of(buckets.get().astype(np.int64), KEYS))
        most = max((high - low for _, _, low, high in runs), default=0)
        flags = 0 if vertices is None else len(vertices) // 8 + self._graph.active // 8
        with self._room(KEY_BYTES * most + flags):
            p.flags = 0
            if vertices is not None:
                self._flag(vertices)

            def fill() -> None:
                for first, last, low, high in runs:
                    keys = cp.empty(high - low, np.uint64)
                    filled = cp.zeros(1, np.uint64)
                    p.from_id, p.to_id = first << p.shift, last << p.shift
                    p.keys, p.filled = keys.data.ptr, filled.data.ptr
                    self._launch("write_keys", 32 * self._graph.active)
                    keys.sort()
                    chosen = cp.asarray(edges[low:high])
                    p.chosen, p.count = chosen.data.ptr, high - low
                    self._launch("see_listed", high - low)
                    cp.cuda.Device().synchronize()  # before they go

            return self._made(fill)

    def of_pairs(self, pairs: Iterable[tuple[Ids, Ids]]) -> SeenEdges:
        """Return edges that are seen.

        pairs: (u, v), ids of both ends, int64 [k], an edge that leads both ways once;
            iterated over as often as bits of tails do not fit the device at once
        """
        cp = cuda.cupy()
        with self._room(16 * PAIRS):

            def fill() -> None:
                for u, v in pairs:
                    for low in range(0, len(u), PAIRS):
                        some = slice(low, low + PAIRS)
                        ends = [cp.asarray(x[some].astype(np.uint32)) for x in (u, v)]
                        self._params.u, self._params.v = (x.data.ptr for x in ends)
                        self._params.count = len(ends[0])
                        self._launch("see_pairs", len(ends[0]))
                        cp.cuda.Device().synchronize()  # before they go

            return self._made(fill)

    def _flag(self, vertices: Marks) -> None:
        """Put flags by id, bool [n], on the device, by number."""
        packed = np.zeros(bytes_of_bits(self._graph.n), np.uint8)
        bits = np.packbits(vertices, bitorder="little")
        packed[: len(bits)] = bits
        self._ids = cuda.cupy().asarray(packed.view(np.uint32))
        self._flags = cuda.cupy().empty(self._graph.active // 32 + 1, np.uint32)
        self._params.ids, self._params.flags = self._ids.data.ptr, self._flags.data.ptr
        self._launch("place_flags", self._graph.active)

    def _room(self, more: int) -> cuda.memory_of:
        """Check for the memory of bits and of ``more`` while they are made."""
        need = mask_bytes(self._graph.n, self._graph.active, self._columns) + more
        what = f"a masked search of {self._graph.m} directed edges"
        cuda.release()
        cuda.require(need, what)
        return cuda.memory_of(what)

    def _made(self, fill: Any) -> SeenEdges:
        """Return bits; fill: sets those of all columns, and of tails in a window."""
        cp, p, tails = cuda.cupy(), self._params, self._graph.tails
        bits = cp.zeros((self._columns + COLUMN_PAD) // 32 + 1, np.uint32)
        ends = cp.zeros(max(self._graph.active, 1), np.uint32)
        p.bits, p.ends = bits.data.ptr, ends.data.ptr
        p.low = p.high = p.tail_bits = 0
        kept: Array | None = None
        if tails is None:
            fill()
        else:
            count = len(tails.columns)
            kept = pinned(count // 32 + 1, np.uint32, "bits of edges in tails")
            words = min(max(cuda.free_bytes() // SCRATCH // 4, 1), len(kept))
            window = cp.zeros(words, np.uint32)
            for low in range(0, len(kept), words):
                some = kept[low : low + words]
                window.fill(0)
                p.tail_bits, p.low = window.data.ptr, 32 * low
                p.high = 32 * (low + len(some))
                fill()
                some[:] = window[: len(some)].get()
            p.tail_bits, p.low, p.high = kept.ctypes.data, 0, 32 * len(kept)
        self._launch("count_seen", 32 * self._graph.active)
        cp.cuda.Device().synchronize()
        self._ids = self._flags = None
        return SeenEdges(bits, kept, ends[: self._graph.active])

    def _launch(self, name: str, threads: int) -> None:
        if threads:
            grid = min(-(-threads // BLOCK), BLOCKS * cuda.multiprocessors())
            self._module.kernel(name).prepare(self._params, grid, BLOCK)()
