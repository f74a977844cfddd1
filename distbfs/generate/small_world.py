"""Small-world graphs: a ring with some edges rewired.

Source: Watts and Strogatz 1998. Vertex i has an edge to each of the k / 2 vertices
after it on the ring; with probability p, the far end is replaced by a vertex drawn
uniformly. The resulting repeats and loops are kept as tuples.
"""

from __future__ import annotations

import numpy as np

from distbfs.errors import UsageError
from distbfs.generate.hashing import draws, mix_seed
from distbfs.generate.parameters import NEIGHBOURS, Parameter
from distbfs.generate.positions import ByFormula
from distbfs.generate.uniform import scaled
from distbfs.options import check_range
from distbfs.types import Ids

MAX_VERTICES = 1 << 48
DRAW_BITS = 53  # of a draw compared with p
# Gen-SmallWorld of Busato and Bombieri 2015, Table 1: k = 10 on each side, p = 0.3
PARAMETERS = (
    NEIGHBOURS,
    Parameter("rewired", float, "Chance that an edge leads elsewhere", 0, 1, usual=0.3),
)


class SmallWorld(ByFormula):
    """Edge tuples of a small-world graph (a TupleSource).

    vertices: 3 … 2^48; neighbours: k, even, 2 … vertices - 1; rewired: p, 0 … 1
    seed: any integer
    """

    family = "small-world"
    about = "a ring whose edges partly lead elsewhere"
    parameters = PARAMETERS

    def __init__(
        self, vertices: int, neighbours: int = 20, rewired: float = 0.3, seed: int = 1
    ) -> None:
        check_range("vertices", vertices, 3, MAX_VERTICES)
        if neighbours % 2 or not 2 <= neighbours < vertices:
            raise UsageError(
                f"neighbours is {neighbours}; allowed: even, 2 to {vertices - 1}"
            )
        check_range("rewired", rewired, 0, 1)
        self.n = self.vertices = vertices
        self.neighbours, self.rewired, self.seed = neighbours, float(rewired), seed
        self.tuples = vertices * (neighbours // 2)
        self._key = mix_seed(seed, 6)

    def tuples_at(self, positions: Ids) -> tuple[Ids, Ids]:
        """Return the tuples at any positions; int64 arrays."""
        u, step = np.divmod(positions, self.neighbours // 2)
        v = (u + step + 1) % self.n
        limit = np.uint64(round(self.rewired * 2.0**DRAW_BITS))
        led = draws(self._key, 2 * positions) >> np.uint64(64 - DRAW_BITS) < limit
        anywhere = scaled(draws(self._key, 2 * positions[led] + 1), self.n)
        v[led] = anywhere.astype(np.int64)
        return u, v
