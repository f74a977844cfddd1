"""Closeness, harmonic centrality and eccentricity, all from one traversal."""

from __future__ import annotations

from distbfs.errors import UsageError
from distbfs.multisearch.application import NORMALIZED, Application, Facts, Task
from distbfs.multisearch.apps.closeness import of_sources, scores
from distbfs.multisearch.apps.distances import PROBLEM
from distbfs.multisearch.apps.eccentricity import summary


def run(task: Task, *, normalized: bool) -> Facts:
    """Compute all three and pass them to the output.

    Raises UsageError for a directed graph, in which their distances have different
    directions.
    """
    searcher, sources = task.searcher, task.sources
    if searcher.directed:
        raise UsageError(
            "centralities needs a symmetric graph, and this one is directed; "
            "closeness, harmonic and eccentricity take directed graphs"
        )
    n, pieces = searcher.n, task.pieces()
    sums = pieces.run(PROBLEM, sources)
    close = scores(sums["reached"] - 1, sums["distance"], n, normalized=normalized)
    far, facts = summary(searcher, sources, sums["reached"], sums["depth"])
    task.keep(
        closeness=of_sources(close, sources, n),
        harmonic=of_sources(sums["harmonic"], sources, n),
        eccentricity=far,
    )
    return {"normalized": normalized, **facts, **pieces.facts()}


APP = Application(
    "centralities",
    "closeness, harmonic and eccentricity together, in the time of one",
    run,
    (NORMALIZED,),
    resumes=True,
)
