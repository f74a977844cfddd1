"""Small-world graphs: a ring with some edges rewired.

Source: Watts and Strogatz 1998. Vertex i has an edge to each of the k / 2 vertices
after it on the ring; with probability p, the far end is replaced by a vertex drawn
uniformly. The resulting repeats and loops are kept as tuples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from distbfs.errors import UsageError
from distbfs.generate.hashing import draws, mix_seed
from distbfs.generate.positions import ByFormula, size
from distbfs.generate.uniform import scaled
from distbfs.options import INPUT, option
from distbfs.types import Ids

MAX_VERTICES = 1 << 48
DRAW_BITS = 53  # of a draw compared with p


@dataclass(eq=False)
class SmallWorld(ByFormula):
    """Edge tuples of a small-world graph (a TupleSource).

    neighbours: Nearest vertices on the ring or grid, on all sides: k, even.
    rewired: Chance p that an edge leads elsewhere.
    """

    family = "small-world"
    about = "a ring whose edges partly lead elsewhere"

    vertices: int = size(3, MAX_VERTICES)
    # Gen-SmallWorld of Busato and Bombieri 2015, Table 1: k = 10 on each side, p = 0.3
    neighbours: int = option(INPUT, default=20, low=2)
    rewired: float = option(INPUT, default=0.3, low=0, high=1)
    seed: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.neighbours % 2 or self.neighbours >= self.vertices:
            raise UsageError(
                f"neighbours is {self.neighbours}; allowed: even, 2 to "
                f"{self.vertices - 1}"
            )
        self.n = self.vertices
        self.tuples = self.n * (self.neighbours // 2)
        self._key = mix_seed(self.seed, 6)

    def tuples_at(self, positions: Ids) -> tuple[Ids, Ids]:
        """Return the tuples at any positions; int64 arrays."""
        u, step = np.divmod(positions, self.neighbours // 2)
        v = (u + step + 1) % self.n
        limit = np.uint64(round(self.rewired * 2.0**DRAW_BITS))
        led = draws(self._key, 2 * positions) >> np.uint64(64 - DRAW_BITS) < limit
        anywhere = scaled(draws(self._key, 2 * positions[led] + 1), self.n)
        v[led] = anywhere.astype(np.int64)
        return u, v
