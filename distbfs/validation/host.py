"""Validation of a search from the edge tuples, by the rules of Graph500.

It uses the tuples and the result only, no engine, part or store. The rules (Graph500
specification 2.0, Section "Validation"):

1. the parents form a tree without cycles: the root alone is its own parent and alone at
level 0, and along parents the level falls at each step (rule 2); of a search from a
set, each vertex of it, and nothing else, is the root of a tree;
2. each tree edge joins levels that differ by exactly one;
3. each tuple joins two vertices whose levels differ by at most one, or two unreached;
4. the tree spans the component of the root: no tuple leads out of it, and a vertex has
a parent if and only if it has a level;
5. each tree edge is among the tuples.

Of a directed graph each tuple is an arc from its first end to its second: rule 3 says
that it skips no level, rule 4 that none leads from a reached vertex to an unreached
one, and rule 5 that each tree edge is an arc from the parent. The tuples of a symmetric
graph are two arcs each, of which the same is true.

A search for levels alone must satisfy the same rules by its levels: the root alone is
at level 0, rules 3 and 4, and each other reached vertex is joined by a tuple to a
vertex one level nearer. Then each level is the distance from the root.

Of a search for parents alone, levels are derived from them (derived.py); parents that
do not lead to a vertex that is its own parent are a fault by rule 1.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from distbfs.errors import UsageError
from distbfs.types import (
    UNREACHED,
    Array,
    Ids,
    Levels,
    Marks,
    Root,
    TupleSource,
    World,
    slice_bounds,
)
from distbfs.validation import tuple_checks as scan
from distbfs.validation.block_values import REPLICATED_LIMIT, Lookup, make_lookup
from distbfs.validation.derived import levels_of_block
from distbfs.validation.faults import Tally, checked_roots

if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK = 1 << 20
BOTH = "levels and parents: rules 1 to 5"
LEVELS = "levels only: rules 3 and 4, and levels in place of rules 1, 2 and 5"
PARENTS = "parents only: rules 1 to 5, with levels derived from them"
EMPTY: Ids = np.zeros(0, dtype=np.int64)
SCAN_FAULTS = {scan.OUTSIDE: "outside", scan.HALF: "half", scan.SPAN: "span"}


@dataclass(frozen=True)
class Validation:
    """Outcome of a validation; equal on all ranks.

    errors: one line per kind of fault, with its rule, a count and an example
    nedge: input tuples with a reached end, or of a directed graph with a reached first
    end, loops and repeats included
    reached, depth: reached vertices and the largest level (-1: none is reached)
    seconds: wall time, including generation of the tuples
    checked: names of the checked rules
    """

    valid: bool
    errors: list[str]
    nedge: int
    reached: int
    depth: int
    seconds: float
    checked: str


def names_of_rules(*, levels: bool, parents: bool) -> str:
    """Return the names of the rules checked for levels, for parents or for both."""
    if not levels:
        return PARENTS
    return BOTH if parents else LEVELS


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

    root: an id, or those of a search from a set, integers [k], each once
    level, parent: this rank's block, vertices slice_bounds(n, size, rank) in input ids,
    level int32, parent int32 or int64; None if it was not requested, level or parent
    directed: tuples lead from their first end to their second
    limit: bytes up to which results are replicated (n · 12) and not routed
    chunk: tuples and vertices of one piece

    Raises UsageError, on all ranks, for a root or a block that does not match the
    graph.
    """
    started = time.perf_counter()
    n = source.n
    roots = checked_roots(root, n)
    _check_blocks(world, n, level, parent)
    derived = level is None
    if level is None:
        level = levels_of_block(world, n, np.asarray(parent), limit, chunk)
    lookup = make_lookup(world, n, level, parent, limit)
    block = Block(slice_bounds(n, world.size, world.rank)[0], level, parent)
    tally = Tally()
    _check_vertices(lookup, block, roots, chunk, tally)
    rules = scan.TupleRules(parents=parent is not None, directed=directed)
    check = scan.make_scan(lookup, rules, threads)
    nedge = _check_tuples(world, source, lookup, check, chunk, tally)
    _check_marks(lookup, block, roots, chunk, tally)
    tally = tally.merge(world)
    sums = np.array([nedge, np.count_nonzero(level >= 0)], dtype=np.int64)
    nedge, reached = world.allreduce(sums, "sum").tolist()
    deepest = np.array([level.max(initial=UNREACHED)], dtype=np.int64)
    depth = int(world.allreduce(deepest, "max")[0])
    errors = tally.errors(roots, derived=derived, directed=directed)
    seconds = np.array([time.perf_counter() - started])
    return Validation(
        valid=not errors,
        errors=errors,
        nedge=nedge,
        reached=reached,
        depth=depth,
        seconds=float(world.allreduce(seconds, "max")[0]),
        checked=names_of_rules(levels=not derived, parents=parent is not None),
    )


@dataclass(frozen=True)
class Block:
    """Results of one rank: vertices low … low + len(level) - 1."""

    low: int
    level: Levels
    parent: Array | None

    def pieces(self, size: int) -> Iterator[tuple[Ids, Ids, Ids]]:
        """Yield (ids, levels, parents), int64; parents -1 for levels only."""
        for at in range(0, len(self.level), size):
            level = self.level[at : at + size].astype(np.int64)
            ids = np.arange(self.low + at, self.low + at + len(level), dtype=np.int64)
            if self.parent is None:
                parent = np.full(len(level), UNREACHED, dtype=np.int64)
            else:
                parent = self.parent[at : at + size].astype(np.int64)
            yield ids, level, parent


