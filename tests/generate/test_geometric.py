"""Geometric tuples: every near pair of points, by a k-d tree."""

import numpy as np
import pytest
from scipy.spatial import cKDTree
from slices import same, taken

from distbfs.errors import UsageError
from distbfs.generate import geometric, positions
from distbfs.generate.geometric import (
    RADIUS,
    Geometric,
    poisson_limits,
    usual_degree,
)


def places(source):
    """Where every point lies, float64 [n, 2], in radii."""
    cells = np.arange(source.side**2)
    of = np.repeat(cells, source.counts(cells))
    index = np.concatenate([np.arange(k) for k in source.counts(cells)])
    x, y = source.points(of, index)
    x, y = x + of % source.side * RADIUS, y + of // source.side * RADIUS
    return np.stack([x, y], axis=1) / RADIUS


@pytest.mark.parametrize("vertices", [4, 60, 1500])
@pytest.mark.parametrize("degree", [0.0, 3.0, 40.0])
@pytest.mark.parametrize("seed", [1, -7])
def test_tuples_are_all_near_pairs(vertices, degree, seed):
    source = Geometric(vertices, degree, seed)
    points = places(source)
    assert source.n == len(points)
    wanted = cKDTree(points).query_pairs(1.0)
    tuples = taken(source, 0, source.tuples)
    same(tuples, source.tuples_at(np.arange(source.tuples)))
    pairs = [tuple(sorted(p)) for p in np.transpose(tuples).tolist()]
    assert len(set(pairs)) == len(pairs)
    assert set(pairs) == wanted


def test_slices_longer_than_a_chunk(monkeypatch):
    monkeypatch.setattr(positions, "CHUNK", 700)
    source = Geometric(3000)
    assert source.tuples > 8000
    same(taken(source, 5, 7000), source.tuples_at(np.arange(5, 7000)))
    assert taken(source, 7, 7)[0].size == 0


def test_blocks_counted_and_made_one_by_one(monkeypatch):
    source = Geometric(2000, 9.0)
    monkeypatch.setattr(geometric, "CANDIDATES", 1)
    other = Geometric(2000, 9.0)
    assert other.at_a_time == 1 < source.at_a_time
    assert (other.n, other.tuples) == (source.n, source.tuples)
    same(taken(other, 0, other.tuples), taken(source, 0, source.tuples))


def test_as_many_as_were_asked_for():
    for vertices, degree in ((50_000, 6.0), (50_000, 20.0), (50_000, 0.0)):
        source = Geometric(vertices, degree)
        assert abs(source.n - vertices) < 6 * np.sqrt(vertices)
        mean = degree or usual_degree(vertices)
        border = 1 - 2 / source.side
        assert border**2 * 0.97 * mean < 2 * source.tuples / source.n < mean * 1.03


def test_points_of_a_cell_are_poisson():
    source = Geometric(200_000, 10.0)
    mean = source.vertices / source.side**2
    counts = source.counts(np.arange(source.side**2))
    size = len(counts)
    assert abs(counts.mean() - mean) < 5 * np.sqrt(mean / size)
    assert abs(counts.var() - mean) < 5 * np.sqrt((mean + 2 * mean**2) / size)
    limits = poisson_limits(2.5)
    assert (np.diff(limits.astype(float)) >= 0).all()
    assert limits[0] / 2.0**64 == pytest.approx(np.exp(-2.5))


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((3,), "vertices is 3; allowed: 4 to"),
        ((9, -1.0), "degree is -1.0; allowed: 0 to 256"),
        ((9, 257.0), "degree is 257"),
    ],
)
def test_refused(words, text):
    with pytest.raises(UsageError, match=text):
        Geometric(*words)
