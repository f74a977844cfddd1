"""Up to 512 searches in one traversal over the parts of all ranks, in host memory.

A whole graph is one part, whose levels are all searched by one call of C. Otherwise
each level pushes the words of the frontier along the four subgraphs of a part. Every
rank holds the words of delegates; those that a level changes are ORed over the ranks.
Words along nn edges are first ORed for each outer end, and each end's word is sent once
to the rank that owns it. The time of a level is proportional to the edges of its
frontier.

A rank needs 2 words and 8 bytes for each of its vertices, each delegate and each outer
end; besides, 4 bytes for each nn edge, and 8 for each outer end. For each vertex, a sum
takes 8 bytes and a plane of levels takes a word.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.device import cc
from distbfs.device.array_table import ArrayPlan, ArrayTable, allocate, total_bytes
from distbfs.device.calls import LongCall
from distbfs.errors import OutOfMemory, SearchStopped
from distbfs.exchange.part_rows import to_parts
from distbfs.graph.csr import SLICE
from distbfs.multisearch.bits import (
    LANE,
    WIDTHS,
    WordRows,
    array_table,
    prepare,
    width_for,
)
from distbfs.multisearch.part_loop import PartSearches, Wanted
from distbfs.partition.delegates import DelegateNumbers
from distbfs.partition.layout import Placement
from distbfs.partition.part import NUMBER_MASK, PART_SHIFT, bits_of
from distbfs.plan.memory import may_fill, readable
from distbfs.ranks.agreement import first_reason
from distbfs.types import UNREACHED

if TYPE_CHECKING:
    from distbfs.graph.csr import CSR
    from distbfs.multisearch.base import RunOptions
    from distbfs.partition.part import Part
    from distbfs.search.session import Session
    from distbfs.types import Array, Ids, Words, World

SHIFT, MASK = np.uint64(PART_SHIFT), np.uint64(NUMBER_MASK)
SENT = Wanted(counts=False)  # of words that are only sent
DIRECTIONS = {"auto": 0, "push": 1, "pull": 2}
NO_LIMIT = (1 << 31) - 2
KINDS = {"int8": 1, "int16": 2, "int32": 4}
FLAGS = 0
GROW, STOPPED = 1, -2
SPAN = 4096  # depth assumed in planning memory


def ends_table(edges: int, ends: int) -> ArrayTable:
    """Return the arrays of ``OuterEnds`` but its words; edges: number of nn edges."""
    return {
        "columns": ArrayPlan(np.uint64, ends, later=True),
        "index": ArrayPlan(np.uint32, edges),
    }


class OuterEnds:
    """The ends of a part's nn edges and the words to send to them, each bit once.

    columns: the distinct columns of nn, uint64 [k], ascending; index: uint32 [edges],
    place of each edge's column in ``columns``
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
        self._arrays = allocate(ends_table(len(nn), ends), cc.aligned_empty)
        self.index: Array = self._arrays["index"]
        for piece in pieces:
            self.index[piece] = np.searchsorted(self.columns, nn[piece])
        self.rows = WordRows(ends, width, 1)

    def table(self) -> Words:
        """Return the ends that get words, then their words: uint64 [k, 1 + width]."""
        rows, ends = self.rows, self.rows.changed
        words = rows.words("other")[ends]
        rows.words("seen")[ends] |= words
        rows.words("other")[ends] = 0
        rows.arrays["claimed"][:] = 0
        table = np.column_stack([self.columns[ends], words])
        rows.changed = ends[:0]
        return table


def is_whole(part: Part) -> bool:
    """Return whether a part is a whole graph without delegates."""
    return part.layout.parts == 1 and not part.delegate_count


def rows_of(part: Part, lanes: int, threads: int) -> WordRows:
    """Return the words of a part's vertices, with the edges of a whole graph."""
    if not is_whole(part):
        return WordRows(part.local_count, lanes, threads)
    return WordRows(
        part.local_count,
        lanes,
        threads,
        part.active,
        edges=part.nn.edges,
        offsets=part.nn.offsets,
        columns=part.nn.columns,
        in_offsets=part.pulled.offsets,
        in_columns=part.pulled.columns,
    )


