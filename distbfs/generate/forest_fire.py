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
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from distbfs.device import cc
from distbfs.generate.hashing import GOLDEN, WORD, mix_seed
from distbfs.generate.parameters import Parameter
from distbfs.generate.positions import CHUNK, ByFormula
from distbfs.options import check_range
from distbfs.progress import Tell, progress_slices, untold
from distbfs.types import Ids

MAX_VERTICES = 1 << 28
DRAW_BITS = 53
FIRST_ROOM = 16  # tuples a vertex
LIT = 1 << 16  # fires between two progress reports
# Gen-ForestFire of Busato and Bombieri 2015, Table 1: f = 0.35 and against links 0.32,
# which is 0.914 of f
PARAMETERS = (
    Parameter("forward", float, "Chance f to burn on along links", 0, 0.9, usual=0.35),
    Parameter(
        "backward", float, "Chance to burn against links, over f", 0, 1, usual=0.914
    ),
)


class ForestFire(ByFormula):
    """Edge tuples of a forest-fire graph (a TupleSource); u is the later vertex.

    vertices: 1 … 2^28; forward: f, 0 … 0.9; backward: b, 0 … 1; seed: any integer
    tell: called with the number of finished fires; all of them finish in the
    constructor
    """

    family = "forest-fire"
    about = "grows vertex by vertex"
    parameters = PARAMETERS

    def __init__(
        self,
        vertices: int,
        forward: float,
        backward: float,
        seed: int = 1,
        tell: Tell = untold,
    ) -> None:
        check_range("vertices", vertices, 1, MAX_VERTICES)
        check_range("forward", forward, 0, 0.9)
        check_range("backward", backward, 0, 1)
        self.n = self.vertices = vertices
        self.seed = seed
        self.forward, self.backward = float(forward), float(backward)
        limits = [
            round(chance * 2.0**DRAW_BITS) for chance in (forward, forward * backward)
        ]
        key = mix_seed(seed, 8)
        made = burnt_by_c(vertices, key, limits, tell)
        self._u, self._v = made or burnt(vertices, key, limits, tell)
        self.tuples = len(self._u)

    def chunks(self, start: int, stop: int) -> Iterator[tuple[Ids, Ids]]:
        """Yield (u, v) int64 arrays of the tuples start … stop-1, in order."""
        for first in range(start, stop, CHUNK):
            piece = slice(first, min(first + CHUNK, stop))
            yield self._u[piece], self._v[piece]

    def tuples_at(self, positions: Ids) -> tuple[Ids, Ids]:
        """Return the tuples at any positions; int64 arrays."""
        return self._u[positions], self._v[positions]


def burnt_by_c(
    n: int, key: int, limits: list[int], tell: Tell
) -> tuple[Ids, Ids] | None:
    """Return the tuples (u, v) of all fires, int64; None without a compiler."""
    native = cc.load_or_none(Path(__file__).with_name("forest_fire.c"))
    if native is None:
        return None
    native.forest_fire.restype = ctypes.c_int64
    tuples = [np.empty(FIRST_ROOM * n, dtype=np.int64) for _ in range(3)]
    first = np.zeros(n + 1, dtype=np.int64)
    marks = [np.full(n, -1, dtype=np.int64) for _ in range(2)]
    stacks = [np.empty(n, dtype=np.int64) for _ in range(2)]
    for low, high in progress_slices(n, LIT, tell):
        lit = max(low, 1)
        while lit < high:
            lit = native.forest_fire(
                ctypes.c_int64(lit),
                ctypes.c_int64(high),
                *(ctypes.c_uint64(x) for x in (key, *limits)),
                ctypes.c_int64(len(tuples[0])),
                *(cc.pointer(x) for x in (*tuples, first, *marks, *stacks)),
            )
            if lit < high:
                tuples = [np.append(x, np.empty_like(x)) for x in tuples]
    made = int(first[n])
    return tuples[0][:made].copy(), tuples[1][:made].copy()


def mixed(x: int) -> int:
    """Return ``mix64`` of a single number."""
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & WORD
    x = (x ^ x >> 27) * 0x94D049BB133111EB & WORD
    return x ^ x >> 31


class Draws:
    """The random numbers of one vertex, in order."""

    def __init__(self, key: int, vertex: int) -> None:
        self._base, self._count = mixed((key + vertex * GOLDEN) & WORD), 0

    def next(self) -> int:
        """Return 64 bits."""
        x = mixed((self._base + self._count * GOLDEN) & WORD)
        self._count += 1
        return x

    def below(self, limit: int) -> int:
        """Return a number from 0 to limit - 1."""
        return self.next() * limit >> 64

    def run(self, limit: int) -> int:
        """Count the draws before the first that is not below ``limit``, of 2^53."""
        length = 0
        while self.next() >> (64 - DRAW_BITS) < limit:
            length += 1
        return length


def burnt(n: int, key: int, limits: list[int], tell: Tell) -> tuple[Ids, Ids]:
    """Return the tuples (u, v) of all fires, int64, like forest_fire.c."""
    to: list[list[int]] = [[] for _ in range(n)]  # vertices that a vertex links to
    by: list[list[int]] = [[] for _ in range(n)]  # its sources, latest last
    for vertex, _ in progress_slices(n, 1, tell):
        if not vertex:
            continue
        draws = Draws(key, vertex)
        burning = [draws.below(vertex)]
        seen = {vertex, burning[0]}
        for at in burning:
            lengths = [draws.run(limit) for limit in limits]
            for count, near in zip(lengths, (to[at], by[at][::-1]), strict=True):
                open_ = [x for x in near if x not in seen]
                for k in range(min(count, len(open_))):
                    drawn = k + draws.below(len(open_) - k)
                    open_[k], open_[drawn] = open_[drawn], open_[k]
                    burning.append(open_[k])
                    seen.add(open_[k])
        to[vertex] = burning
        for x in burning:
            by[x].append(vertex)
    sizes = [len(x) for x in to]
    u = np.repeat(np.arange(n, dtype=np.int64), sizes)
    v = [x for links in to for x in links]
    return u, np.array(v, dtype=np.int64)
