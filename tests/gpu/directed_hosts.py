"""Directed graphs on the device, built there, and what a right search of them is."""

from functools import cached_property

import numpy as np
import scipy.sparse as sp
from fast_graphs import wanted_levels
from graphs import Tuples, fixed, kronecker, random_tuples, uniform
from hypothesis import strategies as st

from distbfs.build.cuda.graph import build
from distbfs.build.cuda.room import Fit, Room
from distbfs.build.cuda.seen import SeenMaker


class Arcs(Tuples):
    """Tuples whose edges lead from u to v alone."""

    directed = True

    @cached_property
    def matrix(self):
        """Edges without loops and repeats, scipy CSR."""
        other = self.u != self.v
        ends = self.u[other], self.v[other]
        shape = (self.n, self.n)
        matrix = sp.coo_matrix((np.ones(other.sum()), ends), shape=shape).tocsr()
        matrix.data[:] = 1
        matrix.sort_indices()
        return matrix

    @cached_property
    def ends(self):
        """Ends of tuples, both where they leave."""
        return fixed(2 * np.bincount(self.u, minlength=self.n))

    @cached_property
    def entering(self):
        """Edges in of each vertex."""
        return fixed(np.bincount(self.matrix.indices, minlength=self.n))


@st.composite
def any_arcs(draw):
    """Up to 40 vertices with any arcs, loops and repeats among them."""
    n = draw(st.integers(1, 40))
    vertex = st.integers(0, n - 1)
    pairs = draw(st.lists(st.tuples(vertex, vertex), max_size=120))
    return Arcs(n, [p[0] for p in pairs], [p[1] for p in pairs])


def some_of(source):
    """One to three of its vertices, with repeats."""
    return st.lists(st.integers(0, source.n - 1), min_size=1, max_size=3)


def arcs_of(source):
    """Return the tuples of a source as arcs."""
    return Arcs(source.n, source.u, source.v, size=1 << 20)


def turned(source):
    """Return arcs that lead the other way."""
    return Arcs(source.n, source.v, source.u, size=1 << 20)


class DirectedHost:
    """A directed graph of the device, with the members of ``HostGraph``."""

    def __init__(self, source, wide=False, graph=None):
        self.source, self.m = source, source.matrix.nnz
        self.graph = graph or build(source, directed=True, wide=wide)
        self.active = self.graph.active
        self.vertices = self.graph.vertices.get().astype(np.int64)
        self.numbers = self.graph.numbers.get()
        u, v = (self.numbers[x].astype(np.int64) for x in source.edges.T)
        self.keys = np.sort(u * self.active + v)

    def searched(self, *, together=False):
        """Which ids are searched, bool [n]: all."""
        return np.ones(self.source.n, bool)


def layered():
    """A long way, then many edges out of one vertex, and many into one."""
    u = [*range(60), *[60] * 2500, *range(61, 2561)]
    v = [*range(1, 61), *range(61, 2561), *[2561] * 2500]
    return Arcs(2600, u, v, size=1 << 20)


def acyclic(n, count, seed):
    """Random arcs from lower to higher ids, shuffled."""
    rng = np.random.default_rng(seed)
    ends = np.sort(rng.integers(0, n, (2, count)), axis=0)
    names = rng.permutation(n)
    return Arcs(n, *names[ends], size=1 << 20)


def dead_ends(core, each, seed=4):
    """A random core, vertices that it leads to alone, and those that lead to it."""
    rng = np.random.default_rng(seed)
    inside = uniform(core, 8 * core, seed=seed)
    after = np.arange(core, core + each)
    before = after + each
    u = np.concatenate(
        [inside.u, rng.integers(0, core, 2 * each), np.repeat(before, 3)]
    )
    v = np.concatenate([inside.v, np.tile(after, 2), rng.integers(0, core, 3 * each)])
    names = rng.permutation(core + 2 * each)
    return Arcs(len(names), names[u], names[v], size=1 << 20)


def hubs_apart(count, leaves, seed=5):
    """Hubs with many edges out behind a root, and others with as many edges in."""
    rng = np.random.default_rng(seed)
    n = 2 * count + 1 + 2 * leaves
    u, v = [np.zeros(count, np.int64)], [np.arange(1, count + 1)]
    for k in range(count):
        some = 2 * count + 1 + rng.permutation(2 * leaves)[:leaves]
        u += [np.full(leaves, 1 + k), some]
        v += [some, np.full(leaves, 1 + count + k)]
    names = rng.permutation(n)
    return Arcs(n, *(names[np.concatenate(x)] for x in (u, v)), size=1 << 20)


def ring(n, chords=0, seed=1):
    """A cycle, and edges that skip some of it."""
    rng = np.random.default_rng(seed)
    u = np.concatenate([np.arange(n), rng.integers(0, n, chords)])
    v = np.concatenate([np.arange(1, n + 1) % n, rng.integers(0, n, chords)])
    return Arcs(n, u, v, size=1 << 20)


