"""Diameter and radius by bounds, against NetworkX."""

import networkx as nx
import numpy as np
import pytest
from graphs import NAMED, Tuples, grid, random_tuples, sources
from hypothesis import example, given, settings
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, shortest_path

from distbfs.generate.road import Road
from distbfs.multisearch.apps.diameter import Bounds, extremes
from distbfs.ranks.world import SoloWorld


def component(source, start):
    graph = nx.Graph()
    graph.add_nodes_from(range(source.n))
    graph.add_edges_from(zip(source.u.tolist(), source.v.tolist(), strict=True))
    return graph.subgraph(nx.node_connected_component(graph, start))


def searched(inside, levels_from, most):
    """Return radius, diameter and searches; an array of levels lasts until the next."""
    again = np.empty(len(inside), np.int32)

    def rows(places):
        for vertex in inside[places].tolist():
            again[:] = levels_from(vertex)[inside]
            yield again, again

    return extremes(rows, Bounds(len(inside)), SoloWorld(), most)


def check(source, start):
    """Return the number of searches, one at a time."""
    eccentricity = nx.eccentricity(component(source, start)).values()
    inside = np.flatnonzero(source.distances(start) >= 0)
    for most in (64, 2, 1):
        radius, longest, searches = searched(inside, source.distances, most)
        assert (radius, longest) == (min(eccentricity), max(eccentricity))
    return searches


@pytest.mark.parametrize("name", sorted(set(NAMED) - {"kronecker"}))
def test_named_graphs(name):
    source = NAMED[name]
    for start in {0, source.n // 2, source.n - 1}:
        check(source, start)


@settings(max_examples=40, deadline=None)
@given(source=sources(max_n=25))
def test_any_graph(source):
    for start in range(0, source.n, 5):
        check(source, start)


@settings(max_examples=40, deadline=None)
@given(source=sources(max_n=25))
@example(source=Tuples(3, [0, 1, 2, 2], [1, 2, 0, 1]))
def test_any_directed_graph(source):
    """Distances to a vertex, and from it, bound the eccentricities of the others."""
    graph = nx.DiGraph(zip(source.u.tolist(), source.v.tolist(), strict=True))
    for inside in nx.strongly_connected_components(graph):
        inner = graph.subgraph(inside)
        names, matrix = [*inner], nx.to_scipy_sparse_array(inner)
        hops = shortest_path(matrix, unweighted=True).astype(np.int32)
        rows = lambda places, hops=hops: ((hops[x], hops[:, x]) for x in places)  # noqa: E731
        far = nx.eccentricity(inner).values()
        for most in (64, 1):
            radius, longest, _ = extremes(rows, Bounds(len(names)), SoloWorld(), most)
            assert (radius, longest) == (min(far), max(far))


@pytest.mark.thorough
def test_few_searches_are_enough():
    """Bounds stop early: a small part of the vertices is searched from."""
    assert check(grid(20), 3) < 40
    assert check(random_tuples(400, 900, 5), 1) < 150


@pytest.mark.thorough
def test_a_road_like_graph():
    source = Road(1 << 12)
    u, v = source.tuples_at(np.arange(source.tuples))
    ones = np.ones(len(u), dtype=np.int8)
    matrix = coo_array((ones, (u, v)), (source.n, source.n)).tocsr()
    _, label = connected_components(matrix, directed=False)
    inside = np.flatnonzero(label == np.bincount(label).argmax())
    hops = shortest_path(matrix, directed=False, unweighted=True, indices=inside)
    far = hops[:, inside].max(axis=1)

    def levels_from(vertex):
        row = hops[np.searchsorted(inside, vertex)]
        return np.where(np.isfinite(row), row, -1)

    radius, longest, searches = searched(inside, levels_from, 1)
    assert (radius, longest) == (far.min(), far.max())
    assert searches < len(inside) // 10
