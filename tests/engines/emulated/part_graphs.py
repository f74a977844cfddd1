"""Small graphs of all shapes, for searches of parts."""

from fast_graphs import beside, binary_tree, path, shuffled, star
from graphs import complete, grid, kronecker, random_tuples, uniform

GRAPHS = {
    "kronecker": kronecker(8),
    "uniform": uniform(300, 900),
    "hub": shuffled(beside(star(400), uniform(200, 500))),
    "path": shuffled(path(14)),
    "grid": grid(8),
    "tree": binary_tree(200),
    "complete": complete(70),
    "random": random_tuples(90, 200, 5),
    "one-edge": random_tuples(2, 1, 1),
}
# smaller ones, for tests that exchange a message for each of a few edges
SMALL = {
    "kronecker": kronecker(6),
    "hub": shuffled(beside(star(80), uniform(40, 100))),
    "random": GRAPHS["random"],
    "grid": grid(5),
}
