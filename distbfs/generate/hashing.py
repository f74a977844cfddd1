"""Counter-based random numbers and seeded bijections on [0, n), without state.

The same values come from ``hashing.h``, which the C kernels include.
"""

from __future__ import annotations

from copy import copy
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from distbfs.device.structures import structure
from distbfs.types import Array, Ids, Words

GOLDEN = 0x9E3779B97F4A7C15
ROUNDS = 4
WORD = (1 << 64) - 1


def mix64(x: Words) -> Words:
    """Return the splitmix64 finaliser of uint64 values (Steele, Lea, Flood 2014)."""
    with np.errstate(over="ignore"):
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def draws(key: int, counters: Array) -> Words:
    """Return the numbers of a key's stream at some counters, uint64.

    counters: int64 or uint64, of any shape
    """
    with np.errstate(over="ignore"):
        return mix64(np.uint64(key) + counters.view(np.uint64) * np.uint64(GOLDEN))


def mix_seed(seed: int, stream: int) -> int:
    """Return a 64-bit key for one independent stream of a seed."""
    value = np.array([(seed + stream * GOLDEN) & WORD], dtype=np.uint64)
    return int(mix64(mix64(value) ^ np.uint64(stream))[0])


class Permutation:
    """A bijection on [0, n) that depends on a seed only.

    Odd multiplications and xor-shifts on k = ceil(log2 n) bits; a value that falls
    outside [0, n) is mapped again (cycle walking), so that a value is mapped fewer than
    two times on average.
    """

    def __init__(self, n: int, seed: int) -> None:
        self.n = n
        self.seed = seed
        bits = max(n - 1, 1).bit_length()
        self.mask = (1 << bits) - 1
        self.shift = (bits + 1) // 2
        # mutant: seed, -> seed >> 8, : test_hashing
        self.factors = [mix_seed(seed, 2 * r) & self.mask | 1 for r in range(ROUNDS)]
        self.addends = [mix_seed(seed, 2 * r + 1) & self.mask for r in range(ROUNDS)]

    def struct(self) -> Any:
        """Return the permutation for a C kernel."""
        return structure(Path(__file__).with_name("hashing.h"), "permutation")(
            n=self.n,
            mask=self.mask,
            shift=self.shift,
            factor=self.factors,
            addend=self.addends,
        )

    def words(self) -> Words:
        """Return the permutation for a CUDA kernel, uint64 [11]."""
        return np.frombuffer(bytes(self.struct()), dtype=np.uint64)

    def _once(self, x: Words) -> Words:
        shift, mask = np.uint64(self.shift), np.uint64(self.mask)
        for factor, addend in zip(self.factors, self.addends, strict=True):
            x = x ^ (x >> shift)
            x = (x * np.uint64(factor) + np.uint64(addend)) & mask
        return x ^ (x >> shift)

    def forward(self, ids: Ids) -> Ids:
        """Map ids by the permutation, int64 of the same length."""
        x = self._once(ids.astype(np.uint64))
        outside = np.flatnonzero(x >= np.uint64(self.n))
        while len(outside):
            x[outside] = self._once(x[outside])
            outside = outside[x[outside] >= np.uint64(self.n)]
        return x.astype(np.int64)

    @cached_property
    def turned(self) -> Permutation:
        """The inverse permutation."""
        back, word = copy(self), self.mask + 1
        undo = [pow(factor, -1, word) for factor in self.factors[::-1]]
        back.factors = undo
        back.addends = [
            -a * f % word for a, f in zip(self.addends[::-1], undo, strict=True)
        ]
        return back

    def inverse(self, ids: Ids) -> Ids:
        """Map ids by the inverse permutation, int64 of the same length."""
        return self.turned.forward(ids)


def permutation_by(n: int, seed: int | None) -> Permutation | None:
    """Return the permutation of n vertices for a seed, None if it is the identity.

    It is the identity without a seed, and for one vertex.
    """
    return None if seed is None or n <= 1 else Permutation(n, seed)
