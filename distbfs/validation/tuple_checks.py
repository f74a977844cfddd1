"""Checks of one chunk of edge tuples against the results at their ends."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np

from distbfs.device import cc
from distbfs.types import Ids
from distbfs.validation.block_values import Lookup
from distbfs.validation.faults import NEDGE, Tally

SOURCE = Path(__file__).with_name("tuple_checks.c")


def scan(
    lookup: Lookup, tally: Tally, u: Ids, v: Ids, position: int, *, directed: bool
) -> None:
    """Check tuples, int64 (u, v), by rules 3 and 4; mark vertices of their tree edges.

    A tree edge leads from the parent or, without parents, from a vertex one level
    nearer to the root.
    position: position of the first tuple
    directed: whether tuples are only arcs from u to v, and not from v to u as well

    Collective unless the lookup is whole.
    """
    inside = (u >= 0) & (u < lookup.n) & (v >= 0) & (v < lookup.n)
    position_of = position + np.arange(len(u), dtype=np.int64)
    tally.add("outside", ~inside, position_of)
    ends, position_of = np.stack((u[inside], v[inside])), position_of[inside]
    level, parent = (x.reshape(2, -1) for x in lookup.fetch(ends.ravel()))
    reached = level >= 0
    leaves, half, span = np.zeros((3, ends.shape[1]), dtype=np.bool_)
    children = []
    for a, b in ((0, 1),) if directed else ((0, 1), (1, 0)):
        both, step = reached[a] & reached[b], level[b] - level[a]
        leaves |= reached[a]
        half |= reached[a] & ~reached[b]
        span |= both & (step > 1)
        child = both & (step == 1)
        if lookup.parent is not None:
            child &= parent[b] == ends[a]
        children.append(ends[b, child])
    lookup.mark(np.concatenate(children))
    tally.add("half", half, position_of)
    tally.add("span", span, position_of)
    tally.report[NEDGE] += np.count_nonzero(leaves)


def scan_compiled(
    lookup: Lookup, tally: Tally, u: Ids, v: Ids, *, directed: bool, threads: int
) -> bool:
    """Do the work of ``scan`` for tuples without faults; return whether it is done.

    It is not done if a tuple has a fault, a rank lacks results, or no compiler exists.
    """
    library = cc.load_or_none(SOURCE) if lookup.whole else None
    if library is None:
        return False
    u, v = np.ascontiguousarray(u), np.ascontiguousarray(v)
    library.scan_tuples.restype = ctypes.c_int64
    reached = library.scan_tuples(
        *cc.arguments(len(u), u, v, lookup.n),
        *cc.arguments(lookup.level, lookup.parent, lookup.seen),
        ctypes.c_int32(directed),
        ctypes.c_int32(cc.thread_count(threads)),
    )
    tally.report[NEDGE] += max(reached, 0)
    return bool(reached >= 0)
