"""The choice of T, the degree from which a vertex gets a warp.

A search processes every vertex once, so its work is counted in steps of a warp:

- by a warp, a vertex of degree d takes GRAB steps to be fetched and ceil(d / 32) more;
- by threads, 32 vertices take GRAB steps and as many as the largest of their degrees,
  the expectation over 32 independent draws from the degrees below T; each of these
  steps reads 32 places instead of one line and costs SCATTERED steps, and twice as many
  if there are fewer searches than blocks, since no other block then hides its latency.

T is the candidate with the fewest steps, the smaller one if two are equal. Source: the
future work of McLaughlin, Riedy, Bader 2015, Section III-B.
"""

from __future__ import annotations

import numpy as np

from distbfs.types import Ids

CANDIDATES = (0, 2, 4, 8, 16, 32, 64, 128, 256, 1024)
ENDLESS = 0xFFFFFFFF  # T infinite: threads only
GRAB = 3.0
SCATTERED = 2.0


def steps(histogram: Ids, least: int, scattered: float) -> float:
    """Return the steps of a search; histogram: number of vertices by degree, int64."""
    degrees = np.arange(len(histogram))
    small, large = histogram[:least], histogram[least:]
    by_warp = float((large * (GRAB + -(-degrees[least:] // 32))).sum())
    count = int(small.sum())
    if not count:
        return by_warp
    below = np.cumsum(small) / count
    largest = float((1 - below**32).sum())  # expected maximum of 32
    return by_warp + -(-count // 32) * (GRAB + scattered * largest)


def choose_warp_degree(histogram: Ids, searches: int, blocks: int) -> int:
    """Return T; ENDLESS means that threads handle all vertices.

    histogram: number of vertices by degree, int64; searches: number of searches to run;
    blocks: how many blocks run at once
    """
    scattered = SCATTERED * (2 if searches < blocks else 1)
    top = len(histogram)
    allowed = [t for t in CANDIDATES if t < top] + [ENDLESS]
    costs = [steps(histogram, min(t, top), scattered) for t in allowed]
    return allowed[int(np.argmin(costs))]
