"""The reference engine: every step in NumPy, one array operation per line.

Whole graphs push level by level, or pull on request. Parts follow Pan, Pearce, Owens
2018, Section IV, with boolean arrays instead of bitmasks; the other engines are tested
against it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from distbfs.engines.base import (
    CHOSEN,
    LARGEST,
    Engine,
    LevelRecord,
    Query,
    Targets,
    WholeResult,
    WholeSearch,
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

    rows: ascending; wanted: bool [columns]. Returns (rows with a match, the column of
    each, edge checks if each row stops at its match).
    """
    source, column = neighbours(graph, rows)
    hit = np.flatnonzero(wanted[column])
    matched, place = np.unique(source[hit], return_index=True)
    first = hit[place]
    ends = np.cumsum(graph.degrees()[rows])[np.searchsorted(rows, matched)]
    return matched, column[first], len(column) - int((ends - 1 - first).sum())


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


class ReferenceWhole(WholeSearch):
    """Searches one part without delegates (a ``WholeSearch``)."""

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

    def answer(self, root: Root, query: Query) -> WholeResult:
        """Search from ids; see ``WholeSearch``."""
        until, stop = query.until, query.stop
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
            records=log if query.records else [],
            order=ids[np.concatenate(queue)] if self._direction == "push" else None,
        )


class Reached:
    """Vertices of one kind, normals or delegates: levels, parents, and the new ones.

    n: number of the vertices; roots: numbers of those on level 0, None for none
    ids: the vertices' ids
    """

    def __init__(self, n: int, roots: Root | None, ids: Ids) -> None:
        self.ids = ids
        self.level = np.full(n, -1, dtype=np.int32)
        self.parent = np.full(n, NOBODY, dtype=np.int64)
        if roots is not None:
            self.level[roots], self.parent[roots] = 0, ids[roots]
        self._begin(0)

    def _begin(self, depth: int) -> None:
        self.frontier = np.flatnonzero(self.level == depth)
        self.visited = self.level >= 0
        self.new = np.zeros(len(self.level), dtype=bool)

    def find(self, numbers: Array, parents: Ids) -> None:
        """Set the parents of those that were neither visited nor found before."""
        fresh = ~self.visited[numbers] & ~self.new[numbers]
        self.new[numbers[fresh]] = True
        self.parent[numbers[fresh]] = parents[fresh]

    def settle(self, depth: int) -> None:
        """Give the new ones their level, and begin the next."""
        self.level[self.new & ~self.visited] = depth
        self._begin(depth)


