"""Closeness centrality, as in NetworkX (Freeman 1979; Wasserman and Faust 1994).

In a directed graph distances lead to the vertex.
"""

from __future__ import annotations

import math

import numpy as np

from distbfs.multisearch.application import NORMALIZED, Application, Facts, Task
from distbfs.multisearch.problem import Problem, State
from distbfs.multisearch.searchers import Searcher
from distbfs.types import Array, Ids

PROBLEM = Problem(
    "closeness",
    (State("reached", "int64", "search"), State("distance", "int64", "search")),
    bits=True,
)


def closeness(searcher: Searcher, sources: Ids, *, normalized: bool = True) -> Array:
    """Return closeness, float64 [n]: of the sources, NaN for other vertices.

    normalized: scale by the share of reached vertices (``wf_improved`` of NetworkX), so
    that vertices of small components do not rank first. Collective; on all ranks.
    """
    sums = searcher.turned().run(PROBLEM, sources)
    others, total = sums["reached"] - 1, sums["distance"]
    value = np.zeros(len(sources))
    some = total > 0
    value[some] = others[some] / total[some]
    if normalized and searcher.n > 1:
        value *= others / (searcher.n - 1)
    out = np.full(searcher.n, math.nan)
    out[sources] = value
    return out


def run(task: Task, *, normalized: bool) -> Facts:
    """Compute closeness and pass it to the output."""
    value = closeness(task.searcher, task.sources, normalized=normalized)
    task.keep(value=value)
    return {"normalized": normalized, "largest": task.largest(value)}


APP = Application(
    "closeness", "closeness of each vertex, as NetworkX has it", run, (NORMALIZED,)
)
