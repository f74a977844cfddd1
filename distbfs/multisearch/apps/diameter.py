"""Exact diameter and radius by bounds, with few searches.

A search from v with eccentricity e bounds the eccentricity of each vertex w at distance
d from v, if the distance from w to v is b: it is at least max(b, e - d) and at most
e + b. In a directed graph, a second search along reversed edges finds b. The next
sources are, in turn, the vertices that may be farthest out (largest upper bound) and
closest to the centre (smallest lower bound), until no vertex is left that could change
diameter or radius; the longer this takes, the more of them run at once. One device,
which keeps levels and bounds, searches from one at a time.

Source: Takes and Kosters, Determining the Diameter of Small World Networks, CIKM 2011
(BoundingDiameters); Computing the Eccentricity Distribution of Large Graphs, 2013.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.device import cuda
from distbfs.multisearch.application import Application, Facts, Task
from distbfs.multisearch.apps.components import largest_component
from distbfs.multisearch.base import Results
from distbfs.multisearch.bits import LANE
from distbfs.multisearch.problem import Problem, State
from distbfs.types import AnyArray, Ids, World

if TYPE_CHECKING:
    from distbfs.multisearch.searchers import Searcher

PROBLEM = Problem("diameter", (State("level", "int32", "pair", -1),), bits=True)
ALONE = 8  # single searches before several run at once


class Bounds:
    """Bounds of the eccentricities of the vertices of a component.

    low, high: int32 [size], equal for vertices from which a search has run
    xp: the module of these arrays, numpy or cupy, as for the levels
    """

    def __init__(self, size: int, xp: Any = np) -> None:
        self._xp = xp
        self.low = xp.full(size, min(size - 1, 1), dtype=np.int32)
        self.high = xp.full(size, size - 1, dtype=np.int32)
        self._inward = False  # the next vertex, where one is searched from at a time

    def learn(self, at: int, level: Any, into: Any) -> None:
        """Tighten the bounds with a search from vertex ``at``.

        level: int32 [size]; into: the distances to ``at``, which are the same in a
        symmetric graph
        """
        xp, far = self._xp, int(level.max())
        # mutant: xp.maximum(into, far - level) -> xp.maximum(level, far - into)
        #   : test_exact_diameter::test_any_directed_graph
        xp.maximum(self.low, xp.maximum(into, far - level), out=self.low)
        xp.minimum(self.high, into + far, out=self.high)
        self.low[at] = self.high[at] = far

    @property
    def diameter(self) -> tuple[int, int]:
        """The bounds of the diameter."""
        return int(self.low.max()), int(self.high.max())

    @property
    def radius(self) -> tuple[int, int]:
        """The bounds of the radius."""
        return int(self.low.min()), int(self.high.min())

    def next(self, count: int) -> list[int]:
        """Return the next vertices to search from, none if the bounds are final."""
        outward = self._xp.flatnonzero(self.high > self.diameter[0])
        inward = self._xp.flatnonzero(self.low < self.radius[1])
        half = -(-count // 2)
        picks = [
            outward[smallest(-self.high[outward], half)].tolist(),
            inward[smallest(self.low[inward], half)].tolist(),
        ]
        if self._inward and count == 1:
            picks.reverse()
        self._inward = not self._inward
        return [*dict.fromkeys(picks[0] + picks[1])][:count]


def extremes(
    rows: Callable[[Ids], Iterable[tuple[AnyArray, AnyArray]]],
    bounds: Bounds,
    world: World,
    most: int = 1,
) -> tuple[int, int, int]:
    """Return radius, diameter and number of searches (collective).

    rows: function from places in the component to the distances from and to each,
    int32 [size] by place, on rank 0; most: largest number of searches at once
    """
    searches = 0
    while True:
        count = min(2 if searches < ALONE else 2 * searches, most)
        plan = world.broadcast(bounds.next(count) if world.rank == 0 else [])
        if not plan:
            break
        # no rows except on rank 0
        for at, levels in zip(plan, rows(np.array(plan)), strict=False):
            bounds.learn(at, *levels)
        searches += len(plan)
    radius, longest = world.broadcast([bounds.radius[1], bounds.diameter[0]])
    return radius, longest, searches


def smallest(values: Any, count: int) -> Any:
    """Return indices int64 [count] of the smallest values, spread over equal ones.

    For an array on a device, it returns only one index.
    """
    if count == 1:
        return values.argmin().reshape(-1) if len(values) else values
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

    The component of a directed graph is strongly connected. The result also has its
    ``vertices``, whether the graph is ``connected``, and the number of ``searches``.
    Both are None for a graph without vertices.
    """
    sides = [searcher, searcher.turned()] if searcher.directed else [searcher]
    world, inside = searcher.world, largest_component(searcher, None, *sides[1:])
    size = len(inside)
    facts: Facts = {"connected": size == searcher.n, "vertices": size}
    if not size:
        return {**facts, "radius": None, "diameter": None, "searches": 0}
    most, arrays, near = max(min(LANE, searcher.at_once(4)), 1), np, inside
    singly = [side.levels_from() for side in sides]
    if singly[0] is not None:
        most, arrays = 1, cuda.cupy()
        near = arrays.asarray(inside)

    def side_rows(place: int, some: Ids) -> Iterable[AnyArray]:
        search = singly[place]
        if search is None:
            levels: Iterable[AnyArray] = sides[place].run(PROBLEM, some)["level"]
        else:
            levels = map(search, some.tolist())
        return (level[near].astype(np.int32, copy=False) for level in levels)

    def rows(places: Ids) -> Iterable[tuple[AnyArray, AnyArray]]:
        some = inside[places]
        each = [side_rows(place, some) for place in range(len(sides))]
        return ((levels[0], levels[-1]) for levels in zip(*each, strict=True))

    bounds = Bounds(size, arrays)
    radius, longest, searches = extremes(rows, bounds, world, most)
    return {**facts, "radius": radius, "diameter": longest, "searches": searches}


def run(task: Task) -> Results:
    """Report radius and diameter."""
    return Results({}, diameter(task.searcher))


APP = Application(
    "diameter",
    "exact diameter and radius of the largest component",
    run,
    takes="nothing",
    writes=False,
)
