"""Uniform random tuples; any slice can be computed from the seed.

Both ends of every tuple are drawn independently (the Erdős-Rényi multigraph); loops and
repeats are kept.  An end is the upper half of the 128-bit product of a 64-bit hash and
n, so no vertex is favoured by more than n / 2^64.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from distbfs.device import cc
from distbfs.generate.hashing import draws, mix_seed
from distbfs.generate.positions import ByPosition
from distbfs.options import INPUT, check_range, option
from distbfs.types import Ids, Words

MAX_VERTICES = 1 << 48
MAX_TUPLES = 1 << 60
LOW = (1 << 32) - 1


def scaled(x: Words, n: int) -> Words:
    """Return floor(x * n / 2^64) of uint64 values, for n below 2^63."""
    half, low = np.uint64(32), np.uint64(LOW)
    high_n, low_n = np.uint64(n >> 32), np.uint64(n & LOW)
    high_x, low_x = x >> half, x & low
    first = high_x * low_n + (low_x * low_n >> half)
    second = low_x * high_n + (first & low)
    return high_x * high_n + (first >> half) + (second >> half)


@dataclass(frozen=True)
class Density:
    """How many tuples a graph has.

    edge_factor: Tuples per vertex.
    degree: Mean degree.
    """

    edge_factor: int = option(INPUT, default=16, low=1, high=4096)
    degree: float = option(INPUT, default=0.0, low=0, high=8192, above=True)


class Uniform(ByPosition):
    """Edge tuples with independent uniform ends (a TupleSource).

    n: vertices, 1 … 2^48; tuples: 1 … 2^60; seed: any integer
    """

    source = Path(__file__).with_name("uniform.c")
    family = "uniform"
    about = "tuples with independent uniform ends"
    parameters = Density

    def __init__(self, n: int, tuples: int, seed: int = 1, threads: int = 0) -> None:
        check_range("vertices", n, 1, MAX_VERTICES)
        check_range("tuples", tuples, 1, MAX_TUPLES)
        self.n = n
        self.tuples = tuples
        self.seed = seed
        self.threads = cc.thread_count(threads)
        self._key = mix_seed(seed, 4)

    @classmethod
    def of_size(
        cls,
        vertices: int,
        edge_factor: int = 16,
        degree: float = 0.0,
        seed: int = 1,
        threads: int = 0,
    ) -> Uniform:
        """Return tuples of a mean degree; 0 means ``edge_factor`` tuples per vertex."""
        ends = vertices * (degree or 2 * edge_factor)
        return cls(vertices, max(round(ends / 2), 1), seed, threads)

    def members(self) -> dict[str, Any]:
        """Return the members of ``slice`` for all tuples."""
        return {"key": self._key, "n": self.n}

    def tuples_at(self, positions: Ids) -> tuple[Ids, Ids]:
        """Return the tuples at any positions, by NumPy; int64 arrays."""
        ends = (draws(self._key, 2 * positions + end) for end in (0, 1))
        u, v = (scaled(x, self.n).astype(np.int64) for x in ends)
        return u, v
