"""What shortest paths tell, by products of matrices, and graphs that have many."""

import numpy as np
from directed_graphs import distances
from graphs import Tuples


def path_counts(matrix, level):
    """Counts uint64 [n] of a SciPy adjacency matrix and the levels of a search."""
    edges = (matrix.tocsr() != 0).astype(np.uint64).T.tocsr()
    counts = (level == 0).astype(np.uint64)
    for depth in range(1, int(level.max()) + 1):
        counts += (edges @ (counts * (level == depth - 1))) * (level == depth)
    return counts


def dependencies(matrix, level):
    """Brandes' dependencies of the root of a search, float64 [n], by its levels."""
    edges, counts = (matrix.tocsr() != 0).astype(float), path_counts(matrix, level)
    found = np.zeros(len(level))
    for depth in range(int(level.max()), 1, -1):
        below = np.divide(1 + found, counts, np.zeros(len(level)), where=level == depth)
        found += counts * (edges @ below) * (level == depth - 1)
    return found


def diamonds(count):
    """A chain of squares: 2^k shortest paths lead from 0 to vertex 3 k."""
    first = 3 * np.arange(count)
    u = np.concatenate([first, first, first + 1, first + 2])
    v = np.concatenate([first + 1, first + 2, first + 3, first + 3])
    return Tuples(3 * count + 1, u, v)


def check_path(path, matrix, sources, target):
    """It is an edge after the other, from one of the sources, and none is shorter."""
    levels = [distances(matrix, source)[target] for source in sources]
    reached = [level for level in levels if level >= 0]
    if not reached:
        assert path is None
        return
    assert len(path) == min(reached) + 1
    assert path[0] in sources
    assert path[-1] == target
    if len(path) > 1:
        assert (np.asarray(matrix[path[:-1], path[1:]]) > 0).all()
