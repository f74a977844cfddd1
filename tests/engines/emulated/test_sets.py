"""Searches from sets of vertices on devices, which are the CPU, over every runner."""

import numpy as np
import pytest
from graphs import check_search, kronecker, random_tuples, some_sets
from test_between_kernels import LARGE, streamed
from test_sessions import devices, domain, opened, separated  # noqa: F401

from distbfs.benchmark.graph500 import validation_of
from distbfs.engines.cuda.xbfs import seeds
from distbfs.errors import UsageError
from distbfs.registry import ENGINES, lookup
from distbfs.search.choose import Request

GRAPHS = {
    "kronecker": kronecker(8),
    "sparse": random_tuples(300, 200, seed=3),
    "long": random_tuples(600, 640, seed=4),
}


def check(session, source):
    """Search from each set, and from one vertex after it; validate where it lies."""
    validated = validation_of(session, source)
    for roots in some_sets(source):
        for options in ({}, {"depth_limit": 1}, {"records": True}, {"targets": roots}):
            found = session.search(roots, **options)
            level, parent = found.to_numpy()
            wanted = source.distances(roots)
            last = {"depth_limit": 1, "targets": 0}.get(
                next(iter(options), ""), 1 << 20
            )
            wanted = np.where(wanted <= last, wanted, -1)
            np.testing.assert_array_equal(level, wanted)
            np.testing.assert_array_equal(parent[roots], roots)
            assert (parent[wanted < 0] == -1).all()
            if last > 1:
                check_search(source, roots, level, parent)
                answer = validated(found)
                assert answer.valid, answer.errors
                assert answer.nedge == found.nedge
        root = int(roots[-1])
        check_search(source, root, *session.search(root).to_numpy())
    session.close()


@pytest.fixture(params=[2048, 0], ids=["by queue", "by pull"])
def way(request, monkeypatch):
    """How searches from large sets begin."""
    monkeypatch.setattr(seeds, "BLOCK_EDGES", request.param)


@pytest.mark.parametrize("internal", [False, True])
@pytest.mark.parametrize("name", GRAPHS)
def test_one_device(name, internal, way):
    for direction in ("auto", "push", "pull"):
        source = GRAPHS[name]
        check(opened(source, direction=direction, internal_ids=internal), source)


@pytest.mark.parametrize("internal", [False, True])
@pytest.mark.parametrize("count", [2, 3])
def test_one_domain(devices, count, internal, way):  # noqa: F811
    for name, direction in (
        ("kronecker", "auto"),
        ("sparse", "push"),
        ("long", "auto"),
    ):
        devices[:] = [0] * count
        request, source = Request(domain=count), GRAPHS[name]
        options = {"internal_ids": internal, "direction": direction}
        check(opened(source, request=request, **options), source)


@pytest.mark.parametrize("engine", ["auto", "pan"])
@pytest.mark.parametrize("parts", [1, 3])
def test_between_domains(parts, engine):
    for name, threshold in (("kronecker", 4), ("sparse", 0), ("long", LARGE)):
        source = GRAPHS[name]
        request = Request(parts, "--parts")
        options = {"threshold": threshold, "engine": engine}
        check(opened(source, request=request, **options), source)


@pytest.mark.parametrize("sizes", [(1, 1), (2, 1), (2, 2)])
def test_on_streams(device, id_bits, sizes):
    for name, threshold in (("kronecker", 4), ("sparse", LARGE), ("long", 0)):
        source = GRAPHS[name]
        roots = [*some_sets(source), 0]
        streamed(source, sizes, threshold=threshold, roots=roots)


def test_engines_of_one_source_say_so():
    for name in ENGINES:
        kind = lookup(ENGINES, "engine", name)
        if kind.sets:
            continue
        session = opened(engine=name)
        with pytest.raises(
            UsageError, match=f"^engine {name} searches from one.* xbfs"
        ):
            session.search([0, 1])
        session.close()
