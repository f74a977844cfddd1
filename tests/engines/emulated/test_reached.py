"""What a search has reached is counted on the device as NumPy counts it."""

import numpy as np
import pytest

from distbfs.device import cuda
from distbfs.device.reached import sum_reached, value_counts


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("values", ["int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("ends", ["uint8", "uint16", "uint32", "uint64", "int64"])
@pytest.mark.parametrize("with_rows", [False, True])
def test_sums_are_those_of_numpy(values, ends, with_rows):
    cp, rng = cuda.cupy(), np.random.default_rng(1)
    for n in (0, 1, 31, 33, 9000):
        level = rng.integers(-1, 100, n).astype(values)
        level[rng.random(n) < 0.5] = -1
        rows = rng.permutation(n)[: n - n // 3].astype(np.uint32) if with_rows else None
        of = np.arange(n - n // 4) if rows is None else rows
        most = min(np.iinfo(ends).max, 1 << 50)
        each = rng.integers(0, most, len(of), dtype=np.uint64, endpoint=True)
        each = each.astype(ends)
        wanted = level >= 0
        on_device = [None if x is None else cp.asarray(x) for x in (level, each, rows)]
        assert sum_reached(on_device[0]) == (wanted.sum(), 0)
        total = int(each.astype(object)[wanted[of]].sum())
        assert sum_reached(*on_device) == (wanted[of].sum(), total)


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("with_rows", [False, True])
def test_values_are_counted_as_numpy_does(dtype, with_rows):
    cp, rng = cuda.cupy(), np.random.default_rng(2)
    most = min(np.iinfo(dtype).max, 3000)
    for n in (0, 1, 33, 9000):
        values = rng.integers(-2, most, n).astype(dtype)
        rows = rng.permutation(n)[: n - n // 3].astype(np.uint32) if with_rows else None
        meant = values if rows is None else values[rows]
        there = [None if x is None else cp.asarray(x) for x in (values, rows)]
        for kinds in (1, 3, most):
            wanted = np.bincount(meant[(meant >= 0) & (meant < kinds)], minlength=kinds)
            counted = value_counts(there[0], kinds, there[1])
            np.testing.assert_array_equal(counted, wanted)
