"""Expected numbers of a Kronecker graph's degree-separated edges, for each threshold.

Vertices whose scrambled ids have the same number of one-bits form a class.  The
expected number of distinct edges between two classes, without repeats and loops,
follows from ``INITIATOR`` alone, and the degrees in a class are taken to be Poisson
distributed.  The end of an edge in a class is normal with the probability that its
degree, one plus a Poisson number of other neighbours, does not exceed TH.  So d, |Enn|,
|End| and |Edd| (Pan, Pearce, Owens 2018, Section III) are sums over at most 49 x 49
pairs of classes, at any scale.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from distbfs.generate.expected import class_neighbours, poisson
from distbfs.generate.kronecker import INITIATOR
from distbfs.types import Floats, Ids

BROAD = 1024.0  # classes with a larger mean are modelled as normal, not as Poisson


@dataclass(frozen=True)
class ExpectedSizes:
    """Expected counts for a threshold, of vertices and directed edges.

    delegates: d; nn, nd, dn, dd: numbers of edges of the subgraphs; nd and dn are equal
    """

    threshold: int
    n: float
    delegates: float
    nn: float
    nd: float
    dn: float
    dd: float

    @property
    def m(self) -> float:
        """The number of all stored directed edges."""
        return self.nn + self.nd + self.dn + self.dd

    def shares(self) -> dict[str, float]:
        """Return delegates divided by n, and nn, nd+dn and dd divided by m."""
        m = max(self.m, 1e-300)
        return {
            "delegates": self.delegates / self.n,
            "nn": self.nn / m,
            "nd_dn": (self.nd + self.dn) / m,
            "dd": self.dd / m,
        }


@lru_cache(maxsize=64)
def class_edges(scale: int, edge_factor: int) -> tuple[Floats, Floats]:
    """Return (vertices float64 [scale+1], edges float64 [scale+1, scale+1]).

    Class k holds the vertices with k one-bits.  edges[k, j]: expected number of
    distinct directed edges from class k to class j.
    """
    sizes, neighbours = class_neighbours(scale, edge_factor)
    edges, k = sizes[:, None] * neighbours, np.arange(scale + 1)
    a, _, _, d = INITIATOR
    loops = d**k * a ** (scale - k)  # counted as neighbours
    edges[k, k] -= sizes * -np.expm1(-2 * edge_factor * 2.0**scale * loops)
    return sizes, edges


def poisson_below(mean: float, thresholds: Ids) -> Floats:
    """Return the probability that a Poisson number is at most each threshold, float64.

    thresholds: int64, ascending; the probability for -1 and less is 0
    """
    if mean > BROAD:
        deviation = math.sqrt(mean)
        places = (thresholds + 0.5 - mean) / (deviation * math.sqrt(2))
        return np.array([0.5 * math.erfc(-x) for x in places.tolist()])
    reach = round(mean + 10 * math.sqrt(mean) + 30)
    mass = poisson(mean, reach)
    below = np.concatenate([[0.0], np.minimum(np.cumsum(mass[:-1]), 1.0), [1.0]])
    return below[np.clip(thresholds + 1, 0, reach + 1)]


def separate(
    scale: int, thresholds: Sequence[int], edge_factor: int = 16
) -> list[ExpectedSizes]:
    """Return the expected counts of a Kronecker graph for each threshold."""
    sizes, edges = class_edges(scale, edge_factor)
    means = edges.sum(axis=1) / sizes
    at = np.asarray(thresholds, dtype=np.int64)
    # [threshold, class]: share of vertices, and of ends of edges, that are normal
    vertex = np.stack([poisson_below(x, at) for x in means.tolist()], axis=1)
    end = np.stack([poisson_below(x, at - 1) for x in means.tolist()], axis=1)
    nn = np.einsum("ti,ij,tj->t", end, edges, end)
    normal = np.einsum("ti,ij->t", end, edges)
    delegates = (1 - vertex) @ sizes
    m = float(edges.sum())
    return [
        ExpectedSizes(
            threshold,
            2.0**scale,
            float(delegates[t]),
            float(nn[t]),
            float(normal[t] - nn[t]),
            float(normal[t] - nn[t]),
            float(m - 2 * normal[t] + nn[t]),
        )
        for t, threshold in enumerate(at.tolist())
    ]
