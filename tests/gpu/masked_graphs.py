"""Graphs on devices of which searches see a part, and what a right search of it is."""

from copy import copy

import numpy as np
from graphs import Tuples

from distbfs.build.cuda.seen import SeenMaker
from distbfs.ranks.world import SoloWorld
from distbfs.search.device_masks import DeviceMasks


def random_way(source, seed, share=0.5):
    """Return (what makes the bits of rows, the tuples left) of a mask, a kind in turn.

    Of edges, of vertices, and of both.
    """
    random = np.random.default_rng(seed)
    u, v = source.edges[source.edges[:, 0] < source.edges[:, 1]].T
    vertices = random.random(source.n) < share + 0.2 if seed % 3 else None
    seen = np.ones(len(u), bool)
    if seed % 3 != 1:
        seen = random.random(len(u)) < share
    if vertices is not None:
        seen &= vertices[u] & vertices[v]
    left = Tuples(source.n, u[seen], v[seen], size=1 << 20)
    if seed % 3 == 1:
        return lambda maker: maker.of_vertices(vertices), left
    pairs = [(left.u[k::2], left.v[k::2]) for k in (0, 1)]
    return lambda maker: maker.of_pairs(lambda: pairs), left


def random_mask(made, seed, share=0.5):
    """Return (bits on the device, what is left) of a mask of a ``HostGraph``."""
    make, tuples = random_way(made.source, seed, share)
    left = copy(made)
    vars(left).pop("levels_by_id", None)
    left.source = tuples
    a, b = (made.numbers[x].astype(np.int64) for x in (tuples.u, tuples.v))
    left.keys = np.sort(np.concatenate([a, b]) * made.active + np.concatenate([b, a]))
    left.m = len(left.keys)
    kept = tuples.u.astype(np.int64), tuples.v.astype(np.int64)
    maker = SeenMaker.of_share(made.graph)
    seen = make(maker)
    if seed % 3 != 1:
        u, v = made.source.edges[made.source.edges[:, 0] < made.source.edges[:, 1]].T
        n = made.source.n
        edges = np.isin(u * n + v, np.minimum(*kept) * n + np.maximum(*kept))
        again = maker.of_edges(edges, None)
        for name in ("bits", "tails", "ends"):
            one, other = (getattr(x, name) for x in (seen, again))
            same = one is other or bool((one == other).all())
            assert same, f"{name} differ"
    return seen, left


def check_ends(every, left):
    """Assert that ends of seen edges are right; every: of each part, by local id."""
    for part, ends in enumerate(every):
        wanted = left.degrees[part :: len(every)] * (1 + left.directed)
        np.testing.assert_array_equal(ends.get(), wanted)


def see(driver, parts, make, left):
    """Let the driver of a domain's devices see a mask; left: the tuples of it."""
    rows = DeviceMasks(None, None, SoloWorld(), parts)
    seen = rows.made(make)
    check_ends(rows.ends(seen), left)
    driver.see(seen)


def see_between(runner, make, left, world=None):
    """Let parts that are searched between domains see a mask."""
    parts = [one.part for one in runner._searches]
    rows = DeviceMasks(None, None, world or SoloWorld(), parts)
    seen = rows.made(make)
    ends = rows.ends(seen)
    if world is None:
        check_ends(ends, left)
    runner.see(seen)
