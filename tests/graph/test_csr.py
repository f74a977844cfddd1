"""Rows of columns: built from keys, permuted, checked."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distbfs.errors import InputError
from distbfs.graph.csr import CSR, index_dtype, row_offsets

ROWS = st.lists(st.lists(st.integers(0, 2**32 - 1), max_size=5), max_size=12)
FAST = settings(max_examples=60, deadline=None)


def packed(rows, dtype=np.uint32):
    columns = np.array([c for row in rows for c in row], dtype=dtype)
    return CSR(row_offsets(np.array([len(row) for row in rows], np.int64)), columns)


def unpacked(graph):
    cuts = graph.offsets[1:-1].astype(np.int64)
    return [r.tolist() for r in np.split(graph.columns, cuts)] if graph.rows else []


@FAST
@given(ROWS, st.randoms())
def test_from_keys_sorts_rows(rows, random):
    keys = [
        row << 32 | column for row, columns in enumerate(rows) for column in columns
    ]
    random.shuffle(keys)
    graph = CSR.from_keys(len(rows), np.array(keys, dtype=np.uint64))
    assert unpacked(graph) == [sorted(row) for row in rows]
    assert graph.columns.dtype == graph.offsets.dtype == np.uint32
    assert (graph.rows, graph.edges) == (len(rows), len(keys))


@FAST
@given(ROWS, st.randoms())
def test_permute_rows(rows, random):
    order = list(range(len(rows)))
    random.shuffle(order)
    graph = packed(rows).permute_rows(np.array(order, dtype=np.uint32))
    assert unpacked(graph) == [rows[k] for k in order]


@FAST
@given(ROWS)
def test_counts_of_rows(rows):
    graph = packed(rows, np.uint64)
    assert graph.degrees().tolist() == [len(row) for row in rows]
    sources = [k for k, row in enumerate(rows) for _ in row]
    assert graph.sources().tolist() == sources
    start, stop = len(sources) // 3, len(sources) // 3 * 2
    assert graph.sources(start, stop).tolist() == sources[start:stop]
    assert graph.nbytes == 4 * len(rows) + 8 * graph.edges
    graph.check(1 << 32)


def test_wide_where_it_must_be():
    assert index_dtype(2**32 - 1) is np.uint32
    assert index_dtype(2**32) is np.uint64
    assert row_offsets(np.array([1, 2])).dtype == np.uint32
    wide = row_offsets(np.array([2**32 - 1, 0, 2**33]))
    assert wide.dtype == np.uint64
    assert wide.tolist() == [0, 2**32 - 1, 2**32 - 1, 3 * 2**32 - 1]


def test_empty():
    for rows in (0, 3):
        graph = CSR.empty(rows, np.uint64)
        assert (graph.rows, graph.edges, graph.nbytes) == (rows, 0, 4 * rows)
        assert graph.columns.dtype == np.uint64
        graph.check(0)


@pytest.mark.parametrize(
    ("offsets", "columns", "message"),
    [
        ([], [], "do not start at 0"),
        ([1, 1], [0], "do not start at 0"),
        ([0, 2, 1], [0], "do not rise"),
        ([0, 1, 1], [0, 0], "not the number of columns"),
        ([0, 2], [0], "not the number of columns"),
        ([0, 1], [7], "a column is not below 7"),
    ],
)
def test_check_names_what_is_wrong(offsets, columns, message):
    graph = CSR(np.array(offsets, np.uint32), np.array(columns, np.uint32))
    with pytest.raises(InputError, match=message):
        graph.check(7)
