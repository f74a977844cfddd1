"""Edges listed forth and back: differences are seen."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distbfs.formats.symmetry import MASK, back, forth, once

ID, MOST = st.integers(0, 40), 2**63 - 1


def columns(pairs):
    return np.array(pairs, dtype=np.int64).reshape(-1, 2).T


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(ID, st.integers(0, MOST))), st.integers(0, 9))
def test_an_edge_that_is_listed_from_both_ends_is_kept_once(pairs, cut):
    both = sorted(pairs + [(v, u) for u, v in pairs if u != v])
    kept, excess = [], 0
    for some in (both[:cut], both[cut:]):
        edges, more = once(*columns(some))
        kept += edges.tolist()
        excess += more
    assert not excess & MASK
    assert kept == [list(x) for x in both if x[0] <= x[1]]


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(ID, ID), min_size=1), st.data())
def test_arcs_that_are_listed_from_both_ends(pairs, data):
    edges, out = forth(*columns(pairs))
    turned = data.draw(st.permutations([x[::-1] for x in pairs]))
    none, into = back(*columns(turned))
    assert edges.tolist() == [list(x) for x in pairs]
    assert not len(none)
    assert not (out + into) & MASK
    _, less = back(*columns(turned[1:]))
    assert (out + less) & MASK


@pytest.mark.parametrize(
    "pairs", [[(0, 1)], [(1, 0)], [(0, 1), (2, 0)], [(0, 1), (1, 0), (0, 1)]]
)
def test_a_difference_is_seen(pairs):
    assert once(*columns(pairs))[1] & MASK
