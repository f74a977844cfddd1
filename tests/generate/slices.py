"""What the tests of every family share: slices of tuples, and their comparison."""

import numpy as np


def taken(source, start, stop):
    """The tuples of a slice in arrays of their own."""
    chunks = [(u.copy(), v.copy()) for u, v in source.chunks(start, stop)]
    empty = np.zeros(0, dtype=np.int64)
    return tuple(np.concatenate([empty, *(c[end] for c in chunks)]) for end in (0, 1))


def same(actual, expected):
    for one, other in zip(actual, expected, strict=True):
        assert one.dtype == np.int64
        np.testing.assert_array_equal(one, other)
