"""Bit-parallel searches over the devices of a domain, against SciPy."""

from functools import cache

import numpy as np
import pytest
from device_graphs import hubs
from fast_graphs import beside, path, shuffled, star
from graphs import NAMED, build, grid, kronecker, random_tuples, uniform
from resident_parts import device_searches, resident_parts
from sessions import open_tuples

from distbfs.device import cuda
from distbfs.device.peers import access_problem
from distbfs.errors import SearchStopped
from distbfs.multisearch.apps import betweenness
from distbfs.multisearch.base import RunOptions
from distbfs.multisearch.part_loop import Wanted
from distbfs.ranks.world import SoloWorld
from distbfs.search.choose import Request
from distbfs.service.shared_traversal import MOST, batch_searcher
from distbfs.store.whole import NO_DELEGATES

GRAPHS = {
    **NAMED,
    "kronecker": kronecker(14),
    "uniform": uniform(30_000, 200_000),
    "hub": shuffled(beside(star(20_000), uniform(9000, 30_000))),
    "hubs": hubs(3, 2500),
    "path": shuffled(path(1500)),
    "grid": shuffled(grid(90)),
    "random": random_tuples(900, 1200, 5),
}
PARTS = (1, 2, 3, 4, 8)


def members(made):
    return [*made]


def devices_of(parts):
    """The devices of so many parts, in turn where there are fewer."""
    here = min(int(cuda.cupy().cuda.runtime.getDeviceCount()), parts)
    problem = access_problem(list(range(here)))
    if problem:
        pytest.skip(problem)
    return [k % here for k in range(parts)]


@cache
def distances(name, root):
    return GRAPHS[name].distances(root)


def check(searches, name, roots):
    """Search; levels that are asked for are those of SciPy."""
    source = GRAPHS[name]
    searches.run(roots, Wanted(levels=True))
    wanted = np.stack([distances(name, root) for root in roots.tolist()])
    rng = np.random.default_rng(len(roots))
    rows = rng.integers(0, len(roots), 20_000)
    targets = rng.integers(0, source.n, 20_000)
    found = searches.levels_at(rows, targets)
    np.testing.assert_array_equal(found, wanted[rows, targets])
    every = searches.levels_at(np.zeros(source.n, np.int64), np.arange(source.n))
    np.testing.assert_array_equal(every, wanted[0])


PULLS = (None, 1, 3000, 1 << 62)
EACH_TWICE = [(p, PULLS[(k + x) % 4]) for k, p in enumerate(PARTS) for x in (0, 2)]


@pytest.mark.parametrize(("parts", "pull_edges"), EACH_TWICE)
def test_levels(parts, pull_edges):
    devices = devices_of(parts)
    for k, (name, source) in enumerate(GRAPHS.items()):
        made, _ = resident_parts(source, parts, devices=devices)
        if k % 2:
            for part in made:
                with part.ids.device:
                    object.__setattr__(
                        part.out, "offsets", part.out.offsets.astype(np.uint64)
                    )
        searches = device_searches(SoloWorld(), members(made), pull_edges=pull_edges)
        rng = np.random.default_rng(3)
        for count in (126, 5, 126):
            ends = [source.degrees.argmax(), source.degrees.argmin()]
            check(searches, name, np.append(ends, rng.integers(0, source.n, count)))
        if name == "path":
            with pytest.raises(SearchStopped):
                searches.run(np.array([3]), Wanted(stop=lambda: True))
        searches.close()


@pytest.mark.parametrize("parts", PARTS)
def test_dependencies(parts):
    """Of betweenness, against the kernel for CPUs; the same from run to run."""
    devices = devices_of(parts)
    for source in GRAPHS.values():
        made, _ = resident_parts(source, parts, devices=devices)
        searches = device_searches(SoloWorld(), members(made))
        roots = np.random.default_rng(4).permutation(source.n)[:70]
        searches.run(roots, Wanted(levels=True))
        sums, again = (searches.dependencies(None) for _ in range(2))
        [whole], _ = build(source, 1, threshold=NO_DELEGATES)
        wanted = betweenness.dependencies(whole, roots, RunOptions())
        for part, values in enumerate(sums):
            np.testing.assert_allclose(values, wanted[part::parts], 1e-9, 1e-9)
            np.testing.assert_array_equal(values, again[part])
        searches.close()


@pytest.mark.alone
@pytest.mark.parametrize("parts", PARTS[1:])
def test_beside_the_searches_of_a_session(parts):
    """One after the other, as a service has them."""
    devices = devices_of(parts)
    if len(set(devices)) < parts:
        pytest.skip(f"needs {parts} devices")
    source = GRAPHS["kronecker"]
    session = open_tuples(source, request=Request(devices=devices, domain=parts))
    at_once = batch_searcher(session)
    rng = np.random.default_rng(7)
    for _ in range(20):
        sources = rng.permutation(source.n)[:MOST].tolist()
        asked = [(root, rng.integers(0, source.n, 50).tolist()) for root in sources]
        _, answers = at_once.levels(asked, lambda: False)
        for (root, targets), levels in zip(asked, answers, strict=True):
            assert levels == source.distances(root)[targets].tolist()
        level, _ = session.search(sources[0]).to_numpy()
        np.testing.assert_array_equal(level, source.distances(sources[0]))
    session.close()
