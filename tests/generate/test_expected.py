"""The expected degree histogram against graphs that were generated."""

import numpy as np
import pytest
from graphs import kronecker

from distbfs.generate.expected import WIDE, class_neighbours, expected_histogram


@pytest.mark.parametrize(
    ("scale", "edge_factor", "seed"), [(12, 16, 1), (13, 8, 5), (14, 16, 2), (14, 4, 3)]
)
def test_histogram_fits_a_graph(scale, edge_factor, seed):
    degrees = kronecker(scale, edge_factor, seed).degrees
    expected, vertices = expected_histogram(scale, edge_factor)
    assert vertices.sum() == pytest.approx(1 << scale, rel=1e-9)
    assert float(expected @ vertices) == pytest.approx(degrees.sum(), rel=0.02)
    assert vertices[expected == 0].sum() == pytest.approx(
        (degrees == 0).sum(), rel=0.03
    )
    for threshold in (1, 2, 4, 8, 16, 32, 64, 128):
        wanted = int((degrees > threshold).sum())
        tolerance = max(0.03 * wanted, 5 * np.sqrt(wanted))
        assert abs(vertices[expected > threshold].sum() - wanted) < tolerance, threshold


def test_histogram_is_sorted_without_repeats():
    degrees, vertices = expected_histogram(20)
    assert degrees.dtype == np.int64
    assert (np.diff(degrees) > 0).all()
    assert (vertices >= 0).all()


@pytest.mark.parametrize("scale", [1, 5, 26, 33])
def test_classes_hold_all_vertices_and_edges(scale):
    sizes, neighbours = class_neighbours(scale, 16)
    means = neighbours.sum(axis=1)
    assert sizes.sum() == 2.0**scale
    assert (np.diff(means) < 0).all(), "more one-bits, fewer neighbours"
    assert means[0] < 2.0**scale
    assert float(sizes @ means) < 32 * 2.0**scale


def test_repeats_take_less_of_larger_graphs():
    kept = [float(np.dot(*expected_histogram(s))) / (32 * 2.0**s) for s in (14, 20, 26)]
    assert kept == sorted(kept)
    assert 0.6 < kept[0] < kept[-1] < 1


@pytest.mark.thorough
@pytest.mark.parametrize(("scale", "edge_factor"), [(15, 512)])
def test_large_degrees_are_spread(scale, edge_factor):
    """Of classes whose mean is large, too: a threshold at the mean cuts them."""
    degrees = kronecker(scale, edge_factor).degrees
    expected, vertices = expected_histogram(scale, edge_factor)
    sizes, neighbours = class_neighbours(scale, edge_factor)
    means = neighbours.sum(axis=1)
    large = means > WIDE
    assert (sizes[large] > 100).sum() == 2
    for mean in means[large & (sizes > 100)].tolist():
        wanted = int((degrees > mean).sum())
        tolerance = max(0.1 * wanted, 5 * np.sqrt(wanted))
        assert abs(vertices[expected > mean].sum() - wanted) < tolerance
    assert vertices.sum() == pytest.approx(1 << scale, rel=1e-9)
    assert float(expected @ vertices) == pytest.approx(sizes @ means, rel=1e-4)
