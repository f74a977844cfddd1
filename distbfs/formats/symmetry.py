"""Check that a file lists each edge in both directions."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from distbfs.device import cc

if TYPE_CHECKING:
    from distbfs.types import Ids, Levels, Words

SOURCE = Path(__file__).with_name("symmetry.c")
ONCE, FORTH, BACK = 0, 1, 2
MASK = (1 << 64) - 1

# odd constants of SplitMix64 (Steele, Lea, Flood, 2014)
SPREAD = np.uint64(0x9E3779B97F4A7C15)
MIX_A = np.uint64(0xBF58476D1CE4E5B9)
MIX_B = np.uint64(0x94D049BB133111EB)


def pair_hash(u: Ids, v: Ids) -> Words:
    """Hash each pair to uint64 [k]; equal sums mean equal sets of pairs."""
    x = (u.astype(np.uint64) * SPREAD + v.astype(np.uint64)) * MIX_A
    x ^= x >> np.uint64(31)
    x *= MIX_B
    return x ^ (x >> np.uint64(29))


@dataclass(frozen=True)
class Lists:
    """Pairs, int64 [k, 2], and the sums for ``Mirror.count``; the bad entry, or -1."""

    pairs: Ids
    bad: int
    sum: int = 0
    count: int = 0


class Mirror:
    """Compares both directions by sums of hashes; misses a difference with odds 2^-64.

    compiled: use the kernel if available
    """

    def __init__(self, compiled: bool = True) -> None:
        self._library = cc.load_or_none(SOURCE) if compiled else None
        self._sum = 0
        self._count = 0

    def forth(self, u: Ids, v: Ids) -> None:
        """Count pairs listed forward, int64 [k]."""
        self._sum += int(pair_hash(u, v).sum(dtype=np.uint64))
        self._count += len(u)

    def back(self, u: Ids, v: Ids) -> None:
        """Count pairs listed backward, int64 [k], in forward order."""
        self._sum -= int(pair_hash(u, v).sum(dtype=np.uint64))
        self._count -= len(u)

    def once(self, u: Ids, v: Ids) -> Ids:
        """Return the pairs, int64 [k, 2], with u <= v: one for each edge.

        Those with u < v are counted as listed forward, the others backward.
        """
        if self._library is None:
            later = u > v
            self.back(v[later], u[later])
            kept: Ids = np.stack((u, v), axis=1)[~later]
            proper = kept[kept[:, 0] != kept[:, 1]]
            self.forth(proper[:, 0], proper[:, 1])
            return kept
        pairs = np.empty((len(u), 2), dtype=np.int64)
        sums = np.zeros(2, dtype=np.uint64)
        call = self._library.once
        call.restype = ctypes.c_int64
        u, v = np.ascontiguousarray(u), np.ascontiguousarray(v)
        size = ctypes.c_int64(len(u))
        arrays = [cc.pointer(x) for x in (u, v, pairs, sums)]
        kept_count = int(call(size, *arrays))
        self._sum += int(sums[0])
        self._count += int(sums[1].astype(np.int64))
        return pairs[:kept_count]

    def count(self, listed: Lists) -> None:
        """Count the pairs returned by ``lists``."""
        self._sum += listed.sum
        self._count += listed.count

    def lists(
        self,
        first: int,
        counts: Ids,
        data: Levels,
        stride: int,
        nodes: int,
        way: int,
        out: Ids,
    ) -> Lists:
        """Return the pairs of lists of neighbours; changes no state.

        first: id of the first row; counts: entries of each row, int64; data: int32,
        every stride-th is a neighbour; nodes: ids are less; out: int64 [entries, 2],
        possible memory for the pairs. way: ONCE keeps one pair for each edge, FORTH
        all, BACK none.
        """
        if self._library is None:
            return self._plain_lists(first, counts, data[::stride], nodes, way)
        sums = np.zeros(2, dtype=np.uint64)
        bad = np.zeros(1, dtype=np.int64)
        call = self._library.lists_once
        call.restype = ctypes.c_int64
        kept = call(
            ctypes.c_int64(len(counts)),
            ctypes.c_int64(first),
            cc.pointer(counts),
            ctypes.c_int64(stride),
            cc.pointer(data),
            ctypes.c_int64(nodes),
            ctypes.c_int64(way),
            cc.pointer(out),
            cc.pointer(sums),
            cc.pointer(bad),
        )
        return Lists(
            out[:kept], int(bad[0]), int(sums[0]), int(sums[1].astype(np.int64))
        )

    def _plain_lists(
        self, first: int, counts: Ids, near: Levels, nodes: int, way: int
    ) -> Lists:
        """Do the work of ``lists`` with whole arrays."""
        none = np.zeros((0, 2), dtype=np.int64)
        outside = np.flatnonzero((near < 0) | (near >= nodes))[:1].tolist()
        if outside:
            return Lists(none, outside[0])
        u = np.repeat(np.arange(first, first + len(counts), dtype=np.int64), counts)
        v = near.astype(np.int64)
        counted = Mirror(compiled=False)
        pairs = none
        if way == ONCE:
            pairs = counted.once(u, v)
        elif way == BACK:
            counted.back(v, u)
        else:
            counted.forth(u, v)
            pairs = np.stack((u, v), axis=1)
        return Lists(pairs, -1, counted._sum, counted._count)

    def even(self) -> bool:
        """Return whether both directions agree so far."""
        return not self._sum & MASK and not self._count
