"""Exact diameter and radius by bounds, with few searches.

A search from v with eccentricity e bounds the eccentricity of each vertex w at distance
d: max(d, e - d) at least, e + d at most. The next sources are, in turn, the vertices
that may be farthest out (largest upper bound) and closest to the centre (smallest lower
bound), more of them at once the longer it takes, until no vertex is left that could
change diameter or radius.

Source: Takes and Kosters, Determining the Diameter of Small World Networks, CIKM 2011
(BoundingDiameters); Computing the Eccentricity Distribution of Large Graphs, 2013.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from distbfs.errors import UsageError
from distbfs.multisearch.application import Application, Facts, Task
from distbfs.multisearch.apps.components import largest_component
from distbfs.multisearch.bits import LANE
from distbfs.multisearch.problem import Problem, State
from distbfs.types import Array, Ids

if TYPE_CHECKING:
    from distbfs.multisearch.searchers import Searcher

PROBLEM = Problem(
    "diameter",
    (State("level", "int32", "pair", -1), State("depth", "int64", "search")),
    bits=True,
)
ALONE = 8  # single searches before several run at once


@dataclass
class Bounds:
    """Bounds of the eccentricities of the vertices of a component.

    low, high: int32 [size]; done: bool [size], vertices already searched from
    """

    low: Array
    high: Array
    done: Array

    @classmethod
    def unknown(cls, size: int) -> Bounds:
        """Return the widest bounds."""
        most = np.full(size, size - 1, dtype=np.int32)
        low = np.full(size, min(size - 1, 1), dtype=np.int32)
        return cls(low, most, np.zeros(size, dtype=np.bool_))

    def learn(self, at: int, level: Array) -> None:
        """Tighten the bounds by a search from vertex ``at``; level: int32 [size]."""
        far = int(level.max())
        np.maximum(self.low, np.maximum(level, far - level), out=self.low)
        np.minimum(self.high, level + far, out=self.high)
        self.low[at] = self.high[at] = far
        self.done[at] = True

    @property
    def diameter(self) -> tuple[int, int]:
        """The bounds of the diameter."""
        return int(self.low.max()), int(self.high.max())

    @property
    def radius(self) -> tuple[int, int]:
        """The bounds of the radius."""
        return int(self.low.min()), int(self.high.min())

    def next(self, count: int) -> Ids:
        """Return the next vertices to search from, int64 [k], none when finished."""
        outer = self.high > self.diameter[0]
        inner = self.low < self.radius[1]
        outward, inward = np.flatnonzero(outer), np.flatnonzero(inner)
        half = -(-count // 2)
        picks = [
            *outward[smallest(-self.high[outward], half)].tolist(),
            *inward[smallest(self.low[inward], half)].tolist(),
        ]
        chosen = list(dict.fromkeys(k for k in picks if not self.done[k]))
        return np.array(chosen[:count], dtype=np.int64)


def smallest(values: Array, count: int) -> Ids:
    """Return indices int64 [count] of the smallest values, spread over equal ones."""
    if len(values) <= count:
        return np.argsort(values, kind="stable")
    limit = np.partition(values, count - 1)[count - 1]
    below = np.flatnonzero(values < limit)
    equal = np.flatnonzero(values == limit)
    wanted = count - len(below)
    spread = equal[np.linspace(0, len(equal) - 1, wanted).astype(np.int64)]
    return np.concatenate([below, spread])


def diameter(searcher: Searcher) -> Facts:
    """Return the diameter and radius of the largest component (collective).

    With its ``vertices``, whether the graph is ``connected``, and the number of
    ``searches``. Both are None for a graph without vertices. Raises UsageError for a
    directed graph.
    """
    if searcher.directed:
        raise UsageError(
            "diameter needs a symmetric graph, and this one is directed; eccentricity "
            "takes directed graphs"
        )
    world, inside = searcher.world, largest_component(searcher)
    size = len(inside)
    facts: Facts = {"connected": size == searcher.n, "vertices": size}
    if not size:
        return {**facts, "radius": None, "diameter": None, "searches": 0}
    extremes = searcher.extremes(int(inside[0]))
    if extremes is not None:
        ends = {"radius": extremes.radius, "diameter": extremes.diameter}
        return {**facts, **ends, "searches": extremes.searches}
    bounds, searches = Bounds.unknown(size), 0
    while True:
        count = 2 if searches < ALONE else min(LANE, 2 * searches)
        count = min(count, max(searcher.at_once(4), 1))
        plan = world.broadcast(bounds.next(count).tolist() if world.rank == 0 else [])
        if not plan:
            break
        some = np.array(plan, dtype=np.int64)
        rows = searcher.run(PROBLEM, inside[some])["level"]
        for at, row in zip(plan, rows, strict=False):  # no rows except on rank 0
            bounds.learn(at, row[inside])
        searches += len(plan)
    radius, longest = world.broadcast([bounds.radius[1], bounds.diameter[0]])
    return {**facts, "radius": radius, "diameter": longest, "searches": searches}


def run(task: Task) -> Facts:
    """Report radius and diameter."""
    return diameter(task.searcher)


APP = Application(
    "diameter",
    "exact diameter and radius of the largest component",
    run,
    takes="nothing",
    endings=(),
)
