"""Shortest paths of a graph in parts, in host memory, from the levels of a search.

Each step goes from one level to the next. A part stores the edges between its normals
and delegates, so counts along them stay on the part, and the counts of a delegate are
summed over all parts. Counts along nn edges are sent to the part that owns the other
end, because only that part has its level.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.distinct import distinct
from distbfs.engines.path_sums import words_of
from distbfs.exchange.part_rows import to_parts
from distbfs.partition.delegates import DelegateNumbers
from distbfs.partition.layout import Placement
from distbfs.search.paths import (
    NO_EDGES,
    chosen_ends,
    edges_back,
    gathered,
    runs,
    table_of,
    within,
)

if TYPE_CHECKING:
    from distbfs.engines.path_sums import MakeSums, PathSums
    from distbfs.partition.part import Part
    from distbfs.types import Array, Ids, Words, World


class LevelPart:
    """One part, the levels that a search found there, and sums along its paths.

    level: int32, levels by number: of its normals ("n"), and of all delegates ("d")
    own, shared: sums of its normals, and of delegates, which all parts share; see
    ``PartPaths._begun``
    """

    own: PathSums
    shared: PathSums

    def __init__(self, part: Part, level: Array, delegates: Array) -> None:
        self.part = part
        self.level = {"n": level[part.vertices].astype(np.int32), "d": delegates}

    def ends(self, kind: str, numbers: Array) -> tuple[Ids, Array]:
        """Return the ids and levels of normals ("n") or delegates ("d"), by number."""
        part = self.part
        if kind == "d":
            ids = part.delegates[numbers]
        else:
            ids = part.layout.global_of(part.index, part.vertices[numbers])
        return ids, self.level[kind][numbers]

    def edges(
        self, rows: Mapping[str, Ids], *, back: bool
    ) -> Iterator[tuple[str, Ids, Array]]:
        """Yield (name of a subgraph, rows, columns) of the edges of some rows, in runs.

        rows: numbers of normals ("n") and of delegates ("d")
        back: yield edges to the rows instead of edges from them; they differ in a
        directed graph
        """
        side = self.part.into if back else self.part.out
        for name, every in side.items():
            for some in runs(every, rows[name[0]]) if every.edges else ():
                index, columns = every.edges_of(some)
                yield name, some[index], columns

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
        self._alone = parts[0].layout.parts == 1  # its nn edges stay on the part
        delegates = parts[0].delegate_count
        self._whole = parts[0] if self._alone and not delegates else None

    @cached_property
    def _delegates(self) -> DelegateNumbers:
        return DelegateNumbers(self._parts[0].delegates)

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
        passed, whole = 0, self._whole
        if whole is not None:
            passed = parts[0].own.down(whole.nn, whole.pulled)
            depth = 0
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
        depth = self._deepest([x.level["n"] for x in every])
        shared = self._make(every[0].level["d"], depth, dtype)
        for x in every:
            x.own, x.shared = self._make(x.level["n"], depth, dtype), shared
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

    def _deepest(self, levels: Sequence[Array]) -> int:
        """Return the largest of some levels on all ranks, -1 for none (collective)."""
        own = max(int(x.max(initial=-1)) for x in levels)
        return int(self._world.allreduce(np.array([own]), "max")[0])

    def _rows_of(self, ids: Ids) -> list[dict[str, Ids]]:
        """Return the numbers of ids on each part, those of delegates on all parts."""
        layout, numbers = self._parts[0].layout, self._delegates.of(ids)
        delegates = numbers[numbers >= 0].astype(np.int64)
        owner, local = layout.part_of(ids), layout.local_of(ids)
        return [
            {"n": x.numbers_of(local[owner == x.index]), "d": delegates}
            for x in self._parts
        ]

    def _edges(
        self,
        parts: Sequence[LevelPart],
        rows: Sequence[Mapping[str, Ids]],
        low: int,
        high: int | None,
        *,
        back: bool = False,
    ) -> Iterator[Ids]:
        """Yield edges from some rows to vertices on levels low … high (collective).

        rows, back: see ``LevelPart.edges``; rows of each part

        Tables are int64 [k, 4]: ids of row and column, then their levels. Every edge is
        in a table of one rank.
        """
        letters = [np.zeros((0, 3), dtype=np.uint64)]
        for x, some in zip(parts, rows, strict=True):
            for name, u, v in x.edges(some, back=back):
                row, column = name[0], name[1]
                if name == "nn" and not self._alone:
                    letters.append(table_of((v, *x.ends(row, u))).view(np.uint64))
                    continue
                kept = within(x.level[column][v], low, high)
                ends = zip(x.ends(row, u[kept]), x.ends(column, v[kept]), strict=True)
                yield table_of(chain(*ends))
        for place, numbers, rest in self._deliver(letters):
            x = parts[place]
            kept = within(x.level["n"][numbers], low, high)
            ends = zip(rest[kept].T, x.ends("n", numbers[kept]), strict=True)
            yield table_of(chain(*ends))

    def predecessors(self, level: Sequence[Any], target: int) -> Ids:
        """Return the edges of shortest paths to an id; see ``PathFinder``."""
        rows = self._rows_of(np.array([target]))
        if self._whole is not None:
            whole = self._whole.pulled, self._whole.vertices, level[0]
            back = edges_back(*whole, target, rows[0]["n"])
            return np.concatenate([NO_EDGES[:, :2], *back])
        parts = self._with_levels(level)
        own = [x.level["n"][y["n"]] for x, y in zip(parts, rows, strict=True)]
        tables = [NO_EDGES[:, :2]]
        for above in range(self._deepest(own) - 1, -1, -1):
            # mutant: back=True -> back=False : test_directed_graphs_on_ranks
            edges = self._edges(parts, rows, above, above, back=True)
            pairs = np.concatenate([NO_EDGES, *edges])[:, 1::-1]
            tables.append(gathered(self._world, pairs))
            rows = self._rows_of(distinct(tables[-1][:, 0]))
        return np.concatenate(tables)

    def edges_within(self, level: Sequence[Any], hops: int | None) -> Ids:
        """Return edges up to a level of this rank's parts; see ``PathFinder``."""
        parts = self._with_levels(level)
        rows = [
            {kind: np.flatnonzero(within(y, 0, hops)) for kind, y in x.level.items()}
            for x in parts
        ]
        edges = self._edges(parts, rows, 0, hops)
        chosen = (chosen_ends(some, directed=self.directed) for some in edges)
        return np.concatenate([NO_EDGES, *chosen])