class ReferencePart:
    """Searches one part level by level (a ``DomainSearch``).

    An item has the id of its parent div ranks; the remainder is the sending rank.
    """

    parents = LARGEST
    streamed = in_rounds = leaves = False
    directions = CHOSEN
    visits, extras = SUBGRAPHS, ()

    def __init__(self, part: Part, placement: Placement, parents: bool) -> None:
        self._wanted, self._ranks = parents, placement.ranks
        self._ids = part.ids()
        self.see(part)
        self.start(None, None)

    def see(self, part: Part) -> None:
        """Restrict searches to the edges in the part's rows; see ``DomainSearch``."""
        self.part = part
        self._has = {name: part.into[name].degrees() > 0 for name in CHOSEN}

    def start(
        self,
        local: Root | None,
        delegate: Root | None,
        *,
        counting: bool = False,  # noqa: ARG002
        targets: Targets | None = None,
    ) -> None:
        """Reset the search; set the roots that this part has."""
        part = self.part
        if local is not None:
            local = part.numbers_of(np.atleast_1d(local))
        self._targets, self._depth = targets, 0
        self._n = Reached(part.local_count, local, self._ids)
        self._d = Reached(part.delegate_count, delegate, part.delegates)

    def work(self) -> Ids:
        """Measure the next level in both directions: ``Work``, int64 [COUNTS]."""
        part, normals, delegates = self.part, self._n.frontier, self._d.frontier
        open_nd = int((~self._n.visited & self._has["nd"]).sum())
        open_dn = int((~self._d.visited & self._has["dn"]).sum())
        open_dd = int((~self._d.visited & self._has["dd"]).sum())

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
        normals = ~self._n.visited[self._targets.numbers]
        delegates = ~self._d.visited[self._targets.delegates]
        return int(normals.sum() + delegates.sum())

    def advance(self, choice: Choice) -> Iterator[Bins | Words]:
        """Run a level: nn, then dd and nd, then dn."""
        nn, bins = self._visit_nn()
        yield bins
        dd = self._visit("dd", choice["dd"])
        nd = self._visit("nd", choice["nd"])
        yield mask_of(np.flatnonzero(self._d.new), self.part.delegate_count)
        self._checks = nn, nd, self._visit("dn", choice["dn"]), dd

    def checks(self) -> tuple[int, int, int, int]:
        """Return the edge checks of the last level by subgraph."""
        return self._checks

    def _visit_nn(self) -> tuple[int, Bins]:
        """Push the frontier's nn edges; return edge checks and bins for other parts."""
        source, column = neighbours(self.part.nn, self._n.frontier)
        owner = column.astype(np.uint64) >> np.uint64(PART_SHIFT)
        number = column.astype(np.uint64) & np.uint64(NUMBER_MASK)
        mine = owner == self.part.index
        self._n.find(number[mine].astype(np.uint32), self._ids[source[mine]])
        places = (self._ids[source] // self._ranks).astype(np.uint64)
        items = number << np.uint64(NUMBER_AT) | places
        order = np.flatnonzero(~mine)
        order = order[np.argsort(owner[order], kind="stable")]
        parts = np.arange(self.part.layout.parts, dtype=np.uint64)
        starts, ends = (np.searchsorted(owner[order], parts, x) for x in SIDES)
        return len(column), Bins(items[order], lambda: (starts, ends))

    def _visit(self, name: str, direction: DirectionName) -> int:
        """Find vertices along nd, dd or dn; a pull reads the rows of its reverse."""
        # mutant: into = self.part.into -> into = self.part.out
        #   : test_directed_host_parts
        into = self.part.into
        kinds, back = {"n": self._n, "d": self._d}, name[::-1]
        start, goal = (kinds[letter] for letter in name)
        if direction == "push":
            source, column = neighbours(self.part.out[name], start.frontier)
            goal.find(column, start.ids[source])
            return len(column)
        rows = np.flatnonzero(~goal.visited & self._has[back])
        fresh, parent, checks = first_match(into[back], rows, start.visited)
        goal.find(fresh, start.ids[parent])
        return checks

    def accept(self, bits: Words | None, items: Sequence[tuple[int, Array]]) -> None:
        """Merge what all parts found into the next frontier; see ``DomainSearch``."""
        for rank, some in items:
            places = (some & np.uint64(PARENT_MASK)).astype(np.int64)
            numbers = (some >> np.uint64(NUMBER_AT)).astype(np.int64)
            self._n.find(numbers, places * self._ranks + rank)
        if bits is not None:
            self._d.new[bits_of(bits, self.part.delegate_count)] = True
        self._depth += 1
        for ends in (self._n, self._d):
            ends.settle(self._depth)

    def delegate_parents(self) -> Ids:
        """Return the parents of delegates that this part found, [d], -1 for others."""
        return self._d.parent

    def take_delegate_parents(self, parents: Ids) -> None:
        """Set the parents of all reached delegates."""
        self._d.parent = parents

    def finish(self) -> tuple[Array, Array | None]:
        """Return (level int32, parent or None), [local count], by local id."""
        owned, local = self.part.owned_delegates()
        level, parent = np.empty_like(self._n.level), np.empty_like(self._n.parent)
        for out, name in ((level, "level"), (parent, "parent")):
            out[self.part.vertices] = getattr(self._n, name)
            out[local] = getattr(self._d, name)[owned]
        return level, parent if self._wanted else None
