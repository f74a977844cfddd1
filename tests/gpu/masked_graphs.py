"""Graphs on a device of which searches see a part, and what a right search of it is."""

from copy import copy

import numpy as np
from graphs import Tuples

from distbfs.build.cuda.seen import SeenMaker, rows_of_graph


def maker_of(graph):
    """Return what makes bits for a whole graph on one device."""
    return SeenMaker(rows_of_graph(graph))


def some_of(made, vertices=None, edges=None):
    """Return what is left of a ``HostGraph``, in the form that ``fault`` takes.

    vertices: bool [n]; edges: bool [edges], of those with u < v as they rise
    """
    u, v = made.source.edges[made.source.edges[:, 0] < made.source.edges[:, 1]].T
    seen = np.ones(len(u), bool) if edges is None else edges.copy()
    if vertices is not None:
        seen &= vertices[u] & vertices[v]
    left = copy(made)
    vars(left).pop("levels_by_id", None)
    left.source = Tuples(made.source.n, u[seen], v[seen], size=1 << 20)
    a, b = (made.numbers[x].astype(np.int64) for x in (u[seen], v[seen]))
    left.keys = np.sort(np.concatenate([a, b]) * made.active + np.concatenate([b, a]))
    left.m = len(left.keys)
    return left


def random_mask(made, seed, share=0.5):
    """Return (bits on the device, what is left) of a mask of each kind in turn.

    Of edges, of vertices, and of both.
    """
    random = np.random.default_rng(seed)
    count = len(made.source.edges) // 2
    edges = random.random(count) < share if seed % 3 != 1 else None
    vertices = random.random(made.source.n) < share + 0.2 if seed % 3 else None
    left = some_of(made, vertices, edges)
    maker = maker_of(made.graph)
    if edges is None:
        return maker.of_vertices(vertices), left
    pairs = [(left.source.u[k::2], left.source.v[k::2]) for k in (0, 1)]
    return maker.of_pairs(pairs), left
