"""Uniform tuples: C against NumPy, any slicing, and the statistics of the ends."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slices import same, taken

from distbfs.device import cc
from distbfs.errors import UsageError
from distbfs.generate import positions
from distbfs.generate.hashing import mix64
from distbfs.generate.uniform import MAX_VERTICES, Uniform, scaled

SIZES = [1, 2, 3, 1000, 1 << 20, (1 << 31) + 7, 1 << 32, (1 << 40) - 3, 1 << 48]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("seed", [1, -5])
def test_c_gives_what_numpy_gives(n, seed):
    source = Uniform(n, (1 << 40) + 77, seed, threads=2)
    for start in (0, 12_345, 1 << 33, source.tuples - 700):
        tuples = taken(source, start, start + 700)
        same(tuples, source.tuples_at(np.arange(start, start + 700)))
        for ids in tuples:
            assert ids.min() >= 0
            assert ids.max() < n
            assert ids.max() >= 0.9 * (n - 1)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, (1 << 64) - 1), st.integers(1, 1 << 48))
def test_scaled_is_the_high_half_of_a_product(x, n):
    assert scaled(np.array([x], dtype=np.uint64), n)[0] == x * n >> 64


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 999), st.lists(st.integers(0, 1 << 16), max_size=6))
def test_any_slicing_gives_the_same(n, cuts):
    source = Uniform(n, 3000, threads=1)
    bounds = [0, *sorted(c % (source.tuples + 1) for c in cuts), source.tuples]
    pieces = [taken(source, a, b) for a, b in pairwise(bounds)]
    whole = source.tuples_at(np.arange(source.tuples))
    same([np.concatenate([p[end] for p in pieces]) for end in (0, 1)], whole)


def test_slices_longer_than_a_chunk(monkeypatch):
    monkeypatch.setattr(positions, "CHUNK", 1000)
    source = Uniform(333, 20_000)
    same(taken(source, 5, 12_345), source.tuples_at(np.arange(5, 12_345)))
    assert taken(source, 7, 7)[0].size == 0
    assert taken(source, 7, 3)[0].size == 0


def test_without_a_compiler_numpy_serves(monkeypatch):
    source = Uniform(1 << 35, 5000)
    with_compiler = taken(source, 0, source.tuples)
    monkeypatch.setattr(cc, "load_or_none", lambda *_: None)
    same(taken(source, 0, source.tuples), with_compiler)


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_change_nothing(threads):
    single, threaded = (
        Uniform(777, 4000, threads=1),
        Uniform(777, 4000, threads=threads),
    )
    same(taken(threaded, 0, 4000), taken(single, 0, 4000))


def test_seeds_change_the_tuples():
    (u, v), (a, b) = (taken(Uniform(1000, 9000, seed=k), 0, 9000) for k in (1, 2))
    assert np.mean((u == a) & (v == b)) < 0.01


def test_ends_are_uniform_and_independent():
    """Counts within five standard deviations; no correlation of neighbours."""
    source = Uniform(100, 200_000)
    u, v = taken(source, 0, source.tuples)
    for ids in (u, v):
        count = np.bincount(ids, minlength=100)
        assert np.abs(count - 2000).max() < 5 * np.sqrt(2000)
    pairs = np.bincount(u // 10 * 10 + v // 10, minlength=100)
    assert np.abs(pairs - 2000).max() < 5 * np.sqrt(2000)
    for one, other in ((u, v), (u[1:], u[:-1]), (u[1:], v[:-1])):
        assert abs(np.corrcoef(one, other)[0, 1]) < 0.012
    assert abs(int((u == v).sum()) - 2000) < 5 * np.sqrt(2000)


@pytest.mark.parametrize(
    ("n", "degree", "tuples"),
    [(1 << 23, 32, 1 << 27), (1001, 3, 1502), (10, 0.01, 1), (3, 2.0, 3)],
)
def test_tuples_of_a_degree(n, degree, tuples):
    assert Uniform.of_size(n, degree=degree).tuples == tuples


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((0, 5), "vertices is 0; allowed: 1 to"),
        ((MAX_VERTICES + 1, 5), "vertices is 2814"),
        ((5, 0), "tuples is 0; allowed: 1 to"),
    ],
)
def test_refused(words, text):
    with pytest.raises(UsageError, match=text):
        Uniform(*words)


def test_description_recreates_the_tuples():
    source = Uniform(999, 5000, seed=42)
    description = source.describe()
    assert description.pop("family") == "uniform"
    same(taken(Uniform(**description), 0, 100), taken(source, 0, 100))


def test_members_are_what_the_kernels_need():
    source = Uniform(12_345, 5000, seed=3)
    key, n = (source.members()[name] for name in ("key", "n"))
    assert n == 12_345
    golden = 0x9E3779B97F4A7C15
    for position in (0, 4321):
        ends = [
            int(mix64(np.array([(key + c * golden) % 2**64], dtype=np.uint64))[0])
            for c in (2 * position, 2 * position + 1)
        ]
        ids = source.tuples_at(np.array([position]))
        assert [e * 12_345 >> 64 for e in ends] == [int(x[0]) for x in ids]
