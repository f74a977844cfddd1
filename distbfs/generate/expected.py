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

import numpy as np

from distbfs.generate.kronecker import INITIATOR
from distbfs.types import Floats, Ids

WIDE = 4096.0  # classes with a larger mean degree have STEPS a deviation
STEPS, REACH = 2, 4  # of a deviation; deviations on either side


def class_means(scale: int, edge_factor: float) -> tuple[Floats, Floats]:
    """Return (vertices, expected distinct neighbours), float64 [scale + 1] each.

    The classes are k = 0 … scale.
    """
    a, b, c, d = INITIATOR
    tuples = edge_factor * 2.0**scale
    sizes = np.array([float(math.comb(scale, k)) for k in range(scale + 1)])
    means = np.zeros(scale + 1)
    for k in range(scale + 1):
        for ones in range(k + 1):
            zeros = np.arange(scale - k + 1)
            count = np.array(
                [float(math.comb(scale - k, z)) for z in zeros.tolist()]
            ) * math.comb(k, ones)
            chance = d**ones * c ** (k - ones) * b**zeros * a ** (scale - k - zeros)
            means[k] += float((count * -np.expm1(-2 * tuples * chance)).sum())
    return sizes, means


def expected_histogram(scale: int, edge_factor: float = 16) -> tuple[Ids, Floats]:
    """Return (degrees int64 ascending, expected vertices float64)."""
    sizes, means = class_means(scale, edge_factor)
    vertices: dict[int, float] = {}
    for size, mean in zip(sizes.tolist(), means.tolist(), strict=True):
        k, share = _normal(mean) if mean > WIDE else _poisson(mean)
        for degree, part in zip(k.tolist(), share.tolist(), strict=True):
            vertices[degree] = vertices.get(degree, 0.0) + size * part
    degrees = np.array(sorted(vertices), dtype=np.int64)
    return degrees, np.array([vertices[k] for k in degrees.tolist()])


def _poisson(mean: float) -> tuple[Ids, Floats]:
    """Return (degrees, share of a class's vertices) of a Poisson distribution."""
    reach = round(mean + 8 * math.sqrt(mean) + 20)
    k = np.arange(reach + 1)
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.maximum(k[1:], 1)))])
    return k, np.exp(k * math.log(max(mean, 1e-300)) - mean - logs)


def _normal(mean: float) -> tuple[Ids, Floats]:
    """Return (degrees, share of a class's vertices) of a normal distribution."""
    steps = np.arange(-REACH * STEPS, REACH * STEPS + 1) / STEPS
    ends = [(x - 0.5 / STEPS) / math.sqrt(2) for x in [*steps.tolist(), REACH + 1]]
    below = np.array([0.5 * (1 + math.erf(x)) for x in ends])
    below[0], below[-1] = 0.0, 1.0
    degrees = np.round(mean + math.sqrt(mean) * steps).astype(np.int64)
    return degrees, np.diff(below)
