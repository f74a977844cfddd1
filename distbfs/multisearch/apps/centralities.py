"""Closeness, harmonic centrality and eccentricity, all from one traversal.

In a directed graph there are two: closeness and harmonic centrality are of distances to
a vertex, eccentricity is of those from it.
"""

from __future__ import annotations

from collections.abc import Mapping

from distbfs.multisearch.application import Application, Normalized, Task
from distbfs.multisearch.apps.closeness import of_sources, scores
from distbfs.multisearch.apps.distances import PROBLEM
from distbfs.multisearch.apps.eccentricity import summary
from distbfs.multisearch.base import Results
from distbfs.multisearch.problem import Problem, State
from distbfs.types import Array, Ids

BOTH_WAYS = Problem(
    "distances both ways",
    (*PROBLEM.state, State("reached_to", "int64", "search")),
)


def run(task: Task, *, normalized: bool) -> Results:
    """Compute all three."""
    searcher, sources = task.searcher, task.sources
    n, pieces, back = searcher.n, task.pieces(), searcher.turned()

    def both(some: Ids) -> Mapping[str, Array]:
        away = searcher.run(PROBLEM, some).values
        if not searcher.directed:
            return {**away, "reached_to": away["reached"]}
        to = back.run(PROBLEM, some).values
        depth, reached = away["depth"], away["reached"]
        return {**to, "depth": depth, "reached": reached, "reached_to": to["reached"]}

    sums = pieces.run(BOTH_WAYS, sources, both)
    others = sums["reached_to"] - 1
    close = scores(others, sums["distance"], n, normalized=normalized)
    far, facts = summary(searcher, sources, sums["reached"], sums["depth"])
    values = {
        "closeness": of_sources(close, sources, n),
        "harmonic": of_sources(sums["harmonic"], sources, n),
        "eccentricity": far,
    }
    return Results(values, {"normalized": normalized, **facts, **pieces.facts()})


APP = Application(
    "centralities",
    "closeness, harmonic and eccentricity together, in the time of one (directed: two)",
    run,
    Normalized,
    resumes=True,
)
