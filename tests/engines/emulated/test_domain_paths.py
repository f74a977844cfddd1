"""Betweenness over parts on devices that are the CPU, against NetworkX."""

import networkx as nx
import numpy as np
import pytest
from covering import covered
from device_parts import LARGE
from graphs import NAMED
from outer_searches import PLACEMENTS, by_id, searching
from part_graphs import GRAPHS as SHAPES
from test_between_kernels import StreamedThreads
from worlds import ThreadExchange

from distbfs.multisearch.part_loop import Wanted

GRAPHS = {
    **SHAPES,
    **{name: NAMED[name] for name in ("two-hubs", "isolated", "loops", "one-vertex")},
}
pytestmark = pytest.mark.usefixtures("peers")


def network(source):
    graph = nx.Graph()
    graph.add_nodes_from(range(source.n))
    graph.add_edges_from(zip(source.u.tolist(), source.v.tolist(), strict=True))
    return graph


def dependencies(source, roots):
    """Sum Brandes' dependencies of sources by NetworkX, which may be there twice."""
    graph, total = network(source), np.zeros(source.n)
    for root in roots.tolist():
        values = nx.betweenness_centrality_subset(graph, [root], list(graph))
        total += 2 * np.array([values[v] for v in range(source.n)])
    return total


def found_by(roots):
    """Return a function for ``searching`` of the dependencies, [n]."""

    def work(world, searches, members):
        searches.run(roots[::-1][:40], Wanted(levels=True))
        searches.dependencies(None)
        searches.run(roots, Wanted(levels=True))
        return by_id(world, members, searches.dependencies(None))

    return work


@pytest.mark.parametrize(
    ("name", "owners", "threshold", "kind"),
    covered(
        *(list(GRAPHS), list(PLACEMENTS), [0, 4, 20, LARGE]),
        [ThreadExchange, StreamedThreads],
    ),
)
def test_domains_of_all_kinds(name, owners, threshold, kind):
    source = GRAPHS[name]
    roots = np.random.default_rng(1).integers(0, source.n, 45)
    wanted = dependencies(source, roots)
    for sums in searching(source, PLACEMENTS[owners], threshold, kind, found_by(roots)):
        np.testing.assert_allclose(sums, wanted, rtol=1e-12, atol=1e-12)
