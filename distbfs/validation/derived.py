"""Levels of a search that gave only parents, derived from these.

A vertex that is its own parent has level 0, every other vertex one level more than its
parent. A vertex has level -1 if its chain of parents does not end at level 0, but out
of range, at a vertex without a parent, or in a cycle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from distbfs.types import UNREACHED, slice_bounds
from distbfs.validation.block_values import REPLICATED_LIMIT, Lookup

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distbfs.types import Array, Ids, Levels, World

CHUNK = 1 << 20
EMPTY: Ids = np.zeros(0, dtype=np.int64)


def levels_of_block(
    world: World,
    n: int,
    parent: Array,
    limit: int = REPLICATED_LIMIT,
    chunk: int = CHUNK,
) -> Levels:
    """Return the levels of this rank's block, int32 (collective).

    parent, limit, chunk: see ``host.validate``; parent is integers [block]

    The method is pointer jumping: each vertex knows one ancestor, which is twice as far
    away after each round.
    """
    low, high = slice_bounds(n, world.size, world.rank)
    ids = np.arange(low, high, dtype=np.int64)
    above = np.where((parent >= 0) & (parent < n), parent, UNREACHED).astype(np.int64)
    hops = ((above >= 0) & (above != ids)).astype(np.int32)
    level: Levels = np.full(len(ids), UNREACHED, dtype=np.int32)

    def pieces() -> Iterator[tuple[Ids]]:
        waiting = np.flatnonzero((above >= 0) & (level < 0))
        for start in range(0, len(waiting), chunk):
            yield (waiting[start : start + chunk],)

    for _ in range(n.bit_length() + 1):
        lookup = Lookup(world, n, hops, above, limit)
        changed, further, higher = False, hops.copy(), above.copy()
        for (some,) in lookup.rounds(pieces(), (EMPTY,)):
            more, top = lookup.fetch(above[some])
            # mutant: (top == above[some]) & (more == 0) -> top == above[some]
            #   : test_faults_of_parents_alone
            ends = (top == above[some]) & (more == 0)
            level[some[ends]] = hops[some[ends]]
            # mutant: more -> 1 : test_levels_of_long_chains_of_parents
            further[some] = np.minimum(hops[some] + more, n)
            higher[some] = top
            changed |= not ends.all()
        hops, above = further, higher
        if not world.allreduce(np.array([changed], dtype=np.int64), "max")[0]:
            break
    return level
