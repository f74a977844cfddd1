"""Small graphs as edge tuples, what is true of them, and parts made from them."""

from functools import cached_property

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st
from scipy.sparse.csgraph import dijkstra, shortest_path

from distbfs.build.host.parts import construct
from distbfs.generate.kronecker import Kronecker
from distbfs.options import BuildOptions
from distbfs.ranks.world import SoloWorld
from distbfs.validation.host import validate


class Tuples:
    """A TupleSource over arrays; chunks of an odd size, of large ones about 50."""

    directed = False

    def __init__(self, n, u, v, size=None):
        self.n = n
        self.u = np.asarray(u, dtype=np.int64)
        self.v = np.asarray(v, dtype=np.int64)
        self.tuples = len(self.u)
        self.size = size or max(7, len(self.u) // 50 | 1)
        self._levels = {}

    def __repr__(self):
        return f"Tuples({self.n}, {self.u.tolist()}, {self.v.tolist()})"

    def chunks(self, start, stop):
        for at in range(start, stop, self.size):
            end = min(at + self.size, stop)
            yield self.u[at:end], self.v[at:end]

    def describe(self):
        return {"family": "test"}

    @cached_property
    def matrix(self):
        """Both directions of every edge, without loops and repeats, scipy CSR."""
        other = self.u != self.v
        rows = np.concatenate([self.u[other], self.v[other]])
        columns = np.concatenate([self.v[other], self.u[other]])
        ones = np.ones(len(rows))
        matrix = sp.coo_matrix((ones, (rows, columns)), shape=(self.n, self.n)).tocsr()
        matrix.data[:] = 1
        matrix.sort_indices()
        return matrix

    @cached_property
    def degrees(self):
        return fixed(np.diff(self.matrix.indptr).astype(np.int64))

    @cached_property
    def edges(self):
        """Directed edges, int64 [m, 2], ascending."""
        coo = self.matrix.tocoo()
        return fixed(np.stack([coo.row, coo.col], axis=1).astype(np.int64))

    @cached_property
    def _keys(self):
        return self.edges @ np.array([self.n, 1])

    def has_edges(self, u, v):
        """Tell of each pair whether it is an edge, bool.

        By a search in sorted keys: ``numpy.isin`` takes 30 times as long.
        """
        wanted = np.asarray(u, dtype=np.int64) * self.n + v
        at = np.searchsorted(self._keys, wanted)
        return np.append(self._keys, -1)[at] == wanted

    @cached_property
    def ends(self):
        """Ends of tuples at each vertex; a loop is two."""
        return fixed(np.bincount(np.concatenate([self.u, self.v]), minlength=self.n))

    def distances(self, root):
        """Levels by scipy from the nearest root, -1 where none reaches."""
        roots = np.atleast_1d(root)
        known = self._levels.get(roots.tobytes())
        if known is None:
            options = {"unweighted": True, "min_only": True}
            known = fixed(signed(dijkstra(self.matrix, indices=roots, **options)))
            self._levels[roots.tobytes()] = known
        return known

    def levels_from(self, roots):
        """Levels from each root by scipy, int32 [k, n], -1 where unreached."""
        return signed(shortest_path(self.matrix, unweighted=True, indices=roots))


def fixed(array):
    """The array, which nobody may write to: it is kept."""
    array.flags.writeable = False
    return array


def signed(hops):
    """Numbers of hops as int32, -1 for infinitely many."""
    return np.where(np.isinf(hops), -1, hops).astype(np.int32)


def kronecker(scale, edge_factor=16, seed=1):
    """Kronecker tuples, held in arrays."""
    source = Kronecker(scale, edge_factor, seed)
    u, v = source.tuples_at(np.arange(source.tuples))
    return Tuples(source.n, u, v, size=1 << 20)


def random_tuples(n, count, seed):
    """Random tuples; a part of them at hubs, some loops and repeats."""
    rng = np.random.default_rng(seed)
    u, v = rng.integers(0, n, (2, count))
    third = count // 3
    v[:third] = (rng.random(third) ** 4 * n).astype(np.int64)
    v[third : third + 3] = u[third : third + 3]
    u[-3:], v[-3:] = v[:3].copy(), u[:3].copy()
    return Tuples(n, u, v)


def uniform(n, count, hub=0, seed=3):
    """Tuples between any two vertices, and ``hub`` more from vertex 0."""
    u, v = np.random.default_rng(seed).integers(0, n, (2, count + hub))
    u[:hub], v[:hub] = 0, np.arange(1, hub + 1)
    return Tuples(n, u, v, size=1 << 20)


def last_in_common(count):
    """Two hubs, each with a ring, whose only common neighbour comes after the rings.

    In both rows, as its degree is lower. Vertices 2 and 3 are four edges apart.
    """
    last, ring = 4 + 2 * count, np.arange(count)
    u, v = [0, 1, 0, 1], [2, 3, last, last]
    for hub in (0, 1):
        first = 4 + count * hub
        u = [*u, *np.full(count, hub), *(first + ring)]
        v = [*v, *(first + ring), *(first + (ring + 1) % count)]
    return Tuples(last + 1, u, v)


def grid(width):
    """A square grid."""
    ids = np.arange(width * width).reshape(width, width)
    u = np.concatenate([ids[:, :-1].ravel(), ids[:-1].ravel()])
    v = np.concatenate([ids[:, 1:].ravel(), ids[1:].ravel()])
    return Tuples(width * width, u, v)


def complete(n):
    """Every pair once."""
    return Tuples(n, *np.triu_indices(n, 1))


NAMED = {
    "one-vertex": Tuples(1, [], []),
    "one-loop": Tuples(1, [0], [0]),
    "no-edges": Tuples(9, [], []),
    "isolated": Tuples(7, [2, 4], [4, 5]),
    "loops": Tuples(5, [0, 3, 3], [0, 3, 3]),
    "one-edge-repeated": Tuples(4, [1, 3, 1, 1], [3, 1, 3, 1]),
    "star": Tuples(40, [0] * 39, range(1, 40)),
    "path": Tuples(130, range(129), range(1, 130)),
    "two-components": Tuples(
        20, [*range(9), *range(10, 19)], [*range(1, 10), *range(11, 20)]
    ),
    "complete": complete(24),
    "binary-tree": Tuples(127, [(k - 1) // 2 for k in range(1, 127)], range(1, 127)),
    "grid": grid(12),
    "two-hubs": Tuples(
        70, [0] * 34 + [35] * 34 + [0], [*range(1, 35), *range(36, 70), 35]
    ),
    "kronecker": kronecker(10, 8),
}
NO_VERTEX = Tuples(0, [], [])


@st.composite
def sources(draw, max_n=40, max_tuples=100):
    """Any tuples, often with hubs."""
    n = draw(st.integers(1, max_n))
    anywhere = st.integers(0, n - 1)
    hub = st.integers(0, min(2, n - 1))
    some = st.lists(st.tuples(anywhere, anywhere), max_size=max_tuples)
    more = st.lists(st.tuples(hub, anywhere), max_size=max_tuples // 2)
    pairs = draw(some) + draw(more)
    return Tuples(n, [p[0] for p in pairs], [p[1] for p in pairs])


def build(source, parts=1, world=None, owned=False, **options):
    """Return (parts of this rank, summary)."""
    made = []
    way = world or SoloWorld(), parts, BuildOptions(**options), made.append
    summary = construct(source, *way, owned=owned)
    return made, summary


def check_search(source, root, level, parent):
    """Assert that levels are distances and that parents make a tree; return levels."""
    wanted = source.distances(root)
    assert level.dtype == np.int32
    np.testing.assert_array_equal(level, wanted)
    own = None if parent is None else parent.copy()
    form = {"directed": source.directed, "threads": 1}
    verdict = validate(SoloWorld(), source, root, level.copy(), own, **form)
    assert verdict.valid, verdict.errors
    return wanted


def levels_by(parent):
    """Return the levels that parents tell, int32: -1 where they lead to no root."""
    parent = parent.astype(np.int64)
    level = np.where(parent == np.arange(len(parent)), 0, -1).astype(np.int32)
    waiting = np.flatnonzero((level < 0) & (parent >= 0))
    for depth in range(1, len(parent)):
        fresh = level[parent[waiting]] == depth - 1
        if not fresh.any():
            break
        level[waiting[fresh]] = depth
        waiting = waiting[~fresh]
    return level


def some_roots(source, count, seed=0):
    """A few roots in random order: hubs, and vertices without edges where any are."""
    rng = np.random.default_rng(seed)
    degrees = source.degrees
    roots = [int(degrees.argmax()), int(degrees.argmin()), 0, source.n - 1]
    roots += rng.integers(0, source.n, count).tolist()
    roots = roots[: max(count, 2)]
    return [roots[k] for k in rng.permutation(len(roots))]


def some_sets(source, seed=0):
    """Sets of roots, rising: two, a ninth with a hub, all, those without edges."""
    rng, n = np.random.default_rng(seed), source.n
    ends = [int(source.degrees.argmax()), int(source.degrees.argmin())]
    yield np.unique(rng.permutation(n)[:2])
    yield np.unique([*ends, *rng.permutation(n)[: n // 9 + 1]])
    yield np.arange(n)
    lone = np.flatnonzero(source.degrees == 0)
    if len(lone) > 1:
        yield lone


def without_repeats(source):
    """The same graph, each edge once."""
    edges = {(min(e), max(e)) for e in zip(source.u, source.v, strict=True)}
    u, v = np.array(sorted((a, b) for a, b in edges if a != b)).reshape(-1, 2).T
    return Tuples(source.n, u, v)
