"""Eccentricity: the distance to the farthest reachable vertex; radius and diameter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from distbfs.multisearch.application import Application, Facts, Task
from distbfs.multisearch.apps.components import largest_component
from distbfs.multisearch.apps.distances import PROBLEM
from distbfs.multisearch.base import Results
from distbfs.types import Array, Ids

if TYPE_CHECKING:
    from distbfs.multisearch.searchers import Searcher


def summary(
    searcher: Searcher, sources: Ids, reached: Array, depth: Array
) -> tuple[Array, Facts]:
    """Return (eccentricity int32 [n], summary) of finished searches (collective).

    Vertices that are not sources have -1. Unreachable vertices are ignored. The summary
    has ``connected`` (strongly, for a directed graph) and, if all vertices were
    sources, ``radius`` and ``diameter`` of the largest component and its size,
    ``vertices``; these are None for a directed graph that is not connected.
    """
    value = np.full(searcher.n, -1, dtype=np.int32)
    value[sources] = depth
    if not searcher.n or (value < 0).any():
        return value, {}
    connected = bool((reached == searcher.n).all())
    if searcher.directed and not connected:
        unknown = {"vertices": None, "radius": None, "diameter": None}
        return value, {"connected": False, **unknown}
    inside = value if connected else value[largest_component(searcher)]
    return value, {
        "connected": connected,
        "vertices": len(inside),
        "radius": int(inside.min()),
        "diameter": int(inside.max()),
    }


def run(task: Task) -> Results:
    """Compute eccentricities; report radius and diameter if known."""
    pieces = task.pieces()
    sums = pieces.run(PROBLEM, task.sources)
    value, facts = summary(task.searcher, task.sources, sums["reached"], sums["depth"])
    return Results({"value": value}, {**facts, **pieces.facts()})


APP = Application(
    "eccentricity",
    "distance of the farthest vertex in reach of each vertex",
    run,
    resumes=True,
)
