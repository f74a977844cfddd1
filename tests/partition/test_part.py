"""Bitmasks, and what ``Part.check`` refuses."""

from dataclasses import replace

import numpy as np
import pytest
from graphs import NAMED, build
from hypothesis import given
from hypothesis import strategies as st

from distbfs.errors import InputError
from distbfs.graph.csr import CSR
from distbfs.partition.part import bits_of, mask_of, mask_words


@given(st.integers(0, 300), st.data())
def test_masks_there_and_back(bits, data):
    members = data.draw(st.lists(st.integers(0, bits - 1), max_size=30)) if bits else []
    mask = mask_of(np.array(members, dtype=np.int64), bits)
    assert mask.dtype == np.uint64
    assert len(mask) == mask_words(bits) == -(-bits // 64)
    assert bits_of(mask, bits).tolist() == sorted(set(members))
    for v in range(bits):
        assert bool(int(mask[v // 64]) >> (v % 64) & 1) == (v in members)


def test_bits_past_the_end_are_not_members():
    mask = np.array([(1 << 64) - 1], dtype=np.uint64)
    assert bits_of(mask, 3).tolist() == [0, 1, 2]


@pytest.fixture
def part():
    parts, _ = build(NAMED["two-hubs"], 2, threshold=4)
    return parts[1]


def bad_row(graph):
    return CSR(graph.offsets[:-1], graph.columns)


def bad_column(graph, value):
    columns = graph.columns.copy()
    columns[-1] = value
    return CSR(graph.offsets, columns)


CHANGES = {
    "vertices of its layout": lambda p: {"vertices": p.vertices[1:]},
    "nn has": lambda p: {"nn": bad_row(p.nn)},
    "nd has": lambda p: {"nd": bad_row(p.nd)},
    "dn has": lambda p: {"dn": bad_row(p.dn)},
    "dd has": lambda p: {"dd": bad_row(p.dd)},
    "column is not below 2": lambda p: {"nd": bad_column(p.nd, 2)},
    "column is not below 35": lambda p: {"dn": bad_column(p.dn, 35)},
    "not a permutation": lambda p: {"vertices": np.zeros_like(p.vertices)},
    "degrees do not fit the number of v": lambda p: {"degrees": p.degrees[1:]},
    "degrees do not fit the number of ver": lambda p: {"tuple_degrees": p.degrees[1:]},
    "active is not between": lambda p: {"active": p.local_count + 1},
    "a delegate is not a vertex": lambda p: {"delegates": p.delegates + 70},
    "delegate degrees": lambda p: {"delegate_degrees": p.delegate_degrees[1:]},
}


@pytest.mark.parametrize("message", CHANGES)
def test_check_names_what_is_wrong(part, message):
    part.check()
    with pytest.raises(InputError, match=message):
        replace(part, **CHANGES[message](part)).check()
