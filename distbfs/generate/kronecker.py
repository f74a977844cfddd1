"""The Graph500 Kronecker generator, which makes any slice of the tuples from a seed.

Source: Graph500 specification 2.0, Section 3.  Initiator A, B, C, D = .57, .19, .19,
.05; vertex ids are permuted and tuples shuffled by hashing; loops and repeats are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from distbfs.device import cc
from distbfs.generate.hashing import Permutation, draws, mix_seed
from distbfs.generate.positions import ByPosition, size
from distbfs.options import INPUT, option
from distbfs.types import Floats, Ids, Words

INITIATOR = (0.57, 0.19, 0.19, 0.05)
LEVELS_PER_DRAW = 4
SLOTS = 256
CUTOFF_BITS = 56
MAX_SCALE = 48


def outcome_weights(levels: int, initiator: Sequence[float] = INITIATOR) -> Floats:
    """Return the probability of each outcome of ``levels`` levels, float64 [4^levels].

    The upper half of an outcome's bits are bits of u, the lower half bits of v.
    """
    weights = np.ones(1)
    for _ in range(levels):
        weights = np.kron(weights, np.array(initiator))
    # an axis for each bit: from the highest level on, that of u and that of v
    bits = weights.reshape((2, 2) * levels)
    return bits.transpose(*range(0, 2 * levels, 2), *range(1, 2 * levels, 2)).ravel()


def alias_table(weights: Floats) -> Words:
    """Return a table of Walker's alias method, uint64 [256].

    A slot is cutoff · 2^8 + alias: a draw below the cutoff keeps the slot. A cutoff of
    2^56, which always keeps it, is stored as an alias to the slot itself.
    """
    scaled = np.zeros(SLOTS)
    scaled[: len(weights)] = weights * SLOTS
    alias = np.arange(SLOTS, dtype=np.uint64)
    small = [k for k in range(SLOTS) if scaled[k] < 1]
    large = [k for k in range(SLOTS) if scaled[k] >= 1]
    share = np.zeros(SLOTS)
    while small and large:
        low, high = small.pop(), large.pop()
        share[low], alias[low] = scaled[low], high
        scaled[high] -= 1 - scaled[low]
        (small if scaled[high] < 1 else large).append(high)
    cutoff = (share * 2.0**CUTOFF_BITS).astype(np.uint64)
    return cutoff << np.uint64(64 - CUTOFF_BITS) | alias


@dataclass(eq=False)
class Kronecker(ByPosition):
    """Edge tuples of a Kronecker graph with 2^scale vertices (a TupleSource).

    edge_factor: Tuples per vertex.
    """

    source = Path(__file__).with_name("kronecker.c")
    family = "kronecker"
    about = "Graph500's graph"
    initiator: ClassVar[tuple[float, ...]] = INITIATOR

    scale: int = size(1, MAX_SCALE)
    edge_factor: int = option(INPUT, default=16, low=1, high=4096)
    seed: int = 1
    threads: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.threads = cc.thread_count(self.threads)
        self.n = 1 << self.scale
        self.tuples = self.edge_factor << self.scale
        self._key = mix_seed(self.seed, 1)
        self._edges = Permutation(self.tuples, mix_seed(self.seed, 2))
        self._vertices = Permutation(self.n, mix_seed(self.seed, 3))
        self._draws = -(-self.scale // LEVELS_PER_DRAW)
        self._last_bits = self.scale - LEVELS_PER_DRAW * (self._draws - 1)
        self._tables = np.stack(
            [
                alias_table(outcome_weights(bits, self.initiator))
                for bits in (LEVELS_PER_DRAW, self._last_bits)
            ]
        )

    def members(self) -> dict[str, Any]:
        """Return the members of ``slice`` for all tuples."""
        return {
            "key": self._key,
            "draws": self._draws,
            "last_bits": self._last_bits,
            "tables": self._tables,
            "edges": self._edges.struct(),
            "vertices": self._vertices.struct(),
        }

    def tuples_at(self, positions: Ids) -> tuple[Ids, Ids]:
        """Return the tuples at any positions, by NumPy; int64 arrays."""
        base = self._edges.forward(positions).view(np.uint64) * np.uint64(16)
        u, v = np.zeros_like(base), np.zeros_like(base)
        for draw in range(self._draws):
            last = draw + 1 == self._draws
            levels = self._last_bits if last else LEVELS_PER_DRAW
            x = draws(self._key, base + np.uint64(draw))
            slot = x >> np.uint64(CUTOFF_BITS)
            entry = self._tables[int(last)][slot]
            below = x & np.uint64((1 << CUTOFF_BITS) - 1)
            kept = below < entry >> np.uint64(64 - CUTOFF_BITS)
            outcome = np.where(kept, slot, entry & np.uint64(SLOTS - 1))
            bits = np.uint64(levels)
            u = u << bits | outcome >> bits
            v = v << bits | outcome & np.uint64((1 << levels) - 1)
        return self._vertices.forward(u), self._vertices.forward(v)
