"""Sessions for parents alone on devices, which are the CPU, over every runner."""

import gc

import numpy as np
import pytest
from graphs import Tuples, kronecker, levels_by, some_sets
from parents_alone import check_parents, check_session
from sessions import open_tuples
from test_sessions import (
    DEVICES,
    SOURCE,
    allocated,
    devices,  # noqa: F401
    domain,
    opened,
    separated,
)

from distbfs.benchmark.graph500 import validation_of
from distbfs.generate import cuda as device_tuples
from distbfs.search import choose as choosing
from distbfs.search.choose import Request

INTERNAL = pytest.mark.parametrize("internal", [False, True], ids=["ids", "internal"])


@pytest.mark.parametrize("engine", [x for x in DEVICES if x != "pan"])
@INTERNAL
def test_one_device(engine, internal):
    session = opened(engine=engine, internal_ids=internal, levels=False)
    check_session(session, SOURCE)
    session.close()


@pytest.mark.parametrize("count", [2, 3])
@INTERNAL
def test_one_domain(devices, count, internal):  # noqa: F811
    session = domain(devices, count, internal_ids=internal, levels=False)
    check_session(session, SOURCE)
    session.close()


@pytest.mark.parametrize("engine", ["auto", "pan"])
@pytest.mark.parametrize("parts", [1, 3])
def test_between_domains(parts, engine):
    session = separated(parts, engine=engine, levels=False)
    check_session(session, SOURCE)
    session.close()


def test_deep_levels_between_domains():
    path = np.arange(400)
    source = Tuples(402, path, path + 1)
    request = Request(2, "--parts")
    session = open_tuples(source, request=request, threshold=4, levels=False)
    for root in (0, 200, 401):
        check_parents(session.search(root), source)
    session.close()


def each_way(devices):  # noqa: F811
    yield opened(levels=False)
    yield domain(devices, levels=False)
    devices[:] = [0]
    yield separated(levels=False)


def test_limits_targets_sets_and_records(devices):  # noqa: F811
    root = int(SOURCE.degrees.argmax())
    wanted = SOURCE.distances(root)
    near, far = (int(np.flatnonzero(wanted == k)[0]) for k in (1, wanted.max()))
    for session in each_way(devices):
        for words, last in (
            ({"depth_limit": 1}, 1),
            ({"depth_limit": 0}, 0),
            ({"targets": [near]}, 1),
            ({"targets": [near, far]}, wanted.max()),
        ):
            found = session.search(root, **words)
            cut = np.where(wanted <= last, wanted, -1)
            np.testing.assert_array_equal(levels_by(found.to_numpy()[1]), cut)
            assert (found.depth, found.reached) == (last, (cut >= 0).sum())
        for some in some_sets(SOURCE):
            found = session.search(some)
            level = levels_by(found.to_numpy()[1])
            np.testing.assert_array_equal(level, SOURCE.distances(some))
            assert found.depth == level.max()
        found = session.search(root, records=True)
        assert len(found.records) >= wanted.max()
        check_parents(found, SOURCE)
        session.close()


def test_of_a_session_with_levels(devices):  # noqa: F811
    """One search may leave them out."""
    for session in (opened(), domain(devices, 2)):
        wanted = np.array([1, 5])
        found = session.search(1, levels=False)
        assert found.at(wanted)[0] is None
        check_parents(found, SOURCE)
        assert session.search(1).to_numpy()[0] is not None
        session.close()


@pytest.mark.parametrize("count", [1, 2, 3])
def test_they_are_validated_where_they_lie(devices, count):  # noqa: F811
    """A wrong parent of one device is noticed."""
    session = (
        domain(devices, count, levels=False) if count > 1 else opened(levels=False)
    )
    validated = validation_of(session, SOURCE)
    root = int(SOURCE.degrees.argmax())
    found = session.search(root)
    answer = validated(found)
    assert answer.valid, answer.errors
    assert (answer.nedge, answer.depth) == (found.nedge, found.depth)
    for _, parent in found.shards:
        x = int(np.flatnonzero(parent.get() >= 0)[-1])
        kept = int(parent[x])
        parent[x] = -1
        assert not validated(found).valid
        parent[x] = kept
    assert validated(found).valid
    session.close()


@pytest.mark.parametrize("count", [1, 2])
@INTERNAL
def test_ids_of_64_bits(devices, monkeypatch, count, internal):  # noqa: F811
    monkeypatch.setattr(device_tuples, "NARROW", SOURCE.n - 1)
    monkeypatch.setattr(choosing, "MAX_VERTICES", SOURCE.n - 1)
    session = domain(devices, count, levels=False, internal_ids=internal)
    validated = validation_of(session, SOURCE)
    found = session.search(3)
    check_parents(found, SOURCE)
    assert all(x.dtype == np.int64 for _, x in found.shards)
    answer = validated(found)
    assert answer.valid, answer.errors
    session.close()


@pytest.mark.parametrize("internal", [True, False])
def test_memory_of_one_device(device, internal):
    """A byte a vertex less, and four where levels have room beyond a byte at once."""
    source, used = kronecker(12), []
    for levels in (True, False):
        gc.collect()
        before = allocated(device)
        session = opened(source, internal_ids=internal, levels=levels)
        session.search(1)
        gc.collect()
        used.append(allocated(device) - before)
        session.close()
        del session
    active = int((source.degrees > 0).sum())
    saved = used[0] - used[1]
    least = 5 * active if internal else source.n
    assert least <= saved <= 1.3 * least + 8192
