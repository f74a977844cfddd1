"""Expected edges of the four subgraphs against graphs whose edges are counted."""

from functools import cache

import numpy as np
import pytest
from graphs import kronecker

from distbfs.generate.expected import below, expected_edges, expected_histogram

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
    _, u, v = counted(scale, edge_factor, seed)
    for threshold in THRESHOLDS:
        edges = expected_edges(scale, threshold, edge_factor)
        high_u, high_v = u > threshold, v > threshold
        assert sum(edges.values()) == pytest.approx(len(u), rel=0.01)
        assert close(edges["nn"], (~high_u & ~high_v).sum(), len(u)), threshold
        assert close(edges["nd"], (~high_u & high_v).sum(), len(u)), threshold
        assert close(edges["dn"], (high_u & ~high_v).sum(), len(u)), threshold
        assert close(edges["dd"], (high_u & high_v).sum(), len(u)), threshold


def test_nn_is_much_closer_than_random_ends():
    """Random ends are 20 to 40 % too high where thresholds are usual."""
    _, u, v = counted(16, 16, 1)
    m = len(u)
    for threshold in (16, 32, 64):
        wanted = ((u <= threshold) & (v <= threshold)).sum()
        random_ends = (u <= threshold).sum() ** 2 / m
        assert abs(expected_edges(16, threshold)["nn"] / wanted - 1) < 0.02
        assert random_ends / wanted > 1.2


@pytest.mark.parametrize("scale", [1, 2, 12, 30, 42, 48])
def test_every_edge_is_in_one_subgraph(scale):
    every = [expected_edges(scale, x) for x in (0, 3, 1000, 1 << 62)]
    m = sum(every[0].values())
    for edges in every:
        assert min(edges.values()) >= 0
        assert edges["nd"] == pytest.approx(edges["dn"], rel=1e-9, abs=1e-6)
        assert sum(edges.values()) == pytest.approx(m)
    assert (every[0]["nn"], every[0]["dn"]) == pytest.approx((0, 0), abs=1e-6)
    assert every[-1]["nn"] == pytest.approx(m)


@pytest.mark.parametrize("scale", [5, 20, 33])
def test_edges_are_those_of_the_degrees_but_for_loops(scale):
    degrees, vertices = expected_histogram(scale)
    m = float(degrees @ vertices)
    loops = m - sum(expected_edges(scale, 16).values())
    assert -1e-5 * m < loops < 2.0**scale


def test_figure_5_of_the_paper():
    """Section VI-B: any TH from 16 to 512 keeps nn edges of scale 30 under 10 %."""
    low, high = (expected_edges(30, x) for x in (16, 512))
    assert low["nn"] < 0.01 * sum(low.values())
    assert 0.05 < high["nn"] / sum(high.values()) < 0.1
    degrees, vertices = expected_histogram(30)
    few, many = (vertices[degrees > x].sum() for x in (512, 16))
    assert few < many < 0.25 * (1 << 30)  # 4n/p for 16 devices


@pytest.mark.parametrize("mean", [0.0, 0.3, 5.0, 300.0, 1023.0, 4095.0, 4097.0, 1e6])
def test_poisson(mean):
    at = np.array([-5, -1, 0, 3, 300, 1000, 1100, 4100, 1_000_000, 1 << 60])
    share = below(mean, at)
    drawn = np.random.default_rng(1).poisson(mean, 40_000)
    assert share[:2].tolist() == pytest.approx([0, 0])
    assert share[-1] == pytest.approx(1)
    wanted = [(drawn <= x).mean() for x in at.tolist()]
    assert share.tolist() == pytest.approx(wanted, abs=0.015)
