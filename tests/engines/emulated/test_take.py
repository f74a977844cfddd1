"""Values that a host takes from arrays of a device, by the kernel run on the CPU."""

import numpy as np
import pytest

from distbfs.device import cuda
from distbfs.device.take import FEW, take


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "u4", "i8", "u8"])
def test_few_and_many_places(device, dtype):
    rng = np.random.default_rng(3)
    values = rng.integers(0, 100, 3 * FEW).astype(dtype)
    values[5] = np.iinfo(dtype).max
    on_device = cuda.cupy().asarray(values)
    for count in (0, 1, 2, FEW - 1, FEW, FEW + 1):
        places = rng.integers(0, len(values), count)
        places[: count // 2] = 5
        before = device.launches
        taken = take(on_device, places)
        assert taken.dtype == values.dtype
        assert taken.tolist() == values[places].tolist()
        assert device.launches - before == (count <= FEW)


def test_what_was_taken_stays(device):
    values = cuda.cupy().asarray(np.arange(10))
    first = take(values, np.array([3, 4]))
    take(values, np.array([7, 8]))
    assert first.tolist() == [3, 4]
