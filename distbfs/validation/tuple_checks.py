"""Checks of one chunk of edge tuples against the results at their ends.

``scan_compiled`` (tuple_checks.c) and ``scan_numpy`` give the same answers; the second
works with any lookup, the first with replicated results only.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np

from distbfs.device import cc
from distbfs.types import Ids
from distbfs.validation.block_values import Lookup, Replicated

SOURCE = Path(__file__).with_name("tuple_checks.c")
OUTSIDE, HALF, SPAN = range(3)
KINDS = 3


@dataclass(frozen=True)
class Faults:
    """Findings in one chunk.

    reached: tuples of which an arc leaves a reached vertex
    counts, first: int64 [3], faults by kind (an end is outside 0 … n-1, an arc leads
    from a reached vertex to an unreached one, an arc skips a level) and the index of
    the first of each
    """

    reached: int
    counts: Ids
    first: Ids


@dataclass(frozen=True)
class TupleRules:
    """The rules that tuples are checked for.

    parents: a tuple marks a vertex that it joins to its parent, else one that it joins
    to a vertex one level nearer to the root
    directed: tuples are arcs from u to v, else from v to u as well
    """

    parents: bool
    directed: bool


Scan: TypeAlias = Callable[[Ids, Ids], Faults]


def make_scan(lookup: Lookup, rules: TupleRules, threads: int = 0) -> Scan:
    """Return scan(u, v), compiled where the lookup and the machine allow."""
    if isinstance(lookup, Replicated):
        library = cc.load_or_none(SOURCE)
        if library is not None:
            count = cc.thread_count(threads)
            return partial(scan_compiled, library, lookup, rules, count)
    return partial(scan_numpy, lookup, rules)


def scan_numpy(lookup: Lookup, rules: TupleRules, u: Ids, v: Ids) -> Faults:
    """Check tuples, int64 (u, v); mark vertices whose tree edge occurs.

    Collective where the lookup is routed.
    """
    inside = (u >= 0) & (u < lookup.n) & (v >= 0) & (v < lookup.n)
    position = np.flatnonzero(inside)
    ends = np.stack((u[position], v[position]))
    level, parent = (x.reshape(2, -1) for x in lookup.fetch(ends.ravel()))
    reached = level >= 0
    leaves, half, span = np.zeros((3, len(position)), dtype=np.bool_)
    children = []
    for a, b in ((0, 1),) if rules.directed else ((0, 1), (1, 0)):
        both, step = reached[a] & reached[b], level[b] - level[a]
        leaves |= reached[a]
        half |= reached[a] & ~reached[b]
        span |= both & (step > 1)
        child = parent[b] == ends[a] if rules.parents else both & (step == 1)
        children.append(ends[b, child])
    lookup.mark(np.concatenate(children))
    places = np.flatnonzero(~inside), position[half], position[span]
    return Faults(
        int(np.count_nonzero(leaves)),
        np.array([len(place) for place in places], dtype=np.int64),
        np.array([place[0] if len(place) else len(u) for place in places]),
    )


def scan_compiled(
    library: ctypes.CDLL,
    lookup: Replicated,
    rules: TupleRules,
    threads: int,
    u: Ids,
    v: Ids,
) -> Faults:
    """Check tuples (u, v), int64 [k], and mark vertices as ``scan_numpy``; local."""
    u, v = np.ascontiguousarray(u), np.ascontiguousarray(v)
    counts = np.zeros(KINDS, dtype=np.int64)
    first = np.zeros(KINDS, dtype=np.int64)
    check = library.validate_tuples
    check.restype = ctypes.c_int64
    reached = check(
        ctypes.c_int64(len(u)),
        cc.pointer(u),
        cc.pointer(v),
        ctypes.c_int64(lookup.n),
        cc.pointer(lookup.words),
        cc.pointer(lookup.seen),
        ctypes.c_int32(rules.parents),
        ctypes.c_int32(rules.directed),
        ctypes.c_int32(threads),
        cc.pointer(counts),
        cc.pointer(first),
    )
    return Faults(reached, counts, first)
