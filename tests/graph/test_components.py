"""Components against SciPy's."""

import numpy as np
import pytest
from graphs import NAMED, Tuples, random_tuples, sources
from hypothesis import given, settings
from scipy.sparse.csgraph import connected_components

from distbfs.graph.components import component_labels


def check(source):
    labels = component_labels(source.n, lambda: source.chunks(0, source.tuples))
    count, wanted = connected_components(source.matrix, directed=False)
    first = np.full(count, source.n)
    np.minimum.at(first, wanted, np.arange(source.n))
    np.testing.assert_array_equal(labels, first[wanted])


@settings(max_examples=200, deadline=None)
@given(source=sources())
def test_any_graph(source):
    check(source)


@pytest.mark.parametrize("name", NAMED)
def test_named_graphs(name):
    check(NAMED[name])


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_large_graphs_and_long_paths(seed):
    check(random_tuples(20_000, 15_000, seed))
    ids = np.random.default_rng(seed).permutation(5000)
    check(Tuples(5000, ids[:-1], ids[1:], size=999))


def test_no_vertices():
    assert len(component_labels(0, list)) == 0
