"""The check that a file lists each edge in both directions, by sums of hashes.

A sum counts the pairs that are listed forth, less those listed back. A difference is
missed with probability 2^-64.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from distbfs.generate.hashing import GOLDEN, mix64

if TYPE_CHECKING:
    from distbfs.types import Ids, Words

MASK = (1 << 64) - 1  # bits of a sum that are 0 if both directions agree


def hash_sum(u: Ids | Words, v: Ids | Words) -> int:
    """Return the sum of the hashes of pairs; equal sums mean equal sets of pairs.

    u, v: int64 or uint64 [k]; the order within a pair matters
    """
    x = (u.view(np.uint64) + np.uint64(1)) * np.uint64(GOLDEN)  # 1: of (0, 0), too
    return int(mix64(x + v.view(np.uint64)).sum(dtype=np.uint64))


def forth(u: Ids, v: Ids) -> tuple[Ids, int]:
    """Return the pairs of rows u and neighbours v, int64 [k, 2], and their sum."""
    return np.stack((u, v), axis=1), hash_sum(u, v)


def back(u: Ids, v: Ids) -> tuple[Ids, int]:
    """Return no pairs, and the sum that takes back that of the pairs (v, u)."""
    return np.zeros((0, 2), dtype=np.int64), -hash_sum(v, u)


def once(u: Ids, v: Ids) -> tuple[Ids, int]:
    """Return the pairs with u <= v, and the sum of these less that of the others.

    The pairs of the others are turned.
    """
    up, down = u <= v, u >= v
    pairs, forward = forth(u[up], v[up])
    return pairs, forward - hash_sum(v[down], u[down])
