"""Up to 512 searches in one traversal over the parts of all ranks, in host memory.

Each level pushes the words of the frontier along the four subgraphs of a part. Words
of delegates are held by every rank; those that a level changes are ORed over the ranks.
Words along nn edges are ORed for each outer end first, and each end's word is sent once
to the rank that has it. A level takes time by the edges of its frontier, and a bit for
each vertex.

A rank takes 3 words for each of its vertices and each delegate, and 2 for each outer
end; besides, 4 bytes for each of the former and each nn edge, and 12 for each outer
end. Sums take 8 bytes each for a vertex, planes of levels a word each.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from distbfs.device import cc
from distbfs.device.array_table import ArrayPlan, ArrayTable, allocate, total_bytes
from distbfs.device.structures import structure
from distbfs.exchange.part_rows import to_parts
from distbfs.graph.csr import SLICE
from distbfs.multisearch.base import SUMS
from distbfs.multisearch.bits import HELD, LANE
from distbfs.multisearch.part_loop import PartSearches, Wanted
from distbfs.partition.delegates import DelegateNumbers
from distbfs.partition.layout import Placement
from distbfs.partition.part import (
    NUMBER_MASK,
    PART_SHIFT,
    bits_of,
    mask_of,
    mask_words,
)
from distbfs.types import UNREACHED

if TYPE_CHECKING:
    from distbfs.graph.csr import CSR
    from distbfs.partition.part import Part
    from distbfs.types import Array, Ids, Words, World

SHIFT, MASK = np.uint64(PART_SHIFT), np.uint64(NUMBER_MASK)
SOURCE = Path(__file__).with_name("part_bits.c")


def library(width: int, offset_bytes: int = 4) -> ctypes.CDLL:
    """Return the library for words of ``width`` lanes, compiled if need be."""
    offset = "uint32_t" if offset_bytes == 4 else "uint64_t"
    return cc.load(SOURCE, WIDTH=width, OFFSET=offset)


def rows_table(
    count: int,
    width: int,
    *,
    searched: bool = True,
    planes: int = 0,
    sums: Sequence[str] = (),
) -> ArrayTable:
    """Return the arrays of ``WordRows``; planes, sums: made by its searches."""
    words = ArrayPlan(np.uint64, count * width)
    table: ArrayTable = {
        "next": words,
        "marks": ArrayPlan(np.uint64, mask_words(count)),
        "running": ArrayPlan(np.uint64, width),
    }
    if searched:
        table |= {"seen": words, "front": words, "queue": ArrayPlan(np.uint32, count)}
        table["planes"] = [ArrayPlan(np.uint64, count * width, later=True)] * planes
        table |= {name: ArrayPlan(SUMS[name], count, later=True) for name in sums}
    return table


def ends_table(edges: int, ends: int, width: int) -> ArrayTable:
    """Return the arrays of ``OuterEnds`` besides their rows; edges: of nn."""
    return {
        "columns": ArrayPlan(np.uint64, ends, later=True),
        "index": ArrayPlan(np.uint32, edges),
        "found": ArrayPlan(np.uint32, ends),
        "words": ArrayPlan(np.uint64, ends * width),
    }


class WordRows:
    """The words of normals, delegates or outer ends, [count] by number.

    searched: whether they are searched, or only sent
    """

    def __init__(self, count: int, width: int, *, searched: bool = True) -> None:
        self.count, self._width = count, width
        table = rows_table(count, width, searched=searched)
        self._arrays = allocate(table, lambda n, kind: cc.aligned_full(n, 0, kind))
        self.marks: Words = self._arrays["marks"]
        self.running: Words = self._arrays["running"]
        self._planes: list[Array] = []
        self.sums: dict[str, Array] = {}
        self.view = structure(SOURCE, "bit_rows")(count=count, **self._arrays)
        self.state = ctypes.byref(self.view)

    @property
    def next(self) -> Words:
        """The words that the next level is made of, uint64 [count, width]."""
        return self._arrays["next"].reshape(-1, self._width)

    def begin(self, planes: int, sums: Sequence[str]) -> None:
        """Forget all searches; sums: of ``base.SUMS``, which begin at 0."""
        for name in ("seen", "next"):  # an error may have left the next
            self._arrays[name][:] = 0
        self.marks[:] = 0
        self._planes = self._planes[:planes]
        for plane in self._planes:
            plane[:] = 0
        self.view.set(planes=self._planes)
        while len(self._planes) < planes:
            self.add_plane()
        self.sums = {}
        self.view.set(**dict.fromkeys(SUMS))  # they go before others come
        self.sums = {name: np.zeros(self.count, SUMS[name]) for name in sums}
        self.view.set(**self.sums)

    def add_plane(self) -> None:
        """Make room for levels twice as deep."""
        plane = cc.aligned_full(self.count * self._width, 0, np.uint64)
        self._planes.append(plane)
        self.view.set(planes=self._planes)

    def start(self, numbers: Ids, searches: Ids) -> None:
        """Put the sources of searches, by number, on the coming level 0."""
        lanes, bits = np.divmod(searches, LANE)
        ones = np.uint64(1) << bits.astype(np.uint64)
        np.bitwise_or.at(self.next, (numbers, lanes), ones)
        self.marks[:] = mask_of(numbers, self.count)

    def levels(self, searches: int | Ids, numbers: Ids | slice = slice(None)) -> Array:
        """Return the levels of numbers in searches, int32 [k]; -1 = unreached.

        By default those of all numbers in one search.
        """
        lane, place = np.divmod(searches, LANE)
        bit = np.asarray(place).astype(np.uint64)

        def bits(words: Array) -> Array:
            some = words.reshape(-1, self._width)[numbers, lane]
            return (some >> bit & np.uint64(1)).astype(np.int32)

        level = bits(self._arrays["seen"]) - 1
        for k, plane in enumerate(self._planes):
            level += bits(plane) << k
        return level


class OuterEnds:
    """The ends of a part's nn edges: the words that go to them.

    columns: uint64 [k], ascending, as in nn; index: uint32 [edges], into ``columns``
    """

    def __init__(self, part: Part, width: int) -> None:
        layout = part.layout
        size = max(layout.local_count(p) for p in range(layout.parts))
        needed = np.zeros(size * layout.parts, dtype=np.bool_)
        nn = part.nn.columns.astype(np.uint64, copy=False)
        pieces = [slice(x, x + SLICE) for x in range(0, len(nn), SLICE)]
        for piece in pieces:
            part_of = (nn[piece] >> SHIFT).astype(np.int64)
            needed[part_of * size + (nn[piece] & MASK).astype(np.int64)] = True
        parts, numbers = np.divmod(np.flatnonzero(needed), size)
        self.columns: Words = (parts << PART_SHIFT | numbers).astype(np.uint64)
        ends = len(self.columns)
        self._arrays = allocate(ends_table(len(nn), ends, width), cc.aligned_empty)
        self.index: Array = self._arrays["index"]
        for piece in pieces:
            self.index[piece] = np.searchsorted(self.columns, nn[piece])
        self.rows = WordRows(ends, width, searched=False)
        self._width = width

    def table(self, made: ctypes.CDLL) -> Words:
        """Return the ends that get words, and the words: uint64 [k, 1 + width]."""
        ends, words = self._arrays["found"], self._arrays["words"]
        count = made.part_bits_collect(
            self.rows.state, cc.pointer(ends), cc.pointer(words)
        )
        words = words.reshape(-1, self._width)[:count]
        return np.column_stack([self.columns[ends[:count]], words])


class PartBitSearches(PartSearches):
    """Searches the parts of all ranks in host memory.

    parts: of this rank, at least one; lanes: of a word, of 64 searches each
    direction: inside parts: auto, push or pull
    """

    def __init__(
        self, world: World, parts: Sequence[Part], lanes: int, threads: int
    ) -> None:
        super().__init__(world)
        self._parts, self.lanes, self.width = list(parts), lanes, LANE * lanes
        self._threads = ctypes.c_int(cc.thread_count(threads))
        self._layout = parts[0].layout
        self._placement = Placement(self._layout.parts, world.size)
        self._delegates = WordRows(parts[0].delegate_count, lanes)
        self._normals = [WordRows(part.local_count, lanes) for part in parts]
        self._outer = [OuterEnds(part, lanes) for part in parts]
        self._library = library(lanes)
        self._delegate_numbers = DelegateNumbers(parts[0].delegates)
        self._counts: list[Array] = []
        self._held = 0
        self.direction = "auto"

    @property
    def _searched(self) -> list[WordRows]:
        return [self._delegates, *self._normals]

    def _begin(self, sources: Ids, wanted: Wanted) -> None:
        """Forget all searches; put the sources on level 0."""
        self._counts, self._counted = [], wanted.counts
        self._held = HELD if wanted.levels else 0
        for rows in self._searched:
            rows.begin(self._held, wanted.sums)
        numbers = self._delegate_numbers.of(sources)
        searches, shared = np.arange(len(sources)), numbers >= 0
        self._delegates.start(numbers[shared], searches[shared])
        owner = self._layout.part_of(sources)
        for part, rows in zip(self._parts, self._normals, strict=True):
            own = ~shared & (owner == part.index)
            local = self._layout.local_of(sources[own])
            rows.start(part.numbers_of(local), searches[own])

    def _make_room(self, depth: int) -> None:
        """Allocate room for a level."""
        if self._held and depth >> self._held:
            for rows in self._searched:
                rows.add_plane()
            self._held += 1

    def _push(self, depth: int) -> None:
        """Push the frontier along all edges, and exchange what leaves a part.

        Inside parts its words are pulled where that pays.
        """
        tables, shared = [], self._delegates
        dd_pulls = self._dd_pulls(depth)
        for part, normals, outer in zip(
            self._parts, self._normals, self._outer, strict=True
        ):
            for edges, back, start, goal in (
                (part.nd, part.dn, normals, shared),
                (part.dn, part.nd, shared, normals),
            ):
                pulls = self._saving(depth, edges, back, start, goal) > 0
                self._inside(edges, back, start, goal, pulls=pulls)
            self._inside(part.dd, part.dd_pulled, shared, shared, pulls=dd_pulls)
            self._along(part.nn, normals, outer.rows, outer.index)
            tables.append(outer.table(self._library))
        self._deliver(np.concatenate(tables))
        if shared.count and self._world.size > 1:
            shared.marks[:] = self._world.allreduce(shared.marks, "or")
            rows = bits_of(shared.marks, shared.count)
            # mutant: self._world.allreduce(shared.next[rows], "or") ->
            #   shared.next[rows] : test_ranks_of_every_number
            shared.next[rows] = self._world.allreduce(shared.next[rows], "or")

    def _dd_pulls(self, depth: int) -> bool:
        """Return whether all parts pull along dd (collective).

        An edge and the one back may lie in different parts.
        """
        shared = self._delegates
        if not shared.view.queued:
            return False
        saved = sum(
            self._saving(depth, part.dd, part.dd_pulled, shared, shared)
            for part in self._parts
        )
        # mutant: self._world.allreduce(np.array([saved]))[0] -> saved
        #   : test_rows_of_a_store_that_ranks_own
        return bool(self._world.allreduce(np.array([saved]))[0] > 0)

    def _saving(
        self, depth: int, edges: CSR, back: CSR, start: WordRows, goal: WordRows
    ) -> int:
        """Return the looks a pull saves, see part_bits.c; back: edges by their ends."""
        if not edges.edges or not start.view.queued or self.direction == "push":
            return 0
        if self.direction == "pull":
            return 1
        function = library(self.lanes, edges.offsets.itemsize).part_bits_saving
        function.restype = ctypes.c_int64
        saved: int = function(
            cc.pointer(edges.offsets),
            cc.pointer(back.offsets),
            cc.pointer(back.columns),
            start.state,
            goal.state,
            ctypes.c_int64(depth),
        )
        return saved

    def _inside(
        self, edges: CSR, back: CSR, start: WordRows, goal: WordRows, *, pulls: bool
    ) -> None:
        """Push or pull words along edges; back: the same edges by their ends."""
        if not pulls:
            self._along(edges, start, goal)
        elif edges.edges:
            library(self.lanes, edges.offsets.itemsize).part_bits_pull(
                cc.pointer(back.offsets),
                cc.pointer(back.columns),
                start.state,
                goal.state,
                self._threads,
            )

    def _along(
        self, edges: CSR, start: WordRows, goal: WordRows, columns: Array | None = None
    ) -> None:
        """Push words along edges; columns: by default those of the edges."""
        if not edges.edges or not start.view.queued:
            return
        library(self.lanes, edges.offsets.itemsize).part_bits_push(
            cc.pointer(edges.offsets),
            cc.pointer(edges.columns if columns is None else columns),
            start.state,
            goal.state,
            self._threads,
        )

    def _deliver(self, table: Words) -> None:
        """Send words to the parts of outer ends; see ``OuterEnds.table``."""
        rows = to_parts(self._world, self._placement, self._parts, table)
        for place, numbers, arrived in rows:
            words = cc.aligned_copy(np.ascontiguousarray(arrived).ravel())
            goals = numbers.astype(np.uint32)
            self._library.part_bits_take(
                self._normals[place].state,
                cc.pointer(goals),
                cc.pointer(words),
                ctypes.c_int64(len(goals)),
            )

    def _settle(self, depth: int) -> tuple[int, int]:
        """Begin a level; return its vertices, and 0: no edges are counted."""
        counts = np.zeros(self.width, dtype=np.int64)
        first, ignored = self._world.rank == 0, np.zeros_like(counts)
        for rows in self._searched:
            # mutant: counts if first or rows is not self._delegates else ignored ->
            #   counts : test_ranks_of_every_number
            once = counts if first or rows is not self._delegates else ignored
            self._library.part_bits_settle(
                rows.state,
                ctypes.c_int64(depth),
                cc.pointer(once if self._counted else None),
                self._threads,
            )
        self._counts.append(counts)
        return sum(int(rows.view.queued) for rows in self._searched), 0

    def _own_counts(self) -> Array:
        """Return this rank's vertices by level and search, int64 [levels, width]."""
        counts: Array = np.array(self._counts)
        return counts

    def _by_local(self, normals: Sequence[Array], delegates: Array) -> list[Array]:
        """Return values by number as values of each part by local id."""
        arrays = []
        for part, values in zip(self._parts, normals, strict=True):
            by_local = np.empty_like(values)
            by_local[part.vertices] = values
            owned, local = part.owned_delegates()
            by_local[local] = delegates[owned]
            arrays.append(by_local)
        return arrays

    def levels(self, search: int) -> list[Array]:
        """Return the levels of a search, int32, of each part by local id."""
        normals = [rows.levels(search) for rows in self._normals]
        return self._by_local(normals, self._delegates.levels(search))

    def levels_at(self, searches: Ids, vertices: Ids) -> Array:
        """Return the level of each vertex in each search; see ``PartSearches``."""
        levels = np.full(len(vertices), UNREACHED, dtype=np.int32)
        delegates = self._delegate_numbers.of(vertices)
        shared, owner = delegates >= 0, self._layout.part_of(vertices)
        levels[shared] = self._delegates.levels(searches[shared], delegates[shared])
        for part, rows in zip(self._parts, self._normals, strict=True):
            # mutant: ~shared & (owner == part.index) -> owner == part.index
            #   : test_ranks_of_every_number
            own = ~shared & (owner == part.index)
            numbers = part.numbers_of(self._layout.local_of(vertices[own]))
            levels[own] = rows.levels(searches[own], numbers)
        return self._world.allreduce(levels, "max")

    def sums(self, name: str) -> list[Array]:
        """Return sums of ``base.SUMS`` of each part by local id."""
        normals = [rows.sums[name] for rows in self._normals]
        return self._by_local(normals, self._delegates.sums[name])


def bytes_needed(
    parts: Sequence[Part], width: int, *, planes: int, sums: Sequence[str] = ()
) -> int:
    """Return the most bytes of searches over parts, each nn edge with its own end.

    planes: of levels that are kept; sums: of ``base.SUMS``
    """
    counts = [parts[0].delegate_count, *(part.local_count for part in parts)]
    tables = [rows_table(x, width, planes=planes, sums=sums) for x in counts]
    for part in parts:
        edges, ends = part.nn.edges, min(part.nn.edges, part.layout.n)
        tables.append(ends_table(edges, ends, width))
        tables.append(rows_table(ends, width, searched=False))
    return sum(map(total_bytes, tables))
