"""Closeness centrality, as in NetworkX (Freeman 1979; Wasserman and Faust 1994).

In a directed graph, distances are those to the vertex.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.errors import UsageError
from distbfs.multisearch.application import NORMALIZED, Application, Facts, Task
from distbfs.multisearch.apps.components import largest_component, sizes_and_spans
from distbfs.multisearch.apps.distances import PROBLEM
from distbfs.multisearch.apps.sampling import (
    OPTIONS,
    Estimate,
    deviation,
    draw,
    requested,
)
from distbfs.multisearch.bits import LANE
from distbfs.multisearch.problem import Problem, State
from distbfs.types import Array, Ids

if TYPE_CHECKING:
    from distbfs.multisearch.searchers import Searcher

SAMPLED = Problem(
    "distances from samples",
    (
        *PROBLEM.state,
        State("reached_from", "int64", "vertex"),
        State("distance_from", "int64", "vertex"),
    ),
    bits=True,
)


def scores(reached: Array, total: Array, n: int, *, normalized: bool) -> Array:
    """Return closeness from counts of reached vertices and sums of distances."""
    value = np.zeros(len(total))
    np.divide(reached, total, out=value, where=total > 0)
    return value * (reached / (n - 1)) if normalized and n > 1 else value


def of_sources(values: Array, sources: Ids, n: int) -> Array:
    """Return values of the sources by vertex, float64 [n], NaN for other vertices."""
    out = np.full(n, math.nan)
    out[sources] = values
    return out


def closeness(searcher: Searcher, sources: Ids, *, normalized: bool = True) -> Array:
    """Return the closeness of sources, float64 [n], NaN for other vertices.

    normalized: scale by the share of reached vertices (``wf_improved`` of NetworkX), so
    that vertices of small components do not rank first. Collective; all ranks get the
    result.
    """
    sums = searcher.turned().run(PROBLEM, sources)
    others, n = sums["reached"] - 1, searcher.n
    value = scores(others, sums["distance"], n, normalized=normalized)
    return of_sources(value, sources, n)


def drawn_for(task: Task, estimate: Estimate, failure: float) -> Ids:
    """Return the samples of an estimate, int64 [k] (collective).

    If an error is requested, samples are drawn until one component has as many as the
    error needs: the largest component that searches from LANE random vertices meet.
    """
    searcher, n = task.searcher, task.searcher.n
    if estimate.error is None or not n:
        return draw(task, estimate, estimate.count(n - 1, failure))
    met = np.random.default_rng([task.seed, 1]).choice(n, min(LANE, n), replace=False)
    inside, members = largest_component(searcher, met), np.zeros(n, dtype=np.bool_)
    members[inside] = True
    return draw(task, estimate, estimate.count(len(inside) - 1, failure), members)


def estimated(task: Task, estimate: Estimate, *, normalized: bool) -> Facts:
    """Estimate closeness of all vertices and pass on ``value``, ``low`` and ``high``.

    Let k samples be in the component of v, which has r vertices and no distance above
    D = min(r - 1, 2 e), with e the smallest depth of these samples. The sum of the
    distances to v is estimated as (r - 1) times their mean distance, with an error of
    at most (r - 1) t, with t as in ``sampling`` for distances in [1, D] and half of the
    failures. A sample itself has its exact value. A component without samples has at
    most n ln(1 / p) / K vertices with probability 1 - p, K being the number of all
    samples; the values of its vertices are 0, their least possible.
    """
    searcher, n = task.searcher, task.searcher.n
    if searcher.directed:
        raise UsageError(
            "closeness from samples needs a symmetric graph, and this one is directed; "
            "harmonic takes directed graphs"
        )
    failure = estimate.failure(n, 2)
    drawn = drawn_for(task, estimate, failure)
    pieces = task.pieces()
    sums = pieces.run(SAMPLED, drawn)
    sizes, spans = sizes_and_spans(searcher, drawn, sums["reached"], sums["depth"])
    if task.searcher.world.rank:
        return pieces.facts()
    others, summed = np.maximum(sizes - 1, 0), sums["distance_from"]
    sampled = np.zeros(n, dtype=np.bool_)
    sampled[drawn] = True
    count = sums["reached_from"] - sampled
    rest = others - count
    total = summed * others / np.maximum(count, 1)
    off = others * (spans - 1) * deviation(count, others, failure)
    least = np.maximum(total - off, summed + rest)
    most = np.minimum(total + off, summed + rest * spans)
    for array in (total, least, most):
        array[drawn] = sums["distance"]
    value, high, low = (
        scores(others, x, n, normalized=normalized) for x in (total, least, most)
    )
    unknown = sizes == 0
    largest = min(n * math.log(1 / failure) / max(len(drawn), 1), unknown.sum())
    if largest > 1:
        high[unknown] = (largest - 1) / (n - 1) if normalized else 1
    facts = estimate.keep(task, drawn, value, low, high)
    return {"normalized": normalized, **facts, **pieces.facts()}


def of_task(task: Task, of_sums: Callable[[Mapping[str, Array]], Array]) -> Facts:
    """Compute exact values of a task's sources and pass them to the output.

    of_sums: function from the results of ``distances.PROBLEM`` to values [k]
    """
    pieces = task.pieces(task.searcher.turned())
    values = of_sums(pieces.run(PROBLEM, task.sources))
    value = of_sources(values, task.sources, task.searcher.n)
    task.keep(value=value)
    return {"largest": task.largest(value), **pieces.facts()}


def run(task: Task, *, normalized: bool, **asked: Any) -> Facts:
    """Compute closeness, or estimate it from samples, and pass it to the output."""
    if (estimate := requested(**asked)) is not None:
        return estimated(task, estimate, normalized=normalized)

    def of_sums(sums: Mapping[str, Array]) -> Array:
        others, n = sums["reached"] - 1, task.searcher.n
        return scores(others, sums["distance"], n, normalized=normalized)

    return {"normalized": normalized, **of_task(task, of_sums)}


APP = Application(
    "closeness",
    "closeness of each vertex, as NetworkX has it",
    run,
    (NORMALIZED, *OPTIONS),
    resumes=True,
)
