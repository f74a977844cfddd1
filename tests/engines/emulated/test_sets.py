"""Searches from sets of vertices on devices, which are the CPU, over every runner."""

import numpy as np
import pytest
from graphs import check_search, kronecker, random_tuples, some_sets
from test_between_kernels import LARGE, streamed
from test_sessions import devices, opened  # noqa: F401

from distbfs.benchmark.graph500 import validation_of
from distbfs.engines.cuda.xbfs import share_search
from distbfs.errors import UsageError
from distbfs.registry import ENGINES, lookup
from distbfs.search.choose import Request

GRAPHS = {
    "kronecker": kronecker(7),
    "sparse": random_tuples(200, 130, seed=3),
    "long": random_tuples(300, 320, seed=4),
}
WAYS = pytest.mark.parametrize("room", [2048, 0], ids=["by queue", "by pull"])


def check(session, source):
    """Search from each set, and from one vertex after it; validate where it lies."""
    validated = validation_of(session, source)
    for roots in some_sets(source):
        found = session.search(roots)
        check_search(source, roots, *found.to_numpy())
        answer = validated(found)
        assert answer.valid, answer.errors
        assert answer.nedge == found.nedge
        root = int(roots[-1])
        check_search(source, root, *session.search(root).to_numpy())
    wanted, targets = source.distances(roots), [int(roots[0])]
    for last, options in (
        (0, {"targets": targets}),
        (1, {"depth_limit": 1}),
        (source.n, {"records": True}),
    ):
        level, parent = session.search(roots, **options).to_numpy()
        cut = np.where(wanted <= last, wanted, -1)
        np.testing.assert_array_equal(level, cut)
        np.testing.assert_array_equal(parent >= 0, cut >= 0)
        np.testing.assert_array_equal(parent[roots], roots)
    session.close()


@WAYS
@pytest.mark.parametrize("internal", [False, True])
def test_one_device(monkeypatch, room, internal):
    monkeypatch.setattr(share_search, "BLOCK_EDGES", room)
    for name, direction in (
        ("kronecker", "auto"),
        ("kronecker", "push"),
        ("sparse", "pull"),
        ("long", "auto"),
    ):
        source = GRAPHS[name]
        check(opened(source, direction=direction, internal_ids=internal), source)


@WAYS
@pytest.mark.parametrize(("count", "internal"), [(2, False), (3, True)])
def test_one_domain(devices, monkeypatch, room, count, internal):  # noqa: F811
    monkeypatch.setattr(share_search, "BLOCK_EDGES", room)
    for name, direction in (("kronecker", "auto"), ("sparse", "push")):
        devices[:] = [0] * count
        source, request = GRAPHS[name], Request(domain=count)
        options = {"internal_ids": internal, "direction": direction}
        check(opened(source, request=request, **options), source)


def test_between_domains():
    for name, threshold in (("kronecker", 4), ("sparse", 0)):
        source, request = GRAPHS[name], Request(3, "--parts")
        check(opened(source, request=request, threshold=threshold), source)


@pytest.mark.thorough
def test_on_streams(device, id_bits):
    for name, threshold in (("kronecker", 4), ("sparse", LARGE)):
        roots = [*some_sets(GRAPHS[name]), 0]
        streamed(GRAPHS[name], (2, 1), threshold=threshold, roots=roots)


def test_engines_of_one_source_say_so():
    for name in ENGINES:
        if lookup(ENGINES, "engine", name).sets:
            continue
        session = opened(engine=name)
        with pytest.raises(
            UsageError, match=f"^engine {name} searches from one.* xbfs"
        ):
            session.search([0, 1])
        session.close()
