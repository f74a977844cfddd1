"""Validation of a search from the edge tuples, by the rules of Graph500.

It uses only the tuples and the result, and no engine, part or store. The rules are
(Graph500 specification 2.0, Section "Validation"):

1. the parents form a tree without cycles: only the root is its own parent, only the
root is at level 0, and the level decreases from each vertex to its parent (rule 2); in
a search from a set, the roots of the trees are exactly the vertices of the set;
2. each tree edge joins levels that differ by exactly one;
3. each tuple joins two unreached vertices, or two whose levels differ by at most one;
4. the tree spans the component of the root: no tuple leads out of it, and a vertex has
a parent if and only if it has a level;
5. each tree edge is among the tuples; an edge that breaks rule 2 counts there only.

In a directed graph each tuple is an arc from its first end to its second. Rule 3 then
says that no arc skips a level, rule 4 that no arc leads from a reached to an unreached
vertex, and rule 5 that each tree edge is an arc from the parent. Each tuple of a
symmetric graph is two arcs, to which the same rules apply.

The levels of a search without parents must satisfy rules 3 and 4; besides, only the
root is at level 0, and a tuple joins each other reached vertex to a vertex one level
nearer. Then each level is the distance from the root.

In a search without levels, these are derived from the parents (derived.py). Parents
that do not lead to a vertex that is its own parent break rule 1.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from distbfs.errors import UsageError
from distbfs.types import (
    UNREACHED,
    Array,
    Ids,
    Levels,
    Root,
    TupleSource,
    World,
    slice_bounds,
)
from distbfs.validation import tuple_checks
from distbfs.validation.block_values import REPLICATED_LIMIT, Lookup
from distbfs.validation.derived import CHUNK, EMPTY, levels_of_block
from distbfs.validation.faults import (
    DEPTH,
    REACHED,
    Asked,
    Example,
    Tally,
    Validation,
    checked_roots,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


def validate(
    world: World,
    source: TupleSource,
    root: Root,
    level: Levels | None,
    parent: Array | None,
    *,
    directed: bool = False,
    limit: int = REPLICATED_LIMIT,
    chunk: int = CHUNK,
    threads: int = 0,
) -> Validation:
    """Check the result of a search by its tuples; collective.

    root: id of the root, or distinct ids of a set of roots, integers [k]
    level, parent: results of this rank's block, the vertices slice_bounds(n, size,
    rank) in input ids; level int32, parent int32 or int64; None for one that was not
    requested
    directed: whether tuples lead from their first end to their second
    limit: bytes up to which results (n · 12) are replicated and not routed
    chunk: number of tuples or vertices in a piece

    Raises UsageError, on all ranks, for a root or a block that does not match the
    graph.
    """
    started = time.perf_counter()
    n = source.n
    roots = checked_roots(root, n)
    _check_blocks(world, n, level, parent)
    asked = Asked(level is not None, parent is not None, directed)
    if level is None:
        level = levels_of_block(world, n, np.asarray(parent), limit, chunk)
    lookup = Lookup(world, n, level, parent, limit)
    tally = Tally()
    tally.report[REACHED] = np.count_nonzero(level >= 0)
    tally.report[DEPTH] = int(level.max(initial=UNREACHED)) + 1
    _check_tuples(lookup, source, tally, chunk, directed=directed, threads=threads)
    _check_vertices(lookup, level, parent, roots, chunk, tally)

    def ends_of(position: int) -> tuple[int, int]:
        u, v = next(source.chunks(position, position + 1))
        return int(u[0]), int(v[0])

    example = partial(Example, lookup.value, ends_of)
    return tally.outcome(world, example, asked, roots, started)


def _check_blocks(
    world: World, n: int, level: Levels | None, parent: Array | None
) -> None:
    """Raise UsageError on all ranks if a block has a wrong shape or dtype."""
    low, high = slice_bounds(n, world.size, world.rank)
    fits, shape = level is not None or parent is not None, (high - low,)
    if level is not None:
        fits &= level.dtype == np.int32 and level.shape == shape
    if parent is not None:
        fits &= parent.dtype in (np.int32, np.int64) and parent.shape == shape
    facts = np.array([not fits, level is not None, parent is not None])
    wrong, *there = np.stack(world.allgather(facts), axis=1)
    if wrong.any():
        raise UsageError(
            f"the result on rank {wrong.argmax()} is not one int32 level and one int32 "
            "or int64 parent for each vertex of its block"
        )
    for name, some in zip(("levels", "parents"), there, strict=True):
        if some.min() != some.max():
            raise UsageError(f"rank {some.argmin()} has no {name}, other ranks have")


def _check_vertices(
    lookup: Lookup,
    levels: Levels,
    parents: Array | None,
    roots: Ids,
    chunk: int,
    tally: Tally,
) -> None:
    """Check ranges, the roots and rules 1, 2, 4 and 5 on this rank's vertices.

    Rule 5 is applied to tree edges that satisfy rule 2, by the marks of all tuples in
    the lookup.
    """
    n, marks = lookup.n, lookup.marked()
    starts = ((start,) for start in range(0, len(levels), chunk))
    for (start,) in lookup.rounds(starts, (len(levels),)):
        piece = slice(start, start + chunk)
        level, marked = levels[piece].astype(np.int64), marks[piece]
        ids = lookup.low + start + np.arange(len(level), dtype=np.int64)
        is_root = np.isin(ids, roots)
        tally.add("level_range", (level < UNREACHED) | (level >= n), ids)
        tally.add("root_level", (level == 0) != is_root, ids)
        if parents is None:
            tally.add("nearer", (level >= 1) & ~is_root & ~marked, ids)
            continue
        parent = parents[piece].astype(np.int64)
        allowed = (parent >= 0) & (parent < n)
        own = parent == ids
        tally.add("parent_range", ~allowed & (parent != UNREACHED), ids)
        # mutant: != is_root -> & is_root & False : test_every_single_fault_is_found
        tally.add("root_parent", own != is_root, ids)
        # mutant: != (parent != UNREACHED) -> & (level < 0)
        #   : test_every_single_fault_is_found
        tally.add("set", (level >= 0) != (parent != UNREACHED), ids)
        tree = np.flatnonzero((level >= 1) & allowed & ~own & ~is_root)
        above, _ = lookup.fetch(parent[tree])
        # mutant: == level[tree] - 1 -> <= level[tree]
        #   : test_messages_name_rule_count_and_example
        right = above == level[tree] - 1
        tally.add("step", ~right, ids[tree])
        # mutant: & ~marked[tree] -> & False : test_every_single_fault_is_found
        tally.add("edge", right & ~marked[tree], ids[tree])


def _check_tuples(
    lookup: Lookup,
    source: TupleSource,
    tally: Tally,
    chunk: int,
    *,
    directed: bool,
    threads: int,
) -> None:
    """Check rules 3 and 4 on this rank's tuples, and mark tree edges."""
    world = lookup.world
    position, stop = slice_bounds(source.tuples, world.size, world.rank)
    chunks = _cut(source, position, stop, chunk)
    for u, v in lookup.rounds(chunks, (EMPTY, EMPTY)):
        if not tuple_checks.scan_compiled(
            lookup, tally, u, v, directed=directed, threads=threads
        ):
            tuple_checks.scan(lookup, tally, u, v, position, directed=directed)
        position += len(u)


def _cut(
    source: TupleSource, start: int, stop: int, chunk: int
) -> Iterator[tuple[Ids, Ids]]:
    """Yield the tuples of a slice in pieces of at most ``chunk``."""
    for u, v in source.chunks(start, stop):
        for at in range(0, len(u), chunk):
            yield u[at : at + chunk], v[at : at + chunk]
