"""What ``--engine auto`` takes for a graph, and that it searches right."""

import pytest
from device_graphs import HostGraph
from fast_graphs import chained, fault, path, shuffled
from graphs import complete, grid, kronecker

from distbfs.engines.cuda import choice
from distbfs.engines.cuda.auto import AutoEngine
from distbfs.engines.cuda.choice import Shape, choose_engine
from distbfs.engines.cuda.knobs import Degrees, auto_knobs, power_of_two
from distbfs.options import SearchOptions


def engine(**options):
    return AutoEngine(SearchOptions(engine="xbfs", **options))


@pytest.mark.parametrize(
    ("degrees", "edges", "levels", "push_only", "wanted"),
    [
        (Degrees(96.0, 1033.2, 413_378), 9e7, 7, False, "xbfs"),  # kron_g500-logn20
        (Degrees(96.0, 1033.2, 413_378), 9e7, 7, True, "bfs4k"),
        (Degrees(38.9, 158.1, 9648), 2e6, 7, True, "xbfs"),  # Kronecker 16
        (Degrees(2.1, 0.5, 13), 1e8, 30_102, False, "xbfs"),  # europe.osm: the cluster
        (Degrees(2.1, 0.5, 13), 1e8, 30_102, True, "xbfs"),
        (Degrees(26.5, 2.7, 27), 2.2e8, 162, False, "xbfs"),  # nlpkt160
        (Degrees(26.5, 2.7, 27), 2.2e8, 162, True, "bfs4k"),
        (Degrees(26.5, 2.7, 27), 2.2e8, 300, True, "xbfs"),
        (Degrees(9.5, 2.7, 27), 2.2e8, 162, True, "xbfs"),
    ],
)
def test_the_rule(degrees, edges, levels, push_only, wanted):
    shape = Shape(degrees, levels, int(edges))
    found = choose_engine(shape, push_only=push_only)
    assert found.engine == wanted
    assert found.why


def test_the_engine_that_is_taken_searches(device, monkeypatch):
    monkeypatch.setattr(choice, "MANY_LEVELS", 60)
    monkeypatch.setattr(choice, "WIDE", 30)
    seen = set()
    sources = (
        kronecker(9),
        shuffled(grid(12)),
        chained(complete(6), path(60)),
        shuffled(complete(20)),
    )
    for source in sources:
        made = HostGraph(source)
        for direction in ("auto", "push"):
            for in_ids in (True, False):
                maker = engine(direction=direction, internal_ids=not in_ids)
                search = maker.on_graph(made.graph)
                seen.add((direction, maker.chosen.engine))
                for number in (0, made.active - 1):
                    root = int(made.vertices[number])
                    found = search.search(root)
                    assert fault(made, root, found, in_ids=in_ids) is None
    assert {("auto", "xbfs"), ("push", "xbfs"), ("push", "bfs4k")} <= seen


def test_options_of_xbfs_leave_no_choice(device, monkeypatch):
    monkeypatch.setattr(choice, "MANY_LEVELS", 2)
    made = HostGraph(shuffled(grid(9)))
    for options in ({"method": "fast"}, {"direction": "pull"}, {"stepwise": True}):
        maker = engine(**options)
        assert maker.on_graph(made.graph) is not None
        assert maker.chosen is None


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
    assert {road.k7, kron.k7} == {32}
