"""Small graphs on the device, built in NumPy by the rules of ``device_graph.py``.

Also what tests and measurements of searches by vertex number have in common.
"""

from dataclasses import replace

import numpy as np
from graphs import Tuples, grid, kronecker, random_tuples

from distbfs.build.cuda.trees import MOST_ROUNDS
from distbfs.device import cuda
from distbfs.graph.device_graph import (
    COLUMN_PAD,
    ISOLATED,
    SEARCHED_UNIT,
    Tails,
    Trees,
    degree_class,
)
from distbfs.partition.share import Rows, whole_share


class HostGraph:
    """The rows of a source by number, and its Share."""

    def __init__(self, source, wide=False):
        self.source = source
        degrees = source.degrees
        ranks, hung = tree_ranks(source)
        self.active = int((degrees > 0).sum())
        core = int(((degrees > 0) & (ranks == 0)).sum())
        fill = -core % SEARCHED_UNIT
        loose = np.flatnonzero((ranks == 1) & (ranks[hung] == 0))[:fill]
        if len(loose) < fill or self.active - core <= fill:
            ranks, core, fill, loose = 0 * ranks, self.active, 0, loose[:0]
        classes = degree_class(np.where(ranks > 0, 1, degrees))
        last = np.where(ranks == 1, 1, 0)
        last[loose] = -1
        keys = [np.arange(source.n), -ranks, last, ranks > 0, -classes]
        self.vertices = np.lexsort(keys)[: self.active]
        self.trees = self.active - core - fill
        self.chain = int(ranks.max(initial=0))
        numbers = np.full(source.n, ISOLATED, np.uint32)
        numbers[self.vertices] = np.arange(self.active, dtype=np.uint32)
        self.numbers = numbers
        rows, columns = source.matrix.nonzero()
        rows, columns = (numbers[x].astype(np.int64) for x in (rows, columns))
        self.keys = np.sort(rows * self.active + columns)
        self.m = len(self.keys)
        if self.m:
            self.columns = self.keys % self.active
            self.rows = self.keys // self.active
        else:
            self.columns = self.rows = np.zeros(0, np.int64)
        self.degrees = degrees[self.vertices]
        self.offsets = np.concatenate([[0], np.cumsum(self.degrees)])
        self.graph = self._upload(wide)
        self._levels = {}

    def _upload(self, wide):
        cp = cuda.cupy()
        columns = np.zeros(self.m + COLUMN_PAD, np.uint32)
        columns[: self.m] = self.columns
        at_least = [self.active, *(self.upto(degree) for degree in range(1, 18))]
        core = self.active - self.trees
        inside = [core, core, *(self.upto(degree, core) for degree in range(2, 18))]
        trees = Trees(self.trees, self.chain, np.array(inside, dtype=np.int64))
        source = self.source
        return whole_share(
            n=source.n,
            active=self.active,
            tuples=source.tuples,
            loops=int((source.u == source.v).sum()),
            at_least=np.array(at_least, dtype=np.int64),
            out=Rows(
                cp.asarray(self.offsets.astype(np.uint64 if wide else np.uint32)),
                cp.asarray(columns),
            ),
            vertices=cp.asarray(self.vertices.astype(np.uint32)),
            numbers=cp.asarray(self.numbers),
            tuple_degrees=cp.asarray(source.ends.astype(np.uint32)),
            source=source.describe(),
            seconds={},
            trees=trees if self.trees else None,
        )

    def searched(self, *, together=False):
        """Which ids are searched, bool [n]: not those of trees, but whole units."""
        core = self.active - self.trees
        return together | (self.numbers < core) | (self.numbers == ISOLATED)

    def upto(self, degree, below=None):
        """Return a number above those, below one, of all vertices of such a degree."""
        classes = degree_class(self.degrees[:below])
        some = classes >= degree_class(np.array([degree]))
        return int(np.flatnonzero(some).max(initial=-1)) + 1

    @property
    def whole(self):
        """The same graph for searches that leave no trees out."""
        return replace(self.graph, trees=None)

    def split(self, kept):
        """Return the same graph with tails: ``kept`` columns of a row on the device."""
        cp = cuda.cupy()
        tailed = self.upto(kept)
        heads = np.minimum(self.degrees, kept)
        place = np.arange(self.m) - self.offsets[self.rows]
        tails = cuda.pinned_empty(int((self.degrees - heads).sum()), np.uint32)
        tails[:] = self.columns[place >= kept]
        columns = np.zeros(int(heads.sum()) + COLUMN_PAD, np.uint32)
        columns[: int(heads.sum())] = self.columns[place < kept]
        starts = np.concatenate([[0], np.cumsum((self.degrees - heads)[:tailed])])
        offsets = np.concatenate([[0], np.cumsum(heads)]).astype(np.uint64)
        tails = Tails(kept, tailed, cp.asarray(starts.astype(np.uint64)), tails)
        rows = Rows(cp.asarray(offsets), cp.asarray(columns), tails)
        return replace(self.graph, out=rows, into=rows)

    def levels(self, root):
        """Levels from a number, by number, from scipy; kept."""
        if root not in self._levels:
            distances = self.source.distances(int(self.vertices[root]))
            self._levels[root] = distances[self.vertices]
        return self._levels[root]

    def check(self, root, found):
        """Assert that the levels are right and that the parents make a tree."""
        wanted = self.levels(root)
        level = found.level.get()
        assert level.dtype == np.int32
        np.testing.assert_array_equal(level, wanted)
        assert found.levels == wanted.max() + 1
        assert found.seconds > 0
        if found.parent is None:
            return
        parent = found.parent.get()
        assert parent.dtype == np.int32
        assert parent[root] == root
        assert (parent[wanted < 0] == -1).all()
        child = np.flatnonzero(wanted > 0)
        above = parent[child].astype(np.int64)
        assert ((above >= 0) & (above < self.active)).all()
        np.testing.assert_array_equal(wanted[above], wanted[child] - 1)
        wanted_keys = above * self.active + child
        at = np.searchsorted(self.keys, wanted_keys)
        assert (self.keys[np.minimum(at, self.m - 1)] == wanted_keys).all()


