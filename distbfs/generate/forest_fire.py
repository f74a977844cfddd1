"""Forest-fire graphs, which grow vertex by vertex.

Source: Leskovec, Kleinberg, Faloutsos 2007, Section 5.1. Vertex v links to a random
earlier vertex, its ambassador, where a fire starts. From every burning vertex, the fire
spreads to a geometrically distributed number of the vertices to which it links (mean f
/ (1 - f)) and of those that link to it (mean b f / (1 - b f)), unless they burn
already; v links to all burning vertices. A fire depends on all earlier ones, so every
rank computes all of them and needs O(n + tuples) memory.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from distbfs.device import cc
from distbfs.generate.hashing import mix_seed
from distbfs.generate.positions import ByFormula, size
from distbfs.options import INPUT, option
from distbfs.progress import Tell, progress_slices, untold
from distbfs.types import Ids

MAX_VERTICES = 1 << 28
DRAW_BITS = 53
FIRST_ROOM = 16  # tuples a vertex
LIT = 1 << 16  # fires between two progress reports


@dataclass(eq=False)
class ForestFire(ByFormula):
    """Edge tuples of a forest-fire graph (a TupleSource); u is the later vertex.

    forward: Chance f to burn on along links.
    backward: Chance to burn against links, over f.

    ``tell`` is called with the number of finished fires; all of them finish in the
    constructor.
    """

    family = "forest-fire"
    about = "grows vertex by vertex"

    vertices: int = size(1, MAX_VERTICES)
    # Gen-ForestFire of Busato and Bombieri 2015, Table 1: f = 0.35 and against links
    # 0.32, which is 0.914 of f
    forward: float = option(INPUT, default=0.35, low=0, high=0.9)
    backward: float = option(INPUT, default=0.914, low=0, high=1)
    seed: int = 1
    tell: Tell = untold

    def __post_init__(self) -> None:
        super().__post_init__()
        self.n = self.vertices
        chances = (self.forward, self.forward * self.backward)
        limits = [round(chance * 2.0**DRAW_BITS) for chance in chances]
        key = mix_seed(self.seed, 8)
        self._u, self._v = burnt(self.n, key, limits, self.tell)
        self.tuples = len(self._u)

    def tuples_at(self, positions: Ids) -> tuple[Ids, Ids]:
        """Return the tuples at any positions; int64 arrays."""
        return self._u[positions], self._v[positions]


def burnt(n: int, key: int, limits: list[int], tell: Tell) -> tuple[Ids, Ids]:
    """Return the tuples (u, v) of all fires, int64; CompilerMissing without one."""
    native = cc.load(Path(__file__).with_name("forest_fire.c"))
    native.forest_fire.restype = ctypes.c_int64
    tuples = [np.empty(FIRST_ROOM * n, dtype=np.int64) for _ in range(3)]
    first = np.zeros(n + 1, dtype=np.int64)
    marks = [np.full(n, -1, dtype=np.int64) for _ in range(2)]
    stacks = [np.empty(n, dtype=np.int64) for _ in range(2)]
    for low, high in progress_slices(n, LIT, tell):
        lit = max(low, 1)
        while lit < high:
            lit = native.forest_fire(
                *cc.arguments(lit, high),
                *(ctypes.c_uint64(x) for x in (key, *limits)),
                *cc.arguments(len(tuples[0]), *tuples, first, *marks, *stacks),
            )
            if lit < high:
                tuples = [np.append(x, np.empty_like(x)) for x in tuples]
    made = int(first[n])
    return tuples[0][:made].copy(), tuples[1][:made].copy()
