"""Exact diameter and radius from few searches, by bounds on all eccentricities.

A search from v that finds eccentricity e bounds that of every w: at least max(d(v, w),
e - d(v, w)), at most e + d(v, w). Searches alternate between the vertex with the
largest upper and the one with the smallest lower bound, until the requested values are
known. Arrays may be NumPy's or CuPy's, so that bounds stay with the levels. Source:
Takes, Kosters 2011 (BoundingDiameters).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from distbfs.device import cuda
from distbfs.engines.base import DeviceSearch
from distbfs.errors import UsageError
from distbfs.types import AnyArray

ENDLESS = (1 << 30) - 1  # no upper bound


@dataclass(frozen=True)
class Extremes:
    """Results for the component of a vertex.

    diameter, radius: None unless requested; searches: number that were needed
    ends: a vertex with the largest known eccentricity, and one with the smallest; ends
    of a diameter and a centre where these were requested
    """

    diameter: int | None
    radius: int | None
    searches: int
    ends: tuple[int, int]


def extremes(
    levels_from: Callable[[int], AnyArray],
    start: int,
    *,
    diameter: bool = True,
    radius: bool = True,
    arrays: Any = np,
    most: int | None = None,
) -> Extremes:
    """Return the exact diameter and radius of the component of ``start``.

    levels_from: returns the levels from a vertex, signed integers [n], -1 where
    unreached; the next call may overwrite the array
    arrays: the module of these arrays, numpy or cupy; most: limit of searches

    Raises UsageError where ``most`` searches were too few.
    """
    xp = arrays
    levels: Any = levels_from(start)  # an array of that module
    inside = levels >= 0
    lower = xp.zeros(len(levels), np.int32)
    upper = xp.full(len(levels), ENDLESS, np.int32)
    vertex, searches, take_upper = start, 0, True
    while True:
        searches += 1
        ecc = int(levels.max())
        d = levels.astype(np.int32)
        xp.maximum(lower, xp.maximum(d, ecc - d), out=lower)
        xp.minimum(upper, ecc + d, out=upper)
        lower[vertex] = upper[vertex] = ecc
        # a vertex outside of the component bounds nothing
        top, bottom = xp.where(inside, upper, -1), xp.where(inside, lower, ENDLESS)
        largest = int(xp.where(inside, lower, -1).max())
        smallest = int(xp.where(inside, upper, ENDLESS).min())
        far, near = int(top.max()) <= largest, int(bottom.min()) >= smallest
        if (far or not diameter) and (near or not radius):
            break
        if most is not None and searches >= most:
            raise UsageError(f"{most} searches do not settle diameter and radius")
        take_upper = not take_upper
        known = lower == upper
        if diameter and not far and take_upper:
            vertex = int(xp.where(known, -1, top).argmax())
        else:
            vertex = int(xp.where(known, ENDLESS, bottom).argmin())
        levels = levels_from(vertex)
    ends = (
        xp.where(inside, lower, -1).argmax(),
        xp.where(inside, upper, ENDLESS).argmin(),
    )
    return Extremes(
        largest if diameter else None,
        smallest if radius else None,
        searches,
        (int(ends[0]), int(ends[1])),
    )


def device_extremes(
    search: DeviceSearch,
    start: int,
    *,
    diameter: bool = True,
    radius: bool = True,
    most: int | None = None,
) -> Extremes:
    """Run ``extremes`` by searches on a device, whose levels stay there.

    search: of ``XbfsEngine.on_graph``, with results by id; needs levels only
    """

    def levels_from(vertex: int) -> AnyArray:
        return search.search(vertex).level.astype(np.int32, copy=False)

    return extremes(
        levels_from,
        start,
        diameter=diameter,
        radius=radius,
        arrays=cuda.cupy(),
        most=most,
    )
