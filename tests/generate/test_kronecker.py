"""Kronecker tuples: C against NumPy, any slicing, and the initiator's statistics."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slices import same, taken

from distbfs.device import cc
from distbfs.errors import UsageError
from distbfs.generate import positions
from distbfs.generate.kronecker import (
    CUTOFF_BITS,
    INITIATOR,
    SLOTS,
    Kronecker,
    alias_table,
    outcome_weights,
)

BEYOND = [33, 36, 40, 47, 48]


@pytest.mark.parametrize("scale", range(1, 21))
@pytest.mark.parametrize(("edge_factor", "seed"), [(16, 1), (7, -3)])
def test_c_gives_what_numpy_gives(scale, edge_factor, seed):
    source = Kronecker(scale, edge_factor, seed, threads=2)
    assert source.tuples == edge_factor << scale
    start = source.tuples // 3
    stop = min(source.tuples, start + 3000)
    tuples = taken(source, start, stop)
    same(tuples, source.tuples_at(np.arange(start, stop)))
    for ids in tuples:
        assert ids.min() >= 0
        assert ids.max() < source.n


@pytest.mark.parametrize("scale", BEYOND)
@pytest.mark.parametrize("edge_factor", [1, 16, 4096])
def test_beyond_32_bits(scale, edge_factor):
    source = Kronecker(scale, edge_factor)
    for start in (0, source.tuples // 2 + 11, source.tuples - 700):
        u, v = taken(source, start, start + 700)
        same((u, v), source.tuples_at(np.arange(start, start + 700)))
        assert max(u.max(), v.max()) >> 32 > 0
        assert max(u.max(), v.max()) < source.n


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 12), st.lists(st.integers(0, 1 << 16), max_size=6), st.data())
def test_any_slicing_gives_the_same(scale, cuts, data):
    source = Kronecker(scale, 16, seed=data.draw(st.integers(0, 99)), threads=1)
    bounds = [0, *sorted(c % (source.tuples + 1) for c in cuts), source.tuples]
    pieces = [taken(source, a, b) for a, b in pairwise(bounds)]
    whole = source.tuples_at(np.arange(source.tuples))
    same([np.concatenate([p[end] for p in pieces]) for end in (0, 1)], whole)


def test_slices_longer_than_a_chunk(monkeypatch):
    monkeypatch.setattr(positions, "CHUNK", 1000)
    source = Kronecker(10, 16)
    same(taken(source, 5, 12_345), source.tuples_at(np.arange(5, 12_345)))
    assert taken(source, 7, 7)[0].size == 0
    assert taken(source, 7, 3)[0].size == 0


def test_without_a_compiler_numpy_serves(monkeypatch):
    source = Kronecker(9)
    with_compiler = taken(source, 0, source.tuples)
    monkeypatch.setattr(cc, "load_or_none", lambda *_: None)
    same(taken(source, 0, source.tuples), with_compiler)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_change_nothing(threads):
    wanted = Kronecker(12, threads=1)
    threaded = Kronecker(12, threads=threads)
    same(taken(threaded, 0, threaded.tuples), taken(wanted, 0, wanted.tuples))


def test_seeds_change_the_tuples():
    first, other = Kronecker(12, seed=1), Kronecker(12, seed=2)
    u, v = taken(first, 0, first.tuples)
    a, b = taken(other, 0, other.tuples)
    assert np.mean((u == a) & (v == b)) < 0.01
    same(taken(Kronecker(12, seed=1), 0, first.tuples), (u, v))


def raw_ids(source):
    """The tuples before the permutation of the vertices."""
    u, v = source.tuples_at(np.arange(source.tuples))
    return source._vertices.inverse(u), source._vertices.inverse(v)


@pytest.mark.parametrize("scale", [13, 16])
def test_each_level_draws_the_initiator(scale):
    """Frequencies of A, B, C, D on every level, within five standard deviations."""
    source = Kronecker(scale)
    u, v = raw_ids(source)
    bound = 5 * np.sqrt(np.array(INITIATOR) * (1 - np.array(INITIATOR)) / source.tuples)
    for level in range(scale):
        outcome = (u >> level & 1) * 2 + (v >> level & 1)
        share = np.bincount(outcome, minlength=4) / source.tuples
        assert (np.abs(share - INITIATOR) < bound).all(), (level, share)


def test_levels_are_independent():
    source = Kronecker(16)
    u, v = raw_ids(source)
    quadrant = [(u >> k & 1) * 2 + (v >> k & 1) for k in range(source.scale)]
    chance = np.outer(INITIATOR, INITIATOR).ravel()
    bound = 6 * np.sqrt(chance * (1 - chance) / source.tuples)
    for low, high in [(0, 1), (3, 4), (2, 9), (0, 15), (7, 8)]:
        share = np.bincount(quadrant[low] * 4 + quadrant[high], minlength=16)
        assert (np.abs(share / source.tuples - chance) < bound).all(), (low, high)


def test_tuples_are_shuffled():
    """Neighbouring positions have nothing in common."""
    source = Kronecker(14)
    u, _ = raw_ids(source)
    high = (u >> 13 & 1).astype(float)
    assert abs(np.corrcoef(high[1:], high[:-1])[0, 1]) < 0.01


def test_loops_and_repeats_are_kept():
    source = Kronecker(12)
    u, v = taken(source, 0, source.tuples)
    loops = int((u == v).sum())
    expected = source.tuples * (INITIATOR[0] + INITIATOR[3]) ** source.scale
    assert abs(loops - expected) < 6 * np.sqrt(expected)
    pairs = np.unique(np.stack([np.minimum(u, v), np.maximum(u, v)]), axis=1)
    assert pairs.shape[1] < 0.9 * source.tuples


@pytest.mark.parametrize("scale", [0, -1, 49])
def test_scales_that_are_refused(scale):
    with pytest.raises(UsageError, match=f"scale is {scale}; allowed: 1 to 48"):
        Kronecker(scale)


@pytest.mark.parametrize("edge_factor", [0, -16, 4097])
def test_edge_factors_that_are_refused(edge_factor):
    with pytest.raises(UsageError, match=r"edge_factor is .*; allowed: 1 to 4096"):
        Kronecker(10, edge_factor)


def test_description_recreates_the_tuples():
    source = Kronecker(9, 5, seed=42)
    description = source.describe()
    assert description.pop("family") == "kronecker"
    same(taken(Kronecker(**description), 0, 100), taken(source, 0, 100))


@pytest.mark.parametrize("levels", [1, 2, 3, 4])
def test_weights_of_outcomes(levels):
    """Each outcome's weight is the product of the initiator over its bit pairs."""
    weights = outcome_weights(levels)
    for outcome, weight in enumerate(weights):
        u, v = divmod(outcome, 1 << levels)
        pairs = [(u >> k & 1) * 2 + (v >> k & 1) for k in range(levels)]
        assert weight == pytest.approx(np.prod([INITIATOR[p] for p in pairs]))
    assert weights.sum() == pytest.approx(1)


def table_chances(weights):
    """The probabilities that an alias table gives its outcomes."""
    table = alias_table(weights)
    cutoff, alias = table >> np.uint64(8), (table & np.uint64(255)).astype(np.int64)
    below = cutoff.astype(np.float64) / 2.0**CUTOFF_BITS
    chance = below.copy()
    np.add.at(chance, alias, 1 - below)
    return chance / SLOTS


@pytest.mark.parametrize("levels", [1, 2, 3, 4])
def test_alias_table_is_exact(levels):
    weights = outcome_weights(levels)
    chance = table_chances(weights)
    np.testing.assert_allclose(chance[: len(weights)], weights, rtol=0, atol=1e-15)
    assert not chance[len(weights) :].any()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(1e-9, 1), min_size=1, max_size=SLOTS))
def test_alias_table_of_any_weights(weights):
    weights = np.array(weights) / sum(weights)
    chance = table_chances(weights)
    np.testing.assert_allclose(chance[: len(weights)], weights, rtol=0, atol=1e-13)
    assert chance[len(weights) :].max(initial=0) < 1e-13
