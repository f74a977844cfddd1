"""Random graphs of many shapes, as tuples."""

from __future__ import annotations

from typing import Any

import numpy as np

from trials.checker import Truth
from trials.trial import Trial

Pairs = tuple[Any, Any]


def lines_up(n: int) -> Pairs:
    """Return a path."""
    return np.arange(max(n - 1, 0)), np.arange(1, max(n, 1))


def star(_: np.random.Generator, n: int) -> Pairs:
    """Return edges from one vertex to all others."""
    return np.zeros(max(n - 1, 0), dtype=np.int64), np.arange(1, max(n, 1))


def path(rng: np.random.Generator, n: int) -> Pairs:
    """Return a path, closed to a ring in half of all cases."""
    u, v = lines_up(n)
    if n and rng.random() < 0.5:
        return np.append(u, n - 1), np.append(v, 0)
    return u, v


def grid(_: np.random.Generator, n: int) -> Pairs:
    """Return a grid."""
    width = max(int(np.sqrt(n)), 1)
    ids = np.arange(n // width * width).reshape(-1, width)
    u = np.concatenate([ids[:, :-1].ravel(), ids[:-1].ravel()])
    return u, np.concatenate([ids[:, 1:].ravel(), ids[1:].ravel()])


def clique(_: np.random.Generator, n: int) -> Pairs:
    """Return all pairs of up to 80 vertices."""
    u, v = np.triu_indices(min(n, 80), 1)
    return u, v


def halves(rng: np.random.Generator, n: int) -> Pairs:
    """Return two components of any edges."""
    half = max(n // 2, 1)
    count = 2 * n
    u, v = rng.integers(0, half, (2, count))
    other = rng.integers(0, 2, count) * (n - half)
    return u + other, v + other


def tree(rng: np.random.Generator, n: int) -> Pairs:
    """Return a random tree: recursive, or with branches of two."""
    child = np.arange(1, max(n, 1))
    if rng.random() < 0.5:
        return (child - 1) // 2, child
    return (rng.random(len(child)) * child).astype(np.int64), child


def uniform(rng: np.random.Generator, n: int) -> Pairs:
    """Return tuples between any vertices, of any density."""
    count = int(n * rng.choice([0.3, 0.7, 1, 1.5, 3, 8]))
    u, v = rng.integers(0, n, (2, count))
    return u, v


def dense(rng: np.random.Generator, n: int) -> Pairs:
    """Return a third of all pairs, of up to 100 vertices."""
    k = min(n, 100)
    u, v = np.nonzero(rng.random((k, k)) < 0.33)
    return u, v


def hubs(rng: np.random.Generator, n: int) -> Pairs:
    """Return a few vertices that lead to nearly all, and some edges more."""
    centres = rng.integers(0, n, int(rng.integers(1, 4)))
    u = np.repeat(centres, n)
    v = np.tile(np.arange(n), len(centres))
    kept = rng.random(len(u)) < rng.choice([0.3, 0.9, 1])
    more = rng.integers(0, n, (2, n // 2))
    return np.append(u[kept], more[0]), np.append(v[kept], more[1])


def bipartite(rng: np.random.Generator, n: int) -> Pairs:
    """Return edges between two sides."""
    left = max(n // 3, 1)
    count = 2 * n if n > left else 0
    high = n if n > left else left + 1
    return rng.integers(0, left, count), rng.integers(left, high, count)


def skewed(rng: np.random.Generator, n: int) -> Pairs:
    """Return tuples whose ends follow a power of uniform numbers."""
    u, v = (rng.random((2, 4 * n)) ** rng.choice([2, 4, 8]) * n).astype(np.int64)
    return u, v


def kronecker(rng: np.random.Generator, n: int) -> Pairs:
    """Return R-MAT tuples by the initiator of Graph500, within the n vertices."""
    scale = max(int(np.log2(max(n, 1))), 0)
    u = np.zeros(8 << scale, dtype=np.int64)
    v = u.copy()
    for _ in range(scale):
        place = rng.choice(4, len(u), p=[0.57, 0.19, 0.19, 0.05])
        u, v = 2 * u + place // 2, 2 * v + place % 2
    return u, v


def nothing(_: np.random.Generator, __: int) -> Pairs:
    """Return no edge."""
    none = np.zeros(0, dtype=np.int64)
    return none, none


def communities(rng: np.random.Generator, n: int) -> Pairs:
    """Return cliques in a chain: deep, with dense levels."""
    size = int(rng.integers(2, 9))
    u, v = np.triu_indices(size, 1)
    blocks = max(n // size, 1) * size
    first = np.arange(0, blocks, size)[:, None]
    ends = np.arange(size - 1, blocks - 1, size)
    u = np.append((first + u).ravel(), ends)
    return u, np.append((first + v).ravel(), ends + 1)


SHAPES = (
    *(star, path, grid, clique, halves, tree, uniform, dense, hubs, bipartite),
    *(skewed, kronecker, nothing, communities, uniform, skewed),
)


def size(trial: Trial, most: int) -> int:
    """Return a number of vertices: mostly few, at times many."""
    draw = trial.rng.random()
    if draw < 0.12:
        return trial.below(4)
    high = 70 if draw < 0.6 else 700 if draw < 0.93 else 4000
    if draw > 0.995:
        return min(100_000, most)
    return min(int(trial.rng.integers(2, high)), most)


def draw_graph(
    trial: Trial, *, least: int = 0, most: int = 100_000, directed: bool | None = None
) -> Truth:
    """Return a random graph of any shape, with ``least`` to ``most`` vertices."""
    rng = trial.rng
    n = max(size(trial, most), least)
    shape = nothing if n == 0 else trial.choose(*SHAPES)
    if n > 4000 and shape in (kronecker, skewed):
        shape = uniform
    u, v = (np.asarray(end, dtype=np.int64) for end in shape(rng, n))
    kept = (u < n) & (v < n)
    u, v = u[kept], v[kept]
    if n and trial.chance(0.3):
        loops = rng.integers(0, n, 1 + trial.below(5))
        u, v = np.append(u, loops), np.append(v, loops)
    if len(u) and trial.chance(0.3):
        again = rng.integers(0, len(u), 1 + trial.below(len(u)))
        u, v = np.append(u, u[again]), np.append(v, v[again])
    if trial.chance(0.4):
        turn = rng.random(len(u)) < 0.5
        u, v = np.where(turn, v, u), np.where(turn, u, v)
    if trial.chance(0.15) and n:
        n = min(n + 1 + trial.below(1 + n), most)
    if trial.chance(0.6):
        renamed = rng.permutation(n)
        u, v = renamed[u], renamed[v]
    if trial.chance(0.5):
        order = rng.permutation(len(u))
        u, v = u[order], v[order]
    turned = trial.chance(0.3) if directed is None else directed
    truth = Truth(n, np.stack([u, v], axis=1), turned)
    trial.draws(truth)
    trial.note(f"{shape.__name__}: {truth!r}")
    return truth
