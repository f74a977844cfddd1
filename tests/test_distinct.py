"""Distinct values are those of NumPy, of any shape and dtype."""

import numpy as np
import pytest

from distbfs.distinct import distinct


@pytest.mark.parametrize("dtype", ["int64", "uint64", "int32", "uint8"])
def test_as_numpy(dtype):
    rng = np.random.default_rng(1)
    for shape in (0, 1, 2, 1000, (300, 2)):
        for most in (1, 2, 100):
            values = rng.integers(0, most, shape).astype(dtype)
            some = distinct(values)
            assert some.dtype == dtype
            np.testing.assert_array_equal(some, np.unique(values))


def test_the_ends_of_a_range():
    ends = np.iinfo(np.int64)
    values = np.array([ends.max, ends.min, 0, ends.min, ends.max])
    assert distinct(values).tolist() == [ends.min, 0, ends.max]
    assert values.tolist() == [ends.max, ends.min, 0, ends.min, ends.max]
