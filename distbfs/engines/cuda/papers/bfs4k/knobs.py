"""Degree statistics of a graph, and the knobs of bfs4k derived from them.

Source: Busato, Bombieri: BFS-4K, IEEE TPDS 2015, Section 7.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from distbfs.options import Knobs
from distbfs.partition.share import Share

WARP = 32
HIGH_AVERAGE = 32  # neighbours: a warp has work for all lanes
SPREAD = 1.0  # deviation over average from which degrees vary widely
HIGH_MAXIMUM = 2048  # "mode greater than 2048"
MOST_SHARE = 4.0  # %; 0.15 in the paper, where launching a child kernel is costly
TABLE_THREADS = 1024  # 128 in the paper; a larger table misses fewer repeats
SLICE = 4  # neighbours that a thread reads of a long row
TURNS = 0  # never; 10 in the paper: here it does not block stores


@dataclass(frozen=True)
class Degrees:
    """Degrees of the vertices that have edges: average, deviation and maximum."""

    average: float
    deviation: float
    maximum: int

    def as_dict(self) -> dict[str, Any]:
        """Return the statistics as JSON values."""
        return dict(vars(self))


def degrees_of(graph: Share) -> Degrees:
    """Compute the degree statistics of a graph in device memory."""
    if not graph.active:
        return Degrees(0.0, 0.0, 0)
    degrees = graph.out.lengths(0, graph.active)
    return Degrees(float(degrees.mean()), float(degrees.std()), int(degrees.max()))


def power_of_two(x: float, low: int, high: int) -> int:
    """Return the largest power of two at most x, clipped to ``low`` … ``high``."""
    power = low
    while power * 2 <= min(x, high):
        power *= 2
    return power


def auto_knobs(degrees: Degrees) -> Knobs:
    """Choose all knobs for a graph.

    k1 grows with average and deviation, from 4 to 32; k2 is above 0 only if the highest
    degree is above 2048, and higher for low averages; k4 is 2 for a low average with a
    high deviation, else 1 (the paper has 0 if both are high, but here k4 also serves
    levels of short rows); k5 is 0 for a high average, for which one block has too few
    threads.
    """
    average, deviation = degrees.average, degrees.deviation
    spread = deviation / average if average else 0.0
    high = average >= HIGH_AVERAGE / 2
    uneven = spread >= SPREAD
    k1 = power_of_two(max(average, deviation / 2), 4, WARP)
    k2 = 0.0
    if degrees.maximum > HIGH_MAXIMUM:
        k2 = MOST_SHARE * min(1.0, HIGH_AVERAGE / max(average, 1))
    k4 = 2 if uneven and not high else 1
    return Knobs(
        k1=k1,
        k2=k2,
        k3=SLICE,
        k4=k4,
        k5=0 if average > 2 * HIGH_AVERAGE else 1,
        k6=TABLE_THREADS,
        k7=TURNS,
        ext=True,
    )


def filled(knobs: Knobs, degrees: Degrees) -> Knobs:
    """Fill in knobs that are None, from the degrees."""
    return replace(auto_knobs(degrees), **knobs.as_dict())