def star(leaves):
    """Edges out of vertex 0."""
    return Arcs(leaves + 1, [0] * leaves, range(1, leaves + 1), size=1 << 20)


SHAPES = {
    "one-arc": lambda: Arcs(4, [1, 1, 2], [3, 3, 2]),
    "random": lambda: arcs_of(random_tuples(1500, 6000, 11)),
    "kronecker": lambda: arcs_of(kronecker(10)),
    "star-out": lambda: star(700),
    "star-in": lambda: turned(star(700)),
    "ring": lambda: ring(40),
    "small-world": lambda: ring(1200, 5000),
    "acyclic": lambda: acyclic(900, 6000, 2),
    "layers": layered,
    "dead-ends": lambda: dead_ends(500, 700),
    "hubs": lambda: hubs_apart(3, 1200),
    "hubs-turned": lambda: turned(hubs_apart(2, 900)),
    "both-ways": lambda: symmetric(random_tuples(700, 3000, 5)),
    "uniform": lambda: arcs_of(uniform(1200, 20_000)),
}


def symmetric(source):
    """Return arcs of both directions."""
    u, v = np.concatenate([source.u, source.v]), np.concatenate([source.v, source.u])
    return Arcs(source.n, u, v, size=1 << 20)


def ends_of(source, count=3):
    """Return ids: hubs of both directions, and some that others cannot be like."""
    out, into = source.degrees, source.entering
    kinds = (out > 0) & (into == 0), (out == 0) & (into > 0), (out == 0) & (into == 0)
    ends = [int(np.flatnonzero(kind)[0]) for kind in kinds if kind.any()]
    some = np.random.default_rng(1).integers(0, source.n, count)
    roots = [int(out.argmax()), int(into.argmax()), *ends, *some.tolist()]
    return list(dict.fromkeys(roots))


def roots_of(made, count=3):
    """Return the same of the source of a graph that is built."""
    return ends_of(made.source, count)


class EightColumns(Fit):
    """Eight columns of a row fit the device."""

    def most(self):
        """Return eight, whatever the device has."""
        return 8


class Keeps(Room):
    """Limits within which a device keeps eight columns of a row."""

    def fit(self, n, numbering, sides):
        """Compute what fits, see ``EightColumns``."""
        return EightColumns(**vars(super().fit(n, numbering, sides)))


def split_at_eight(source):
    """Return the graph of a device that keeps eight columns of a row."""
    return build(source, directed=True, room=Keeps(None, None, lambda *_: 0))


def masks_of(source, seed):
    """Return random (flags of vertices or None, flags of edges or None, arcs left)."""
    random = np.random.default_rng(seed)
    u, v = source.edges.T
    vertices = random.random(source.n) < 0.8 if seed % 3 else None
    edges = random.random(len(u)) < 0.6 if seed % 3 != 1 else None
    seen = np.ones(len(u), bool) if edges is None else edges.copy()
    if vertices is not None:
        seen &= vertices[u] & vertices[v]
    return vertices, edges, Arcs(source.n, u[seen], v[seen], size=1 << 20)


def seen_of(made, vertices, edges, left):
    """Return the edges that are seen, which all ways to say so must tell alike."""
    maker, again = SeenMaker.of_share(made.graph), None
    if edges is None:
        seen = maker.of_vertices(vertices)
    else:
        seen = maker.of_edges(edges, vertices)
    again = maker.of_pairs(lambda: [(left.u[k::2], left.v[k::2]) for k in (0, 1)])
    for one, other in ((seen, again), (seen.incoming, again.incoming)):
        for name in ("bits", "ends"):
            pair = [getattr(edges, name).get() for edges in (one, other)]
            np.testing.assert_array_equal(*pair)
    np.testing.assert_array_equal(seen.ends.get(), left.degrees[made.vertices])
    entering = left.entering[made.vertices]
    np.testing.assert_array_equal(seen.incoming.ends.get(), entering)
    return seen


def records_fault(made, root, found):
    """Return what is wrong with the records of a search, or None."""
    level = wanted_levels(made, root)
    sizes = np.bincount(level[level >= 0]).tolist()
    told = [r.found for r in found.records]
    empty = len(told) + 1 - len(sizes)
    if not 0 <= empty <= 2 or told != sizes[1:] + [0] * empty:
        return f"records found {told[:9]}, not {sizes[1:10]}"
    for depth, r in enumerate(found.records):
        frontier = level == depth
        if r.direction.startswith("push"):
            edges = int(made.source.degrees[frontier].sum())
            if (r.frontier, r.checks) != (frontier.sum(), edges):
                return f"level {depth + 1}: {r.checks} checks, not {edges}"
            continue
        open_ones = (level > depth) | (level < 0)
        most = int(made.source.entering[open_ones].sum())
        # columns that a row has not are looked at, too: seven of a vertex
        least, most = int((level == depth + 1).sum()), most + 7 * int(open_ones.sum())
        if not least <= r.checks <= most:
            return f"level {depth + 1}: {r.checks} checks, allowed {least} to {most}"
    return None
