"""Faults of a search result: their kinds, counts and examples."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from distbfs.errors import UsageError

if TYPE_CHECKING:
    from distbfs.types import Array, Ids, Marks, Root, World

# The kinds in the order of their messages. An example is four numbers: (a, b) the
# vertex, or the ends of the tuple, and (x, y) their values.
TEXTS = {
    "outside": "input: {count} tuples have an end outside the graph, e.g. ({a}, {b})",
    "level_range": "levels: {count} are outside -1 … n-1, e.g. {x} of vertex {a}",
    "parent_range": "parents: {count} are outside -1 … n-1, e.g. {x} of vertex {a}",
    "root_level": "rule 1: {roots} alone must be at level 0; {count} "
    "vertices are not so, e.g. vertex {a} at level {x}",
    "root_parent": "rule 1: {roots} alone must be {own}; {count} "
    "vertices are not so, e.g. vertex {a} with parent {x}",
    "step": "rule 2: {count} tree edges do not join levels that differ by one, e.g. "
    "vertex {a} at level {x} with parent {b} at level {y}",
    "nearer": "rule 2: {count} vertices have no neighbour one level nearer to the "
    "root, e.g. vertex {a} at level {x}",
    "span": "rule 3: {count} tuples join levels that differ by more than one, e.g. "
    "({a}, {b}) at levels {x} and {y}",
    "half": "rules 3 and 4: {count} tuples join a reached and an unreached vertex, "
    "e.g. ({a}, {b}) at levels {x} and {y}",
    "set": "rule 4: {count} vertices have a level and no parent or a parent and no "
    "level, e.g. vertex {a} at level {x} with parent {y}",
    "edge": "rule 5: {count} tree edges are not among the tuples, e.g. vertex {a} with "
    "parent {x}",
}
DERIVED = {
    "set": "rule 1: {count} vertices have parents that lead to no root, "
    "e.g. vertex {a} with parent {y}"
}
DIRECTED = {
    "nearer": "rule 2: {count} vertices have no edge from a vertex one level nearer to "
    "the root, e.g. vertex {a} at level {x}",
    "span": "rule 3: {count} tuples skip a level, e.g. ({a}, {b}) from level {x} to "
    "level {y}",
    "half": "rules 3 and 4: {count} tuples lead from a reached to an unreached vertex, "
    "e.g. ({a}, {b}) from level {x} to level {y}",
}
KINDS = {name: row for row, name in enumerate(TEXTS)}


def checked_roots(root: Root, n: int) -> Ids:
    """Return the roots of a search, int64 [k], rising; UsageError for invalid ones.

    root: one, or those of a set, integers [k], each once, in any order
    """
    roots = np.atleast_1d(np.asarray(root))
    if roots.ndim > 1 or roots.dtype.kind not in "iu" or not len(roots):
        raise UsageError("roots are not one or several integers")
    rising: Ids = np.sort(roots).astype(np.int64)
    if len(outside := rising[(rising < 0) | (rising >= n)]):
        raise UsageError(f"root is {outside[0]}; allowed: 0 to {n - 1}")
    if len(again := rising[1:][rising[1:] == rising[:-1]]):
        raise UsageError(f"root {again[0]} occurs twice")
    return rising


@dataclass
class Tally:
    """Faults of each kind: their count, the position of the first, its example.

    rows: int64 [kinds, 6] of (count, position, a, b, x, y)
    """

    rows: Ids = field(default_factory=lambda: np.zeros((len(TEXTS), 6), dtype=np.int64))

    def add(self, kind: str, count: int, position: int, *example: int) -> None:
        """Add faults of one kind; keeps the example of the lowest position."""
        row = self.rows[KINDS[kind]]
        if count and (not row[0] or position < row[1]):
            row[1:] = (position, *example)
        row[0] += count

    def add_vertices(
        self, kind: str, wrong: Marks, ids: Ids, *values_found: Array
    ) -> None:
        """Add the vertices that are wrong, bool [k], of ids, int64 [k].

        values_found: one or two arrays [k] of the vertices' values
        """
        where = np.flatnonzero(wrong)
        if len(where):
            at = where[0]
            x, y = [*(int(values[at]) for values in values_found), 0][:2]
            self.add(kind, len(where), int(ids[at]), int(ids[at]), 0, x, y)

    def merge(self, world: World) -> Tally:
        """Sum the faults of all ranks; collective."""
        merged = Tally()
        for rows in world.allgather(self.rows.reshape(-1)):
            for kind, row in zip(KINDS, rows.reshape(-1, 6).tolist(), strict=True):
                merged.add(kind, *row)
        return merged

    def errors(self, roots: Ids, *, derived: bool, directed: bool) -> list[str]:
        """Return one line for each kind of fault found.

        roots: [k], rising; derived: levels are those that parents make
        """
        texts = TEXTS | (DIRECTED if directed else {}) | (DERIVED if derived else {})
        named, own = f"the root {roots[0]}", "its own parent"
        if len(roots) > 1:
            named = f"the {len(roots)} roots from {roots[0]} to {roots[-1]}"
            own = "their own parents"
        return [
            text.format(count=count, roots=named, own=own, a=a, b=b, x=x, y=y)
            for text, (count, _, a, b, x, y) in zip(
                texts.values(), self.rows.tolist(), strict=True
            )
            if count
        ]
