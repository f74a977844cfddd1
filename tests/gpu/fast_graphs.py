"""Graphs that method ``fast`` may trip over, and what a right search of them is."""

from functools import cache

import numpy as np
from device_graphs import HostGraph, hubs, small
from graphs import (
    Tuples,
    complete,
    grid,
    kronecker,
    levels_by,
    random_tuples,
    uniform,
)

from distbfs.device import cuda
from distbfs.engines.base import WHOLE, Until
from distbfs.engines.cuda.common.host_results import host_levels
from distbfs.graph.device_graph import ISOLATED

HUGE = (1 << 63) - 1  # a threshold that no frontier reaches


def path(n):
    return Tuples(n, range(n - 1), range(1, n), size=1 << 20)


def star(leaves):
    return Tuples(leaves + 1, [0] * leaves, range(1, leaves + 1), size=1 << 20)


def binary_tree(n):
    children = np.arange(1, n)
    return Tuples(n, (children - 1) // 2, children, size=1 << 20)


def bipartite(left, right):
    u = np.repeat(np.arange(left), right)
    return Tuples(left + right, u, np.tile(np.arange(left, left + right), left))


def circulant(n, degree):
    """Each vertex beside the ``degree`` nearest ones of a ring."""
    ids = np.arange(n)
    steps = np.arange(1, degree // 2 + 1)
    u = np.repeat(ids, len(steps))
    return Tuples(n, u, (u + np.tile(steps, n)) % n, size=1 << 20)


def beside(*sources):
    """Graphs side by side, not connected."""
    starts = np.cumsum([0] + [s.n for s in sources])
    u = [s.u + at for s, at in zip(sources, starts[:-1], strict=True)]
    v = [s.v + at for s, at in zip(sources, starts[:-1], strict=True)]
    return Tuples(int(starts[-1]), np.concatenate(u), np.concatenate(v), size=1 << 20)


def chained(*sources):
    """Graphs in a row: the last vertex of one beside the first of the next."""
    whole = beside(*sources)
    ends = np.cumsum([s.n for s in sources])[:-1]
    u, v = np.append(whole.u, ends - 1), np.append(whole.v, ends)
    return Tuples(whole.n, u, v, size=1 << 20)


def shuffled(source, seed=9):
    """The same graph with its ids permuted."""
    names = np.random.default_rng(seed).permutation(source.n)
    return Tuples(source.n, names[source.u], names[source.v], size=1 << 20)


def lone(count):
    """Vertices without edges."""
    return Tuples(count, [], [])


def pairs(count):
    """Components of two vertices."""
    return Tuples(2 * count, range(0, 2 * count, 2), range(1, 2 * count, 2))


def long_rows():
    """Rows of 200 neighbours that stay unvisited for long, behind a path."""
    return chained(complete(90), path(6), bipartite(200, 230), path(5), complete(70))


def unreached_hubs():
    """Hubs of 5,200 neighbours that no search from the small components reaches."""
    return beside(hubs(2, 5200), pairs(40), path(30), complete(12), lone(5))


def sources():
    """Return sources by name, small enough for every combination of settings.

    Those with ``-clique`` have a clique that is not reached: the mean degree of their
    neighbours keeps them from the cluster.
    """
    rng = np.random.default_rng(4)
    return {
        **small(),
        "long-path": path(330),
        "path-clique": beside(complete(40), shuffled(path(330))),
        "grid-clique": beside(grid(60), complete(50)),
        "tree-clique": beside(binary_tree(4095), complete(40)),
        "one-loop": Tuples(1, [0], [0]),
        "no-edges": lone(9),
        "two-big": shuffled(
            beside(random_tuples(3000, 9000, 3), uniform(2500, 12_000))
        ),
        "half-outside": beside(uniform(6000, 40_000), uniform(6000, 90_000, seed=8)),
        "many-tiny": shuffled(beside(uniform(900, 3000), pairs(1500), lone(300))),
        "sparse": uniform(5000, 4200),
        "complete": complete(150),
        "bipartite": shuffled(bipartite(70, 190)),
        "blobs": chained(complete(120), path(40), complete(300), path(12)),
        "blobs-tail": chained(kronecker_core(), path(30), complete(220), path(260)),
        "long-rows": shuffled(long_rows()),
        "unreached-hubs": unreached_hubs(),
        "ring-32": shuffled(circulant(3000, 32)),
        "uniform-32": uniform(4000, 64_000),
        "caterpillar": Tuples(
            4000, [*range(999), *rng.integers(0, 1000, 3000)], [*range(1, 4000)][:3999]
        ),
    }


def kronecker_core():
    """A Kronecker graph without vertices that nothing is beside, hub last."""
    source = kronecker(10)
    kept = np.flatnonzero(source.degrees > 0)
    kept = kept[np.argsort(source.degrees[kept], kind="stable")]
    names = np.zeros(source.n, np.int64)
    names[kept] = np.arange(len(kept))
    return Tuples(len(kept), names[source.u], names[source.v], size=1 << 20)


@cache
def graphs():
    return sources()


@cache
def host(name, wide=False):
    """Return a graph of ``graphs`` on the device."""
    return HostGraph(graphs()[name], wide)


def roots_of(made, count=4):
    """Return ids: a hub, the last and first ids, one without edges, and others."""
    source = made.source
    lonely = np.flatnonzero(source.degrees == 0)
    roots = [int(source.degrees.argmax()), 0, source.n - 1, *lonely[:1].tolist()]
    roots += np.random.default_rng(1).integers(0, source.n, count).tolist()
    return list(dict.fromkeys(roots))[: count + 1]


def wanted_levels(made, root):
    """Return levels from scipy by id, int32; kept."""
    kept = made.__dict__.setdefault("levels_by_id", {})
    if root not in kept:
        kept[root] = made.source.distances(root)
    return kept[root]


def cut(levels, until):
    """Return levels of a whole search without those beyond the last that is wanted."""
    last = levels.max() if until.depth is None else until.depth
    if until.targets is not None:
        of_targets = levels[until.targets]
        if (of_targets >= 0).all():
            last = min(last, of_targets.max())
    return np.where(levels <= last, levels, -1)


def untils(levels, root):
    """Return ends of a search whose levels by id are known: some of each kind."""
    deepest, order = int(levels.max()), np.argsort(levels, kind="stable")
    reached, unreached = order[levels[order] >= 0], np.flatnonzero(levels < 0)
    near, middle, far = reached[[min(1, len(reached) - 1), len(reached) // 2, -1]]
    depths = (0, 1, 2, deepest // 2, deepest - 1, deepest, deepest + 7)
    ends = [Until(depth) for depth in dict.fromkeys(depths) if depth >= 0]
    told = [[near], [middle], [far], [far, near], [far, root, far], [root], []]
    if len(unreached):
        told += [[middle, unreached[0]], [unreached[-1]]]
    ends += [Until(None, np.array(some, dtype=np.int64)) for some in told]
    ends.append(Until(deepest // 2, np.array([far])))
    ends.append(Until(deepest, np.array([near, middle])))
    return ends


def fault(made, root, found, *, in_ids=True, levels=True, parents=True, until=WHOLE):
    """Return what is wrong with a result, one line, or None.

    made: HostGraph; root: id; found: WholeResult, by id or by number
    """
    if (found.level is not None) != levels:
        return "levels are there or not, against what was requested"
    by_id = cut(wanted_levels(made, root), until)
    if found.levels != by_id.max() + 1:
        return f"{found.levels} levels, not {by_id.max() + 1}"
    wanted = by_id if in_ids else by_id[made.vertices]
    if levels:
        level = host_levels(found.level)
    else:
        level = levels_by(found.parent.get().astype(np.int64))
    if level.shape != wanted.shape:
        return f"{len(level)} levels instead of {len(wanted)}"
    bad = np.flatnonzero(level != wanted)
    if len(bad):
        k = bad[0]
        return (
            f"{len(bad)} of {len(level)} levels wrong, first at {k}: {level[k]}, "
            f"not {wanted[k]}"
        )
    if (found.parent is not None) != parents:
        return "parents are there or not, against what was requested"
    if not found.seconds > 0:
        return f"seconds is {found.seconds}"
    if not parents:
        return None
    return tree_fault(made, root, found.parent.get().astype(np.int64), wanted, in_ids)


def tree_fault(made, root, parent, level, in_ids):
    """Return what is wrong with parents whose levels are right, or None."""
    if parent.shape != level.shape:
        return f"{len(parent)} parents instead of {len(level)}"
    own = root if in_ids else int(made.numbers[root])
    if own != ISOLATED and parent[own] != own:
        return f"parent of the root is {parent[own]}"
    bad = np.flatnonzero((level < 0) & (parent != -1))
    if len(bad):
        return f"{len(bad)} unreached with parents, first {bad[0]}: {parent[bad[0]]}"
    child = np.flatnonzero(level > 0)
    above = parent[child]
    bad = np.flatnonzero((above < 0) | (above >= len(level)))
    if len(bad):
        return f"{len(bad)} parents out of range, first of {child[bad[0]]}"
    bad = np.flatnonzero(level[above] != level[child] - 1)
    if len(bad):
        k = child[bad[0]]
        return (
            f"{len(bad)} parents of a wrong level, first of {k} (level {level[k]}): "
            f"{parent[k]} (level {level[parent[k]]})"
        )
    numbers = made.numbers.astype(np.int64) if in_ids else np.arange(made.active)
    keys = numbers[above] * made.active + numbers[child]
    if not len(keys):
        return None
    at = np.minimum(np.searchsorted(made.keys, keys), made.m - 1)
    bad = np.flatnonzero(made.keys[at] != keys)
    if len(bad):
        k = child[bad[0]]
        return f"{len(bad)} parents without an edge, first of {k}: {parent[k]}"
    return None


class Proof:
    """Checks results on the device, without levels from elsewhere.

    Levels are distances exactly if the root's is 0, both ends of an edge are reached or
    neither and at most one level apart, and every other reached vertex has a parent one
    level up along an edge.
    """

    def __init__(self, made):
        cp = cuda.cupy()
        self.made = made
        self.keys, self.rows, self.columns, self.vertices, self.numbers = (
            cp.asarray(a)
            for a in (made.keys, made.rows, made.columns, made.vertices, made.numbers)
        )

    def by_number(self, found, in_ids):
        """Return (level int32, parent int64) by number, -1 = unreached."""
        cp = cuda.cupy()
        level = found.level.astype(cp.int32)
        parent = found.parent.astype(cp.int64)
        if not in_ids:
            return level, parent
        level, parent = level[self.vertices], parent[self.vertices]
        named = cp.where(parent < 0, 0, parent)
        return level, cp.where(parent < 0, -1, self.numbers[named].astype(cp.int64))

    def fault(self, root, found, *, in_ids=True):
        """Return what is wrong with a result from an id with edges, or None."""
        cp = cuda.cupy()
        level, parent = self.by_number(found, in_ids)
        own, active = int(self.made.numbers[root]), self.made.active
        if int(level[own]) or int(parent[own]) != own:
            return f"the root has level {level[own]} and parent {parent[own]}"
        one, other = level[self.rows], level[self.columns]
        apart = int(((cp.abs(one - other) > 1) | ((one < 0) != (other < 0))).sum())
        if apart:
            return f"{apart} edges have ends more than a level apart"
        if int((level == 0).sum()) != 1:
            return "more than one vertex of level 0"
        if int(((level < 0) != (parent < 0)).sum()):
            return "vertices with a level and no parent, or a parent and no level"
        child = cp.flatnonzero(level > 0)
        above = parent[child]
        if int((above >= active).sum()):
            return "parents out of range"
        wrong = int((level[above] != level[child] - 1).sum())
        if wrong:
            return f"{wrong} parents of a wrong level"
        wanted = above * active + child
        at = cp.minimum(cp.searchsorted(self.keys, wanted), self.made.m - 1)
        missing = int((self.keys[at] != wanted).sum())
        return f"{missing} parents without an edge" if missing else None
