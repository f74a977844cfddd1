"""Searches of parts with the kernels run on the CPU."""

import numpy as np
import pytest
from device_parts import DRIVERS, LARGE, check, device_parts
from fast_graphs import beside, binary_tree, path, shuffled, star
from graphs import Tuples, complete, grid, kronecker, random_tuples, some_roots, uniform

from distbfs.engines.cuda import part
from distbfs.errors import DistbfsError

GRAPHS = {
    "kronecker": kronecker(8),
    "uniform": uniform(300, 900),
    "hub": shuffled(beside(star(400), uniform(200, 500))),
    "path": shuffled(path(60)),
    "grid": grid(11),
    "tree": binary_tree(200),
    "complete": complete(70),
    "random": random_tuples(90, 200, 5),
    "one-edge": random_tuples(2, 1, 1),
}


@pytest.fixture(params=DRIVERS)
def driver_of(request):
    return DRIVERS[request.param]


@pytest.fixture(autouse=True)
def small(device, monkeypatch):
    """Few blocks: each of their threads is switched to by the CPU."""
    monkeypatch.setattr(part, "BLOCKS", dict.fromkeys(part.BLOCKS, 1))


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("parts", [1, 2, 3])
def test_levels_and_parents(device, name, parts, driver_of):
    source = GRAPHS[name]
    for threshold in (0, 4, LARGE):
        driver = driver_of(device_parts(source, parts, threshold=threshold))
        for root in some_roots(source, 2):
            check(driver, source, root)


@pytest.mark.parametrize("direction", ["push", "pull"])
def test_directions(device, direction, driver_of):
    for name in ("kronecker", "hub", "random"):
        source = GRAPHS[name]
        driver = driver_of(
            device_parts(source, 2, threshold=5), direction=direction, parents=True
        )
        for root in some_roots(source, 3):
            check(driver, source, root)


def test_records_count_every_edge_of_a_push(device, driver_of):
    source = GRAPHS["kronecker"]
    driver = driver_of(device_parts(source, 2, threshold=6), direction="push")
    root = int(np.argmax(source.degrees))
    found = check(driver, source, root, records=True)
    reached = source.distances(root) >= 0
    checks = sum(sum(record.checks.values()) for record in found.records)
    assert checks == source.degrees[reached].sum()


def test_levels_only(device, driver_of):
    source = GRAPHS["kronecker"]
    driver = driver_of(device_parts(source, 2, threshold=6), parents=False)
    assert check(driver, source, 1).parent == [None, None]


def test_ids_of_64_bits(device, driver_of):
    """Offsets of 64 bits give the same."""
    source = GRAPHS["kronecker"]
    parts = device_parts(source, 2, threshold=6)
    for one in parts:
        one.dd.offsets = one.dd.offsets.astype(np.uint64)
    driver = driver_of(parts)
    for root in some_roots(source, 3):
        check(driver, source, root)


@pytest.mark.parametrize("parts", [1, 2])
def test_many_unvisited_vertices_of_a_word(device, driver_of, parts):
    """Pulls look at first columns, and at rows where those are unvisited."""
    source = kronecker(11)
    for threshold in (3, 20):
        placed = device_parts(source, parts, threshold=threshold)
        driver = driver_of(placed, direction="pull")
        check(driver, source, int(np.argmax(source.degrees)), records=True)
        check(driver_of(placed), source, some_roots(source, 1)[0])


@pytest.mark.parametrize("balance", part.BALANCES)
def test_balances_of_pulls(device, driver_of, balance):
    for name in ("kronecker", "hub"):
        source = GRAPHS[name]
        placed = device_parts(source, 2, threshold=5)
        driver = driver_of(placed, direction="pull", balance=balance)
        for root in some_roots(source, 2):
            check(driver, source, root, records=True)


def test_vertices_of_others_leave_as_bitmaps(device):
    """Where parents are not asked for and many are expected."""
    source = GRAPHS["uniform"]
    for threshold in (0, 4, LARGE):
        placed = device_parts(source, 3, threshold=threshold)
        driver = DRIVERS["captured"](placed, parents=False)
        for one in driver._parts:
            one.params.dense_edges = 1
        for root in [*some_roots(source, 3), int(np.argmax(source.degrees))]:
            found = check(driver, source, root, records=True)
            if threshold == LARGE and found.levels > 2:
                words = driver._parts[0].params.part.sent_words
                assert found.records[1].bytes_sent["normals"] == 3 * 2 * 4 * words


def test_a_part_that_waits_in_vain(device):
    """The others do not come: an error, not a wrong answer or a hang."""
    source = GRAPHS["kronecker"]
    driver = DRIVERS["captured"](device_parts(source, 2, threshold=4))
    for one in driver._parts:
        one.params.patience = 1000
    missing = driver._parts.pop()
    assert missing.part.index == 1
    with pytest.raises(DistbfsError, match="waited in vain for the counts"):
        driver.search(1)


def test_a_root_without_neighbours(device, driver_of):
    source = Tuples(70, np.array([1, 2]), np.array([2, 3]))
    driver = driver_of(device_parts(source, 2, threshold=4))
    for root in (9, 2, 69, 9):
        check(driver, source, root)
