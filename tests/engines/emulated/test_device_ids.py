"""Edge tuples by kernels run on the CPU: ids of 32 and of 64 bits."""

import numpy as np
import pytest

from distbfs.device import cuda
from distbfs.errors import UsageError
from distbfs.generate.cuda import device_tuples
from distbfs.generate.derived import Permuted
from distbfs.generate.kronecker import Kronecker
from distbfs.generate.road import Road
from distbfs.generate.uniform import Uniform


def check(source, start, count):
    tuples = device_tuples(source)
    u, v = (cuda.cupy().zeros(count, tuples.dtype) for _ in "uv")
    tuples.fill(start, start + count, u, v)
    chunks = list(source.chunks(start, start + count))
    wanted = [np.concatenate([chunk[end] for chunk in chunks]) for end in (0, 1)]
    for got, want in zip((u, v), wanted, strict=True):
        np.testing.assert_array_equal(got.get().astype(np.int64), want)
    return tuples


@pytest.mark.parametrize(
    "source",
    [
        Kronecker(9, 4, 3),
        Uniform(777, 3000, 5),
        Road(700),
        Permuted(Uniform(901, 1000), 7),
    ],
    ids=lambda source: type(source).__name__,
)
def test_small_graphs(device, id_bits, source):
    tuples = check(source, 0, source.tuples)
    assert np.dtype(tuples.dtype).itemsize * 8 == id_bits
    check(source, 100, 300)


@pytest.mark.parametrize("scale", [31, 32, 33, 40, 42])
def test_ids_near_the_borders(device, scale):
    source = Kronecker(scale, 1, 2)
    tuples = check(source, source.tuples - 2000, 2000)
    assert tuples.dtype is (np.uint32 if scale == 31 else np.uint64)
    for extra in (-1, 0, 1):
        n = min((1 << scale) + extra, 1 << 42)
        check(Permuted(Uniform(n, 1 << 20), 3), 1000, 2000)


def test_more_vertices_are_refused(device):
    with pytest.raises(UsageError, match="do not fit devices; allowed: 4398046511104"):
        device_tuples(Uniform((1 << 42) + 1, 8))
