"""Small queries of a service that one traversal on a device answers."""

from types import SimpleNamespace

import numpy as np
import pytest
from device_graphs import HostGraph
from graphs import NO_VERTEX, random_tuples

from distbfs.errors import SearchStopped
from distbfs.exchange.world import SoloWorld
from distbfs.search.holding import held_graph
from distbfs.service.together import MOST, together


def session_of(made):
    held = held_graph(SoloWorld(), made.source.n, made.graph)
    vertices = held.vertices
    return SimpleNamespace(
        world=SoloWorld(), held=held, vertices=vertices, layout=vertices.layout
    )


def test_levels_of_many_sources(device):
    made = HostGraph(random_tuples(400, 500, 3))
    sources = np.random.default_rng(1).permutation(400)[:MOST].tolist()
    asked = [(source, [0, source, 399, (7 * source) % 400]) for source in sources[::-1]]
    found = together(session_of(made))
    for _ in range(2):
        seconds, levels = found.levels(sources, asked, lambda: False)
        assert seconds > 0
        for (source, targets), told in zip(asked, levels, strict=True):
            assert told == made.source.distances(source)[targets].tolist()
    with pytest.raises(SearchStopped):
        found.levels(sources, asked, lambda: True)


def test_where_it_cannot_be(device):
    assert together(session_of(HostGraph(NO_VERTEX))) is None
