"""Shortest paths of a graph in parts, in host memory, from the levels of a search.

Each step goes from one level to the next. A part stores the edges between its normals
and delegates, so counts along them stay on the part, and the counts of a delegate are
summed over all parts. Counts along nn edges are sent to the part that owns the other
end, because only that part has its level.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from distbfs.distinct import distinct
from distbfs.engines.base import CHOSEN
from distbfs.engines.path_sums import words_of
from distbfs.exchange.part_rows import to_parts
from distbfs.partition.layout import Placement
from distbfs.search.paths import NO_PAIRS, chosen_ends, gathered, within

if TYPE_CHECKING:
    from distbfs.engines.path_sums import MakeSums, PathSums
    from distbfs.partition.part import Part
    from distbfs.types import Array, Ids, Words, World


class Ends(NamedTuple):
    """Levels and ids of vertices by number: of normals, or of delegates.

    level: int32 [k]; ids: int64 [k]
    """

    level: Array
    ids: Ids


class LevelPart:
    """One part, the levels that a search found there, and sums along its paths.

    n: levels and ids of its normals; d: those of all delegates
    own, shared: sums of its normals, and of delegates, which all parts share; see
    ``PartPaths._begun``
    """

    own: PathSums
    shared: PathSums

    def __init__(self, part: Part, level: Array, delegates: Array) -> None:
        self.part = part
        self.n = Ends(level[part.vertices].astype(np.int32), part.ids())
        self.d = Ends(delegates, part.delegates)

    def inner_edges(
        self, normals: Ids, delegates: Ids, *, back: bool = False
    ) -> Iterator[tuple[str, str, Ids, Array]]:
        """Yield (kind of row, kind of column, rows, columns) of nd, dn and dd edges.

        normals, delegates: numbers of the rows to read; kinds: "n" or "d"
        back: yield edges to the rows instead of edges from them; they differ in a
        directed graph
        """
        side = self.part.into if back else self.part.out
        for name in CHOSEN:
            row, column = name[0], name[1]
            rows = normals if row == "n" else delegates
            index, columns = side[name].edges_of(rows)
            yield row, column, rows[index], columns

    def ends(self, kind: str) -> Ends:
        """Return levels and ids of normals ("n") or delegates ("d")."""
        return self.n if kind == "n" else self.d

    def push(self, start: int, goal: int) -> tuple[bool, Words]:
        """Add the values of one level to the next one along edges inside the part.

        Returns whether any sum exceeds uint64, and a table of the values to send along
        nn edges, uint64 [k, 2]: the columns of the edges and the bits of the values.
        """
        own, shared = self.own, self.shared
        side, other = self.part.out, self.part.into
        if start > goal:
            side, other = other, side
        over = [
            end.along(edges, back, begin, start, goal)
            for edges, back, begin, end in (
                (side["nd"], other["dn"], own, shared),
                (side["dn"], other["nd"], shared, own),
                # edges back may lie in other parts
                # mutant: dd"], None -> dd"], other["dd"] : test_parts_on_ranks
                (side["dd"], None, shared, shared),
            )
        ]
        places = own.places(start)
        index, columns = side["nn"].edges_of(places)
        bits = own.values[places[index]].view(np.uint64)
        return any(over), np.stack([columns.astype(np.uint64), bits], axis=1)

    def take(self, goal: int, numbers: Ids, rest: Words) -> bool:
        """Add values from other parts to the sums of some vertices.

        Returns whether any sum exceeds uint64. rest: the bits of the values, uint64
        [k, 1]; numbers: the vertices, by number
        """
        there = self.own.level[numbers] == goal
        values = np.ascontiguousarray(rest[there, 0]).view(self.own.values.dtype)
        return self.own.add(numbers[there], values, goal)


class PartPaths:
    """A ``PathFinder`` over the parts of all ranks.

    make: function that creates the sums of vertices from their levels
    """

    refusal = ""

    def __init__(self, world: World, parts: Sequence[Part], make: MakeSums) -> None:
        self._world, self._parts, self._make = world, list(parts), make
        self.directed = parts[0].directed
        self._placement = Placement(parts[0].layout.parts, world.size)

    def _with_levels(self, level: Sequence[Array]) -> list[LevelPart]:
        """Return the parts of this rank with their levels (collective)."""
        delegates = np.full(self._parts[0].delegate_count, -1, dtype=np.int32)
        for part, levels in zip(self._parts, level, strict=True):
            owned, local = part.owned_delegates()
            delegates[owned] = levels[local]
        delegates = self._world.allreduce(delegates, "max")
        pairs = zip(self._parts, level, strict=True)
        return [LevelPart(part, levels, delegates) for part, levels in pairs]

    def _deliver(self, tables: Sequence[Words]) -> Iterator[tuple[int, Ids, Words]]:
        """Send rows to the parts of their vertices; see ``to_parts`` (collective)."""
        table = np.concatenate(tables)
        return to_parts(self._world, self._placement, self._parts, table)

    def counts(
        self,
        level: Sequence[Any],
        levels: int,  # noqa: ARG002
        dtype: str,
    ) -> tuple[list[Any], int]:
        """Return counts of each part by local id; see ``PathFinder``."""
        shared, parts, depth = self._begun(level, dtype)
        passed = 0
        for now in range(1, depth + 1):
            over = self._step(shared, parts, now - 1, now)
            passed = passed or now * over
        return [x.part.by_local(x.own.values, shared.values) for x in parts], passed

    @np.errstate(over="ignore", invalid="ignore")  # what is not finite is refused
    def dependencies(self, level: Sequence[Any]) -> list[Any]:
        """Return the dependencies of the source by local id; see ``PathFinder``."""
        shared, parts, depth = self._begun(level, "float64")
        for now in range(1, depth + 1):
            self._step(shared, parts, now - 1, now)
        for sums in (shared, *(part.own for part in parts)):
            sums.turn()
        for now in range(depth, 0, -1):
            self._step(shared, parts, now, now - 1)
        shares = shared.dependencies()
        return [x.part.by_local(x.own.dependencies(), shares) for x in parts]

    def _begun(
        self, level: Sequence[Any], dtype: str
    ) -> tuple[PathSums, list[LevelPart], int]:
        """Return the sums of delegates and of parts, set at level 0, and the depth."""
        every = self._with_levels(level)
        own = max(int(x.n.level.max(initial=-1)) for x in every)
        depth = int(self._world.allreduce(np.array([own]), "max")[0])
        shared = self._make(every[0].d.level, depth, dtype)
        for x in every:
            x.own, x.shared = self._make(x.n.level, depth, dtype), shared
        return shared, every, depth

    def _step(
        self, shared: PathSums, parts: Sequence[LevelPart], start: int, goal: int
    ) -> bool:
        """Carry values from one level to the next; return whether any sum overflows."""
        pushed = [part.push(start, goal) for part in parts]
        over = [one for one, _ in pushed]
        for place, numbers, rest in self._deliver([table for _, table in pushed]):
            over.append(parts[place].take(goal, numbers, rest))
        words = words_of(shared.values[shared.places(goal)])
        # mutant: self._world.allreduce(words) -> words : test_parts_on_ranks
        over.append(shared.put(self._world.allreduce(words), goal))
        for sums in (shared, *(part.own for part in parts)):
            sums.settle(goal)
        return any(over)

    def predecessors(self, level: Sequence[Any], target: int) -> Ids:
        """Return the edges of shortest paths to an id; see ``PathFinder``."""
        parts = self._with_levels(level)
        delegates = np.flatnonzero(parts[0].d.ids == target)
        normals = [np.flatnonzero(x.n.ids == target) for x in parts]
        own = [
            x.n.level[y].max(initial=-1) for x, y in zip(parts, normals, strict=True)
        ]
        depth = int(self._world.allreduce(np.array([max(own)]), "max")[0])
        tables = [NO_PAIRS]
        for above in range(depth - 1, -1, -1):
            before = np.zeros(len(parts[0].d.ids), dtype=np.uint8)
            fresh: list[list[Array]] = [[numbers[:0]] for numbers in normals]
            letters = []
            for place, x in enumerate(parts):
                # mutant: back=True -> back=False : test_directed_graphs_on_ranks
                edges = x.inner_edges(normals[place], delegates, back=True)
                for row, column, rows, columns in edges:
                    up = x.ends(column).level[columns] == above
                    u, v = columns[up], rows[up]
                    pair = (x.ends(column).ids[u], x.ends(row).ids[v])
                    tables.append(np.stack(pair, axis=1))
                    if column == "d":
                        before[u] = 1
                    else:
                        fresh[place].append(u.astype(np.int64))
                index, columns = x.part.pulled.edges_of(normals[place])
                ids = x.n.ids[normals[place][index]]
                pair = (columns.astype(np.uint64), ids.astype(np.uint64))
                letters.append(np.stack(pair, axis=1))
            for place, numbers, rest in self._deliver(letters):
                up = parts[place].n.level[numbers] == above
                ids = parts[place].n.ids[numbers[up]]
                tables.append(np.stack([ids, rest[up, 0].astype(np.int64)], axis=1))
                fresh[place].append(numbers[up])
            delegates = np.flatnonzero(self._world.allreduce(before, "max"))
            normals = [distinct(np.concatenate(x)) for x in fresh]
        return gathered(self._world, np.concatenate(tables))

    def edges_within(self, level: Sequence[Any], hops: int | None) -> Ids:
        """Return edges up to a level of this rank's parts; see ``PathFinder``."""
        parts, tables, letters = self._with_levels(level), [], []
        for x in parts:
            near, far = (np.flatnonzero(within(y.level, hops)) for y in (x.n, x.d))
            for row, column, rows, columns in x.inner_edges(near, far):
                kept = within(x.ends(column).level[columns], hops)
                u, v = rows[kept], columns[kept]
                tables.append(edges_between(x.ends(row), u, x.ends(column), v))
            index, columns = x.part.nn.edges_of(near)
            u = near[index]
            values = (columns, x.n.ids[u], x.n.level[u])
            letters.append(np.stack([y.astype(np.uint64) for y in values], axis=1))
        for place, numbers, rest in self._deliver(letters):
            ends = parts[place].n
            kept = within(ends.level[numbers], hops)
            u, above = rest[kept].astype(np.int64).T
            v = numbers[kept]
            tables.append(np.stack([u, ends.ids[v], above, ends.level[v]], axis=1))
        return chosen_ends(np.concatenate(tables), directed=self.directed)


class WholeCounter:
    """A ``PathCounter`` of a graph in one part, without delegates, in host memory."""

    def __init__(self, part: Part, make: MakeSums) -> None:
        self._part, self._make = part, make

    def counts(
        self,
        level: Array,
        levels: int,  # noqa: ARG002
        dtype: str,
    ) -> tuple[Array, int]:
        """Return counts [n] by id; see ``PathCounter``."""
        part, depth = self._part, int(level.max(initial=0))
        sums = self._make(level[part.vertices].astype(np.int32), depth, dtype)
        passed = sums.down(part.nn, part.pulled)
        counts = np.empty_like(sums.values)
        counts[part.vertices] = sums.values
        return counts, passed


def edges_between(rows: Ends, u: Array, columns: Ends, v: Array) -> Ids:
    """Return edges from numbers u to numbers v as [k, 4]: ids, then levels."""
    values = (rows.ids[u], columns.ids[v], rows.level[u], columns.level[v])
    return np.stack([x.astype(np.int64) for x in values], axis=1)
