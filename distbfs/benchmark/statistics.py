"""Statistics of a Graph500 run, as the reference code computes them.

Source: graph500-newreference ``src/main.c``, ``get_statistics`` and the output block;
the standard error of a harmonic mean is that of Norris, The Standard Errors of the
Geometric and Harmonic Means, Annals of Mathematical Statistics 11 (1940) 445-448.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from distbfs.errors import ValidationError

if TYPE_CHECKING:
    from collections.abc import Sequence


QUARTILES = (0, 0.25, 0.5, 0.75, 1)


@dataclass(frozen=True)
class OrderStatistics:
    """Quartiles of one quantity, with its least and largest value."""

    minimum: float
    firstquartile: float
    median: float
    thirdquartile: float
    maximum: float


@dataclass(frozen=True)
class Statistics(OrderStatistics):
    """Order statistics, mean and sample standard deviation of one quantity."""

    mean: float
    stddev: float


@dataclass(frozen=True)
class RateStatistics(OrderStatistics):
    """Order statistics of a rate, its harmonic mean and the standard error of that."""

    harmonic_mean: float
    harmonic_stddev: float


def statistics(values: Sequence[float]) -> Statistics:
    """Return the statistics of at least one value.

    A quartile is the mean of the two sorted values next to it, by the reference code's
    index rule.  The standard deviation divides by one less than the number of values,
    and is NaN for a single value.  Raises ValidationError if there are no values.
    """
    if not len(values):
        raise ValidationError("no searches were run: there is nothing to report")
    each = np.asarray(values, dtype=np.float64)
    order = np.quantile(each, QUARTILES, method="averaged_inverted_cdf").tolist()
    deviation = float(each.std(ddof=1)) if len(each) > 1 else math.nan
    return Statistics(*[*order, float(each.mean()), deviation])


def rate_statistics(
    amounts: Sequence[float], seconds: Sequence[float]
) -> RateStatistics:
    """Return the statistics of the rates ``amounts[i] / seconds[i]``.

    They are taken from the inverse rates, as the reference code does: quartiles are
    the inverses of the quartiles of seconds per unit, and the standard error of the
    harmonic mean is stddev / (mean² · sqrt(count - 1)) of the inverse rates (NaN for a
    single rate).  Raises ValidationError for an amount or a time that is not positive.
    """
    if min(amounts, default=1) <= 0 or min(seconds, default=1) <= 0:
        raise ValidationError("a rate needs a time above 0 and at least one edge")
    inverse = statistics([t / a for a, t in zip(amounts, seconds, strict=True)])
    root = math.sqrt(len(seconds) - 1)
    return RateStatistics(
        minimum=1 / inverse.maximum,
        firstquartile=1 / inverse.thirdquartile,
        median=1 / inverse.median,
        thirdquartile=1 / inverse.firstquartile,
        maximum=1 / inverse.minimum,
        harmonic_mean=1 / inverse.mean,  # mutant: .mean -> .median : test_statistics
        harmonic_stddev=inverse.stddev / (inverse.mean**2 * root) if root else math.nan,
    )
