"""Searches of parts, several on one device, against distances."""

import numpy as np
import pytest
from device_parts import LARGE, check, device_parts, driver_of
from fast_graphs import beside, binary_tree, path, shuffled, star
from graphs import complete, grid, kronecker, random_tuples, some_roots, uniform

GRAPHS = {
    "kronecker": kronecker(13),
    "uniform": uniform(3000, 20_000),
    "hub": shuffled(beside(star(5000), uniform(2000, 5000))),
    "path": shuffled(path(120)),
    "grid": grid(60),
    "tree": binary_tree(4000),
    "complete": complete(300),
    "random": random_tuples(900, 1200, 5),
}
THRESHOLDS = (0, 6, 40, LARGE)
EACH = pytest.mark.parametrize("engine", ["pan", "xbfs"])


@EACH
@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("parts", [1, 2, 4, 8])
def test_levels_and_parents(engine, name, parts):
    source = GRAPHS[name]
    for threshold in THRESHOLDS:
        placed = device_parts(source, parts, threshold=threshold)
        driver = driver_of(placed, engine=engine)
        for root in some_roots(source, 4):
            check(driver, source, root)


@EACH
@pytest.mark.parametrize("direction", ["push", "pull"])
@pytest.mark.parametrize("parts", [1, 4])
def test_directions(engine, direction, parts):
    for name in ("kronecker", "hub", "random"):
        source = GRAPHS[name]
        placed = device_parts(source, parts, threshold=12)
        driver = driver_of(placed, engine=engine, direction=direction)
        for root in some_roots(source, 4):
            check(driver, source, root, records=True)


@EACH
def test_many_searches(engine):
    """Races between streams would show as wrong levels."""
    source = kronecker(15)
    placed = device_parts(source, 4, threshold=24)
    driver = driver_of(placed, engine=engine)
    wanted = {}
    roots = some_roots(source, 20)
    for _ in range(8):
        for root in roots:
            found = driver.search(root)
            sums = [int(level.sum(dtype=np.int64)) for level in found.level]
            assert wanted.setdefault(root, sums) == sums
    for root in roots:
        check(driver, source, root)


@EACH
def test_levels_only(engine):
    source = GRAPHS["kronecker"]
    placed = device_parts(source, 2, threshold=6)
    driver = driver_of(placed, engine=engine, parents=False)
    assert check(driver, source, 1).parent == [None, None]


@EACH
def test_an_edge_is_checked_once_where_all_push(engine):
    source = GRAPHS["kronecker"]
    placed = device_parts(source, 2, threshold=6)
    driver = driver_of(placed, engine=engine, direction="push")
    root = int(np.argmax(source.degrees))
    found = check(driver, source, root, records=True)
    checks = sum(sum(record["checks"].values()) for record in found.records)
    assert checks == source.degrees[source.distances(root) >= 0].sum()
