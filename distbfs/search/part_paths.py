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

from distbfs.engines.path_counts import Sums, by_level, totals_of
from distbfs.partition.layout import Placement
from distbfs.partition.part import NUMBER_MASK, PART_SHIFT
from distbfs.search.parents import by_rank
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
        self, normals: Ids, delegates: Ids
    ) -> Iterator[tuple[str, str, Ids, Array]]:
        """Yield (kind of row, kind of column, rows, columns) of nd, dn and dd edges.

        normals, delegates: the rows to read, by number; kinds: "n" or "d"
        """
        part = self.part
        for row, column, graph in (
            ("n", "d", part.nd),
            ("d", "n", part.dn),
            ("d", "d", part.dd),
        ):
            rows = normals if row == "n" else delegates
            index, columns = graph.edges_of(rows)
            yield row, column, rows[index], columns

    def ends(self, kind: str) -> Ends:
        """Return levels and ids of normals ("n") or delegates ("d")."""
        return self.n if kind == "n" else self.d


class DelegateCounts:
    """Counts of all delegates, the same on every rank, and their levels."""

    def __init__(self, level: Array, depth: int, dtype: str) -> None:
        self._dtype = dtype
        self.lists = by_level(level, depth)
        self.counts = np.zeros(len(level), dtype=dtype)
        self.counts[self.lists[0]] = 1

    def sums(self, now: int) -> Sums:
        """Return empty sums for the delegates of a level, for one part."""
        return Sums(len(self.lists[now]), self._dtype)

    def settle(self, now: int, words: Array) -> bool:
        """Set the sums of all parts; return whether one exceeds uint64."""
        self.counts[self.lists[now]], over = totals_of(words)
        return over


class PartCounts:
    """Counts of the normals of a part, [local count] by number."""

    def __init__(
        self, part: LevelPart, delegates: DelegateCounts, depth: int, dtype: str
    ) -> None:
        self._part, self._delegates, self._dtype = part, delegates, dtype
        self._lists = by_level(part.n.level, depth)
        self._counts = np.zeros(len(part.n.ids), dtype=dtype)
        self._counts[self._lists[0]] = 1
        self._sums = Sums(0, dtype)

    def push(self, now: int, of_delegates: Sums) -> Words:
        """Add the counts of the level above along edges inside the part.

        of_delegates: receives the counts of delegates. Returns the counts along nn
        edges, uint64 [k, 2]: their columns and the bits of counts.
        """
        part, normals, delegates = self._part, self._lists, self._delegates.lists
        self._sums = Sums(len(normals[now]), self._dtype)
        above = normals[now - 1]
        edges = part.inner_edges(above, delegates[now - 1])
        for row, column, rows, columns in edges:
            down = part.ends(column).level[columns] == now
            counts = self._counts if row == "n" else self._delegates.counts
            below, sums = normals[now], self._sums
            if column == "d":
                below, sums = delegates[now], of_delegates
            sums.add(np.searchsorted(below, columns[down]), counts[rows[down]])
        index, columns = part.part.nn.edges_of(above)
        bits = self._counts[above[index]].view(np.uint64)
        return np.stack([columns.astype(np.uint64), bits], axis=1)

    def take(self, now: int, numbers: Ids, rest: Words) -> None:
        """Add counts from other parts, uint64 [k, 1] of their bits, to numbers."""
        down = self._part.n.level[numbers] == now
        counts = np.ascontiguousarray(rest[down, 0]).view(self._dtype)
        self._sums.add(np.searchsorted(self._lists[now], numbers[down]), counts)

    def settle(self, now: int) -> bool:
        """Finish the sums of a level; return whether one exceeds uint64."""
        self._counts[self._lists[now]], over = self._sums.totals()
        return over

    def by_local(self) -> Array:
        """Return counts by local id, including those of delegates that it owns."""
        part = self._part.part
        values = np.empty_like(self._counts)
        values[part.vertices] = self._counts
        owned, local = part.owned_delegates()
        values[local] = self._delegates.counts[owned]
        return values


class PartPaths:
    """A ``PathFinder`` over the parts of all ranks; the graph is symmetric."""

    directed = False
    refusal = ""

    def __init__(self, world: World, parts: Sequence[Part]) -> None:
        self._world, self._parts = world, list(parts)
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
        """Send rows to the parts of vertices; yield (place of part, numbers, rest).

        tables: uint64 [k, w], nn columns and values to send along. Collective.
        """
        table = np.concatenate(tables)
        shift, mask = np.uint64(PART_SHIFT), np.uint64(NUMBER_MASK)
        ranks = self._placement.rank_of((table[:, 0] >> shift).astype(np.int64))
        sent, _ = by_rank(table, ranks, self._world.size)
        flat = [np.ascontiguousarray(x).ravel() for x in sent]
        arrived = np.concatenate(self._world.alltoall(flat))
        arrived = arrived.reshape(-1, table.shape[1])
        owner = (arrived[:, 0] >> shift).astype(np.int64)
        numbers = (arrived[:, 0] & mask).astype(np.int64)
        for place, part in enumerate(self._parts):
            own = owner == part.index
            yield place, numbers[own], arrived[own, 1:]

    def counts(
        self,
        level: Sequence[Any],
        levels: int,  # noqa: ARG002
        dtype: str,
    ) -> tuple[list[Any], int]:
        """Return counts of each part by local id; see ``PathFinder``."""
        every = self._with_levels(level)
        own = max(int(x.n.level.max(initial=-1)) for x in every)
        depth = int(self._world.allreduce(np.array([own]), "max")[0])
        shared = DelegateCounts(every[0].d.level, depth, dtype)
        parts = [PartCounts(x, shared, depth, dtype) for x in every]
        passed = 0
        for now in range(1, depth + 1):
            sums = shared.sums(now)
            letters = [part.push(now, sums) for part in parts]
            for place, numbers, rest in self._deliver(letters):
                parts[place].take(now, numbers, rest)
            over = [shared.settle(now, self._world.allreduce(sums.words))]
            over += [part.settle(now) for part in parts]
            passed = passed or now * any(over)
        return [part.by_local() for part in parts], passed

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
                edges = x.inner_edges(normals[place], delegates)
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
            normals = [np.unique(np.concatenate(x)) for x in fresh]
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
        return chosen_ends(np.concatenate(tables), directed=False)


def edges_between(rows: Ends, u: Array, columns: Ends, v: Array) -> Ids:
    """Return edges from numbers u to numbers v as [k, 4]: ids, then levels."""
    values = (rows.ids[u], columns.ids[v], rows.level[u], columns.level[v])
    return np.stack([x.astype(np.int64) for x in values], axis=1)
