"""The expected degree histogram of a Kronecker graph, without generating it.

A vertex whose scrambled id has k one-bits is an end of a tuple with probability
(A+B)^(s-k) (C+D)^k. The probability of a tuple with a given neighbour is a product of
A, B, C, D that depends on how many of the vertex's one- and zero-bits meet one-bits of
the neighbour. Summing 1 - exp(-expected tuples) over the classes of neighbours gives
the expected number of distinct neighbours, without repeats; the degrees of a class are
modelled by a Poisson distribution or, if the mean is large, by a normal distribution in
steps.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from distbfs.generate.kronecker import INITIATOR
from distbfs.types import Floats, Ids

WIDE = 4096.0  # classes with a larger mean degree have STEPS a deviation
STEPS, REACH = 2, 4  # of a deviation; deviations on either side


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


def poisson(mean: float, reach: int) -> Floats:
    """Return the probabilities of 0 … reach in a Poisson distribution, float64."""
    k = np.arange(reach + 1)
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.maximum(k[1:], 1)))])
    return np.exp(k * math.log(max(mean, 1e-300)) - mean - logs)


def expected_histogram(scale: int, edge_factor: float = 16) -> tuple[Ids, Floats]:
    """Return (degrees int64 ascending, expected vertices float64)."""
    sizes, neighbours = class_neighbours(scale, edge_factor)
    means = neighbours.sum(axis=1)
    vertices: dict[int, float] = {}
    for size, mean in zip(sizes.tolist(), means.tolist(), strict=True):
        if mean > WIDE:
            k, share = _normal(mean)
        else:
            share = poisson(mean, round(mean + 8 * math.sqrt(mean) + 20))
            k = np.arange(len(share))
        for degree, part in zip(k.tolist(), share.tolist(), strict=True):
            vertices[degree] = vertices.get(degree, 0.0) + size * part
    degrees = np.array(sorted(vertices), dtype=np.int64)
    return degrees, np.array([vertices[k] for k in degrees.tolist()])


def _normal(mean: float) -> tuple[Ids, Floats]:
    """Return (degrees, share of a class's vertices) of a normal distribution."""
    steps = np.arange(-REACH * STEPS, REACH * STEPS + 1) / STEPS
    ends = [(x - 0.5 / STEPS) / math.sqrt(2) for x in [*steps.tolist(), REACH + 1]]
    below = np.array([0.5 * (1 + math.erf(x)) for x in ends])
    below[0], below[-1] = 0.0, 1.0
    degrees = np.round(mean + math.sqrt(mean) * steps).astype(np.int64)
    return degrees, np.diff(below)
