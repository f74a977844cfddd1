"""Search roots: unique vertices that have a neighbour other than themselves.

The roots depend only on the graph, the seed and how many are requested, not on the
number of ranks. Candidates come from a counter-based hash, so candidate i does not
depend on earlier ones; the largest batch bounds the memory.

Source: Graph500 specification 2.0, Section "Sampling search keys".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from distbfs.errors import ValidationError
from distbfs.generate.hashing import draws, mix64
from distbfs.options import check_range
from distbfs.types import Ids, Marks, TupleSource, World, slice_bounds

Connected: TypeAlias = Callable[[Ids], Marks]

FIRST_BATCH = 256
LARGEST_BATCH = 1 << 20
MOST_DRAWS = 1 << 22


def candidates(n: int, seed: int, start: int, stop: int) -> Ids:
    """Return candidates start … stop-1 of a seed: int64 ids in 0 … n-1.

    Candidate i is mix64(mix64(seed) + (i + 1) · golden) mod n, all modulo 2^64: the
    splitmix64 sequence from a mixed seed.
    """
    begin = mix64(np.array([seed % (1 << 64)], dtype=np.uint64))
    drawn = draws(int(begin[0]), np.arange(start + 1, stop + 1))
    return (drawn % np.uint64(n)).astype(np.int64)


def some_roots(roots: Ids) -> Ids:
    """Return roots, int64 [k]; raise ValidationError if there are none."""
    if not len(roots):
        raise ValidationError(
            "no vertex has a neighbour other than itself; there is nothing to search"
        )
    return roots


def choose_roots(n: int, count: int, seed: int, connected: Connected) -> Ids:
    """Return up to ``count`` unique roots, int64, equal on all ranks; collective.

    ``connected(ids)`` is collective: it returns, for int64 ids equal on all ranks, a
    bool array equal on all ranks, True where the id has a neighbour other than itself.
    The roots are the first connected candidates, in the order in which they are drawn.
    If these are too few, all vertices are tested, beginning at a drawn one; so a
    shorter result means that the graph has no more.
    """
    check_range("count", count, 0)
    roots: list[int] = []
    if not n or not count:
        return np.array(roots, dtype=np.int64)
    drawn, batch = 0, max(FIRST_BATCH, 4 * count)
    while len(roots) < count and drawn < min(2 * n, MOST_DRAWS):
        ids = candidates(n, seed, drawn, drawn + batch)
        roots = _with_more(roots, ids, connected)
        drawn, batch = drawn + batch, min(4 * batch, LARGEST_BATCH)
    if len(roots) < count:
        first = int(candidates(n, seed, drawn, drawn + 1)[0])
        for offset in range(0, n, LARGEST_BATCH):
            size = min(LARGEST_BATCH, n - offset)
            ids = (first + offset + np.arange(size, dtype=np.int64)) % n
            roots = _with_more(roots, ids, connected)
            if len(roots) >= count:
                break
    return np.array(roots[:count], dtype=np.int64)


def _with_more(roots: list[int], ids: Ids, connected: Connected) -> list[int]:
    """Return roots and then the connected ids that are new, in order."""
    return [*dict.fromkeys([*roots, *ids[connected(ids)].tolist()])]


def connected_from_tuples(
    world: World, source: TupleSource, *, directed: bool = False
) -> Connected:
    """Return a collective function that tells which ids have edges; loops are ignored.

    Each call scans this rank's slice of the tuples and reduces one byte per id.

    directed: whether only tuples that begin at an id count for it
    """
    start, stop = slice_bounds(source.tuples, world.size, world.rank)

    def connected(ids: Ids) -> Marks:
        distinct, where = np.unique(ids, return_inverse=True)
        seen_here = np.zeros(len(distinct), dtype=np.uint8)
        for u, v in source.chunks(start, stop):
            proper = u != v
            for ends in (u[proper],) if directed else (u[proper], v[proper]):
                place = np.searchsorted(distinct, ends)
                place[place == len(distinct)] = 0
                seen_here[place[distinct[place] == ends]] = 1
        seen = world.allreduce(seen_here, "max").astype(np.bool_)
        result: Marks = seen[where.reshape(-1)]
        return result

    return connected
