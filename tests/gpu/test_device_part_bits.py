"""Many searches in one traversal between domains of one device each, against SciPy."""

from functools import cache

import numpy as np
import pytest
from device_graphs import hubs
from fast_graphs import beside, path, shuffled, star
from graphs import NAMED, grid, kronecker, random_tuples, uniform
from sessions import open_tuples

from distbfs.device import cuda
from distbfs.multisearch.base import RunOptions
from distbfs.multisearch.problem import Problem, State
from distbfs.multisearch.searchers import PartsSearcher
from distbfs.plan import pull_shares
from distbfs.search.choose import Request

GRAPHS = {
    **{name: NAMED[name] for name in ("two-hubs", "isolated", "loops", "one-vertex")},
    "kronecker": kronecker(13),
    "uniform": uniform(20_000, 100_000),
    "hub": shuffled(beside(star(20_000), uniform(9000, 30_000))),
    "hubs": hubs(3, 2500),
    "path": shuffled(path(700)),
    "grid": shuffled(grid(70)),
    "random": random_tuples(900, 1200, 5),
}
PROBLEM = Problem(
    "levels and sums",
    (
        State("level", "int16", "pair", -1),
        State("count", "int64", "level"),
        State("reached_from", "int64", "vertex"),
        State("distance_from", "int64", "vertex"),
        State("harmonic_from", "float64", "vertex"),
    ),
    bits=True,
)


@cache
def distances(name, root):
    return GRAPHS[name].distances(root)


def check(session, name, count):
    """Levels, counts and sums of some sources."""
    source = GRAPHS[name]
    on = PartsSearcher(session, RunOptions())
    assert on.smallest == 512
    roots = np.random.default_rng(count).integers(0, source.n, count)
    wanted = np.stack([distances(name, root) for root in roots.tolist()])
    results = on.run(PROBLEM, roots)
    np.testing.assert_array_equal(results["level"], wanted)
    counts = [(wanted == k).sum(axis=1) for k in range(wanted.max() + 1)]
    np.testing.assert_array_equal(results["count"], np.array(counts).T)
    reached = wanted >= 0
    np.testing.assert_array_equal(results["reached_from"], reached.sum(axis=0))
    far = np.where(reached, wanted, 0).sum(axis=0)
    np.testing.assert_array_equal(results["distance_from"], far)
    near = np.divide(1, wanted, out=np.zeros(wanted.shape), where=wanted > 0)
    np.testing.assert_allclose(results["harmonic_from"], near.sum(axis=0), rtol=1e-12)


def request_of(devices, parts):
    """Two domains on one device, or on two."""
    have = int(cuda.cupy().cuda.runtime.getDeviceCount())
    if devices > have:
        pytest.skip(f"needs {devices} devices")
    if devices == 1:
        return Request(parts, "--parts", devices=1)
    return Request(devices=list(range(devices)), domain=1, divided=True)


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("threshold", [0, 6, 40, 1 << 30])
def test_domains(threshold, at):
    """On one device that they share, and on two, in turns."""
    have = int(cuda.cupy().cuda.runtime.getDeviceCount())
    ways = [(1, 2), (1, 3), (min(have, 2), 2)]
    for k, (name, source) in enumerate(list(GRAPHS.items())[at::3], at):
        devices, parts = ways[k % 3]
        session = open_tuples(
            source,
            request=request_of(devices, parts),
            threshold=threshold,
            engine="xbfs",
            parents=False,
        )
        for count in (1, 64, 65, 300):
            check(session, name, count)
        session.close()


@pytest.mark.parametrize("share", [1, 1 << 62])
@pytest.mark.parametrize("devices", [1, 2])
def test_directions(monkeypatch, devices, share):
    """Frontiers are pulled that have all edges, so almost none, or any."""
    monkeypatch.setattr(pull_shares, "MANY", share)
    for name in ("kronecker", "hub", "grid"):
        session = open_tuples(
            GRAPHS[name],
            request=request_of(devices, 2),
            threshold=20,
            engine="xbfs",
            parents=False,
        )
        check(session, name, 512)
        session.close()
