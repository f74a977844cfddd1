"""Permutations are bijections, forward and back, and mix64 is splitmix64."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distbfs.generate.hashing import GOLDEN, Permutation, mix64, mix_seed

SIZES = [1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33, 100, 1023, 1024, 1025, 4096, 50_001]
WIDE = [(1 << 33) + 7, (1 << 40) - 1, 1 << 52, 1 << 60]


@pytest.mark.parametrize("n", SIZES)
def test_bijection(n):
    ids = np.arange(n)
    for seed in (0, 1, 12345, -7, 1 << 80):
        permutation = Permutation(n, seed)
        out = permutation.forward(ids)
        assert out.dtype == np.int64
        np.testing.assert_array_equal(np.sort(out), ids)
        np.testing.assert_array_equal(permutation.inverse(out), ids)
        back = permutation.forward(permutation.inverse(ids))
        np.testing.assert_array_equal(back, ids)


@pytest.mark.parametrize("n", WIDE)
def test_wide_ids_there_and_back(n):
    permutation = Permutation(n, 3)
    ids = np.random.default_rng(1).integers(0, n, 5000)
    ids[:3] = [0, n - 1, n // 2]
    out = permutation.forward(ids)
    assert out.min() >= 0
    assert out.max() < n
    np.testing.assert_array_equal(permutation.inverse(out), ids)
    assert len(np.unique(out)) == len(np.unique(ids))
    assert len(np.unique(out >> 20)) > 0.5 * min(len(out), n >> 20)  # spread out


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 1 << 62), st.integers(), st.data())
def test_any_size_and_seed(n, seed, data):
    ids = np.array(data.draw(st.lists(st.integers(0, n - 1), max_size=20)), np.int64)
    permutation = Permutation(n, seed)
    out = permutation.forward(ids)
    assert ((out >= 0) & (out < n)).all()
    np.testing.assert_array_equal(permutation.inverse(out), ids)


def test_the_argument_is_left_alone():
    ids = np.arange(100)
    Permutation(100, 1).forward(ids)
    np.testing.assert_array_equal(ids, np.arange(100))
    assert Permutation(100, 1).forward(ids[:0]).shape == (0,)


def test_seeds_give_different_orders():
    ids = np.arange(1000)
    orders = {tuple(Permutation(1000, seed).forward(ids)) for seed in range(50)}
    assert len(orders) == 50
    assert tuple(ids) not in orders


def test_each_seed_has_factors_and_addends_of_its_own():
    every = [Permutation(1 << 40, seed) for seed in range(300)]
    for name in ("factors", "addends"):
        assert len({tuple(getattr(one, name)) for one in every}) == 300


def test_no_place_is_favoured():
    """Where vertex 0 goes, over seeds: chi-square over 16 bins."""
    places = [int(Permutation(1024, s).forward(np.array([0]))[0]) for s in range(4096)]
    counts = np.bincount(np.array(places) // 64, minlength=16)
    assert ((counts - 256) ** 2 / 256).sum() < 45  # p about 1e-4 at 15 degrees


def test_struct_holds_the_same_numbers():
    permutation = Permutation(77, 5)
    struct = permutation.struct()
    assert (struct.n, struct.mask, struct.shift) == (77, 127, 4)
    assert list(struct.factor) == permutation.factors
    assert list(struct.addend) == permutation.addends
    assert all(factor % 2 for factor in permutation.factors)


def test_mix64_is_the_published_splitmix64():
    """First outputs of the reference code of splitmix64 with seed 1234567."""
    states = [(1234567 + k * GOLDEN) % (1 << 64) for k in range(1, 6)]
    assert mix64(np.array(states, dtype=np.uint64)).tolist() == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


def test_mix_seed_streams_differ():
    keys = {mix_seed(seed, stream) for seed in range(100) for stream in range(20)}
    assert len(keys) == 2000
    assert all(0 <= key < 1 << 64 for key in keys)
