"""Graphs with power-law degrees and communities, like webs and social networks.

Most tuples have two ends drawn independently, each vertex in proportion to its weight
(Chung, Lu 2002), which is w(r) = (r + r0)^(-1/(exponent - 1)) for the vertex of rank r;
r0 is chosen so that the first rank has the highest degree. The other tuples, a share
``inside``, have both ends in one community, drawn uniformly, which makes triangles.
Together this is a degree-corrected block model (Karrer, Newman 2011). A permutation
maps ranks to ids, and communities are consecutive ids. Loops and repeats are kept as
tuples.

Ranks form about a hundred classes of geometrically growing size, with one weight each,
so that an end takes a search among the classes and a draw among the ranks of one class.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from distbfs.generate.hashing import Permutation, draws, mix_seed
from distbfs.generate.positions import ByFormula, size
from distbfs.generate.uniform import scaled
from distbfs.options import INPUT, option
from distbfs.types import Ids, Words

MAX_VERTICES = 1 << 48
CLASSES = 512  # most classes of ranks
DRAWS = 5  # of a tuple: one for its kind, two for each end
SHARE_BITS = 53
STEPS = 200  # of a bisection


@dataclass(eq=False)
class ChungLu(ByFormula):
    """Edge tuples of a graph with a power law of degrees (a TupleSource).

    degree: Mean degree, counting both ends.
    exponent: Exponent of the power law of degrees.
    highest: Expected highest degree.
    inside: Share of tuples in communities.
    community: Vertices of a community.
    """

    family = "chung-lu"
    about = "degrees of a power law, and communities"

    vertices: int = size(2, MAX_VERTICES)
    degree: float = option(INPUT, default=16.0, low=0, high=8192, above=True)
    exponent: float = option(INPUT, default=2.3, low=2, high=100, above=True)
    highest: int = option(INPUT, default=1000, low=1)
    inside: float = option(INPUT, default=0.1, low=0, high=1)
    community: int = option(INPUT, default=32, low=2)
    seed: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        self.n = self.vertices
        self.tuples = max(round(self.n * self.degree / 2), 1)
        self._key = mix_seed(self.seed, 8)
        self._permutation = Permutation(self.n, self.seed)
        self._limit = np.uint64(round(self.inside * 2.0**SHARE_BITS))
        self._set_classes()

    def _set_classes(self) -> None:
        """Compute the first rank of each class, and the first draw that selects it."""
        n, power = float(self.n), 1 - 1 / (self.exponent - 1)
        wanted = self.highest / max(self.degree * (1 - self.inside), 1e-9)

        def over_mean(shift: float) -> float:
            """Return the weight of the first rank divided by the mean weight."""
            whole = ((n + shift) ** power - shift**power) / power
            return float(n * shift ** (power - 1) / whole)

        low, high = -40.0, np.log2(n) + 20  # log2 of bounds of the shift r0
        for _ in range(STEPS):
            middle = (low + high) / 2
            low, high = (
                (middle, high) if over_mean(2.0**middle) > wanted else (low, middle)
            )
        shift = 2.0**high
        steps = np.arange(CLASSES + 1) / CLASSES
        ranks = np.rint(shift * ((n + shift) / shift) ** steps - shift)
        first = np.unique(np.clip(ranks, 0, n).astype(np.int64))
        first[0], first[-1] = 0, self.n
        mass = (first + shift) ** power
        share = (mass - mass[0]) / (mass[-1] - mass[0])
        self._first = first
        begins = [min(int(x * 2.0**SHARE_BITS), 2**SHARE_BITS) for x in share[:-1]]
        self._begins = np.array(begins, dtype=np.uint64)

    def tuples_at(self, positions: Ids) -> tuple[Ids, Ids]:
        """Return the tuples at any positions; int64 arrays."""
        kind = self._draw(positions, 0) >> np.uint64(64 - SHARE_BITS)
        u = self._end(positions, 1)
        v = self._end(positions, 3)
        near = np.flatnonzero(kind < self._limit)
        if len(near):
            at = positions[near]
            one = scaled(self._draw(at, 1), self.n).astype(np.int64)
            first = one - one % self.community
            size = np.minimum(self.community, self.n - first).astype(np.uint64)
            u[near] = one
            v[near] = first + self._below(self._draw(at, 3), size)
        return u, v

    def _end(self, positions: Ids, draw: int) -> Ids:
        """Return ends drawn by weight, from draws ``draw`` and ``draw + 1``."""
        where = self._draw(positions, draw) >> np.uint64(64 - SHARE_BITS)
        chosen = np.searchsorted(self._begins, where, side="right") - 1
        first = self._first[chosen]
        size = (self._first[chosen + 1] - first).astype(np.uint64)
        ranks = first + self._below(self._draw(positions, draw + 1), size)
        return self._permutation.forward(ranks)

    @staticmethod
    def _below(draws: Words, size: Words) -> Ids:
        """Return floor(draw / 2^32 * size / 2^32), sizes at most 2^48, int64."""
        half = np.uint64(32)
        high = (draws >> half) * (size >> half)
        low = (draws >> half) * (size & np.uint64(0xFFFFFFFF)) >> half
        return (high + low).astype(np.int64)

    def _draw(self, positions: Ids, draw: int) -> Words:
        return draws(self._key, positions * DRAWS + draw)
