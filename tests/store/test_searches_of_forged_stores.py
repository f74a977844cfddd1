"""Stores whose digests fit but whose edges do not: walks along parents end."""

import numpy as np
import pytest
from store_graphs import make_parts, write_store

import distbfs
from distbfs.errors import DistbfsError, UsageError, ValidationError
from distbfs.search.graph_rows import part_of_rows
from distbfs.search.result_paths import before_each, count_back, paths_back

WRONG = "ends at no source: .* 'distbfs verify' shows"


def outcome(result, source, vertex):
    """Return what path_to does, after a check of it."""
    try:
        path = result.path_to(vertex)
    except DistbfsError as error:
        return type(error)
    assert (path[0], path[-1]) == (source, vertex)
    return list


def outcomes(folder, **options):
    """Return what path_to does from and to each vertex."""
    seen = set()
    with distbfs.open(folder, **options) as session:
        for source in range(session.n):
            result = session.search(source)
            seen |= {outcome(result, source, vertex) for vertex in range(session.n)}
    return seen


@pytest.mark.thorough
@pytest.mark.parametrize("options", [{}, {"levels": False}, {"engine": "reference"}])
def test_parents_that_lead_nowhere(tmp_path, options):
    rng, n = np.random.default_rng(0), 30
    tuples = np.arange(1, n), rng.integers(0, np.arange(1, n))
    parts = make_parts(n, 2, n, tuples)
    for part in parts:
        rng.shuffle(part.nn.columns)
    folder = write_store(tmp_path / "graph", parts, tuples)
    # vertices that are sent to others have their parents with them
    seen = outcomes(folder, **options)
    assert list in seen
    assert seen <= {list, UsageError, ValidationError}


def test_rows_of_a_tree_that_lead_round(tmp_path):
    """Vertex 2 leads to 0, that to 1, and that to 2, which has no way back to it."""
    offsets = np.array([0, 2, 4, 5], np.uint32)
    part = part_of_rows(offsets, np.array([1, 2, 0, 2, 0], np.uint32), None)
    tuples = np.array([0, 0, 1]), np.array([1, 2, 2])
    folder = write_store(tmp_path / "graph", [part], tuples)
    assert outcomes(folder, engine="openmp") <= {list, ValidationError}


@pytest.mark.parametrize("levels", [True, False])
def test_a_cycle_of_parents(levels):
    path = distbfs.Graph.from_edges(np.arange(9), np.arange(1, 10))
    result = distbfs.bfs(path, 0, levels=levels)
    result._outcome.parent[0][2] = 4
    assert result.path_to(1) == [0, 1]
    with pytest.raises(ValidationError, match=f"the way back from 9 {WRONG}"):
        result.path_to(9)


def test_a_cycle_of_shortest_paths():
    pairs = np.array([[2, 1], [0, 1], [1, 2], [2, 3]])
    with pytest.raises(ValidationError, match=f"the way back from 3 {WRONG}"):
        count_back(pairs, 3)
    with pytest.raises(ValidationError, match=f"the way back from 3 {WRONG}"):
        list(paths_back(before_each(pairs), 3))
