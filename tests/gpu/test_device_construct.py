"""Parts built on devices against those that the host builds."""

import gc

import numpy as np
import pytest
from constructed_parts import LARGE, THRESHOLDS, check, check_construct, on_devices
from graphs import NAMED, NO_VERTEX, kronecker, random_tuples, uniform
from worlds import on_ranks

from distbfs.build.cuda import chunks, shares
from distbfs.build.cuda import keys as device_keys
from distbfs.device import cuda
from distbfs.errors import ResourceError
from distbfs.generate.kronecker import Kronecker
from distbfs.generate.road import Road
from distbfs.generate.uniform import Uniform
from distbfs.timing import Stopwatch

GRAPHS = {
    "held": kronecker(9),
    "hub": uniform(4000, 2000, hub=3000),
    "random": random_tuples(3001, 9000, 5),
    "kronecker-10": Kronecker(10),
    "kronecker-12": Kronecker(12, 16, 7),
    "kronecker-15": Kronecker(15),
    "uniform": Uniform(70_000, 300_000),
    "road": Road(4000),
}


@pytest.mark.parametrize("threshold", THRESHOLDS)
@pytest.mark.parametrize("parts", [1, 2, 3, 4])
@pytest.mark.parametrize("name", GRAPHS)
def test_parts(name, parts, threshold):
    check_construct(GRAPHS[name], parts, threshold)


@pytest.mark.parametrize("parts", [1, 2, 5])
@pytest.mark.parametrize("name", NAMED)
def test_small_graphs(name, parts):
    for threshold in (0, 2, None):
        check_construct(NAMED[name], parts, threshold)


def test_no_vertices():
    check_construct(NO_VERTEX, 2, None)


@pytest.mark.parametrize("buffer_bytes", [1, 100_000, 700_000])
@pytest.mark.parametrize("parts", [1, 2, 3, 4])
@pytest.mark.parametrize("name", ["hub", "kronecker-12"])
def test_ranges(monkeypatch, name, parts, buffer_bytes):
    monkeypatch.setattr(device_keys, "SLACK", 100)
    monkeypatch.setattr(chunks, "CHUNK", 12_345)
    for threshold in (12, None, LARGE):
        check_construct(GRAPHS[name], parts, threshold, buffer_bytes=buffer_bytes)


@pytest.mark.parametrize(("parts", "ranks"), [(2, 2), (4, 2), (4, 4)])
def test_ranks(parts, ranks):
    source = GRAPHS["kronecker-12"]

    def work(world):
        return on_devices(source, parts, world, threshold=20)

    found = on_ranks(ranks, work)
    for _, summary in found:
        check(source, [made for made, _ in found], summary, 20)


@pytest.mark.parametrize("chunk", [777, 1 << 23])
@pytest.mark.parametrize("buffer_bytes", [None, 100_000])
@pytest.mark.parametrize(("parts", "ranks"), [(4, 1), (4, 2), (8, 4)])
@pytest.mark.parametrize("name", ["hub", "kronecker-12"])
def test_shares(monkeypatch, name, parts, ranks, buffer_bytes, chunk):
    """Each rank is a thread, with as many devices as there are."""
    monkeypatch.setattr(shares, "CHUNK", chunk)
    monkeypatch.setattr(device_keys, "SLACK", 1000)
    count = cuda.cupy().cuda.runtime.getDeviceCount()
    devices = [k % count for k in range(parts // ranks)]
    options = {"devices": devices, "buffer_bytes": buffer_bytes, "making": "share"}

    def work(world):
        return on_devices(GRAPHS[name], parts, world, threshold=20, **options)

    found = on_ranks(ranks, work)
    for _, summary in found:
        assert summary.making == "share"
        check(GRAPHS[name], [made for made, _ in found], summary, 20)


def test_every_device(monkeypatch):
    """Parts of one rank, on as many devices as there are."""
    count = cuda.cupy().cuda.runtime.getDeviceCount()
    devices = [k % count for k in range(4)]
    clock = Stopwatch()
    monkeypatch.setattr(device_keys, "Stopwatch", lambda: clock)
    made, summary = on_devices(GRAPHS["kronecker-15"], 4, devices=devices)
    check(GRAPHS["kronecker-15"], [made], summary, None)
    assert [part.vertices.device.id for part in made] == devices
    assert {"generation", "keys", "sort", "rows"} <= set(clock.seconds)


def test_memory_is_given_back():
    gc.collect()
    cuda.release()
    pool = cuda.cupy().get_default_memory_pool()
    before = pool.total_bytes()  # of other tests
    made, summary = on_devices(Kronecker(18), 2, devices=[0, 0])
    kept = sum(p.graph_bytes + 12 * p.local_count for p in made)
    assert summary.m == sum(summary.edges.values())
    assert pool.total_bytes() - before < 1.3 * kept + (1 << 20)


def test_subgraphs_fit_each_other_at_a_larger_scale():
    """What nd and dn, and both directions of dd, have in common."""
    made, summary = on_devices(Kronecker(20), 3)
    assert summary.m == sum(summary.edges.values())
    for part in made:
        d = part.delegate_count
        ends = {}
        for name in ("nd", "dn", "dd"):
            rows = getattr(part, name)
            lengths = np.diff(rows.offsets.get().astype(np.int64))
            assert lengths.sum() == rows.edges
            count = d if name[1] == "d" else part.local_count
            columns = rows.columns.get()[: rows.edges]
            ends[name] = lengths, np.bincount(columns, minlength=count)
        for one, other in zip(ends["nd"], ends["dn"][::-1], strict=True):
            np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(*ends["dd"])


@pytest.mark.parametrize("free", [1000, 300 << 20])
def test_graphs_that_do_not_fit(monkeypatch, free):
    monkeypatch.setattr(cuda, "free_bytes", lambda: free)
    wanted = rf"needs \d+ bytes of device memory; {free} are free"
    with pytest.raises(ResourceError, match=wanted):
        on_devices(Kronecker(21), 1)
