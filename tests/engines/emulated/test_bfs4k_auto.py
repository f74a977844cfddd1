"""The knobs that engine bfs4k sets from the degrees of a graph."""

import pytest

from distbfs.engines.cuda.papers.bfs4k.knobs import Degrees, auto_knobs, power_of_two


@pytest.mark.parametrize(
    ("x", "wanted"), [(0, 4), (4, 4), (7.9, 4), (8, 8), (31, 16), (900, 32)]
)
def test_powers_of_two(x, wanted):
    assert power_of_two(x, 4, 32) == wanted


def test_knobs_follow_section_7():
    """The graphs of Table 1 that Section 7 names."""
    road = auto_knobs(Degrees(2.8, 1.0, 12))
    assert (road.k1, road.k2, road.k5) == (4, 0, 1)
    youtube = auto_knobs(Degrees(5.2, 50.2, 28_754))
    assert (youtube.k4, youtube.k5) == (2, 1)
    assert youtube.k1 > road.k1
    assert 0 < youtube.k2 <= 4
    random = auto_knobs(Degrees(64.0, 10.6, 183))
    assert (random.k1, random.k2) == (32, 0)
    kron = auto_knobs(Degrees(96.0, 1033.2, 413_378))
    assert (kron.k1, kron.k4, kron.k5) == (32, 1, 0)
    assert 0 < kron.k2 < youtube.k2, "low averages have more"
    assert {road.k3, youtube.k3, random.k3, kron.k3} == {4}
    assert {road.k7, kron.k7} == {0}
