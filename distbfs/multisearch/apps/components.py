"""Components that searches find."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from distbfs.multisearch.bits import LANE
from distbfs.multisearch.problem import Problem, State
from distbfs.types import Array, Ids

if TYPE_CHECKING:
    from distbfs.multisearch.searchers import Searcher

PROBLEM = Problem("component", (State("reachable", "bool", "pair"),), bits=True)


def largest_component(
    searcher: Searcher, order: Ids | None = None, back: Searcher | None = None
) -> Array:
    """Return the vertices of the largest component, int64, ascending (collective).

    back: a searcher along reversed edges of a directed graph, whose components are
    strongly connected

    If components are equally large, the first one that is met counts. Searches start
    from vertices of unknown components in an order, by default that of ids, until too
    few vertices remain: those of one component are reached from the same sources, and
    reach the same ones.
    """
    n, world = searcher.n, searcher.world
    order = np.arange(n) if order is None else order
    seen, best = np.zeros(n, dtype=np.bool_), np.zeros(0, dtype=np.int64)
    kinds = np.zeros(n, dtype=np.int64)  # vertices of a component are of one kind
    while True:
        left = order[~seen[order]][: min(LANE, searcher.at_once(1))]
        most = np.bincount(kinds[~seen]).max(initial=0)
        # mutant: most > len(best) -> len(left) > 0 : test_strong_components
        plan = world.broadcast(left.tolist() if most > len(best) else [])
        if not plan:
            return np.concatenate(world.allgather(best))  # empty except on rank 0
        sources = np.array(plan, dtype=np.int64)
        rows = searcher.run(PROBLEM, sources)["reachable"]
        if back is not None:
            into = back.run(PROBLEM, sources)["reachable"]
            if world.rank == 0:
                kinds = split(split(kinds, rows), into)
            rows = rows & into
        if world.rank == 0:
            for row in rows:
                if row.sum() > len(best):
                    best = np.flatnonzero(row)
            seen |= rows.any(axis=0)


def split(kinds: Array, rows: Array) -> Array:
    """Divide kinds of vertices, int64 [n], by columns of rows, bool [up to 64, n]."""
    words = np.zeros((kinds.size, 8), dtype=np.uint8)
    packed = np.packbits(rows, axis=0)
    words[:, : len(packed)] = packed.T
    column = np.unique(words.view(np.uint64)[:, 0], return_inverse=True)[1]
    keys = kinds * (column.max(initial=0) + 1) + column
    return np.unique(keys, return_inverse=True)[1].astype(np.int64)


def sizes_and_spans(
    searcher: Searcher, sources: Ids, reached: Array, depth: Array
) -> tuple[Array, Array]:
    """Return the size of each vertex's component and a bound on its distances.

    Both are int64 [n] on rank 0, and 0 in components without a source. The bound is
    twice the least depth of the component's sources, or the component's size less 1.
    The graph must be symmetric; collective.
    reached, depth: results of the searches from the sources, int64 [k]
    """
    world, place = searcher.world, np.full(searcher.n, -1)
    alone = np.flatnonzero(reached == 1)
    place[sources[alone]] = alone
    first = True
    while True:
        left = np.flatnonzero(place[sources] < 0)
        most, first = 1 if first else min(LANE, searcher.at_once(1)), False
        plan = world.broadcast(left[:most].tolist())
        if not plan:
            break
        rows = searcher.run(PROBLEM, sources[plan])["reachable"]
        for at, row in zip(plan, rows, strict=False):  # no rows except on rank 0
            place[row] = at
    least = np.full(len(sources), searcher.n)
    known = np.flatnonzero(place[sources] >= 0)
    np.minimum.at(least, place[sources[known]], depth[known])
    inside = place >= 0
    sizes, spans = np.zeros((2, searcher.n), dtype=np.int64)
    sizes[inside] = reached[place[inside]]
    spans[inside] = np.minimum(2 * least[place[inside]], sizes[inside] - 1)
    return sizes, np.maximum(spans, 1)
