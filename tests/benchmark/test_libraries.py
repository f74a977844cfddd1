"""Every peer that is installed against levels from SciPy's shortest paths."""

from importlib.util import find_spec
from itertools import product

import numpy as np
import pytest
from directed_graphs import distances, matrix_of
from graphs import NAMED, some_roots

from distbfs.benchmark.libraries.base import installed, library_session, rows_of
from distbfs.errors import DeviceMissing, LibraryMissing, UsageError
from distbfs.ranks.world import SoloWorld
from distbfs.registry import LIBRARIES, lookup


@pytest.mark.parametrize("name", LIBRARIES)
def test_peers_find_the_levels(name):
    if find_spec(lookup(LIBRARIES, "peer", name).module) is None:
        pytest.skip(f"{name} is not installed")
    graphs = product(("kronecker", "star", "path", "two-components"), (False, True))
    for graph, directed in graphs:
        source = NAMED[graph]
        try:
            rows = rows_of(source, directed=directed)
            session = library_session(SoloWorld(), name, rows)
        except DeviceMissing as error:
            pytest.skip(str(error))
        for root in some_roots(source, 4):
            outcome = session.search(root)
            wanted = source.distances(root)
            if directed:
                wanted = distances(matrix_of(source.n, source.u, source.v), root)
                edges = (wanted[source.u] >= 0) & (source.u != source.v)
                pairs = set(zip(source.u[edges], source.v[edges], strict=True))
                assert outcome.nedge == len(pairs)
            level, parent = outcome.to_numpy()
            assert level.dtype == np.int32
            np.testing.assert_array_equal(level, wanted)
            assert parent is None
            assert outcome.seconds > 0
            assert outcome.depth + 1 == wanted.max() + 1
        description = session.describe()
        assert description["engine"] == name
        assert description["method"].split()[-1][0].isdigit(), "a version"


def test_rows_have_no_loops_and_repeats():
    for source in NAMED.values():
        rows = rows_of(source)
        np.testing.assert_array_equal(np.diff(rows.offsets), source.degrees)
        u, v = rows.pairs()
        assert (u < v).all()
        assert 2 * len(u) == rows.m


def test_a_peer_that_is_not_there(monkeypatch):
    monkeypatch.setattr("distbfs.benchmark.libraries.base.find_spec", lambda _: None)
    assert installed() == []
    with pytest.raises(LibraryMissing, match=r"peer igraph needs igraph, .*: none"):
        library_session(SoloWorld(), "igraph", rows_of(NAMED["star"]))
    with pytest.raises(UsageError, match="unknown peer 'x'; allowed: cugraph"):
        library_session(SoloWorld(), "x", rows_of(NAMED["star"]))
