"""Diameter and radius by bounds, against NetworkX."""

import networkx as nx
import numpy as np
import pytest
from graphs import NAMED, grid, random_tuples, sources
from hypothesis import given, settings

from distbfs.errors import UsageError
from distbfs.generate.road import Road
from distbfs.multisearch.exact_diameter import extremes


def component(source, start):
    graph = nx.Graph()
    graph.add_nodes_from(range(source.n))
    graph.add_edges_from(zip(source.u.tolist(), source.v.tolist(), strict=True))
    return graph.subgraph(nx.node_connected_component(graph, start))


def check(source, start):
    part = component(source, start)
    again = np.empty(source.n, np.int32)

    def levels_from(vertex):
        again[:] = source.distances(vertex)
        return again

    figures = extremes(levels_from, start)
    eccentricity = nx.eccentricity(part)
    assert figures.diameter == max(eccentricity.values())
    assert figures.radius == min(eccentricity.values())
    ends = [eccentricity[v] for v in figures.ends]
    assert ends == [figures.diameter, figures.radius]
    alone = extremes(levels_from, start, radius=False)
    assert (alone.diameter, alone.radius) == (figures.diameter, None)
    alone = extremes(levels_from, start, diameter=False)
    assert (alone.diameter, alone.radius) == (None, figures.radius)
    return figures.searches


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


def test_few_searches_are_enough():
    """Bounds stop early: a small part of the vertices is searched from."""
    assert check(grid(20), 3) < 40
    assert check(random_tuples(400, 900, 5), 1) < 150


def test_a_road_like_graph():
    source = Road(1 << 12)
    u, v = source.tuples_at(np.arange(source.tuples))
    graph = nx.Graph(zip(u.tolist(), v.tolist(), strict=True))
    graph.add_nodes_from(range(source.n))
    start = max(nx.connected_components(graph), key=len).pop()

    def levels_from(vertex):
        result = np.full(source.n, -1, np.int32)
        for node, level in nx.single_source_shortest_path_length(graph, vertex).items():
            result[node] = level
        return result

    result = extremes(levels_from, start)
    part = graph.subgraph(nx.node_connected_component(graph, start))
    assert max(
        nx.single_source_shortest_path_length(part, result.ends[0]).values()
    ) == (result.diameter)
    assert result.searches < len(part) // 10


def test_a_limit_of_searches():
    source = grid(20)
    with pytest.raises(UsageError, match="2 searches do not settle"):
        extremes(source.distances, 3, most=2)
