"""Validation on a device against validation on the host, fault by fault."""

import contextlib
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from graphs import Tuples, kronecker, random_tuples
from hypothesis import given, settings
from launching import needs_mpi, run_ranks
from validation.test_cuda_on_host import (
    CASES,
    TYPES,
    ArrayTuples,
    compare,
    holds,
    planted,
)
from validation.test_validate import asked, mutations, search

from distbfs.device import cuda
from distbfs.errors import ResourceError
from distbfs.generate.cuda import device_tuples
from distbfs.generate.kronecker import Kronecker
from distbfs.ranks.world import SoloWorld
from distbfs.validation.cuda import validate_on_device, validate_on_devices
from distbfs.validation.cuda_device import ResultShard, ValidationSeat
from distbfs.validation.faults import Asked
from distbfs.validation.host import validate

LARGE = {
    "random": random_tuples(40_000, 120_000, seed=7),
    "sparse": random_tuples(60_000, 50_000, seed=8),
    "kronecker": kronecker(15),
}
for _source in LARGE.values():
    _source.size = 1 << 20  # chunks of the host


@pytest.fixture(scope="module")
def cp():
    return cuda.cupy()


def on_device(cp, source, root):
    """Return levels int8 and parents int32 of a right search, on the device."""
    level, parent = search(source.n, source.u, source.v, root)
    return cp.asarray(level.astype(np.int8)), cp.asarray(parent.astype(np.int32))


def alone(case):
    """Return a case without its parents."""
    return (*case[:-1], None)


@pytest.mark.parametrize("graph", CASES)
def test_planted_faults_are_told_as_the_host_tells_them(cp, graph):
    source, root = CASES[graph]
    level, parent = search(source.n, source.u, source.v, root)
    cases = planted(source, root, level, parent, seed=13)
    for number, (name, *case) in enumerate(cases):
        types = TYPES[-1], TYPES[number % (len(TYPES) - 1)]
        found = compare(cp, *case, types=types, chunk=1000)
        levels = compare(cp, *alone(case), types=types, chunk=99)
        if name == "none":
            assert found.valid
            assert levels.valid


@pytest.mark.parametrize("graph", LARGE)
def test_planted_faults_in_large_graphs(cp, graph):
    source = LARGE[graph]
    root = int(source.u[0])
    level, parent = search(source.n, source.u, source.v, root)
    cases = planted(source, root, level, parent, seed=17)
    for number, (name, *case) in enumerate(cases):
        types = (
            TYPES if name == "none" else (TYPES[-1], TYPES[number % (len(TYPES) - 1)])
        )
        found = compare(cp, *case, types=types)
        compare(cp, *alone(case), types=types, chunk=30_001)
        assert found.valid == (name == "none"), name


@settings(max_examples=100, deadline=None)
@given(mutations())
def test_answers_are_those_of_the_host(cp, case):
    n, u, v, root, *known, directed = case
    way = {"chunk": 5, "directed": directed}
    compare(cp, Tuples(n, u, v), root, *asked(*known), **way)


@pytest.mark.parametrize("chunk", [1, 3, 64, 1 << 20, 1 << 40])
def test_the_answer_does_not_hang_on_the_chunk(cp, chunk):
    source = random_tuples(80, 150, seed=3)
    level, parent = search(source.n, source.u, source.v, 4)
    level[7] = 2
    compare(cp, source, 4, level, parent, chunk=chunk)


class Repeated:
    """Edge (0, 1) many times; one tuple is another."""

    dtype = np.uint32

    def __init__(self, tuples, odd_at, odd):
        self.n, self.tuples, self.odd_at, self.odd = 4, tuples, odd_at, odd

    def fill(self, start, stop, u, v):
        u[: stop - start].fill(0)
        v[: stop - start].fill(1)
        if start <= self.odd_at < stop:
            u[self.odd_at - start], v[self.odd_at - start] = self.odd


def test_positions_and_counts_above_32_bits(cp):
    total = (1 << 33) + 7
    level = cp.asarray(np.array([0, 1, 2, -1], np.int8))
    parent = cp.asarray(np.array([0, 0, 1, -1], np.int32))
    source = Repeated(total, total - 2, (2, 1))
    found = validate_on_device(source, 0, level, parent, chunk=1 << 28)
    assert found.errors == []
    assert found.nedge == total
    parent[2] = 0
    source = Repeated(total, total - 2, (3, 2))
    found = validate_on_device(source, 0, level, parent, chunk=1 << 28)
    assert [error.partition(":")[0] for error in found.errors] == [
        "rule 2",
        "rules 3 and 4",
    ]
    assert "e.g. (3, 2) at levels -1 and 2" in found.errors[1]


