"""Components, paths and distances of graphs against NetworkX and SciPy."""

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from graphs import NAMED
from scipy.sparse.csgraph import shortest_path

import distbfs
from distbfs import Graph


def sets_of(labels):
    return {frozenset(np.flatnonzero(labels == k).tolist()) for k in set(labels)}


@pytest.mark.parametrize("name", NAMED)
def test_components_are_those_of_networkx(name):
    source = NAMED[name]
    for directed in (False, True):
        graph = Graph.from_edges(source.u, source.v, source.n, directed=directed)
        peer = graph.to_networkx()
        weak = nx.weakly_connected_components if directed else nx.connected_components
        strong = nx.strongly_connected_components if directed else weak
        for connection, sets in (("weak", weak), ("strong", strong)):
            labels = distbfs.connected_components(graph, connection)
            assert sets_of(labels) == set(map(frozenset, sets(peer)))
            _, first = np.unique(labels, return_index=True)
            assert np.array_equal(first, np.sort(first))  # by their first vertices
            assert labels.dtype == np.int64


def test_words_and_types_are_checked():
    with pytest.raises(distbfs.UsageError, match="connection is 'both'; allowed: weak"):
        distbfs.connected_components(Graph.from_edges([0], [1]), "both")
    with pytest.raises(distbfs.WrongTypeError, match="of type list"):
        distbfs.connected_components([0])
    assert distbfs.connected_components(Graph.from_edges([], [])).tolist() == []


@pytest.mark.parametrize("directed", [False, True])
def test_paths_and_distances(directed):
    graph = Graph.from_edges(
        *(np.random.default_rng(3).integers(0, 60, (2, 80))), n=60, directed=directed
    )
    wanted = shortest_path(graph.to_scipy(), unweighted=True, directed=directed)
    wanted = np.where(np.isinf(wanted), -1, wanted).astype(int)
    edges = set(map(tuple, np.argwhere(graph.to_scipy().toarray()).tolist()))
    for source in range(0, 60, 7):
        hops = distbfs.distances(graph, source)
        assert hops.dtype == np.int32
        assert hops.tolist() == wanted[source].tolist()
        some = distbfs.distances(graph, source, iter([5, 17, 5]))
        assert some.tolist() == wanted[source, [5, 17, 5]].tolist()
        assert distbfs.distances(graph, source, []).tolist() == []
        for target in range(0, 60, 11):
            one = distbfs.distances(graph, iter([source]), [target])
            assert (one.dtype, one.tolist()) == (np.int32, [wanted[source, target]])
            if wanted[source, target] < 0:
                with pytest.raises(distbfs.UsageError, match="no path leads to"):
                    distbfs.shortest_path(graph, source, target)
                continue
            path = distbfs.shortest_path(graph, source, target)
            assert (path[0], path[-1]) == (source, target)
            assert len(path) == wanted[source, target] + 1
            assert set(pairwise(path)) <= edges


def test_nodes_go_by_name():
    graph = Graph.from_networkx(nx.path_graph("abcd"))
    assert distbfs.shortest_path(graph, "a", "d") == list("abcd")
    assert distbfs.distances(graph, ["a", "d"], ["b", "c"]).tolist() == [1, 1]
