"""The check that a file lists each edge in both directions."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from distbfs.device import cc

if TYPE_CHECKING:
    from distbfs.types import Array, Ids, Words

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


class Lists(NamedTuple):
    """Pairs, int64 [k, 2], the index of a bad entry or -1, and the sums to count."""

    pairs: Ids
    bad: int
    hashes: int = 0
    signs: int = 0


class Mirror:
    """Compares both directions by sums of hashes.

    A difference is missed with probability 2^-64. Without a compiler, NumPy does the
    work of the kernel.
    """

    def __init__(self) -> None:
        self._library = cc.load_or_none(SOURCE)
        self._sum = 0
        self._count = 0

    def count(self, listed: Lists) -> Ids:
        """Add the sums of pairs that ``lists`` returned; return the pairs."""
        self._sum += listed.hashes
        self._count += listed.signs
        return listed.pairs

    def lists(
        self,
        first: int,
        counts: Ids,
        near: Array,
        nodes: int,
        way: int,
        out: Ids | None = None,
    ) -> Lists:
        """Return the pairs in lists of neighbours, without a change of state.

        first: id of the first row
        counts: number of entries of each row, int64 [rows]
        near: the neighbours, 32 or 64 bits [entries], with any stride
        nodes: number of vertices; ids must be less
        out: memory that may be used for the pairs, int64 [entries, 2]
        way: ONCE to keep one pair for each edge, FORTH to keep all, BACK for none
        """
        if self._library is None:
            return _plain_lists(first, counts, near, nodes, way)
        if out is None:
            out = np.empty((len(near), 2), dtype=np.int64)
        sums, bad = np.zeros(2, dtype=np.int64), np.zeros(1, dtype=np.int64)
        call = self._library.lists_once
        call.restype = ctypes.c_int64
        numbers = len(counts), first, near.strides[0], near.itemsize, nodes, way
        kept = call(
            *map(ctypes.c_int64, numbers),
            ctypes.c_void_p(near.ctypes.data),
            cc.pointer(counts),
            cc.pointer(out),
            cc.pointer(sums),
            cc.pointer(bad),
        )
        return Lists(out[:kept], int(bad[0]), *sums.tolist())

    def even(self) -> bool:
        """Return whether both directions of all counted pairs agree."""
        return not self._sum & MASK and not self._count


def _plain_lists(first: int, counts: Ids, near: Array, nodes: int, way: int) -> Lists:
    """Do the work of ``lists`` with NumPy."""
    outside = np.flatnonzero((near < 0) | (near >= nodes))[:1].tolist()
    if outside:
        return Lists(np.zeros((0, 2), dtype=np.int64), outside[0])
    u = np.repeat(np.arange(first, first + len(counts), dtype=np.int64), counts)
    v = near.astype(np.int64)
    sign = np.sign(v - u) if way == ONCE else np.full_like(u, 1 if way == FORTH else -1)
    hashes = pair_hash(np.where(sign < 0, v, u), np.where(sign < 0, u, v))
    total = (hashes * sign.astype(np.uint64)).sum(dtype=np.uint64)
    pairs = np.stack((u, v), axis=1)[sign >= 0]
    return Lists(pairs, -1, int(total), int(sign.sum()))
