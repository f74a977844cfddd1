"""Expected degrees and edges of a Kronecker graph, without generating it.

A vertex whose scrambled id has k one-bits is an end of a tuple with probability
(A+B)^(s-k) (C+D)^k; such vertices form a class. The probability of a tuple with a given
neighbour is a product of A, B, C, D that depends on how many of the vertex's one- and
zero-bits meet one-bits of the neighbour. Summing 1 - exp(-expected tuples) over the
classes of neighbours gives the expected number of distinct neighbours, without repeats;
the degrees of a class are modelled by a Poisson distribution or, if the mean is large,
by a normal distribution.

The end of an edge in a class is normal with the probability that its degree, one plus a
Poisson number of other neighbours, does not exceed TH. So |Enn|, |End| and |Edd| (Pan,
Pearce, Owens 2018, Section III) are sums over at most 49 x 49 pairs of classes.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from distbfs.generate.kronecker import INITIATOR
from distbfs.types import SUBGRAPHS, Floats, Ids

WIDE = 4096.0  # classes with a larger mean degree are modelled as normal
STEPS, REACH = 2, 8  # of a deviation, in such a class; deviations on either side


@lru_cache(maxsize=64)
def class_neighbours(scale: int, edge_factor: float) -> tuple[Floats, Floats]:
    """Return (vertices [scale + 1], neighbours [scale + 1, scale + 1]), float64.

    Class k holds the vertices with k one-bits. neighbours[k, j]: expected number of
    distinct neighbours of a vertex of class k in class j; the vertex itself is one
    """
    a, b, c, d = INITIATOR
    tuples = edge_factor * 2.0**scale
    sizes = np.array([float(math.comb(scale, k)) for k in range(scale + 1)])
    neighbours = np.zeros((scale + 1, scale + 1))
    for k in range(scale + 1):
        zeros = np.arange(scale - k + 1)
        ways = np.array([float(math.comb(scale - k, z)) for z in zeros.tolist()])
        for ones in range(k + 1):
            chance = d**ones * c ** (k - ones) * b**zeros * a ** (scale - k - zeros)
            some = ways * math.comb(k, ones) * -np.expm1(-2 * tuples * chance)
            neighbours[k, ones + zeros] += some
    return sizes, neighbours


def below(mean: float, degrees: Ids) -> Floats:
    """Return the probability that a degree is at most each of ``degrees``, float64.

    mean: mean degree of a class; degrees: int64, -1 or less for probability 0
    """
    if mean > WIDE:
        places = (degrees + 0.5 - mean) / math.sqrt(2 * mean)
        return np.array([0.5 * math.erfc(-x) for x in places.tolist()])
    k = np.arange(round(mean + 10 * math.sqrt(mean) + 30))
    logs = np.cumsum(np.log(np.maximum(k, 1)))  # of k!
    mass = np.exp(k * math.log(max(mean, 1e-300)) - mean - logs)
    sums = np.concatenate([[0.0], np.minimum(np.cumsum(mass), 1.0)])
    return sums[np.clip(degrees + 1, 0, len(k))]


def expected_histogram(scale: int, edge_factor: float = 16) -> tuple[Ids, Floats]:
    """Return (degrees int64 ascending, expected vertices float64)."""
    sizes, neighbours = class_neighbours(scale, edge_factor)
    degrees, vertices = list[Ids](), list[Floats]()
    for size, mean in zip(sizes, neighbours.sum(axis=1).tolist(), strict=True):
        deviation = math.sqrt(mean)
        step = deviation / STEPS if mean > WIDE else 1.0
        steps = math.ceil((REACH * deviation + 20) / step)
        cuts = np.rint(mean + step * (np.arange(-steps, steps + 1) - 0.5))
        cuts = np.unique(np.maximum(cuts, -1)).astype(np.int64)
        degrees.append(np.rint((cuts[:-1] + 1 + cuts[1:]) / 2).astype(np.int64))
        vertices.append(size * np.diff(below(mean, cuts)))
    occurring, place = np.unique(np.concatenate(degrees), return_inverse=True)
    return occurring, np.bincount(place, np.concatenate(vertices)).astype(np.float64)


def expected_edges(
    scale: int, threshold: int, edge_factor: int = 16
) -> dict[str, float]:
    """Return the expected number of directed edges of nn, nd, dn and dd."""
    sizes, neighbours = class_neighbours(scale, edge_factor)
    edges, k = sizes[:, None] * neighbours, np.arange(scale + 1)
    a, _, _, d = INITIATOR
    loops = d**k * a ** (scale - k)  # counted as neighbours
    edges[k, k] -= sizes * -np.expm1(-2 * edge_factor * 2.0**scale * loops)
    means, others = edges.sum(axis=1) / sizes, np.array([threshold - 1])
    normal = np.concatenate([below(mean, others) for mean in means.tolist()])
    ends = {"n": normal, "d": 1 - normal}
    return {x: float(ends[x[0]] @ edges @ ends[x[1]]) for x in SUBGRAPHS}
