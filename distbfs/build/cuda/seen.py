"""Visibility bits of edges, for masked searches on devices (seen.cu)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from distbfs.device import cuda, programs
from distbfs.device.array_table import ArrayPlan, ArrayTable, allocate, total_bytes
from distbfs.device.host_memory import pinned
from distbfs.device.structures import structure
from distbfs.errors import InputError, UsageError
from distbfs.graph.csr import row_blocks, row_offsets
from distbfs.graph.device_graph import (
    COLUMN_PAD,
    ISOLATED,
    SEARCHED_UNIT,
    Tails,
)
from distbfs.graph.seen_rows import bits_of_flags
from distbfs.partition.share import Outer, Share
from distbfs.types import Array, DeviceArray, Ids, Marks

SOURCE = Path(__file__).with_name("seen.cu")
BLOCK = 256
PAIRS = 1 << 23  # edges that go to the device at once
KEYS = 1 << 25  # sorted at once, unless one row or range of ids has more
KEY_BYTES = 8 + 8 + 8 + 8 + 1  # a key of an edge twice, others for its ends, a flag
RANGES = 16  # log2 of the ranges of ids of which keys are counted
SCRATCH = 4  # 1 / SCRATCH of what is free is for bits of tails while they are made


@dataclass
class SeenEdges:
    """Visibility of the edges of the rows on a device.

    bits: uint32, a bit for each column, in the order of ``Rows.columns``: bit
        k % 32 of word k / 32
    tails: the same for ``Rows.tails``: NumPy in pinned host memory like the
    tails, since columns leave no room on the device; None if there are no tails
    ends: uint32 [active], number of visible edges of each row
    incoming: the same for the rows of incoming edges of a directed graph; else None
    outer: the same for the outer edges, whose rows are by normal number; its
    ``incoming`` is for those in of a directed graph; None in one domain
    """

    bits: DeviceArray
    tails: Array | None
    ends: DeviceArray
    incoming: SeenEdges | None = None
    outer: SeenEdges | None = None

    @property
    def pulled(self) -> SeenEdges:
        """Visibility of the edges in the rows that pulls read."""
        return self.incoming or self


def target_ids(share: Share, outer: Outer) -> DeviceArray:
    """Return the ids of ``outer.targets``; the share's device must be current."""
    cp, parts, kind = cuda.cupy(), share.layout.parts, share.ids.dtype
    counts = np.diff(outer.starts).tolist()
    shares = cp.repeat(cp.arange(parts, dtype=kind), counts)
    return outer.targets.astype(kind) * kind.type(parts) + shares


def sort_rows(offsets: DeviceArray, columns: DeviceArray) -> None:
    """Sort the columns, uint32, of each row; offsets: uint64 [rows + 1]."""
    cp = cuda.cupy()
    for low, high in row_blocks(offsets, KEYS):
        first = int(offsets[low])
        some = columns[first : int(offsets[high])]
        at = cp.arange(first, first + len(some), dtype=np.uint64)
        keys = cp.searchsorted(offsets[low : high + 1], at, "right").astype(np.uint64)
        keys = keys << np.uint64(32) | some
        keys.sort()
        some[...] = (keys & np.uint64(ISOLATED)).astype(np.uint32)


