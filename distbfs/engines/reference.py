"""The reference engine: every step in NumPy, one array operation per line.

Whole graphs push level by level, or pull on request. Parts follow Pan, Pearce, Owens
2018, Section IV, with boolean arrays instead of bitmasks; the other engines are tested
against it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Literal

import numpy as np

from distbfs.engines.base import (
    CHOSEN,
    LARGEST,
    WHOLE,
    Engine,
    LevelRecord,
    Offer,
    Targets,
    Until,
    WholeResult,
    Work,
)
from distbfs.engines.path_sums import PathSums
from distbfs.errors import SearchStopped
from distbfs.exchange.bins import NUMBER_AT, PARENT_MASK, Bins
from distbfs.graph.csr import CSR
from distbfs.options import FACTOR_OPTIONS
from distbfs.partition.layout import Placement
from distbfs.partition.part import NUMBER_MASK, PART_SHIFT, Part, bits_of, mask_of
from distbfs.types import (
    SUBGRAPHS,
    Array,
    Choice,
    DirectionName,
    Ids,
    Root,
    Stop,
    Words,
)

NOBODY = -1
SIDES: tuple[Literal["left"], Literal["right"]] = ("left", "right")


def neighbours(graph: CSR, rows: Array) -> tuple[Array, Array]:
    """Return (source row, column), [edges], of all edges of rows [k], in row order."""
    index, column = graph.edges_of(rows)
    return rows[index], column


def first_match(graph: CSR, rows: Array, wanted: Array) -> tuple[Array, Array, int]:
    """Find the first wanted column of each row.

    wanted: bool [columns]. Returns (rows with a match, the column of each, edge checks
    if each row stops at its match).
    """
    source, column = neighbours(graph, rows)
    hit = np.flatnonzero(wanted[column])
    matched, place = np.unique(source[hit], return_index=True)
    first = hit[place]
    length = graph.degrees()[rows]
    end = dict(zip(rows.tolist(), np.cumsum(length).tolist(), strict=True))
    saved = sum(end[int(r)] - 1 - int(e) for r, e in zip(matched, first, strict=True))
    return matched, column[first], len(column) - saved


class ReferenceEngine(Engine):
    """NumPy on one thread."""

    name = "reference"
    methods = ("numpy",)
    takes = ("stepwise", *FACTOR_OPTIONS)
    whole_graphs = domains = directed = masks = sets = True

    def whole(self, part: Part) -> ReferenceWhole:
        """Prepare the search of a graph of one part without delegates."""
        return ReferenceWhole(part, self.options.direction, self.options.parents)

    def domain(self, part: Part, placement: Placement) -> ReferencePart:
        """Prepare the search of one part, level by level."""
        return ReferencePart(part, placement, self.options.parents)

    def path_sums(self, level: Array, depth: int, dtype: str) -> PathSums:
        """Prepare sums along shortest paths."""
        return PathSums(level, depth, dtype)


class ReferenceWhole:
    """Searches one part without delegates (a ``WholeSearch``)."""

    path = None

    def __init__(self, part: Part, direction: str, parents: bool) -> None:
        self._part = part
        self._direction: DirectionName = "pull" if direction == "pull" else "push"
        self._parents = parents

    def see(self, part: Part) -> None:
        """Restrict searches to the edges in the part's rows; see ``WholeSearch``."""
        self._part = part

    def _push(self, level: Array, frontier: Array) -> tuple[Array, Array, int]:
        source, column = neighbours(self._part.nn, frontier)
        unvisited = level[column] < 0
        _, place = np.unique(column[unvisited], return_index=True)
        place.sort()  # the order of a queue
        return column[unvisited][place], source[unvisited][place], len(column)

    def search(
        self,
        root: Root,
        *,
        records: bool = False,
        until: Until = WHOLE,
        stop: Stop | None = None,
    ) -> WholeResult:
        """Search from ids; raise SearchStopped when ``stop`` returns True."""
        ids = self._part.vertices.astype(np.int64)
        n = len(ids)
        level = np.full(n, -1, dtype=np.int32)
        parent: Array = np.full(n, -1, dtype=np.int32 if n < 1 << 31 else np.int64)
        frontier = np.flatnonzero(np.isin(ids, root))
        level[frontier], parent[frontier] = 0, frontier
        log: list[LevelRecord] = []
        targets = np.zeros(0, dtype=np.int64)
        if until.targets is not None:
            targets = np.flatnonzero(np.isin(ids, until.targets))
        queue, depth = [frontier], 0
        while len(frontier) and depth != until.depth:
            if len(targets) and (level[targets] >= 0).all():
                break
            if stop is not None and stop():
                raise SearchStopped(f"the search was stopped at level {depth}")
            began = time.perf_counter()
            depth += 1
            if self._direction == "pull":
                rows = np.flatnonzero(level < 0)
                reached, by, checks = first_match(self._part.pulled, rows, level >= 0)
            else:
                reached, by, checks = self._push(level, frontier)
            level[reached], parent[reached] = depth, by
            seconds = time.perf_counter() - began
            log.append(
                LevelRecord(self._direction, len(frontier), checks, len(by), seconds)
            )
            frontier = reached.astype(np.int64)
            queue.append(frontier)
        by_id = np.empty_like(level)
        by_id[ids] = level
        parents = np.empty_like(parent)
        parents[ids] = np.where(parent < 0, -1, ids[parent])
        return WholeResult(
            by_id,
            parents if self._parents else None,
            depth,
            records=log if records else [],
            order=ids[np.concatenate(queue)] if self._direction == "push" else None,
        )


