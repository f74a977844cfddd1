"""Rules by which engines change direction, and methods that must not."""

import numpy as np
import pytest
from device_graphs import HostGraph
from graphs import Tuples, build, kronecker, uniform

from distbfs.engines.cuda.common import graph_engine as whole
from distbfs.options import SearchOptions
from distbfs.registry import ENGINES, lookup

DENSE = 32  # one in so many vertices
SIZES = [1, 5, 31, 32, 33, 100, 127, 128, 129, 438]  # of levels, 1024 together
SERIAL_EDGES = 4096  # as in fast.c


def layered():
    """A tree with levels of these sizes."""
    starts = np.cumsum([0, *SIZES])
    above = [
        start + np.arange(size) % before
        for start, before, size in zip(starts, SIZES, SIZES[1:], strict=False)
    ]
    return Tuples(int(starts[-1]), np.concatenate(above), np.arange(1, starts[-1]))


def records(source, engine, method, root=0, **options):
    """Records of a search, on the CPU or on the emulated device."""
    options = SearchOptions.named(engine=engine, method=method, **options)
    kind = lookup(ENGINES, "engine", engine)
    if issubclass(kind, whole.GraphEngine):
        search = kind(options).on_graph(HostGraph(source).graph)
    else:
        search = kind(options).whole(build(source)[0][0])
    return search.search(root, records=True).records


@pytest.mark.parametrize(
    ("engine", "method", "options"),
    [
        ("openmp", "hybrid", {"threads": 2}),
        ("layer", "hybrid", {}),
        ("frontier", "hybrid", {}),
    ],
)
def test_levels_are_pulled_from_a_32nd_of_the_vertices_on(
    device, engine, method, options
):
    log = records(layered(), engine, method, **options)
    assert [r.found for r in log] == [*SIZES[1:], 0]
    pulled = [r.direction.startswith("pull") for r in log]
    assert pulled == [size * DENSE >= sum(SIZES) for size in SIZES]
    assert {True, False} == set(pulled)


@pytest.mark.pairs
@pytest.mark.parametrize(
    ("engine", "method", "direction"),
    [
        ("openmp", "push", "auto"),
        ("openmp", "hybrid", "push"),
        ("openmp", "fast", "push"),
        ("layer", "push", "auto"),
        ("layer", "hybrid", "push"),
        ("frontier", "push", "auto"),
        ("frontier", "hybrid", "push"),
        ("bfs4k", "auto", "push"),
    ],
)
def test_methods_that_push_never_pull(device, engine, method, direction):
    for source in (layered(), kronecker(9)):
        log = records(source, engine, method, direction=direction)
        assert all(r.direction.startswith(("push", "trees")) for r in log)


@pytest.mark.parametrize("method", ["fast", "hybrid"])
def test_direction_pull_pulls_each_level(method):
    log = records(kronecker(9), "openmp", method, direction="pull")
    assert {r.direction for r in log} - {"trees"} == {"pull"}


@pytest.mark.parametrize("method", ["w1", "w2", "w4", "w8", "w16", "w32"])
def test_virtual_warps_have_the_size_of_their_method(device, method):
    kind = lookup(ENGINES, "engine", "virtual-warp")
    maker = kind(SearchOptions(engine="virtual-warp", method=method))
    search = maker.by_number(HostGraph(layered()).graph)
    assert 1 << search.params.width == int(method[1:])


def forced(source, direction):
    """Records of method fast of engine openmp, and its edges of each level."""
    root = int(source.degrees.argmax())
    log = records(source, "openmp", "fast", root, direction=direction, threads=2)
    level = source.distances(root)
    reached = level >= 0
    edges = np.bincount(level[reached], weights=source.degrees[reached])
    return log, edges


def test_fast_takes_the_cheaper_direction():
    """One thread where edges are few; marks where a pull follows, not before a push."""
    seen = set()
    for source in (kronecker(14), uniform(40_000, 600_000)):
        log, edges = forced(source, "auto")
        checks = {"auto": sum(r.checks for r in log)}
        for direction in ("push", "pull"):
            checks[direction] = sum(r.checks for r in forced(source, direction)[0])
        assert checks["auto"] < min(checks["push"], checks["pull"])
        kinds = [r.direction for r in log if r.direction != "trees"]
        seen |= set(kinds)
        for depth, kind in enumerate(kinds):
            if kind != "pull":
                assert (kind == "push-serial") == (edges[depth] <= SERIAL_EDGES)
            if depth + 1 < len(kinds):
                assert (kind == "push-marking") <= (kinds[depth + 1] == "pull")
                assert (kind == "push") <= (kinds[depth + 1] != "pull")
    assert seen == {"push-serial", "push-marking", "pull"}
