"""Faults in a search result, the messages that describe them, and outcomes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from distbfs.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from distbfs.types import Ids, Marks, Root, World

# The kinds in the order of their messages; ``at`` is an ``Example``.
VERTEX = "vertex {at.vertex} at level {at.level}"
TEXTS = {
    "outside": "input: {count} tuples have an end outside the graph, e.g. {at.ends}",
    "level_range": "levels: {count} are outside -1 … n-1, e.g. {at.level} of vertex "
    "{at.vertex}",
    "parent_range": "parents: {count} are outside -1 … n-1, e.g. {at.parent} of vertex "
    "{at.vertex}",
    "root_level": "rule 1: {roots} alone must be at level 0; {count} vertices "
    f"are not so, e.g. {VERTEX}",
    "root_parent": "rule 1: {roots} alone must be {own}; {count} vertices are not so, "
    "e.g. vertex {at.vertex} with parent {at.parent}",
    "step": "rule 2: {count} tree edges do not join levels that differ by one, e.g. "
    f"{VERTEX} with parent {{at.parent}} at level {{at.level_above}}",
    "nearer": "rule 2: {count} vertices have no neighbour one level nearer to the "
    f"root, e.g. {VERTEX}",
    "span": "rule 3: {count} tuples join levels that differ by more than one, e.g. "
    "{at.ends} at levels {at.levels[0]} and {at.levels[1]}",
    "half": "rules 3 and 4: {count} tuples join a reached and an unreached vertex, "
    "e.g. {at.ends} at levels {at.levels[0]} and {at.levels[1]}",
    "set": "rule 4: {count} vertices have a level and no parent or a parent and no "
    f"level, e.g. {VERTEX} with parent {{at.parent}}",
    "edge": "rule 5: {count} tree edges are not among the tuples, e.g. vertex "
    "{at.vertex} with parent {at.parent}",
}
DERIVED = {
    "set": "rule 1: {count} vertices have parents that lead to no root, "
    "e.g. vertex {at.vertex} with parent {at.parent}"
}
DIRECTED = {
    "nearer": "rule 2: {count} vertices have no edge from a vertex one level nearer to "
    f"the root, e.g. {VERTEX}",
    "span": "rule 3: {count} tuples skip a level, e.g. {at.ends} from level "
    "{at.levels[0]} to level {at.levels[1]}",
    "half": "rules 3 and 4: {count} tuples lead from a reached to an unreached vertex, "
    "e.g. {at.ends} from level {at.levels[0]} to level {at.levels[1]}",
}
KINDS = {name: row for row, name in enumerate(TEXTS)}
FIRST = len(KINDS)  # where first positions begin in a report
REACHED, NEDGE, DEPTH, REPORT_WORDS = range(2 * FIRST, 2 * FIRST + 4)
NOWHERE = np.iinfo(np.int64).max  # the position of a kind without faults


@dataclass(frozen=True)
class Asked:
    """The results that a search was asked for, and the kind of graph.

    levels, parents: whether the search gave them
    directed: whether tuples are arcs from their first end to their second
    """

    levels: bool
    parents: bool
    directed: bool

    @property
    def texts(self) -> dict[str, str]:
        """The text of each kind of fault."""
        texts = TEXTS | DIRECTED if self.directed else TEXTS
        return texts if self.levels else texts | DERIVED


@dataclass(frozen=True)
class Validation:
    """Outcome of a validation; equal on all ranks.

    errors: one line per kind of fault, with its rule, a count and an example
    nedge: number of input tuples, loops and repeats included, with a reached end or, in
    a directed graph, with a reached first end
    reached: number of reached vertices; depth: largest level, -1 if none is reached
    seconds: wall time, including the generation of the tuples
    """

    valid: bool
    errors: list[str]
    nedge: int
    reached: int
    depth: int
    seconds: float


@dataclass(frozen=True)
class Example:
    """The first fault of a kind: a vertex, or a tuple by its position.

    value: function of "level" or "parent" and a vertex that returns that value; parents
    are -1 if there are only levels
    ends_of: function of a tuple's position that returns its ends

    The functions are collective.
    """

    value: Callable[[str, int], int]
    ends_of: Callable[[int], tuple[int, int]]
    vertex: int

    @property
    def level(self) -> int:
        """The level of the vertex."""
        return self.value("level", self.vertex)

    @property
    def parent(self) -> int:
        """The parent of the vertex."""
        return self.value("parent", self.vertex)

    @property
    def level_above(self) -> int:
        """The level of the vertex's parent."""
        return self.value("level", self.parent)

    @property
    def ends(self) -> tuple[int, int]:
        """The ends of the tuple."""
        return self.ends_of(self.vertex)

    @property
    def levels(self) -> list[int]:
        """The levels of the tuple's ends."""
        return [self.value("level", end) for end in self.ends]


def checked_roots(root: Root, n: int) -> Ids:
    """Return the roots of a search, int64 [k], ascending; UsageError if invalid.

    root: one root, or distinct roots, integers [k], in any order
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


class Tally:
    """Faults of some vertices and tuples, and how many were reached.

    report: int64 [REPORT_WORDS], as kernels write it (cuda.cu): for each kind of fault
    the count, and the position of the first (NOWHERE for none); then the number of
    reached vertices, of tuples that leave a reached vertex, and of levels
    """

    def __init__(self) -> None:
        self.report: Ids = np.zeros(REPORT_WORDS, dtype=np.int64)
        self.report[FIRST:REACHED] = NOWHERE

    def add(self, kind: str, wrong: Marks, positions: Ids) -> None:
        """Add faults of one kind.

        wrong: whether each vertex or tuple has the fault, bool [k]
        positions: their positions, int64 [k], ascending
        """
        where = np.flatnonzero(wrong)
        if len(where):
            row, report = KINDS[kind], self.report
            report[row] += len(where)
            report[FIRST + row] = min(report[FIRST + row], positions[where[0]])

    def add_report(self, report: Ids) -> None:
        """Add another report."""
        firsts, deepest = self.report[FIRST:REACHED].copy(), self.report[DEPTH]
        self.report += report
        self.report[FIRST:REACHED] = np.minimum(firsts, report[FIRST:REACHED])
        self.report[DEPTH] = max(deepest, report[DEPTH])

    def outcome(
        self,
        world: World,
        example: Callable[[int], Example],
        asked: Asked,
        roots: Ids,
        started: float,
    ) -> Validation:
        """Return the outcome of the tallies of all ranks (collective).

        example: returns the example of a fault at a position
        roots: the roots, int64 [k], ascending; started: time when validation began
        """
        total = Tally()
        for report in world.allgather(self.report):
            total.add_report(report)
        named, own = f"the root {roots[0]}", "its own parent"
        if len(roots) > 1:
            named = f"the {len(roots)} roots from {roots[0]} to {roots[-1]}"
            own = "their own parents"
        counts, firsts = total.report[:REACHED].reshape(2, -1).tolist()
        errors = [
            text.format(count=count, roots=named, own=own, at=example(first))
            for text, count, first in zip(
                asked.texts.values(), counts, firsts, strict=True
            )
            if count
        ]
        seconds = np.array([time.perf_counter() - started])
        return Validation(
            valid=not errors,
            errors=errors,
            nedge=int(total.report[NEDGE]),
            reached=int(total.report[REACHED]),
            depth=int(total.report[DEPTH]) - 1,
            seconds=float(world.allreduce(seconds, "max")[0]),
        )
