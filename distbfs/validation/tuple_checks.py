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

    reached: tuples with a reached end
    counts, first: int64 [3], faults by kind (an end is outside 0 … n-1, one end is
    reached, levels differ by more than one) and the index of the first of each
    """

    reached: int
    counts: Ids
    first: Ids


Scan: TypeAlias = Callable[[Ids, Ids, bool], Faults]


def make_scan(lookup: Lookup, threads: int = 0) -> Scan:
    """Return scan(u, v, parents), compiled where the lookup and the machine allow."""
    if isinstance(lookup, Replicated):
        library = cc.load_or_none(SOURCE)
        if library is not None:
            return partial(scan_compiled, library, lookup, cc.thread_count(threads))
    return partial(scan_numpy, lookup)


def scan_numpy(lookup: Lookup, u: Ids, v: Ids, parents: bool) -> Faults:
    """Check tuples, int64 (u, v); mark vertices whose tree edge occurs.

    Collective where the lookup is routed. With ``parents`` a tuple marks a vertex that
    it joins to its parent, else one that it joins to a vertex one level nearer to the
    root.
    """
    inside = (u >= 0) & (u < lookup.n) & (v >= 0) & (v < lookup.n)
    position = np.flatnonzero(inside)
    a, b = u[position], v[position]
    level, parent = lookup.fetch(np.concatenate((a, b)))
    level_a, level_b = level[: len(a)], level[len(a) :]
    reached_a, reached_b = level_a >= 0, level_b >= 0
    both = reached_a & reached_b
    step = level_a - level_b
    if parents:
        child_a, child_b = parent[: len(a)] == b, parent[len(a) :] == a
    else:
        child_a, child_b = both & (step == 1), both & (step == -1)
    lookup.mark(np.concatenate((a[child_a], b[child_b])))
    places = (
        np.flatnonzero(~inside),
        position[reached_a != reached_b],
        position[both & (np.abs(step) > 1)],
    )
    return Faults(
        int(np.count_nonzero(reached_a | reached_b)),
        np.array([len(place) for place in places], dtype=np.int64),
        np.array([place[0] if len(place) else len(u) for place in places]),
    )


def scan_compiled(
    library: ctypes.CDLL,
    lookup: Replicated,
    threads: int,
    u: Ids,
    v: Ids,
    parents: bool,
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
        ctypes.c_int32(parents),
        ctypes.c_int32(threads),
        cc.pointer(counts),
        cc.pointer(first),
    )
    return Faults(reached, counts, first)
