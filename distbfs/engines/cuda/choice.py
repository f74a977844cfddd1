"""Which engine ``--engine auto`` takes for a graph on one device, and why.

``scripts/bench_engines.py`` measures all engines on every family beside what this rule
takes; its table says whether a threshold here is off.
"""

from __future__ import annotations

from dataclasses import dataclass

from distbfs.engines.cuda.knobs import Degrees

MANY_LEVELS = 256  # from which what a level costs at least is what counts
HIGH_AVERAGE = 16.0  # edges of a vertex from which a virtual warp has work
WIDE = 1 << 20  # edges a level from which a level's least time does not count


@dataclass(frozen=True)
class Shape:
    """What is known of a graph before the choice.

    levels: of one search from the vertex of highest degree (the diameter probe), at
        least half of the diameter of its component
    edges: stored, both ways
    """

    degrees: Degrees
    levels: int
    edges: int


@dataclass(frozen=True)
class Chosen:
    """An engine of the registry with its method, and the reason in words."""

    engine: str
    method: str
    why: str


def choose_engine(shape: Shape, *, push_only: bool = False) -> Chosen:
    """Return the engine for a graph.

    push_only: direction "push" was asked for

    Where directions are free, method fast of xbfs: its pulls by bitmaps skip most edges
    of few wide levels, and one cluster or one block holds many narrow ones.  Where
    levels are pushed alone, few, of many edges and high degrees, bfs4k: its virtual
    warps need no search for the row of an edge.
    """
    levels, degrees = shape.levels, shape.degrees
    if levels >= MANY_LEVELS:
        return Chosen("xbfs", "fast", f"{levels} levels of few vertices")
    if not push_only:
        return Chosen("xbfs", "fast", f"{levels} levels, pulls skip edges")
    if degrees.average >= HIGH_AVERAGE and shape.edges >= WIDE * levels:
        return Chosen(
            "bfs4k", "claim", f"pushes alone, {degrees.average:.3g} edges each"
        )
    return Chosen("xbfs", "fast", f"{levels} levels, pushes alone")
