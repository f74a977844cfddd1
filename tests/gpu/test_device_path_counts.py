"""Numbers of shortest paths on a device, against engine openmp."""

import numpy as np
import pytest

import distbfs
from distbfs.generate.kronecker import Kronecker
from distbfs.generate.road import Road
from distbfs.generate.small_world import SmallWorld
from distbfs.types import TupleSource

SOURCES: dict[str, TupleSource] = {
    "kronecker": Kronecker(17, 16),
    "road": Road(60_000),
    "small-world": SmallWorld(100_000, 20, 0.01),
}


@pytest.mark.parametrize("dtype", ["uint64", "float64"])
@pytest.mark.parametrize("name", SOURCES)
def test_counts(name, dtype):
    source = SOURCES[name]
    chunks = [(u.copy(), v.copy()) for u, v in source.chunks(0, source.tuples)]
    u, v = (np.concatenate(x) for x in zip(*chunks, strict=True))
    host = distbfs.Graph.from_edges(u, v, n=source.n)
    with (
        distbfs.open(source, engine="xbfs", devices=1) as session,
        distbfs.open(host, engine="openmp") as hosted,
    ):
        for root in np.argsort(-host.degrees)[[0, 77, 5000]].tolist():
            wanted = hosted.search(root).path_counts("float64")
            if dtype == "uint64" and wanted.max() >= 2.0**64:
                with pytest.raises(distbfs.UsageError, match="float64 holds"):
                    session.search(root).path_counts()
                continue
            for _ in range(3):
                counts = session.search(root).path_counts(dtype).get()
                np.testing.assert_allclose(counts, wanted, rtol=1e-12)
