"""Searches that are resident on devices: right, alike, and again and again."""

import numpy as np
import pytest
from device_parts import check_result, checked_searches
from fast_graphs import HUGE, beside, chained, path, shuffled, star, untils
from graphs import complete, grid, kronecker, random_tuples, some_roots, uniform
from resident_parts import (
    by_parts,
    check_resident,
    devices_of,
    look,
    parts_here,
    resident_driver,
    resident_parts,
)
from sessions import open_tuples

from distbfs.benchmark.graph500 import validation_of
from distbfs.device import cuda
from distbfs.engines.base import Query
from distbfs.errors import SearchStopped, UsageError
from distbfs.generate.kronecker import Kronecker
from distbfs.options import BuildOptions, SearchOptions
from distbfs.ranks.world import SoloWorld
from distbfs.search.choose import Request
from distbfs.search.holding import Source
from distbfs.search.open import open_source
from distbfs.store.hdf5 import open_store
from distbfs.store.write import write_graph

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
SEARCHES, CHECKED = 3_000, 40


@by_parts(1, 2, 3, 4, 8)
@pytest.mark.parametrize("name", GRAPHS)
def test_rows(name, parts):
    made, summary = resident_parts(GRAPHS[name], parts, devices=devices_of(parts))
    check_resident(GRAPHS[name], made, summary)


