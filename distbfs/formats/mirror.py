"""Whether the edges that a file lists forth are those that it lists back."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from distbfs.device import cc

if TYPE_CHECKING:
    from distbfs.types import Ids, Words

SOURCE = Path(__file__).with_name("mirror.c")
MASK = (1 << 64) - 1

# odd constants of SplitMix64 (Steele, Lea, Flood, 2014)
SPREAD = np.uint64(0x9E3779B97F4A7C15)
MIX_A = np.uint64(0xBF58476D1CE4E5B9)
MIX_B = np.uint64(0x94D049BB133111EB)


def pair_hash(u: Ids, v: Ids) -> Words:
    """Return a hash of each pair, uint64 [k]; equal sums tell equal sets of pairs."""
    x = (u.astype(np.uint64) * SPREAD + v.astype(np.uint64)) * MIX_A
    x ^= x >> np.uint64(31)
    x *= MIX_B
    return x ^ (x >> np.uint64(29))


class Mirror:
    """Compares by sums of hashes; a difference goes unseen with a chance of 2^-64.

    compiled: use the kernel if it can be had
    """

    def __init__(self, compiled: bool = True) -> None:
        self._library = cc.load_or_none(SOURCE) if compiled else None
        self._sum = 0
        self._count = 0

    def forth(self, u: Ids, v: Ids) -> None:
        """Count pairs that are listed forth, int64 [k]."""
        self._sum += self._hash_sum(u, v)
        self._count += len(u)

    def back(self, u: Ids, v: Ids) -> None:
        """Count pairs that are listed back, given the way they go forth."""
        self._sum -= self._hash_sum(u, v)
        self._count -= len(u)

    def once(self, u: Ids, v: Ids) -> Ids:
        """Return the pairs, int64 [k, 2], that stand for their edges: u <= v.

        Those with u < v are counted as listed forth, the others back.
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

    def even(self) -> bool:
        """Return whether both lists are the same so far."""
        return not self._sum & MASK and not self._count

    def _hash_sum(self, u: Ids, v: Ids) -> int:
        if self._library is None:
            return int(pair_hash(u, v).sum(dtype=np.uint64))
        call = self._library.hash_sum
        call.restype = ctypes.c_uint64
        u, v = np.ascontiguousarray(u), np.ascontiguousarray(v)
        return int(call(ctypes.c_int64(len(u)), cc.pointer(u), cc.pointer(v)))