def mask_table(n: int, active: int, columns: int) -> ArrayTable:
    """Return the arrays of ``SeenEdges``, and those that searches derive from them.

    n, active: as in the graph; columns: number of columns on the device
    """
    return {
        "bits": ArrayPlan(np.uint32, (columns + COLUMN_PAD) // 32 + 1),
        "ends": ArrayPlan(np.uint32, max(active, 1)),
        "bare": ArrayPlan(np.uint32, active // 32 + SEARCHED_UNIT // 32, later=True),
        "ends_by_id": ArrayPlan(np.uint32, n, later=True),
    }


class NamedRows(NamedTuple):
    """Rows on a device, and the names that stand for vertices in their columns.

    offsets, columns, tails: as in ``Rows``; m: number of columns, without
    padding
    names: uint32 or uint64 [k], the id of each name, or all ones; with ``shares`` of
    ``SeenMaker``, the local id in one of that many parts
    """

    offsets: DeviceArray
    columns: DeviceArray
    m: int
    names: DeviceArray
    tails: Tails | None = None


class SeenMaker:
    """Makes bits for one device's rows; call its methods with the device current.

    rows: those of edges out and, of a directed graph, those of edges in; n: number of
    vertices
    places: uint32 [n], id -> name, ISOLATED for none; None: computed when it is needed
    form: fields of the kernels' structure. ``devices``, ``device``: number of devices
    among which names are positions, and index of the one that has the rows. Or the rows
    are those of local ids of part ``part`` of ``parts``: ``numbers``: local id -> row +
    ``first``, ``vertices``: row -> local id
    """

    def __init__(
        self,
        n: int,
        rows: Sequence[NamedRows],
        places: DeviceArray | None = None,
        *,
        way: str = "",
        **form: Any,
    ) -> None:
        self._rows, *into = rows
        if into:
            way = "out"
        self._back = SeenMaker(n, into, places, way="in", **form) if into else None
        own, self._n, self._way, self._given = self._rows, n, way, places
        self._sides = [side.m for side in rows]
        self._active = len(own.offsets) - 1
        self._owners = max(form.get("devices", 1), form.get("parts", 1))
        self._module = programs.Module(SOURCE)
        self._params = structure(SOURCE, "Seen")(
            row=own.offsets,
            adj=own.columns,
            names=own.names,
            n=n,
            columns=len(own.names),
            active=self._active,
            wide=own.names.dtype.itemsize == 8,
            one_way=bool(way),
            **{"devices": 1, "parts": 1, **form},
        )
        if (tails := own.tails) is not None:
            self._params.set(
                tail_row=tails.offsets, tails=tails.columns, tailed=tails.tailed
            )

    @classmethod
    def of_share(cls, share: Share) -> SeenMaker:
        """Make bits for the rows of one device of a domain."""
        names = share.ids[: share.slots]
        return cls(
            share.layout.n,
            [
                NamedRows(
                    x.offsets, x.columns, len(x.columns) - COLUMN_PAD, names, x.tails
                )
                for x in share.sides
            ],
            share.numbers if share.whole else None,
            devices=share.domain.devices,
            device=share.device,
            shares=share.layout.parts if share.has_local_ids else 0,
        )

    @classmethod
    def of_outer(cls, share: Share) -> SeenMaker:
        """Make bits for the outer edges of a share, whose columns are sorted here."""
        sides = [side.outer for side in share.sides]
        for side in sides:
            sort_rows(side.offsets, side.columns)
        return cls(
            share.layout.n,
            [
                NamedRows(x.offsets, x.columns, len(x.columns), target_ids(share, x))
                for x in sides
            ],
            numbers=share.numbers,
            vertices=share.vertices[share.normals :],
            parts=share.layout.parts,
            part=share.index,
            first=share.normals,
        )

    def of_vertices(self, vertices: Marks) -> SeenEdges:
        """Return the edges between visible vertices, bool [n] by id."""
        return self._both(lambda side: side._of_vertices(vertices))

    def _both(self, make: Callable[[SeenMaker], SeenEdges]) -> SeenEdges:
        """Make the bits of edges out and, of a directed graph, of edges in."""
        seen = make(self)
        if self._back is not None:
            seen.incoming = make(self._back)
        return seen

    def _of_vertices(self, vertices: Marks) -> SeenEdges:
        columns = len(self._rows.names)
        with self._room(len(vertices) // 8 + columns // 8):
            ids = cuda.cupy().asarray(bits_of_flags(vertices).view(np.uint32))
            flags = cuda.cupy().empty(columns // 32 + 1, np.uint32)
            self._params.ids, self._params.flags = ids.data.ptr, flags.data.ptr
            self._launch("place_flags", columns + 1)

            return self._made(lambda: self._launch("see_ends", 32 * self._active))

    def of_edges(self, edges: Marks, vertices: Marks | None) -> SeenEdges:
        """Return the visible edges of a whole graph.

        edges: bool [m / 2], in ascending order of (smaller, larger id); for a directed
        graph bool [m], in order of (source, target)
        vertices: bool [n] by id; only edges between these vertices are visible; None
        for all Raises InputError if the number of flags differs.
        """
        count = self._edges if self._way else self._edges // 2
        if len(edges) != count:
            raise InputError(
                f"edges has {len(edges)} flags; allowed: one for each of {count} edges"
            )
        cp, p = cuda.cupy(), self._params
        p.shift = shift = max((self._n - 1).bit_length() - RANGES, 0)
        buckets = cp.zeros((self._n >> shift) + 1, np.uint64)
        p.buckets = buckets.data.ptr
        self._launch("count_keys", 32 * self._active)
        upto = row_offsets(buckets.get())
        runs = [(*run, *upto[[*run]].tolist()) for run in row_blocks(upto, KEYS)]
        most = max((high - low for _, _, low, high in runs), default=0)
        ends = None if vertices is None else cp.asarray(vertices)

        def pairs() -> Iterator[tuple[DeviceArray, DeviceArray]]:
            for first, last, low, high in runs:
                keys, filled = cp.empty(high - low, np.uint64), cp.zeros(1, np.uint64)
                p.from_id, p.to_id = first << shift, last << shift
                p.keys, p.filled = keys.data.ptr, filled.data.ptr
                self._launch("write_keys", 32 * self._active)
                keys.sort()
                keys = keys[cp.asarray(edges[low:high])]
                u, v = (x.astype(np.uint32) for x in (keys >> np.uint64(32), keys))
                if ends is not None:
                    seen = ends[u] & ends[v]
                    u, v = u[seen], v[seen]
                yield u, v

        return self._both(lambda side: side._of_pairs(pairs, KEY_BYTES * most))

    def of_pairs(self, pairs: Callable[[], Iterable[tuple[Ids, Ids]]]) -> SeenEdges:
        """Return the visible edges, which pairs of ids list.

        pairs: function that lists (u, v), ids of both ends, integers [k]: an undirected
        edge once, a directed one from u to v; called several times if the bits of tails
        do not fit the device at once

        Raises UsageError if ids need more than 32 bits.
        """
        n = self._n
        if n > ISOLATED:
            raise UsageError(
                f"masks of edges go up to {ISOLATED} vertices on devices, not {n}"
            )
        return self._both(lambda side: side._of_pairs(pairs))

    def _of_pairs(
        self, pairs: Callable[[], Iterable[tuple[Any, Any]]], more: int = 16 * PAIRS
    ) -> SeenEdges:
        """Return the visible edges; more: bytes of the device that listing them takes.

        pairs: function that lists them anew, in arrays on the host or the device
        """
        cp = cuda.cupy()
        with self._room(more + (4 * self._n if self._given is None else 0)):
            places = self._places()
            self._params.places = places.data.ptr

            def fill() -> None:
                for u, v in pairs():
                    for low in range(0, len(u), PAIRS):
                        some = slice(low, low + PAIRS)
                        ends = [
                            cp.asarray(x[some].astype(np.uint32, copy=False))
                            for x in ((v, u) if self._way == "in" else (u, v))
                        ]
                        self._params.u, self._params.v = (x.data.ptr for x in ends)
                        self._params.count = len(ends[0])
                        self._launch("see_pairs", len(ends[0]))
                        cp.cuda.Device().synchronize()  # before they go

            return self._made(fill)

    def _places(self) -> DeviceArray:
        """Return the names of ids, which are computed if the rows have none."""
        if self._given is not None:
            return self._given
        places = cuda.cupy().full(max(self._n, 1), ISOLATED, np.uint32)
        self._params.places = places.data.ptr
        self._launch("place_names", len(self._rows.names))
        return places

    @property
    def _edges(self) -> int:
        """Number of columns in all rows and their tails."""
        tails = self._rows.tails
        return self._rows.m + (0 if tails is None else len(tails.columns))

    def _room(self, more: int) -> cuda.memory_of:
        """Check the memory for bits, and ``more`` bytes while they are made."""
        local = self._n // self._owners
        tables = (mask_table(local, self._active, m) for m in self._sides)
        need = sum(map(total_bytes, tables))
        what = f"a masked search of {self._edges} directed edges"
        cuda.release()
        cuda.require(need + more, what)
        return cuda.memory_of(what)

    def _made(self, fill: Any) -> SeenEdges:
        """Return bits that ``fill`` sets, for all columns, then for tails by window."""
        cp, p, tails = cuda.cupy(), self._params, self._rows.tails
        made = allocate(mask_table(self._n, self._active, self._rows.m), cp.zeros)
        bits, ends = made["bits"], made["ends"]
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
        self._launch("count_seen", 32 * self._active)
        cp.cuda.Device().synchronize()
        return SeenEdges(bits, kept, ends[: self._active])

    def _launch(self, name: str, threads: int) -> None:
        if threads:
            grid = cuda.blocks_for(threads, BLOCK)
            self._module.kernel(name).prepare(self._params, grid, BLOCK)()
