"""Searches of parts by engine xbfs between domains, with the kernels run on the CPU."""

import pytest
from device_parts import LARGE, check, device_parts, driver_of
from fast_graphs import beside, binary_tree, path, shuffled, star
from graphs import complete, grid, kronecker, random_tuples, some_roots, uniform

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


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("parts", [1, 2, 3])
def test_levels_and_parents(device, name, parts):
    source = GRAPHS[name]
    for threshold in (0, 4, LARGE):
        placed = device_parts(source, parts, threshold=threshold)
        driver = driver_of(placed, engine="xbfs")
        for root in some_roots(source, 2):
            check(driver, source, root)


@pytest.mark.parametrize("direction", ["push", "pull"])
def test_directions(device, direction):
    for name in ("kronecker", "hub", "random", "grid"):
        source = GRAPHS[name]
        for threshold in (5, LARGE):
            placed = device_parts(source, 3, threshold=threshold)
            driver = driver_of(placed, engine="xbfs", direction=direction)
            for root in some_roots(source, 3):
                check(driver, source, root)


@pytest.mark.parametrize("direction", ["auto", "push", "pull"])
@pytest.mark.parametrize("name", ["tree", "grid"])
def test_vertices_that_have_outer_edges_alone(device, name, direction):
    """Many frontiers, some of vertices that no push of the inner graph can take."""
    source = {"tree": binary_tree(1500), "grid": grid(20)}[name]
    for threshold in (0, LARGE):
        placed = device_parts(source, 4, threshold=threshold)
        driver = driver_of(placed, engine="xbfs", direction=direction)
        for root in some_roots(source, 2):
            check(driver, source, root)
