"""Which engine ``--engine auto`` takes for a graph on one device, and why.

``scripts/bench_engines.py`` measures all engines on every family beside what this rule
takes; its table says whether a threshold here is off.
"""

from __future__ import annotations

from dataclasses import dataclass

from distbfs.engines.cuda.cluster import LARGEST_MEAN
from distbfs.engines.cuda.knobs import Degrees

MANY_LEVELS = 256  # from which what a level costs at least is what counts
FEW_EDGES = 8.0  # mean degree below which no pull pays while frontiers are small


@dataclass(frozen=True)
class Shape:
    """What is known of a graph before the choice.

    levels: of one search from the vertex of highest degree (the diameter probe), at
        least half of the diameter of its component
    """

    degrees: Degrees
    levels: int

    @property
    def mean_next(self) -> float:
        """Mean degree of a neighbour, Σd²/Σd."""
        d = self.degrees
        return (d.average**2 + d.deviation**2) / d.average if d.average else 0.0


@dataclass(frozen=True)
class Chosen:
    """An engine of the registry with its method, and the reason in words."""

    engine: str
    method: str
    why: str


def choose_engine(shape: Shape, *, push_only: bool = False) -> Chosen:
    """Return the engine for a graph.

    push_only: direction "push" was asked for

    Few levels: frontiers become a large share of the graph, and pulls skip most edges;
    xbfs is the engine with pulls by bitmaps.  Many levels: frontiers stay small and a
    level costs a few steps of latency; where even neighbours of neighbours are few, one
    cluster of xbfs holds all of it, else one block of bfs4k holds the frontier in
    shared memory.
    """
    levels, average = shape.levels, shape.degrees.average
    long = levels >= MANY_LEVELS
    if long and not push_only and shape.mean_next <= LARGEST_MEAN:
        return Chosen("xbfs", "fast", f"{levels} levels of few vertices")
    if long and average <= FEW_EDGES:
        return Chosen("bfs4k", "claim", f"{levels} levels, mean degree {average:.3g}")
    if push_only:
        return Chosen("xbfs", "fast", f"{levels} levels, pushes alone")
    return Chosen("xbfs", "fast", f"{levels} levels, pulls skip edges")
