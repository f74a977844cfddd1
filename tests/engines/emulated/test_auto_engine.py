"""What ``--engine auto`` takes for a graph, and that it searches right."""

import pytest
from device_graphs import HostGraph
from fast_graphs import chained, fault, path, shuffled
from graphs import complete, grid, kronecker

from distbfs.engines.cuda.papers.bfs4k.knobs import Degrees, auto_knobs, power_of_two
from distbfs.options import SearchOptions
from distbfs.search import choose as choosing


def taken(graph, **options):
    """The options that auto searches a graph with, and why."""
    return choosing.engine_for(graph, SearchOptions.named(engine="xbfs", **options))


def test_the_rule(device, monkeypatch):
    """Pushes alone: bfs4k for few levels of many edges and high degrees."""
    dense = HostGraph(shuffled(complete(40))).graph
    thin = HostGraph(chained(complete(40), path(9))).graph
    monkeypatch.setattr(choosing, "WIDE", 30)
    assert taken(dense) == (SearchOptions(engine="xbfs"), "")
    push = {"direction": "push"}
    options, why = taken(dense, **push)
    assert (options.engine, options.method) == ("bfs4k", "claim")
    assert "39 edges each" in why
    assert taken(dense, **push, stepwise=True)[0].engine == "xbfs"
    for name, value in (("HIGH_AVERAGE", 40), ("WIDE", 1 << 20), ("MANY_LEVELS", 2)):
        with monkeypatch.context() as patch:
            patch.setattr(choosing, name, value)
            assert taken(dense, **push)[0].engine == "xbfs", name
    monkeypatch.setattr(choosing, "MANY_LEVELS", 10)
    assert taken(thin, **push)[0].engine == "xbfs"


def test_the_engine_that_is_taken_searches(device, monkeypatch):
    monkeypatch.setattr(choosing, "MANY_LEVELS", 60)
    monkeypatch.setattr(choosing, "WIDE", 30)
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
                options, _ = taken(
                    made.graph, direction=direction, internal_ids=not in_ids
                )
                seen.add((direction, options.engine))
                search = choosing.kind_of(options.engine)(options).on_graph(made.graph)
                for number in (0, made.active - 1):
                    root = int(made.vertices[number])
                    found = search.search(root)
                    assert fault(made, root, found, in_ids=in_ids) is None
    assert {("auto", "xbfs"), ("push", "xbfs"), ("push", "bfs4k")} <= seen


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
