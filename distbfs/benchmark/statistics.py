"""Statistics of a Graph500 run, as the reference code computes them.

Source: graph500-newreference ``src/main.c``, ``get_statistics`` and the output block;
the standard error of a harmonic mean is that of Norris, The Standard Errors of the
Geometric and Harmonic Means, Annals of Mathematical Statistics 11 (1940) 445-448.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from distbfs.errors import ValidationError

if TYPE_CHECKING:
    from collections.abc import Sequence


# of sorted values: the places of their quartiles, by the official names
QUARTILES = {
    "minimum": 0.0,
    "firstquartile": 0.25,
    "median": 0.5,
    "thirdquartile": 0.75,
    "maximum": 1.0,
}


def statistics(values: Sequence[float]) -> dict[str, float]:
    """Return the statistics of at least one value by their official names.

    A quartile is the mean of the two sorted values next to it, by the reference code's
    index rule.  The standard deviation divides by one less than the number of values,
    and is NaN for a single value.  Raises ValidationError if there are no values.
    """
    if not len(values):
        raise ValidationError("no searches were run: there is nothing to report")
    each = np.asarray(values, dtype=np.float64)
    places = [*QUARTILES.values()]
    order = np.quantile(each, places, method="averaged_inverted_cdf").tolist()
    deviation = float(each.std(ddof=1)) if len(each) > 1 else math.nan
    of_order = dict(zip(QUARTILES, order, strict=True))
    return {**of_order, "mean": float(each.mean()), "stddev": deviation}


def rate_statistics(
    amounts: Sequence[float], seconds: Sequence[float]
) -> dict[str, float]:
    """Return the statistics of the rates ``amounts[i] / seconds[i]`` by official names.

    They are taken from the inverse rates, as the reference code does: quartiles are
    the inverses of the quartiles of seconds per unit, and the standard error of the
    harmonic mean is stddev / (mean² · sqrt(count - 1)) of the inverse rates (NaN for a
    single rate).  Raises ValidationError for an amount or a time that is not positive.
    """
    if min(amounts, default=1) <= 0 or min(seconds, default=1) <= 0:
        raise ValidationError("a rate needs a time above 0 and at least one edge")
    inverse = statistics([t / a for a, t in zip(amounts, seconds, strict=True)])
    rates = [1 / inverse[name] for name in reversed(QUARTILES)]
    mean = inverse["mean"]  # mutant: "mean" -> "median" : test_statistics
    root = math.sqrt(len(seconds) - 1)
    return {
        **dict(zip(QUARTILES, rates, strict=True)),
        "harmonic_mean": 1 / mean,
        "harmonic_stddev": inverse["stddev"] / (mean**2 * root) if root else math.nan,
    }
