"""Destination ranges of marking pushes: words of a bitmap, cut for equal load."""

from __future__ import annotations

import numpy as np

from distbfs.types import Array

TABLE_BYTES = 4 * (1028 + 2 * 1024 + 1024 + 32) + 64  # beside a range, of a block
RANGE_SHARED = 192 << 10  # with a range: more would leave 28 KB of L1, not 60
BASE_LOAD = 0.3  # of all edges from hubs: what words cost that have none
MOST_BASE = 0.34  # of the cost of all ranges: what words cost without edges, at most
FEWEST_RANGES = 4  # of each block, unless one does: blocks are to end together
FETCHED_WORDS = 1536  # of a range, in the mean: L2 holds the parents of 132 of them
MOST_FETCHED = 8  # ranges of a block for that, at most: cuts need memory


def range_room(shared: int) -> int:
    """Return how many words of a destination range fit ``shared`` bytes of a block.

    L1 holds pending loads: with more shared memory than RANGE_SHARED, searches whose
    bitmap exceeds L2 took 29 % longer (scale 31 on four H200).
    """
    return (min(shared, RANGE_SHARED) - TABLE_BYTES) // 4 - 8


def range_count(units: int, least: int, longest: int) -> int:
    """Return the number of destination ranges: ``least``, one per block, or a multiple.

    A multiple has at least FEWEST_RANGES per block.
    """
    several = -(-units // int(MOST_BASE * least * longest))
    return least * (max(several, FEWEST_RANGES) if several > 1 else 1)


def range_group(words: int, ranges: int, grid: int) -> int:
    """Return how many of the ranges by ``range_count`` form a group.

    words: number of words of this device; grid: number of blocks
    """
    parts = (words + ranges * FETCHED_WORDS // 2) // (ranges * FETCHED_WORDS)
    return max(1, min(parts, MOST_FETCHED * grid // ranges))


def tree_ranges(least: int, group: int) -> int:
    """Return the least number of ranges for tree words; with groups, one per block."""
    return -(-least // group)


def range_bounds(
    edges: Array, least: int, longest: int, group: int = 1
) -> tuple[Array, int]:
    """Return (bounds [r + 1], most units of a range) of ranges of about equal load.

    edges: number of edges from hubs to each unit, float64
    longest: most units of a range. Units cost something even without edges: together at
    least BASE_LOAD of what all edges cost, and more if ranges without edges would be
    too long; ``range_count`` chooses so many ranges that this stays below MOST_BASE of
    the whole.
    group: number of ranges that are sometimes taken as one, then of ``longest`` units
    at most
    """
    units = len(edges)
    ranges = range_count(units, least, longest - 1) * group
    cuts = longest // group - 1  # they are at whole units
    bounds = np.zeros(ranges + 1, dtype=np.uint32)
    if units:
        base = max(BASE_LOAD / (1 + BASE_LOAD), units / (ranges * cuts))
        upto = np.cumsum(edges)
        upto *= (1 - base) / max(float(upto[-1]), 1.0)
        upto += np.arange(1, units + 1) * (base / units)
        share = float(upto[-1]) / ranges
        bounds[1:-1] = np.searchsorted(upto, np.arange(1, ranges) * share)
        bounds[-1] = units
    return bounds, int(np.diff(bounds).max())


def parted_bounds(
    edges: Array, apart: int, least: int, others: int, longest: int, group: int = 1
) -> tuple[Array, int, int]:
    """Return (bounds, most units, ranges before ``apart``), with a cut at that unit.

    ``range_bounds`` cuts the units before it into ``least`` ranges, the other units
    into ``others``.
    """
    bounds, most = range_bounds(edges[:apart], least, longest, group)
    own = len(bounds) - 1
    if apart < len(edges):
        more, other = range_bounds(edges[apart:], others, longest, group)
        bounds = np.concatenate([bounds, more[1:] + np.uint32(apart)])
        most = max(most, other)
    return bounds, most, own