class PartBitSearches(PartSearches):
    """Searches the parts of all ranks in host memory.

    parts: this rank's parts, at least one; threads: of this rank, unless options say
    otherwise; 0 means its share of the cores
    """

    def __init__(
        self,
        world: World,
        parts: Sequence[Part],
        threads: int = 0,
        session: Session | None = None,
    ) -> None:
        super().__init__(world, session)
        self._parts, self.whole = list(parts), is_whole(parts[0])
        self._of_rank, self._layout = threads, parts[0].layout
        self._placement = Placement(self._layout.parts, world.size)
        self._delegate_numbers = DelegateNumbers(parts[0].delegates)
        self._free()

    def _free(self) -> None:
        """Free the memory of searches, before others are made."""
        self.lanes, self.threads = 0, 0
        self._searched: list[WordRows] = []
        self._outer: list[OuterEnds] = []

    def allocate(self, lanes: int, threads: int) -> None:
        """Allocate the memory of searches, of so many lanes of 64 searches a word."""
        parts, count = self._parts, cc.thread_count(threads)
        delegates = WordRows(parts[0].delegate_count, lanes, count)
        self._searched = [delegates, *(rows_of(part, lanes, count) for part in parts)]
        self._outer = [] if self.whole else [OuterEnds(x, lanes) for x in parts]
        self.lanes, self.width, self.threads = lanes, LANE * lanes, threads
        self._threads = ctypes.c_int(count)

    @property
    def _delegates(self) -> WordRows:
        return self._searched[0]

    @property
    def _normals(self) -> list[WordRows]:
        return self._searched[1:]

    def _fit(self, size: int, options: RunOptions, wanted: Wanted) -> None:
        """Have memory for searches, as many as ``options.memory`` allows by default."""
        planes = SPAN.bit_length() if wanted.levels else 0
        need = partial(bytes_needed, self._parts, planes=planes, sums=wanted.sums)
        lanes, threads = width_for(size), options.threads or self._of_rank
        if not options.batch:
            needs = np.array([need(lanes) for lanes in WIDTHS])
            fits = self._world.allreduce(needs, "max") <= options.memory
            lanes = min(lanes, max(np.array(WIDTHS)[fits], default=1))
        if wanted.continued or not self.whole:
            lanes = max(lanes, self.lanes)
        if (self.lanes, self.threads) != (lanes, threads):
            self._free()
            if not self.whole:
                self._check_room(LANE * lanes, need(lanes))
            self.allocate(lanes, threads)

    def _check_room(self, searches: int, need: int) -> None:
        """Raise OutOfMemory on all ranks if searches do not fit beside the parts.

        need: bytes of that many searches at once
        """
        room, of_all = may_fill(self._world)
        rows = [x for part in self._parts for x in part.subgraphs.values()]
        room -= sum(x.nbytes for x in rows)
        lack = (
            f"{searches} searches at once take {readable(need)}, and a rank "
            f"may fill {readable(max(room, 0))} beside parts ({of_all})"
        )
        if reason := first_reason(self._world, lack if need > room else ""):
            raise OutOfMemory(reason)

    def reversed(self) -> PartBitSearches:
        """Return searches along reversed edges; see ``PartSearches``."""
        self._free()  # they take as much memory
        parts = [part.reversed() for part in self._parts]
        return PartBitSearches(self._world, parts, self._of_rank, self._session)

    def _begin(self, sources: Ids, wanted: Wanted) -> None:
        """Forget all searches; put the sources on level 0."""
        none = np.zeros(0, dtype=np.int64)
        for ends in self._outer:
            ends.rows.begin(none, none, SENT)
        numbers = self._delegate_numbers.of(sources)
        shared, owner = numbers >= 0, self._layout.part_of(sources)
        # mutant: wanted.counts and self._world.rank == 0 -> wanted.counts
        #   : test_ranks_of_every_number
        once = replace(wanted, counts=wanted.counts and self._world.rank == 0)
        begun = [(self._delegates, once, shared, numbers[shared])]
        for part, rows in zip(self._parts, self._normals, strict=True):
            own = ~shared & (owner == part.index)
            local = self._layout.local_of(sources[own])
            begun.append((rows, wanted, own, part.numbers_of(local)))
        for rows, some, own, first in begun:
            rows.begin(first.astype(np.uint32), np.flatnonzero(own), some)

    def _make_room(self, depth: int) -> None:
        """Allocate room for a level."""
        if depth >> self._delegates.view.digits:
            for rows in self._searched:
                rows.grow()

    def _push(self, depth: int) -> None:  # noqa: ARG002
        """Push the frontier along all edges, and exchange the words that leave a part.

        Inside parts, words are pulled where that is faster.
        """
        tables, shared = [], self._delegates
        dd_pulls = self._dd_pulls()
        for part, normals, outer in zip(
            self._parts, self._normals, self._outer, strict=True
        ):
            for edges, back, start, goal in (
                (part.nd, part.into["dn"], normals, shared),
                (part.dn, part.into["nd"], shared, normals),
            ):
                pulls = self._saving(edges, back, start, goal) > 0
                self._inside(edges, back, start, goal, pulls=pulls)
            self._inside(part.dd, part.into["dd"], shared, shared, pulls=dd_pulls)
            self._along(part.nn, normals, outer.rows, outer.index)
            tables.append(outer.table())
        self._deliver(np.concatenate(tables))
        if shared.n and self._world.size > 1:
            marks, words = shared.arrays["claimed"], shared.words("other")
            marks[:] = self._world.allreduce(marks, "or")
            shared.changed = rows = bits_of(marks, shared.n)
            # mutant: self._world.allreduce(words[rows], "or") -> words[rows]
            #   : test_ranks_of_every_number
            words[rows] = self._world.allreduce(words[rows], "or")

    def _dd_pulls(self) -> bool:
        """Return whether all parts should pull along dd edges (collective).

        All must agree, because an edge and its reverse may lie in different parts.
        """
        shared = self._delegates
        if not shared.view.count:
            return False
        saved = sum(
            self._saving(part.dd, part.into["dd"], shared, shared)
            for part in self._parts
        )
        # mutant: self._world.allreduce(np.array([saved]))[0] -> saved
        #   : test_rows_of_a_store_that_ranks_own
        return bool(self._world.allreduce(np.array([saved]))[0] > 0)

    def _saving(self, edges: CSR, back: CSR, start: WordRows, goal: WordRows) -> int:
        """Return the looks that a pull saves, see bits.c; back: the edges by target."""
        if not edges.edges or not start.view.count or self._wanted.direction == "push":
            return 0
        if self._wanted.direction == "pull":
            return 1
        function = prepare(self.lanes, edges.offsets.itemsize).bits_saving
        function.restype = ctypes.c_int64
        arrays = cc.arguments(edges.offsets, back.offsets, back.columns)
        saved: int = function(*arrays, start.state, goal.state)
        return saved

    def _inside(
        self, edges: CSR, back: CSR, start: WordRows, goal: WordRows, *, pulls: bool
    ) -> None:
        """Push or pull words along edges; back: the same edges by target."""
        if not pulls:
            self._along(edges, start, goal)
        # mutant: elif back.edges -> elif edges.edges : test_edges_in_alone
        elif back.edges:  # a part may have edges in but none out
            self._step("bits_pull", back.offsets, back.columns, start, goal)

    def _along(
        self, edges: CSR, start: WordRows, goal: WordRows, columns: Array | None = None
    ) -> None:
        """Push words along edges; columns: by default those of the edges."""
        if edges.edges and start.view.count:
            columns = edges.columns if columns is None else columns
            self._step("bits_push", edges.offsets, columns, start, goal)

    def _step(
        self, name: str, offsets: Array, columns: Array, start: WordRows, goal: WordRows
    ) -> None:
        """Call a step of a level; see bits.c."""
        step = getattr(prepare(self.lanes, offsets.itemsize), name)
        arrays = cc.arguments(offsets, columns)
        step(*arrays, start.state, goal.state, self._threads)

    def _deliver(self, table: Words) -> None:
        """Send words to the parts of outer ends; see ``OuterEnds.table``."""
        rows = to_parts(self._world, self._placement, self._parts, table)
        for place, numbers, arrived in rows:
            words = cc.aligned_copy(np.ascontiguousarray(arrived).ravel())
            goals = numbers.astype(np.uint32)
            arrived_at = cc.arguments(goals, words, len(goals))
            library = self._delegates.library
            library.bits_take(self._normals[place].state, *arrived_at)

    def _settle(self, depth: int) -> tuple[int, int]:
        """Begin a level; count its vertices; return this and 0 edges, not counted."""
        for rows in self._searched if depth else ():
            rows.library.bits_settle(rows.state, self._threads)
        return sum(int(rows.view.count) for rows in self._searched), 0

    def _own_counts(self) -> Array:
        """Count this rank's vertices by level and search, int64 [levels, width]."""
        counts = (rows.level_counts for rows in self._searched)
        return np.sum([x for x in counts if x is not None], axis=0)

    def _by_local(self, normals: Sequence[Array], delegates: Array) -> list[Array]:
        """Convert values by number to values of each part by local id."""
        pairs = zip(self._parts, normals, strict=True)
        return [part.by_local(values, delegates) for part, values in pairs]

    def levels(self, search: int) -> list[Array]:
        """Return the levels of a search, int32, of each part by local id."""
        every = [
            rows.levels_of(np.full(rows.n, search), np.arange(rows.n))
            for rows in self._searched
        ]
        return self._by_local(every[1:], every[0])

    def levels_at(self, searches: Ids, vertices: Ids) -> Array:
        """Return the level of each vertex in each search; see ``PartSearches``."""
        levels = np.full(len(vertices), UNREACHED, dtype=np.int32)
        delegates = self._delegate_numbers.of(vertices)
        shared, owner = delegates >= 0, self._layout.part_of(vertices)
        levels[shared] = self._delegates.levels_of(searches[shared], delegates[shared])
        for part, rows in zip(self._parts, self._normals, strict=True):
            # mutant: ~shared & (owner == part.index) -> owner == part.index
            #   : test_ranks_of_every_number
            own = ~shared & (owner == part.index)
            numbers = part.numbers_of(self._layout.local_of(vertices[own]))
            levels[own] = rows.levels_of(searches[own], numbers)
        return self._world.allreduce(levels, "max")

    def sums(self, name: str) -> list[Array]:
        """Return sums of ``base.SUMS`` of each part by local id."""
        normals = [rows.sums[name] for rows in self._normals]
        return self._by_local(normals, self._delegates.sums.get(name, normals[0][:0]))

    def _search(self, wanted: Wanted) -> int:
        """Search, a whole graph by one call of C; return the largest level."""
        if not self.whole:
            return super()._search(wanted)
        rows = self._normals[0]
        library, view = rows.library, rows.view
        call, way = LongCall(library, wanted.stop), DIRECTIONS[wanted.direction]
        view.stop = call.stop
        view.limit = NO_LIMIT if wanted.limit is None else wanted.limit
        while (
            done := call(library.bits_run, rows.state, self._threads, ctypes.c_int(way))
        ) == GROW:
            for grown in self._searched:
                grown.grow()
        if done == STOPPED:
            raise SearchStopped(f"the searches were stopped at level {view.level}")
        return max(view.depth[: self._count], default=0)

    @property
    def records(self) -> np.recarray[Any, Any]:
        """Records of the levels of a whole graph.

        The last level finds nothing unless there was a limit.
        direction: 0 for a push, 1 for a pull; frontier: vertices whose edges the level
        read first; checks: number of edge checks
        """
        rows = self._normals[0]
        return rows.records[1 : rows.view.level + 1].view(np.recarray)

    def put_levels(self, out: Array) -> None:
        """Write levels by id; see ``PartSearches``."""
        if not self.whole or self._session is not None:
            super().put_levels(out)
            return
        count, n = out.shape
        rows, numbers = self._normals[0], self._parts[0].numbers
        form = count, ctypes.c_int(KINDS.get(out.dtype.name, FLAGS)), n
        arguments = cc.arguments(rows.state, numbers, *form, out)
        library = rows.library
        LongCall(library)(library.bits_spread, *arguments, self._threads)


def bytes_needed(
    parts: Sequence[Part], width: int, *, planes: int, sums: Sequence[str] = ()
) -> int:
    """Return an upper bound of the bytes of searches over parts.

    It assumes that each nn edge has an end of its own.
    planes: number of planes of levels that are kept; sums: names in ``base.SUMS``
    """
    counts = [parts[0].delegate_count, *(part.local_count for part in parts)]
    tables = [array_table(x, x, width, planes, sums) for x in counts]
    for part in parts:
        if is_whole(part):
            continue
        edges, ends = part.nn.edges, min(part.nn.edges, part.layout.n)
        tables += [ends_table(edges, ends), array_table(ends, ends, width)]
    return sum(map(total_bytes, tables))
