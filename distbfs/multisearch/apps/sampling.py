"""Estimates for every vertex from searches of a few random sources, with bounds.

The contributions of k distinct random vertices to the value of v are a random sample,
without replacement, of the contributions of all N vertices. The mean of k of N values
in [a, b] differs from the mean of all by t or more with a probability of at most p,
where

    t = (b - a) sqrt((1 - (k - 1) / N) ln(2 / p) / (2 k)).

With p = (1 - confidence) / n, the bounds of all n vertices hold at once with that
confidence. Solving t = (b - a) EPS for k gives the number of samples for an error EPS:

    k = (N + 1) ln(2 / p) / (2 N EPS² + ln(2 / p)).

Sources: Eppstein and Wang, Fast Approximation of Centrality, J. Graph Algorithms and
Applications 8(1), 2004, for closeness; Brandes and Pich, Centrality Estimation in Large
Networks, Int. J. Bifurcation and Chaos 17(7), 2007, for betweenness; Serfling,
Probability Inequalities for the Sum in Sampling without Replacement, Annals of
Statistics 2(1), 1974, Corollary 1.1, for t.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from distbfs.errors import UsageError
from distbfs.multisearch.application import Facts, Task
from distbfs.multisearch.base import Results
from distbfs.options import SEARCH, check_range, option
from distbfs.types import Array, Ids

CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True)
class SampleOptions:
    """Options of estimates.

    samples: Estimate the value of every vertex from this many random sources, with
        bounds that hold for all vertices at once.
    error: Estimate the value of every vertex with as many random sources as this error
        needs, as a share of the largest possible value, for closeness of the diameter.
    confidence: The probability with which bounds of estimates hold; default: 0.95.
    """

    samples: int | None = option(SEARCH, low=2)
    error: float | None = option(SEARCH)
    confidence: float | None = option(SEARCH)


@dataclass(frozen=True)
class Estimate:
    """A requested estimate: from a number of samples or, instead, with an error.

    confidence: the probability with which all bounds hold
    """

    samples: int | None
    error: float | None
    confidence: float

    def failure(self, n: int, times: int = 1) -> float:
        """Return the probability with which each of ``times`` n bounds may fail."""
        return (1 - self.confidence) / max(times * n, 1)

    def count(self, population: int, failure: float) -> int:
        """Return the number of samples to draw from a population.

        It is one more than an error needs, since a vertex may be a sample of itself.
        """
        if self.error is None:
            return self.samples or 0
        surprise = math.log(2 / failure)
        # mutant: = 2 -> = 4 : test_samples_of_an_error_by_hand
        rate = 2 * population * self.error**2 + surprise
        return math.ceil((population + 1) * surprise / rate) + 1

    def results(
        self,
        task: Task,
        drawn: Ids,
        value: Array,
        low: Array,
        high: Array,
        facts: Facts,
    ) -> Results:
        """Return estimates with their bounds, and more facts about them."""
        facts |= {"samples": len(drawn), "confidence": self.confidence}
        if self.error is not None:
            facts["error"] = self.error
        facts["widest_bounds"] = float((high - low).max(initial=0))
        facts["largest"] = task.largest(value)
        values = {"sources": drawn, "value": value, "low": low, "high": high}
        return Results(values, facts)


def requested(
    samples: int | None, error: float | None, confidence: float | None
) -> Estimate | None:
    """Return the estimate that options ask for, None for exact values.

    Raises UsageError for options that contradict each other or are out of range.
    """
    if samples is None and error is None:
        if confidence is not None:
            raise UsageError("confidence goes with an estimate: give samples or error")
        return None
    if samples is not None and error is not None:
        raise UsageError("samples and error both set the number of sources: give one")
    if samples is not None:
        check_range("samples", samples, 2)
    confidence = CONFIDENCE if confidence is None else confidence
    for name, share in (("error", error), ("confidence", confidence)):
        if share is not None and not 0 < share < 1:
            raise UsageError(f"{name} is {share}; allowed: above 0 and below 1")
    return Estimate(samples, error, confidence)


def draw(
    task: Task, estimate: Estimate, count: int, members: Array | None = None
) -> Ids:
    """Return distinct random vertices, int64 [k], ascending.

    members: bool [n], of which at least ``count`` are set; by default all vertices
    Raises UsageError if the user chose sources or a last level.
    """
    n = task.searcher.n
    if len(task.sources) != n:
        raise UsageError("samples estimate the values of all vertices: give no sources")
    if task.searcher.options.depth is not None:
        raise UsageError("samples estimate by all distances: give no depth")
    generator = np.random.default_rng(task.seed)
    if members is None:
        chosen = generator.choice(n, min(count, n), replace=False)
    else:
        chosen = generator.permutation(n)
        inside = np.cumsum(members[chosen])
        count = min(count, inside[-1])
        chosen = chosen[: np.searchsorted(inside, count) + 1] if count else chosen[:0]
    if estimate.error is not None:
        task.say(
            f"{task.label}: {len(chosen):,} samples for an error of {estimate.error:g} "
            f"with a probability of {estimate.confidence:.4g}"
        )
    return np.sort(chosen.astype(np.int64))


def deviation(count: Array, population: Array | int, failure: float) -> Array:
    """Return t / (b - a) for means of ``count`` values of a population, float64 [n].

    failure: p. A count of 0 is treated as 1.
    """
    count = np.maximum(count, 1)
    left = 1 - (count - 1) / np.maximum(population, 1)
    return np.sqrt(np.maximum(left, 0) * math.log(2 / failure) / 2 / count)
