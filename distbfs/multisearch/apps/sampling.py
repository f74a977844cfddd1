"""Estimates for every vertex from searches of a few random sources, with bounds.

Distances from k distinct random vertices to v are a random sample, without replacement,
of all distances to v. By Hoeffding's inequality the mean X of k values in [a, b] is off
its expectation by t or more with probability 2 exp(-2 k t² / (b - a)²) at most, so that

    t = (b - a) sqrt(ln(2 / p) / (2 k))

is exceeded with probability p at most. With p = (1 - CONFIDENCE) / n the bounds of all
n vertices hold at once with probability CONFIDENCE.

Sources: Eppstein and Wang, Fast Approximation of Centrality, J. Graph Algorithms and
Applications 8(1), 2004, for the estimate; Hoeffding, Probability Inequalities for Sums
of Bounded Random Variables, J. American Statistical Association 58, 1963, Theorem 2,
and Section 6 for samples without replacement.
"""

from __future__ import annotations

import math

import numpy as np

from distbfs.errors import UsageError
from distbfs.multisearch.application import Option, Task
from distbfs.types import Array, Ids

CONFIDENCE = 0.95
SAMPLES = Option(
    "samples",
    int,
    None,
    "estimate the value of every vertex from this many random sources, with bounds "
    f"that hold for all vertices at once with a probability of {CONFIDENCE:.0%}",
    least=2,
)


def draw(task: Task, samples: int) -> Ids:
    """Return random vertices, int64 [k], each once.

    Raises UsageError where the sources, or a last level, were chosen.
    """
    n = task.searcher.n
    if len(task.sources) != n:
        raise UsageError("samples estimate the values of all vertices: give no sources")
    if task.searcher.options.depth is not None:
        raise UsageError("samples estimate by all distances: give no depth")
    chosen = np.random.default_rng(task.seed).choice(n, min(samples, n), replace=False)
    return np.sort(chosen.astype(np.int64))


def deviation(count: Array, failure: float) -> Array:
    """Return t / (b - a) for means of ``count`` values, float64 [n]; failure: p.

    A count of 0 is taken for 1.
    """
    return np.sqrt(math.log(2 / failure) / 2 / np.maximum(count, 1))


def facts_of(drawn: Ids, low: Array, high: Array) -> dict[str, float]:
    """Return what is reported of an estimate (JSON values)."""
    widest = float((high - low).max(initial=0))
    return {"samples": len(drawn), "confidence": CONFIDENCE, "widest_bounds": widest}
