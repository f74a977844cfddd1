"""The warp_degree that the degrees ask for."""

import numpy as np
import pytest

from distbfs.multisearch.warp_degree import (
    CANDIDATES,
    ENDLESS,
    choose_warp_degree,
    steps,
)


def histogram(degrees):
    return np.bincount(degrees).astype(np.int64)


def test_even_degrees_take_one_way():
    assert choose_warp_degree(histogram([3] * 1000), 1024, 132) == ENDLESS
    assert choose_warp_degree(histogram([200] * 1000), 1024, 132) < 200


def test_skewed_degrees_take_both():
    degrees = np.random.default_rng(1).zipf(1.7, 100_000)
    warp_degree = choose_warp_degree(histogram(degrees[degrees < 20_000]), 1024, 132)
    assert 0 < warp_degree < ENDLESS


def test_few_searches_take_no_larger_threshold():
    for seed in range(6):
        degrees = np.random.default_rng(seed).integers(0, 30 * (seed + 1), 5000)
        few = choose_warp_degree(histogram(degrees), 8, 132)
        assert few <= choose_warp_degree(histogram(degrees), 1024, 132)


def test_no_candidate_is_better():
    degrees = np.random.default_rng(4).integers(0, 90, 5000)
    counts = histogram(degrees)
    warp_degree = choose_warp_degree(counts, 1024, 132)
    costs = {t: steps(counts, t, 2.0) for t in CANDIDATES if t < len(counts)}
    assert costs[warp_degree] == min(costs.values())


def test_steps():
    """One vertex of degree 40 by a warp, 32 of degree 1 by threads."""
    counts = np.zeros(41, dtype=np.int64)
    counts[1], counts[40] = 32, 1
    assert steps(counts, 0, 2.0) == pytest.approx(32 * 4 + 5)
    assert steps(counts, 2, 2.0) == pytest.approx(5 + 3 + 2)
