"""Closeness centrality, as in NetworkX (Freeman 1979; Wasserman and Faust 1994).

In a directed graph, distances are those to the vertex.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.multisearch.application import Application, Normalized, Task
from distbfs.multisearch.apps.components import largest_component, sizes_and_spans
from distbfs.multisearch.apps.diameter import PROBLEM as LEVELS
from distbfs.multisearch.apps.distances import PROBLEM
from distbfs.multisearch.apps.sampling import (
    Estimate,
    SampleOptions,
    deviation,
    draw,
    requested,
)
from distbfs.multisearch.base import Results
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
    """Return closeness from counts of reached vertices and sums of distances.

    normalized: scale by the share of reached vertices (``wf_improved`` of NetworkX), so
    that vertices of small components do not rank first
    """
    value = np.zeros(len(total))
    np.divide(reached, total, out=value, where=total > 0)
    return value * (reached / (n - 1)) if normalized and n > 1 else value


def of_sources(values: Array, sources: Ids, n: int) -> Array:
    """Return values of the sources by vertex, float64 [n], NaN for other vertices."""
    out = np.full(n, math.nan)
    out[sources] = values
    return out


def drawn_for(task: Task, estimate: Estimate, failure: float) -> Ids:
    """Return the samples of an estimate, int64 [k] (collective).

    If an error is requested, samples are drawn until one component has as many as the
    error needs: the largest component that searches from LANE random vertices meet. In
    a directed graph, where it is strongly connected, as many are drawn as bring this
    number on average.
    """
    searcher, n = task.searcher, task.searcher.n
    if estimate.error is None or not n:
        return draw(task, estimate, estimate.count(n - 1, failure))
    met = np.random.default_rng([task.seed, 1]).choice(n, min(LANE, n), replace=False)
    back = [searcher.turned()] if searcher.directed else []
    inside, members = largest_component(searcher, met, *back), np.zeros(n, np.bool_)
    if searcher.directed:
        count = estimate.count(n - 1, failure) * n / len(inside)
        return draw(task, estimate, math.ceil(count))
    members[inside] = True
    return draw(task, estimate, estimate.count(len(inside) - 1, failure), members)


def reaching(searcher: Searcher, pivot: int) -> tuple[Array, Array, Array]:
    """Return bounds for each vertex of a directed graph from a pivot (collective).

    The results are the least and largest number of others that reach it, and the
    largest distance from them, int64 [n] on rank 0. What reaches the pivot also reaches
    what the pivot reaches, over the pivot. All vertices on a path to a vertex that the
    pivot does not reach are such vertices, and those on a path from a vertex that does
    not reach the pivot do not reach it either, so their number bounds the distance.
    """
    sides, sources = (searcher, searcher.turned()), np.array([pivot])
    rows = [side.run(LEVELS, sources)["level"] for side in sides]
    if searcher.world.rank:
        fewest, most, spans = np.zeros((3, 0), dtype=np.int64)
        return fewest, most, spans
    away, into = (row[0].astype(np.int64) for row in rows)
    beyond, lacking = (int((row < 0).sum()) for row in (away, into))
    reached, both = away >= 0, (away >= 0) & (into >= 0)
    fewest = (searcher.n - lacking) * reached - both
    most = np.where(both, fewest, np.where(reached, searcher.n, beyond) - 1)
    spans = np.where(reached, into.max() + away, beyond - 1)
    spans = np.maximum(spans, np.where(reached & ~both, lacking - 1, 1))
    return fewest, most, spans


def estimated(task: Task, estimate: Estimate, *, normalized: bool) -> Results:
    """Estimate closeness of all vertices: ``value``, ``low`` and ``high``.

    Let k samples reach v, from which no vertex that reaches it is farther than D. The
    mean distance to v is estimated as that of these samples, with an error of at most
    t, with t as in ``sampling`` for distances in [1, D] and half of the failures.

    In an undirected graph, r - 1 vertices reach v, those of its component, whose size r
    is known, and D = min(r - 1, 2 e), with e the smallest depth of these samples. A
    sample itself has its exact value. A component without samples has at most
    n ln(1 / p) / K vertices with probability 1 - p, K being the number of all samples;
    the values of its vertices are 0, their least possible. In a directed graph, the
    number of vertices that reach v is estimated as (n - 1) k / K, with an error of at
    most (n - 1) t, with t for values in [0, 1]; ``reaching`` has bounds of it, and D.
    """
    searcher, n = task.searcher, task.searcher.n
    failure = estimate.failure(n, 2)
    drawn = drawn_for(task, estimate, failure)
    pieces = task.pieces()
    sums = pieces.run(SAMPLED, drawn)
    sizes, fewest, most, spans = np.zeros((4, n), dtype=np.int64)
    if not searcher.directed:
        reached, depth = sums["reached"], sums["depth"]
        sizes, spans = sizes_and_spans(searcher, drawn, reached, depth)
    elif n:
        both_ways = sums["reached"] * sums["reached_from"][drawn]
        fewest, most, spans = reaching(searcher, int(drawn[both_ways.argmax()]))
    if searcher.world.rank:
        return Results({}, pieces.facts())
    summed, sampled = sums["distance_from"], np.zeros(n, dtype=np.bool_)
    sampled[drawn] = True
    count = sums["reached_from"] - sampled
    if searcher.directed:
        tried = np.maximum(len(drawn) - sampled, 1)
        others = (n - 1) * count / tried
        off = (n - 1) * deviation(tried, n - 1, failure)
        fewest = np.maximum(fewest, np.maximum(others - off, count))
        most = np.minimum(most, np.minimum(others + off, n - 1 - tried + count))
        others = np.clip(others, fewest, most)
    else:
        fewest = others = most = np.maximum(sizes - 1, 0)
        unknown = sizes == 0
        largest = min(n * math.log(1 / failure) / max(len(drawn), 1), unknown.sum())
        most = np.where(unknown, max(largest - 1, 0), others)
    spans = np.minimum(spans, np.maximum(most, 1))
    mean, rest = summed / np.maximum(count, 1), most - count
    off = (spans - 1) * deviation(count, most, failure)
    least = np.maximum((mean - off) * most, summed + rest)
    longest = np.minimum(
        np.where(count > 0, mean + off, spans) * most, summed + rest * spans
    )
    total = np.where(count > 0, mean * others, longest)
    value, high, low = (
        scores(x, y, n, normalized=normalized)
        for x, y in ((others, total), (most, least), (most, longest))
    )
    low *= fewest / np.maximum(most, 1) if normalized else fewest > 0
    if not searcher.directed:
        exact = scores(others[drawn], sums["distance"], n, normalized=normalized)
        for array in (value, low, high):
            array[drawn] = exact
    facts = {"normalized": normalized, **pieces.facts()}
    return estimate.results(task, drawn, value, low, high, facts)


def of_task(task: Task, of_sums: Callable[[Mapping[str, Array]], Array]) -> Results:
    """Compute exact values of a task's sources.

    of_sums: function from the results of ``distances.PROBLEM`` to values [k]
    """
    pieces = task.pieces(task.searcher.turned())
    values = of_sums(pieces.run(PROBLEM, task.sources))
    value = of_sources(values, task.sources, task.searcher.n)
    facts = {"largest": task.largest(value), **pieces.facts()}
    return Results({"value": value}, facts)


def run(task: Task, *, normalized: bool, **asked: Any) -> Results:
    """Compute closeness, or estimate it from samples."""
    if (estimate := requested(**asked)) is not None:
        return estimated(task, estimate, normalized=normalized)

    def of_sums(sums: Mapping[str, Array]) -> Array:
        others, n = sums["reached"] - 1, task.searcher.n
        return scores(others, sums["distance"], n, normalized=normalized)

    results = of_task(task, of_sums)
    results.facts["normalized"] = normalized
    return results


@dataclass(frozen=True, kw_only=True)
class ClosenessOptions(Normalized, SampleOptions):
    """Options of closeness."""


APP = Application(
    "closeness",
    "closeness of each vertex, as NetworkX has it",
    run,
    ClosenessOptions,
    resumes=True,
)
