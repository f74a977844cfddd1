"""Shortest paths of a graph in parts, in host memory, from the levels of a search.

Each step goes from one level to the next. Edges of delegates are stored at their other
end, so their counts stay on the part, and counts of a delegate are summed over all
parts; counts along nn edges are sent to the part of the other end, which alone has its
level.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from distbfs.distinct import distinct
from distbfs.engines.path_counts import Sums, by_level, totals_of
from distbfs.exchange.part_rows import to_parts
from distbfs.partition.layout import Placement
from distbfs.ranks.world import SoloWorld
from distbfs.search.paths import NO_PAIRS, chosen_ends, gathered, within

if TYPE_CHECKING:
    from distbfs.partition.part import Part
    from distbfs.types import Array, Ids, Words, World


class Ends(NamedTuple):
    """Levels and ids of edge ends by number: of normals, or of delegates.

    level: int32 [k]; ids: int64 [k]
    """

    level: Array
    ids: Ids


class LevelPart:
    """One part with the levels of a search.

    n: number of its vertices; d: all delegates
    """

    def __init__(self, part: Part, level: Array, delegates: Array) -> None:
        self.part = part
        self.n = Ends(level[part.vertices].astype(np.int32), part.ids())
        self.d = Ends(delegates, part.delegates)

    def inner_edges(
        self, normals: Ids, delegates: Ids, *, back: bool = False
    ) -> Iterator[tuple[str, str, Ids, Array]]:
        """Yield (kind of row, kind of column, rows, columns) of nd, dn and dd edges.

        normals, delegates: the rows to read, by number; kinds: "n" or "d"
        back: of a directed graph, edges to the rows instead of those from them
        """
        part = self.part
        for row, column, graph in (
            ("n", "d", part.nd),
            ("d", "n", part.dn),
            ("d", "d", part.dd_pulled if back else part.dd),
        ):
            rows = normals if row == "n" else delegates
            index, columns = graph.edges_of(rows)
            yield row, column, rows[index], columns

    def ends(self, kind: str) -> Ends:
        """Return levels and ids of normals ("n") or delegates ("d")."""
        return self.n if kind == "n" else self.d


class Carried:
    """Numbers of vertices that are summed from level to level, [k] by number.

    First numbers of paths, from the root down; after ``turn``, (1 + dependency) / paths
    from the last level up.
    """

    def __init__(self, level: Array, depth: int, dtype: str) -> None:
        self.lists, self._dtype = by_level(level, depth), dtype
        self.values = np.zeros(len(level), dtype=dtype)
        self.values[self.lists[0]] = 1
        self._base = np.zeros_like(self.values)
        self._paths = self.values

    def sums(self, goal: int) -> Sums:
        """Return empty sums for the vertices of a level."""
        return Sums(len(self.lists[goal]), self._dtype)

    def settle(self, goal: int, words: Array) -> bool:
        """Take the sums of a level; return whether one exceeds uint64."""
        places, (totals, over) = self.lists[goal], totals_of(words)
        # mutant: self._base[places] + totals -> totals : test_betweenness_by_parts
        self.values[places] = self._base[places] + totals
        return over

    def turn(self) -> None:
        """Keep the numbers of paths, and carry 1 / paths."""
        self._paths, zeros = self.values, np.zeros_like(self.values)
        self._base = np.divide(1, self._paths, out=zeros, where=self._paths > 0)
        self.values = self._base.copy()

    def dependencies(self) -> Array:
        """Return the dependencies of the root, 0 at itself; after going up."""
        shares: Array = self._paths * (self.values - self._base)
        shares[self.lists[0]] = 0
        return shares


class PartCounts:
    """The sums carried by the normals of a part, [local count] by number."""

    def __init__(
        self, part: LevelPart, delegates: Carried, depth: int, dtype: str
    ) -> None:
        self._part, self._delegates, self._dtype = part, delegates, dtype
        self.own = Carried(part.n.level, depth, dtype)
        self._sums = self.own.sums(0)

    def push(self, start: int, goal: int, of_delegates: Sums) -> Words:
        """Add the values of one level to the next one along edges inside the part.

        of_delegates: receives the values for delegates. Returns the values along nn
        edges, uint64 [k, 2]: their columns and the bits of values.
        """
        part, normals, delegates = self._part, self.own.lists, self._delegates.lists
        self._sums = self.own.sums(goal)
        begun = normals[start]
        edges = part.inner_edges(begun, delegates[start], back=start > goal)
        for row, column, rows, columns in edges:
            there = part.ends(column).level[columns] == goal
            values = self.own.values if row == "n" else self._delegates.values
            places, sums = normals[goal], self._sums
            if column == "d":
                places, sums = delegates[goal], of_delegates
            sums.add(np.searchsorted(places, columns[there]), values[rows[there]])
        index, columns = part.part.nn.edges_of(begun)
        bits = self.own.values[begun[index]].view(np.uint64)
        return np.stack([columns.astype(np.uint64), bits], axis=1)

    def take(self, goal: int, numbers: Ids, rest: Words) -> None:
        """Add values from other parts, uint64 [k, 1] of their bits, to numbers."""
        there = self._part.n.level[numbers] == goal
        values = np.ascontiguousarray(rest[there, 0]).view(self._dtype)
        self._sums.add(np.searchsorted(self.own.lists[goal], numbers[there]), values)

    def settle(self, goal: int) -> bool:
        """Finish the sums of a level; return whether one exceeds uint64."""
        return self.own.settle(goal, self._sums.words)

    def by_local(self, normals: Array, delegates: Array) -> Array:
        """Return values by number as values by local id, with its own delegates."""
        part = self._part.part
        values = np.empty_like(normals)
        values[part.vertices] = normals
        owned, local = part.owned_delegates()
        values[local] = delegates[owned]
        return values


class PartPaths:
    """A ``PathFinder`` over the parts of all ranks."""

    refusal = ""

    def __init__(self, world: World, parts: Sequence[Part]) -> None:
        self._world, self._parts = world, list(parts)
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
        """Send rows to the parts of vertices; see ``to_parts`` (collective)."""
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
        return [x.by_local(x.own.values, shared.values) for x in parts], passed

    @np.errstate(over="ignore", invalid="ignore")  # what is not finite is refused
    def dependencies(self, level: Sequence[Any]) -> list[Any]:
        """Return the dependencies of the source by local id; see ``PathFinder``."""
        shared, parts, depth = self._begun(level, "float64")
        for now in range(1, depth + 1):
            self._step(shared, parts, now - 1, now)
        for carried in (shared, *(part.own for part in parts)):
            carried.turn()
        for now in range(depth, 0, -1):
            self._step(shared, parts, now, now - 1)
        shares = shared.dependencies()
        return [x.by_local(x.own.dependencies(), shares) for x in parts]

    def _begun(
        self, level: Sequence[Any], dtype: str
    ) -> tuple[Carried, list[PartCounts], int]:
        """Return the values of delegates and of parts at level 0, and the depth."""
        every = self._with_levels(level)
        own = max(int(x.n.level.max(initial=-1)) for x in every)
        depth = int(self._world.allreduce(np.array([own]), "max")[0])
        shared = Carried(every[0].d.level, depth, dtype)
        return shared, [PartCounts(x, shared, depth, dtype) for x in every], depth

    def _step(
        self, shared: Carried, parts: Sequence[PartCounts], start: int, goal: int
    ) -> bool:
        """Carry values from one level to the next; return whether one overflows."""
        sums = shared.sums(goal)
        letters = [part.push(start, goal, sums) for part in parts]
        for place, numbers, rest in self._deliver(letters):
            parts[place].take(goal, numbers, rest)
        # mutant: self._world.allreduce(sums.words) -> sums.words : test_parts_on_ranks
        over = [shared.settle(goal, self._world.allreduce(sums.words))]
        return any([*over, *(part.settle(goal) for part in parts)])

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
                index, columns = x.part.nn.edges_of(normals[place])
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
    """A ``PathCounter`` of a graph in one part, without delegates."""

    seconds = 0.0

    def __init__(self, part: Part) -> None:
        self._paths = PartPaths(SoloWorld(), [part])

    def counts(self, level: Array, levels: int, dtype: str) -> tuple[Array, int]:
        """Return counts [n] by id; see ``PathCounter``."""
        [counts], passed = self._paths.counts([level], levels, dtype)
        return counts, passed


def edges_between(rows: Ends, u: Array, columns: Ends, v: Array) -> Ids:
    """Return edges from numbers u to numbers v as [k, 4]: ids, then levels."""
    values = (rows.ids[u], columns.ids[v], rows.level[u], columns.level[v])
    return np.stack([x.astype(np.int64) for x in values], axis=1)
