"""Harmonic centrality, as in NetworkX: the sum of 1 / distance (Boldi and Vigna 2014).

In a directed graph, distances are those to the vertex.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from distbfs.multisearch.application import Application, Task
from distbfs.multisearch.apps.closeness import of_task
from distbfs.multisearch.apps.distances import PROBLEM
from distbfs.multisearch.apps.sampling import (
    Estimate,
    SampleOptions,
    deviation,
    draw,
    requested,
)
from distbfs.multisearch.base import Results
from distbfs.multisearch.problem import Problem, State

NEARNESS = Problem(
    "nearness from sources", (State("harmonic_from", "float64", "vertex"),), bits=True
)
SAMPLED = Problem("nearness from samples", (*PROBLEM.state, *NEARNESS.state), bits=True)


def estimated(task: Task, estimate: Estimate) -> Results:
    """Estimate the centrality of all vertices: ``value``, ``low`` and ``high``.

    The value of v is n - 1 times the mean of 1 / distance from the samples other than v
    to v, or 0 for samples that do not reach v. Its error is at most (n - 1) t, with t
    as in ``sampling`` for values in [0, 1]. In an undirected graph, samples have their
    exact values.
    """
    searcher, n = task.searcher, task.searcher.n
    failure = estimate.failure(n)
    drawn = draw(task, estimate, estimate.count(n - 1, failure))
    pieces = task.pieces()
    sums = pieces.run(SAMPLED, drawn)
    count, near = np.full(n, len(drawn)), sums["harmonic_from"]
    count[drawn] -= 1
    value = (n - 1) * near / np.maximum(count, 1)
    off = (n - 1) * deviation(count, n - 1, failure)
    low = np.maximum(value - off, near)
    high = np.minimum(value + off, near + (n - 1 - count))
    if not searcher.directed:
        for array in (value, low, high):
            array[drawn] = sums["harmonic"]
    return estimate.results(task, drawn, value, low, high, pieces.facts())


def run(task: Task, **asked: Any) -> Results:
    """Compute the centrality, or estimate it from samples."""
    if (estimate := requested(**asked)) is not None:
        return estimated(task, estimate)
    return of_task(task, lambda sums: sums["harmonic"])


APP = Application(
    "harmonic",
    "harmonic centrality of each vertex, as NetworkX has it",
    run,
    SampleOptions,
    resumes=True,
)
