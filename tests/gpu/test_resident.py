"""Searches that are resident on devices: right, alike, and again and again."""

import numpy as np
import pytest
from fast_graphs import HUGE, beside, chained, path, shuffled, star, untils
from graphs import complete, grid, kronecker, random_tuples, some_roots, uniform
from resident_parts import check_resident, look, resident_driver, resident_parts

from distbfs.device import cuda
from distbfs.device.peers import access_problem
from distbfs.engines.cuda.xbfs import XbfsEngine
from distbfs.exchange.world import SoloWorld
from distbfs.generate.cuda import device_tuples
from distbfs.generate.kronecker import Kronecker
from distbfs.graph500.device_validate import validate_on_device
from distbfs.options import SearchOptions
from distbfs.partition.device_resident import construct_resident

GRAPHS = {
    "kronecker": kronecker(14),
    "uniform": uniform(30_000, 200_000),
    "hub": shuffled(beside(star(20_000), uniform(9000, 30_000))),
    "path": shuffled(path(4000)),
    "grid": grid(120),
    "blobs": shuffled(chained(complete(200), path(90), kronecker(11))),
    "complete": complete(300),
    "random": random_tuples(900, 1200, 5),
}
WAYS = (
    {},
    {"mark_edges": 0, "pull_edges": HUGE},
    {"mark_edges": HUGE, "pull_edges": HUGE},
    {"pull_edges": 50, "mark_edges": HUGE},
)
SEARCHES, CHECKED = 10_000, 40


def parts_here():
    """The numbers of parts that the devices here can have, one each."""
    many = min(int(cuda.cupy().cuda.runtime.getDeviceCount()), 8)
    return [p for p in (1, 2, 3, 4, 8) if p <= many]


def devices_of(parts):
    """The devices of so many parts, which see each other's memory."""
    devices = list(range(parts))
    problem = access_problem(devices)
    if problem:
        pytest.skip(problem)
    return devices


@pytest.mark.parametrize("name", GRAPHS)
def test_rows(name):
    for parts in parts_here():
        made, summary = resident_parts(GRAPHS[name], parts, devices=devices_of(parts))
        check_resident(GRAPHS[name], made, summary)


@pytest.mark.parametrize("internal", [False, True])
@pytest.mark.parametrize("name", GRAPHS)
def test_levels_and_parents(name, internal):
    source = GRAPHS[name]
    for parts in parts_here():
        for k, overrides in enumerate(WAYS):
            driver = resident_driver(
                source,
                parts,
                devices=devices_of(parts),
                internal_ids=internal,
                overrides=overrides,
                wide=k % 2 == 1,
            )
            for root in some_roots(source, 4):
                look(driver, source, root)
                look(driver, source, root, records=True)
            driver.close()


@pytest.mark.parametrize("direction", ["push", "pull"])
def test_directions(direction):
    for parts in parts_here():
        for name in ("kronecker", "blobs", "random"):
            told = {"devices": devices_of(parts), "direction": direction}
            driver = resident_driver(GRAPHS[name], parts, **told)
            for root in some_roots(GRAPHS[name], 4):
                look(driver, GRAPHS[name], root)


@pytest.mark.parametrize("internal", [False, True])
def test_searches_end_after_a_level_or_with_targets(internal):
    for parts in parts_here():
        for name in ("kronecker", "hub", "path", "blobs"):
            source = GRAPHS[name]
            told = {"devices": devices_of(parts), "internal_ids": internal}
            driver = resident_driver(source, parts, **told)
            for root in some_roots(source, 2):
                for until in untils(source.distances(root), root):
                    look(driver, source, root, until=until)
                look(driver, source, root)
            driver.close()


def summary_of(found):
    """What tells results apart, cheaply: levels, reached, sum of levels."""
    reached = total = 0
    for level in found.level:
        with level.device:
            some = level[level >= 0]
            reached += int(some.size)
            total += int(some.sum(dtype=np.int64))
    return found.levels, reached, total


@pytest.mark.parametrize("parts", [1, 2, 4])
def test_ten_thousand_searches(parts):
    """One after the other at scale 20; each like the first from its root, validated."""
    if parts not in parts_here():
        pytest.skip(f"needs {parts} devices")
    source, options = Kronecker(20, 16, 1), SearchOptions(engine="xbfs")
    devices = devices_of(parts)
    made, _ = construct_resident(source, SoloWorld(), parts, devices=devices)
    session = ResidentSession(SoloWorld(), XbfsEngine(options), made, options)
    tuples = device_tuples(source)
    rng = np.random.default_rng(2)
    roots = rng.integers(0, source.n, 4 * CHECKED)
    roots = roots[session.connected(roots)][:CHECKED].tolist()
    wanted = {}
    for root in roots:
        found = session.search(root)
        told = validate_on_device(tuples, root, *session.gathered([found]))
        assert told.valid, told.errors
        wanted[root] = summary_of(found)
    for k in range(SEARCHES):
        root = roots[k % len(roots)]
        assert summary_of(session.search(root)) == wanted[root], (k, root)
    session.close()


def test_a_device_that_does_not_come():
    """The others end within 10 s, and say which part they waited for."""
    if len(parts_here()) < 2:
        pytest.skip("needs 2 devices")
    source = kronecker(12)
    driver = resident_driver(source, 2, devices=devices_of(2))
    look(driver, source, 1)
    part = driver._parts[0]
    with cuda.cupy().cuda.Device(part.device):
        part.ready(1)
        part.start()
        seconds, _, failed = part.wait()
    assert failed == 2
    assert seconds < 10