@pytest.mark.parametrize(("n", "wide"), [(1 << 31, False), ((1 << 32) + 9, True)])
def test_many_vertices(cp, n, wide):
    ids, parents = (np.uint64, np.int64) if wide else (np.uint32, np.int32)
    if cuda.free_bytes() < 14 * n:
        pytest.skip("needs up to 60 GB of device memory")
    far = np.array([n - 1, n - 2, 1 << 30, n - 1])
    source = Tuples(n, far[:3], far[1:])
    level = cp.full(n, -1, dtype=np.int8)
    parent = cp.full(n, -1, dtype=parents)
    for x, depth, of in ((n - 1, 0, n - 1), (n - 2, 1, n - 1), (1 << 30, 1, n - 1)):
        level[x], parent[x] = depth, of
    tuples = ArrayTuples(source, cp, ids)
    found = validate_on_device(tuples, n - 1, level, parent)
    assert (found.errors, found.nedge, found.reached, found.depth) == ([], 3, 3, 1)
    parent[n - 2] = n - 2
    level[n - 3] = 4
    found = validate_on_device(tuples, n - 1, level, parent)
    assert [error.rpartition("e.g. ")[2] for error in found.errors] == [
        f"vertex {n - 2} with parent {n - 2}",
        f"vertex {n - 3} at level 4 with parent -1",
    ]
    del level, parent
    cuda.release()


def test_short_memory_is_a_resource_error(cp):
    source = LARGE["kronecker"]
    root = int(source.u[0])
    level, parent = on_device(cp, source, root)
    pool = cp.get_default_memory_pool()
    cuda.release()
    before = pool.get_limit()
    pool.set_limit(size=pool.total_bytes() + 1)
    filling = []
    try:
        for size in (1 << 20, 1 << 14, 512):
            with contextlib.suppress(cp.cuda.memory.OutOfMemoryError):
                while True:
                    filling.append(cp.empty(size, np.uint8))
        with pytest.raises(ResourceError, match="validation"):
            validate_on_device(ArrayTuples(source, np), root, level, parent)
    finally:
        filling.clear()
        pool.set_limit(size=before)


def test_nothing_stays_in_device_memory(cp):
    source = LARGE["kronecker"]
    root = int(source.u[0])
    level, parent = on_device(cp, source, root)
    tuples = device_tuples(Kronecker(15, 16, 1))
    validate_on_device(tuples, root, level, parent)
    used = cp.get_default_memory_pool().used_bytes()
    started = time.perf_counter()
    found = validate_on_device(tuples, root, level, parent)
    seconds = time.perf_counter() - started
    print(f"{tuples.tuples} tuples validated in {found.seconds:.6f} s")
    assert found.valid
    assert found.nedge == np.count_nonzero(source.distances(root)[source.u] >= 0)
    assert 0 < found.seconds <= seconds
    assert cp.get_default_memory_pool().used_bytes() == used


def test_a_stream_of_the_caller_is_used(cp):
    source = LARGE["random"]
    root = int(source.u[0])
    level, parent = search(source.n, source.u, source.v, root)
    with cp.cuda.Stream(non_blocking=True):
        compare(cp, source, root, level, parent, chunk=5000)


def test_tuples_of_the_host_are_taken(cp):
    source = LARGE["sparse"]
    root = int(source.u[0])
    level, parent = on_device(cp, source, root)
    tuples = device_tuples(source)
    assert not tuples.generated
    for chunk in (777, 1 << 25):
        found = validate_on_device(tuples, root, level, parent, chunk=chunk)
        assert found.valid, found.errors
        assert found.reached == np.count_nonzero(source.distances(root) >= 0)


@pytest.mark.parametrize(
    "fits", [True, False], ids=["a table of all", "states asked for"]
)
def test_several_devices_that_are_one(cp, fits, monkeypatch):
    """Seats of one device, one after the other, as several devices validate."""
    if not fits:
        monkeypatch.setattr(cuda, "available", lambda _: 0)
    source, devices = LARGE["kronecker"], 3
    tuples = device_tuples(source)
    root = int(source.u[0])
    level, parent = search(source.n, source.u, source.v, root)
    for name, *case in planted(source, root, level, parent, seed=19):
        if case[0] is not source or not holds(case[3], np.int32):
            continue
        for kept in (case[3], None):
            result = (*case[:3], kept)
            expected = validate(SoloWorld(), *result, threads=1)
            seats = []
            for part in range(devices):
                values = (case[2], kept)
                arrays = [
                    None if x is None else cp.asarray(x[part::devices].astype(np.int32))
                    for x in values
                ]
                seats.append(ValidationSeat(tuples, [ResultShard(part, *arrays)]))
            has = Asked(levels=True, parents=kept is not None, directed=False)
            known = (source.n, devices, case[1], has)
            found = validate_on_devices(SoloWorld(), seats, *known, chunk=100_000)
            for field in ("errors", "valid", "nedge", "reached", "depth"):
                assert getattr(found, field) == getattr(expected, field), (name, field)


@needs_mpi
@pytest.mark.parametrize(
    ("how", "kind"),
    [
        ("uneven", "NoneType"),
        ("chosen", "Link"),
        ("host", "NoneType"),
    ],
)
def test_ranks_validate_together(cp, how, kind):
    """Two ranks, with a device each or, uneven, one device of both."""
    if how != "uneven" and cp.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("needs 2 devices")
    words = [sys.executable, str(Path(__file__).with_name("validating_ranks.py")), how]
    done = run_ranks(2, words, timeout=280)
    assert done.returncode == 0, done.stderr
    assert f"{how} is right: {kind}" in done.stdout