class ReferencePart:
    """Searches one part level by level (a ``DomainSearch``).

    An item has the id of its parent div ranks; the remainder is the sending rank.
    """

    parents = LARGEST
    streamed = in_rounds = False
    leaves = None
    directions = CHOSEN
    visits, extras = SUBGRAPHS, ()

    def __init__(self, part: Part, placement: Placement, parents: bool) -> None:
        self._wanted, self._ranks = parents, placement.ranks
        self._ids = part.ids()
        self._shape = (part.local_count, part.delegate_count)
        self.see(part)
        self.start(None, None)

    def see(self, part: Part) -> None:
        """Restrict searches to the edges in the part's rows; see ``DomainSearch``."""
        self.part = part
        into = part.into
        self._has_nd = into["nd"].degrees() > 0
        self._has_dn = into["dn"].degrees() > 0
        self._has_dd = into["dd"].degrees() > 0

    def start(
        self,
        local: Root | None,
        delegate: Root | None,
        *,
        counting: bool = False,  # noqa: ARG002
        targets: Targets | None = None,
    ) -> None:
        """Reset the search; set the roots that this part has."""
        n, d = self._shape
        self._targets = targets
        self._depth = 0
        self._level = np.full(n, -1, dtype=np.int32)
        self._delegate_level = np.full(d, -1, dtype=np.int32)
        self._parent = np.full(n, NOBODY, dtype=np.int64)
        self._delegate_parent = np.full(d, NOBODY, dtype=np.int64)
        if local is not None:
            numbers = self.part.numbers_of(np.atleast_1d(local))
            self._level[numbers] = 0
            self._parent[numbers] = self._ids[numbers]
        if delegate is not None:
            self._delegate_level[delegate] = 0
            self._delegate_parent[delegate] = self.part.delegates[delegate]
        self._begin_level()

    def _begin_level(self) -> None:
        n, d = self._shape
        self._frontier = np.flatnonzero(self._level == self._depth)
        self._delegates = np.flatnonzero(self._delegate_level == self._depth)
        self._visited = self._level >= 0
        self._delegates_visited = self._delegate_level >= 0
        self._new = np.zeros(n, dtype=bool)
        self._new_delegates = np.zeros(d, dtype=bool)

    def work(self) -> Ids:
        """Measure the next level in both directions: ``Work``, int64 [COUNTS]."""
        part, normals, delegates = self.part, self._frontier, self._delegates
        open_nd = int((~self._visited & self._has_nd).sum())
        open_dn = int((~self._delegates_visited & self._has_dn).sum())
        open_dd = int((~self._delegates_visited & self._has_dd).sum())

        def forward(graph: CSR, rows: Array) -> tuple[int, int]:
            lengths = graph.degrees()[rows]
            return int(lengths.sum()), int((lengths > 0).sum())

        work = Work(
            len(normals),
            len(delegates) if part.index == 0 else 0,
            forward(part.nn, normals)[0],
            *forward(part.dd, delegates),
            open_dd,
            open_dd,
            *forward(part.dn, delegates),
            open_dn,
            open_nd,
            *forward(part.nd, normals),
            open_nd,
            open_dn,
            self._unreached_targets(),
        )
        return np.array(work, dtype=np.int64)

    def _unreached_targets(self) -> int:
        if self._targets is None:
            return 0
        normals = ~self._visited[self._targets.numbers]
        delegates = ~self._delegates_visited[self._targets.delegates]
        return int(normals.sum() + delegates.sum())

    def advance(self, choice: Choice, offer: Offer) -> tuple[int, int, int, int]:
        """Run a level: nn, then dd and nd, then dn."""
        nn, bins = self._visit_nn()
        offer.normals(bins)
        dd = self._visit("dd", choice["dd"])
        nd = self._visit("nd", choice["nd"])
        offer.bits(mask_of(np.flatnonzero(self._new_delegates), self._shape[1]))
        return nn, nd, self._visit("dn", choice["dn"]), dd

    def _find(self, numbers: Array, parents: Ids) -> None:
        fresh = ~self._visited[numbers] & ~self._new[numbers]
        self._new[numbers[fresh]] = True
        self._parent[numbers[fresh]] = parents[fresh]

    def _find_delegates(self, numbers: Array, parents: Ids) -> None:
        fresh = ~self._delegates_visited[numbers] & ~self._new_delegates[numbers]
        self._new_delegates[numbers[fresh]] = True
        self._delegate_parent[numbers[fresh]] = parents[fresh]

    def _visit_nn(self) -> tuple[int, Bins]:
        """Push the frontier's nn edges; return edge checks and bins for other parts."""
        source, column = neighbours(self.part.nn, self._frontier)
        owner = column.astype(np.uint64) >> np.uint64(PART_SHIFT)
        number = column.astype(np.uint64) & np.uint64(NUMBER_MASK)
        mine = owner == self.part.index
        self._find(number[mine].astype(np.uint32), self._ids[source[mine]])
        places = (self._ids[source] // self._ranks).astype(np.uint64)
        items = number << np.uint64(NUMBER_AT) | places
        order = np.flatnonzero(~mine)
        order = order[np.argsort(owner[order], kind="stable")]
        parts = np.arange(self.part.layout.parts, dtype=np.uint64)
        starts, ends = (np.searchsorted(owner[order], parts, x) for x in SIDES)
        return len(column), Bins(items[order], lambda: (starts, ends))

    def _visit(self, name: str, direction: DirectionName) -> int:
        """Find vertices along nd, dd or dn; a pull reads the rows of its reverse."""
        part, normals, delegates = self.part, self._visited, self._delegates_visited
        # mutant: into = part.into -> into = part.out : test_directed_host_parts
        into = part.into
        out, back, has_back = {
            "nd": (part.nd, into["dn"], self._has_dn),
            "dd": (part.dd, into["dd"], self._has_dd),
            "dn": (part.dn, into["nd"], self._has_nd),
        }[name]
        frontier, ids, seen = self._delegates, part.delegates, delegates
        if name == "nd":
            frontier, ids, seen = self._frontier, self._ids, normals
        find, reached = self._find_delegates, delegates
        if name == "dn":
            find, reached = self._find, normals
        if direction == "push":
            source, column = neighbours(out, frontier)
            find(column, ids[source])
            return len(column)
        rows = np.flatnonzero(~reached & has_back)
        fresh, parent, checks = first_match(back, rows, seen)
        find(fresh, ids[parent])
        return checks

    def accept(self, bits: Words | None, normals: Sequence[tuple[int, Array]]) -> None:
        """Merge what all parts found into the next frontier; see ``DomainSearch``."""
        for rank, items in normals:
            places = (items & np.uint64(PARENT_MASK)).astype(np.int64)
            numbers = (items >> np.uint64(NUMBER_AT)).astype(np.int64)
            self._find(numbers, places * self._ranks + rank)
        if bits is not None:
            self._new_delegates[bits_of(bits, self._shape[1])] = True
        self._depth += 1
        self._level[self._new & ~self._visited] = self._depth
        fresh = self._new_delegates & ~self._delegates_visited
        self._delegate_level[fresh] = self._depth
        self._begin_level()

    def delegate_parents(self) -> Ids:
        """Return the parents of delegates that this part found, [d], -1 for others."""
        return self._delegate_parent

    def take_delegate_parents(self, parents: Ids) -> None:
        """Set the parents of all reached delegates."""
        self._delegate_parent = parents

    def finish(self) -> tuple[Array, Array | None]:
        """Return (level int32, parent or None), [local count], by local id."""
        owned, local = self.part.owned_delegates()
        level = np.empty(self._shape[0], dtype=np.int32)
        parent = np.empty(self._shape[0], dtype=np.int64)
        level[self.part.vertices], parent[self.part.vertices] = (
            self._level,
            self._parent,
        )
        level[local], parent[local] = (
            self._delegate_level[owned],
            self._delegate_parent[owned],
        )
        return level, parent if self._wanted else None
