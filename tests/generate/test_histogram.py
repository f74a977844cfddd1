"""Expected edges of the four subgraphs against graphs whose edges are counted."""

from functools import cache

import numpy as np
import pytest
from graphs import kronecker

from distbfs.generate.expected import class_neighbours
from distbfs.generate.histogram import class_edges, poisson_below, separate

THRESHOLDS = [0, 4, 16, 32, 64, 128, 256, 1024]


@cache
def counted(scale, edge_factor, seed):
    """Return the degrees, and the degrees of both ends of every directed edge."""
    graph = kronecker(scale, edge_factor, seed)
    degrees, edges = graph.degrees, graph.edges
    return degrees, degrees[edges[:, 0]], degrees[edges[:, 1]]


def close(expected, counted, every):
    """Within 3 %, or 1.5 % of all; thresholds amid a class are the worst."""
    return abs(expected - counted) < max(0.03 * counted, 0.015 * every)


@pytest.mark.parametrize(
    ("scale", "edge_factor", "seed"),
    [(12, 16, 1), (13, 8, 5), (14, 16, 2), (14, 4, 3), (16, 16, 1)],
)
def test_subgraphs_are_those_of_a_graph(scale, edge_factor, seed):
    degrees, u, v = counted(scale, edge_factor, seed)
    for shares in separate(scale, THRESHOLDS, edge_factor):
        high_u, high_v = u > shares.threshold, v > shares.threshold
        assert shares.n == 1 << scale
        assert shares.m == pytest.approx(len(u), rel=0.01)
        assert close(shares.delegates, (degrees > shares.threshold).sum(), shares.n)
        assert close(shares.nn, (~high_u & ~high_v).sum(), len(u)), shares
        assert close(shares.nd, (~high_u & high_v).sum(), len(u)), shares
        assert close(shares.dn, (high_u & ~high_v).sum(), len(u)), shares
        assert close(shares.dd, (high_u & high_v).sum(), len(u)), shares


def test_nn_is_much_closer_than_random_ends():
    """Random ends are 20 to 40 % too high where thresholds are usual."""
    _, u, v = counted(16, 16, 1)
    m = len(u)
    for shares in separate(16, [16, 32, 64]):
        wanted = ((u <= shares.threshold) & (v <= shares.threshold)).sum()
        random_ends = (u <= shares.threshold).sum() ** 2 / m
        assert abs(shares.nn / wanted - 1) < 0.02
        assert random_ends / wanted > 1.2


@pytest.mark.parametrize("scale", [1, 2, 12, 30, 42, 48])
def test_every_edge_is_in_one_subgraph(scale):
    every = separate(scale, [0, 3, 1000, 1 << 62])
    for edges in every:
        assert min(edges.nn, edges.nd, edges.dn, edges.dd) > -1e-9 * edges.m
        assert edges.nd == edges.dn
        shares = edges.shares()
        assert shares["nn"] + shares["nd_dn"] + shares["dd"] == pytest.approx(1)
        assert edges.m == pytest.approx(every[0].m)
    assert (every[0].nn, every[0].dn) == pytest.approx((0, 0), abs=1e-6)
    assert every[-1].delegates == pytest.approx(0, abs=1e-3)
    assert every[-1].nn == pytest.approx(every[-1].m)


@pytest.mark.parametrize("scale", [5, 20, 33])
def test_classes_are_those_of_the_degrees_but_for_loops(scale):
    sizes, edges = class_edges(scale, 16)
    wanted_sizes, neighbours = class_neighbours(scale, 16)
    means = neighbours.sum(axis=1)
    assert np.array_equal(sizes, wanted_sizes)
    assert np.allclose(edges, edges.T, rtol=1e-9)
    loops = means - edges.sum(axis=1) / sizes
    assert (loops >= -1e-6 * means).all()
    assert (loops < 1.0 + 1e-6 * means).all()


def test_figure_5_of_the_paper():
    """Section VI-B: any TH from 16 to 512 keeps nn edges of scale 30 under 10 %."""
    low, high = separate(30, [16, 512])
    assert low.shares()["nn"] < 0.01
    assert 0.05 < high.shares()["nn"] < 0.1
    assert high.delegates < low.delegates < 0.25 * low.n  # 4n/p for 16 devices


@pytest.mark.parametrize("mean", [0.0, 0.3, 5.0, 300.0, 1023.0, 1025.0, 1e6])
def test_poisson(mean):
    at = np.array([-5, -1, 0, 3, 300, 1000, 1100, 1_000_000, 1 << 60])
    below = poisson_below(mean, at)
    drawn = np.random.default_rng(1).poisson(mean, 40_000)
    assert below[:2].tolist() == pytest.approx([0, 0])
    assert below[-1] == pytest.approx(1)
    wanted = [(drawn <= x).mean() for x in at.tolist()]
    assert below.tolist() == pytest.approx(wanted, abs=0.015)
