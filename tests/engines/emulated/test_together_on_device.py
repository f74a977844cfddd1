"""Small queries of a service that one traversal on a device answers."""

import numpy as np
import pytest
from device_graphs import HostGraph
from distbfs.search.device_session import DeviceSession
from graphs import NO_VERTEX, random_tuples

from distbfs.engines.cuda.xbfs import XbfsEngine
from distbfs.errors import SearchStopped
from distbfs.exchange.world import SoloWorld
from distbfs.options import SearchOptions
from distbfs.service.together import MOST, together


def session_of(made):
    options = SearchOptions(engine="xbfs")
    return DeviceSession(SoloWorld(), XbfsEngine(options), made.graph, options)


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