def among(roots: Ids, ids: Ids) -> Marks:
    """Return which of ids, int64 [k], consecutive, are roots; roots: rising."""
    marks = np.zeros(len(ids), dtype=np.bool_)
    if len(ids):
        first, stop = np.searchsorted(roots, [ids[0], ids[-1] + 1])
        marks[roots[first:stop] - ids[0]] = True
    return marks


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
    flags = np.zeros((3, world.size), dtype=np.int64)
    flags[:, world.rank] = (not fits, level is not None, parent is not None)
    wrong, *there = world.allreduce(flags.reshape(-1), "sum").reshape(3, -1)
    if wrong.any():
        raise UsageError(
            f"the result on rank {wrong.argmax()} is not one int32 level and one int32 "
            "or int64 parent for each vertex of its block"
        )
    for name, some in zip(("levels", "parents"), there, strict=True):
        if some.min() != some.max():
            raise UsageError(f"rank {some.argmin()} has no {name}, other ranks have")


def _check_vertices(
    lookup: Lookup, block: Block, roots: Ids, chunk: int, tally: Tally
) -> None:
    """Check ranges, the roots and rules 1, 2 and 4 on this rank's vertices."""
    n = lookup.n
    empty = (EMPTY, EMPTY, EMPTY)
    for ids, level, parent in lookup.rounds(block.pieces(chunk), empty):
        is_root = among(roots, ids)
        tally.add_vertices(
            "level_range", (level < UNREACHED) | (level >= n), ids, level
        )
        tally.add_vertices("root_level", (level == 0) != is_root, ids, level)
        if block.parent is None:
            continue
        allowed = (parent >= 0) & (parent < n)
        own = parent == ids
        tally.add_vertices(
            "parent_range", ~allowed & (parent != UNREACHED), ids, parent
        )
        # mutant: != is_root -> & is_root & False : test_every_single_fault_is_found
        tally.add_vertices("root_parent", own != is_root, ids, parent)
        tally.add_vertices(
            "set",
            # mutant: != (parent != UNREACHED) -> & (level < 0)
            #   : test_every_single_fault_is_found
            (level >= 0) != (parent != UNREACHED),
            ids,
            level,
            parent,
        )
        tree = np.flatnonzero((level >= 1) & allowed & ~own & ~is_root)
        above, _ = lookup.fetch(parent[tree])
        # mutant: != level[tree] - 1 -> > level[tree] : test_every_single_fault_is_found
        wrong = np.flatnonzero(above != level[tree] - 1)
        if len(wrong):
            at = tree[wrong[0]]
            vertex, of = int(ids[at]), int(parent[at])
            tally.add(
                "step",
                len(wrong),
                vertex,
                vertex,
                of,
                int(level[at]),
                int(above[wrong[0]]),
            )


def _check_tuples(
    world: World,
    source: TupleSource,
    lookup: Lookup,
    check: scan.Scan,
    chunk: int,
    tally: Tally,
) -> int:
    """Check rules 3 and 4 on this rank's tuples, mark tree edges; return nedge."""
    start, stop = slice_bounds(source.tuples, world.size, world.rank)
    nedge, position = 0, start
    for u, v in lookup.rounds(_cut(source, start, stop, chunk), (EMPTY, EMPTY)):
        scanned = check(u, v)
        nedge += scanned.reached
        ends = np.array([[u[i], v[i]] if i < len(u) else [0, 0] for i in scanned.first])
        inside = np.where((ends >= 0) & (ends < lookup.n), ends, 0)
        level = lookup.fetch(inside.reshape(-1))[0].reshape(-1, 2)
        for kind, fault in SCAN_FAULTS.items():
            at = position + int(scanned.first[kind])
            tally.add(
                fault,
                int(scanned.counts[kind]),
                at,
                *ends[kind].tolist(),
                *level[kind].tolist(),
            )
        position += len(u)
    return nedge


def _cut(
    source: TupleSource, start: int, stop: int, chunk: int
) -> Iterator[tuple[Ids, Ids]]:
    """Yield the tuples of a slice in pieces of at most ``chunk``."""
    for u, v in source.chunks(start, stop):
        for at in range(0, len(u), chunk):
            yield u[at : at + chunk], v[at : at + chunk]


def _check_marks(
    lookup: Lookup, block: Block, roots: Ids, chunk: int, tally: Tally
) -> None:
    """Check rule 5 on this rank's vertices; for levels alone, a nearer neighbour."""
    unmarked = ~lookup.marked()
    for ids, level, parent in block.pieces(chunk):
        at = int(ids[0]) - block.low
        lacking = unmarked[at : at + len(ids)] & (level >= 0) & ~among(roots, ids)
        if block.parent is None:
            tally.add_vertices("nearer", lacking & (level >= 1), ids, level)
        else:
            real = (parent >= 0) & (parent < lookup.n) & (parent != ids)
            # mutant: real -> ~lacking : test_every_single_fault_is_found
            tally.add_vertices("edge", lacking & real, ids, parent)