def tree_ranks(source):
    """Ranks of vertices and what they hang on, int64 [n]; see ``rank_trees``."""
    u, v = np.asarray(source.u), np.asarray(source.v)
    u, v = u[u != v], v[u != v]
    u, v = np.concatenate([u, v]), np.concatenate([v, u])
    ranks, hung = np.zeros((2, source.n), np.int64)
    for number in range(1, MOST_ROUNDS + 1):
        degrees = np.bincount(u, minlength=source.n)
        leaf = degrees == 1
        kept = leaf[v] & (u < v)  # of a lone edge
        going = leaf.copy()
        going[u[leaf[u] & kept]] = False
        if not going.any():
            break
        ranks[going] = number
        hold = v[going[u]]
        hung[u[going[u]]] = hold
        left = ~(going[u] | going[v])
        u, v = u[left], v[left]
        roots = hold[np.bincount(u, minlength=source.n)[hold] == 0]
        ranks[roots] = number + 1
    return ranks, hung


def hubs(count, leaves, seed=5):
    """A root, hubs beside it that share most of their leaves, and a tail."""
    rng = np.random.default_rng(seed)
    first = 1 + count
    most = first + leaves + leaves // 2
    n = most + 20
    u = [np.zeros(count, np.int64)]
    v = [np.arange(1, first)]
    for hub in range(1, first):
        u.append(np.full(leaves, hub))
        v.append(first + rng.permutation(leaves + leaves // 2)[:leaves])
    last = np.arange(most - 1, n - 1)
    return Tuples(n, np.concatenate([*u, last]), np.concatenate([*v, last + 1]))


def small():
    """Return small sources by name: each shape that a strategy may trip over."""
    tree = Tuples(127, [(k - 1) // 2 for k in range(1, 127)], range(1, 127))
    halves = [*range(40), *range(50, 149)], [*range(1, 41), *range(51, 150)]
    return {
        "one-edge": Tuples(4, [1, 1], [3, 3]),
        "path": Tuples(97, range(96), range(1, 97)),
        "star": Tuples(400, [0] * 399, range(1, 400)),
        "wide-star": Tuples(5003, [7] * 5003, range(5003)),
        "grid": grid(17),
        "tree": tree,
        "random": random_tuples(1500, 4000, 11),
        "disconnected": Tuples(160, *halves),
        "hubs": hubs(3, 2500),
        "kronecker": kronecker(11),
    }
