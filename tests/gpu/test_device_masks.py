"""Searches on a device that see a part of the graph."""

import numpy as np
import pytest
from device_graphs import HostGraph
from fast_faults import Faults
from fast_graphs import HUGE, beside, roots_of, shuffled
from graphs import complete, grid, kronecker, uniform
from masked_graphs import random_mask

from distbfs import Graph, bfs
from distbfs.engines.cuda.xbfs.search import FastSearch

GRAPHS = {
    "kronecker": lambda: kronecker(14),
    "uniform": lambda: shuffled(beside(uniform(20_000, 400_000), complete(300))),
    "grid": lambda: shuffled(grid(120)),
}
WAYS = (
    *({}, {"direction": "push"}, {"direction": "pull"}),
    {"overrides": {"mark_edges": 0, "pull_edges": HUGE}},
    {"overrides": {"pull_edges": 0}},
)


@pytest.mark.parametrize("kept", [None, 9])
@pytest.mark.parametrize("name", ["kronecker", "uniform"])
def test_masks_in_every_way(name, kept):
    """kept: columns of a row on the device, where tails are in host memory."""
    look_through(name, kept, 0.5)


def test_clusters():
    look_through("grid", None, 0.9)


def look_through(name, kept, share):
    """Search a graph with masks of each kind, and again without."""
    made, faults = HostGraph(GRAPHS[name]()), Faults()
    if kept is not None:
        made.graph = made.split(kept)
    for seed in range(3):
        seen, left = random_mask(made, seed, share)
        wanted = left.source.degrees[made.vertices]
        np.testing.assert_array_equal(seen.ends.get(), wanted)
        for k, way in enumerate(WAYS):
            search = FastSearch(made.graph, in_ids=(k + seed) % 2 == 0, **way)
            search.see(seen)
            for root in roots_of(left):
                faults.look(left, search, root, f"{name}, mask {seed}", **way)
            search.see(None)
            faults.look(made, search, roots_of(made)[0], f"{name}, all", **way)
    faults.tell()


def test_a_graph_that_the_device_has_built():
    source = kronecker(17)
    graph = Graph.from_edges(source.u, source.v, source.n)
    root = int(source.degrees.argmax())
    vertices = np.random.default_rng(3).random(source.n) < 0.7
    vertices[root] = True
    edges = np.random.default_rng(4).random(len(graph.edges())) < 0.5
    for some in ({"vertices": vertices}, {"edges": edges, "vertices": vertices}):
        one, other = (bfs(graph, root, x, **some) for x in ("xbfs", "openmp"))
        np.testing.assert_array_equal(one.to_numpy()[0], other.to_numpy()[0])
        assert one.nedge == other.nedge