@by_parts(1, 2, 3, 4, 8)
@pytest.mark.parametrize("name", GRAPHS)
def test_levels_and_parents(name, parts):
    """By id and by number in turns, which are others for each number of parts."""
    source = GRAPHS[name]
    for k, overrides in enumerate(WAYS):
        driver = resident_driver(
            source,
            parts,
            devices=devices_of(parts),
            internal_ids=(k // 2 + parts) % 2 == 1,
            overrides=overrides,
            wide=k % 2 == 1,
        )
        for root in some_roots(source, 4):
            look(driver, source, root)
            look(driver, source, root, records=True)
        driver.close()


@by_parts(1, 2, 3, 4, 8)
@pytest.mark.parametrize("direction", ["push", "pull"])
def test_directions(direction, parts):
    for name in ("kronecker", "blobs", "random"):
        told = {"devices": devices_of(parts), "direction": direction}
        driver = resident_driver(GRAPHS[name], parts, **told)
        for root in some_roots(GRAPHS[name], 4):
            look(driver, GRAPHS[name], root)


@by_parts(1, 2, 3, 4, 8)
@pytest.mark.parametrize("internal", [False, True])
def test_searches_end_after_a_level_or_with_targets(internal, parts):
    for name in ("kronecker", "hub", "path", "blobs"):
        source = GRAPHS[name]
        told = {"devices": devices_of(parts), "internal_ids": internal}
        driver = resident_driver(source, parts, **told)
        for root in some_roots(source, 2):
            for until in untils(source.distances(root), root):
                look(driver, source, root, until=until)
            look(driver, source, root)
        driver.close()


def several():
    """The numbers of devices, more than one, that a domain can have here."""
    many = [p for p in parts_here() if p > 1]
    if not many:
        pytest.skip("needs 2 devices")
    return many


@pytest.mark.alone
@pytest.mark.parametrize("internal", [False, True])
def test_sessions_of_a_domain(internal):
    """Results lie on all devices; each tells what the tuples say."""
    source = GRAPHS["kronecker"]
    for parts in several():
        request = Request(devices=devices_of(parts), domain=parts)
        session = open_tuples(source, request=request, internal_ids=internal)
        assert f"auto: {parts} devices map each other's memory" in session.why
        about = session.describe()
        assert (about["engine"], about["mode"]) == ("xbfs", "resident")
        assert session.layout.parts == parts == len(session.held.devices)
        validated = validation_of(session, source)
        for found in checked_searches(session, source):
            assert 0 < found.seconds < found.wall_seconds
            assert len({level.device.id for level, _ in found.shards}) == parts
            with pytest.raises(UsageError, match=r"to_numpy\(\), or shards"):
                _ = found.level
            answer = validated(found)
            assert answer.valid, answer.errors
        found = session.search(1, records=True)
        assert len(found.records) == found.depth
        assert session.search(1, parents=False).to_numpy()[1] is None
        with pytest.raises(SearchStopped):
            session.search(1, stop=lambda: True)
        session.close()


def test_domains_of_one_device():
    """Engine xbfs searches between them, in one process."""
    source = GRAPHS["random"]
    for parts in several():
        request = Request(devices=devices_of(parts), domain=1)
        session = open_tuples(source, request=request, threshold=6)
        about = session.describe()
        assert (about["engine"], about["exchange"]) == ("xbfs", "host")
        assert session.held.devices == devices_of(parts)
        assert session.layout.parts == parts
        for found in checked_searches(session, source):
            assert 0 < found.seconds < found.wall_seconds
        session.close()


def test_small_graphs_take_one_device():
    source = GRAPHS["random"]
    session = open_tuples(source, request=Request(devices=devices_of(several()[0])))
    assert "one device searches alone, as 900 vertices are below" in session.why
    assert session.layout.parts == len(session.held.devices) == 1
    check_result(session.search(3), source)
    session.close()


@by_parts(1, 2, 3, 4, 8)
@pytest.mark.parametrize("permute", [None, 5])
def test_stores(tmp_path, permute, parts):
    """Of three parts, on any number of devices, in one domain or between some."""
    source = GRAPHS["random"]
    building = BuildOptions(threshold=6, permute_seed=permute)
    write_graph(SoloWorld(), source, tmp_path / "graph", 3, building)
    stored = Source(source.n, 3, store=open_store(tmp_path / "graph"))
    devices = devices_of(parts)
    for request in (
        Request(devices=devices, domain=parts),
        Request(3, "--parts", devices),
    ):
        options = SearchOptions(engine="auto")
        session = open_source(SoloWorld(), stored, options, request)
        for root in some_roots(source, 3):
            check_result(session.search(root), source)
        session.close()


def summary_of(found):
    """What tells results apart, cheaply: reached, sum of levels, largest level."""
    reached = total = deepest = 0
    for level, _ in found.shards:
        with level.device:
            some = level[level >= 0]
            reached += int(some.size)
            total += int(some.sum(dtype=np.int64))
            deepest = max(deepest, int(level.max()))
    return reached, total, deepest


@by_parts(1, 2, 4)
def test_thousands_of_searches(parts):
    """One after the other at scale 20; each like the first from its root, validated."""
    source = Kronecker(20, 16, 1)
    request = Request(devices=devices_of(parts), domain=parts)
    session = open_tuples(source, request=request, engine="xbfs")
    validated = validation_of(session, source)
    rng = np.random.default_rng(2)
    roots = rng.integers(0, source.n, 4 * CHECKED)
    roots = roots[session.connected(roots)][:CHECKED].tolist()
    wanted = {}
    for root in roots:
        found = session.search(root)
        answer = validated(found)
        assert answer.valid, answer.errors
        wanted[root] = summary_of(found)
    for k in range(SEARCHES):
        root = roots[k % len(roots)]
        assert summary_of(session.search(root)) == wanted[root], (k, root)
    session.close()


@pytest.mark.alone
def test_a_device_that_does_not_come():
    """The others end within 10 s, and say which part they waited for."""
    if len(parts_here()) < 2:
        pytest.skip("needs 2 devices")
    source = kronecker(12)
    driver = resident_driver(source, 2, devices=devices_of(2))
    look(driver, source, 1)
    part = driver._parts[0]
    with cuda.cupy().cuda.Device(part.device):
        part.ready(1, Query())
        part.start()
        seconds, _, failed, _ = part.wait()
    assert failed == 2
    assert seconds < 10
