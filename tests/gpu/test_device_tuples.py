"""Tuples on the device are those of the host, for any slice."""

import numpy as np
import pytest

from distbfs.device import cuda
from distbfs.errors import InputError, UsageError
from distbfs.generate.cuda import FamilyTuples, HostTuples, device_tuples
from distbfs.generate.kronecker import Kronecker
from distbfs.generate.road import Road
from distbfs.generate.uniform import Uniform

pytestmark = pytest.mark.emulated


class Tuples:
    """A TupleSource over arrays, in chunks of 7."""

    def __init__(self, n, u, v):
        self.n, self.u, self.v = n, np.array(u), np.array(v)
        self.tuples = len(u)

    def chunks(self, start, stop):
        for at in range(start, stop, 7):
            end = min(at + 7, stop)
            yield self.u[at:end], self.v[at:end]

    def describe(self):
        return {"family": "test"}


def on_host(source, start, stop):
    pairs = [np.stack(pair) for pair in source.chunks(start, stop)]
    return np.concatenate([np.zeros((2, 0), np.int64), *pairs], axis=1)


def on_device(tuples, start, stop):
    cupy = cuda.cupy()
    out = cupy.full((2, stop - start + 3), 77, dtype=tuples.dtype)
    tuples.fill(start, stop, out[0], out[1])
    found = out.get()
    assert (found[:, stop - start :] == 77).all(), "wrote past the end"
    return found[:, : stop - start]


def check(source, *slices):
    tuples = device_tuples(source)
    assert (tuples.n, tuples.tuples) == (source.n, source.tuples)
    for start, stop in slices:
        found = on_device(tuples, start, stop)
        np.testing.assert_array_equal(found, on_host(source, start, stop))
    return tuples


@pytest.mark.parametrize("scale", [*range(1, 14), 17])
@pytest.mark.parametrize(("edge_factor", "seed"), [(16, 1), (1, 5), (13, -4)])
def test_kronecker_tuples(scale, edge_factor, seed):
    source = Kronecker(scale, edge_factor, seed)
    end, third = source.tuples, source.tuples // 3
    tuples = check(source, (0, end), (third, end - 1), (third, third), (end - 1, end))
    assert isinstance(tuples, FamilyTuples)


@pytest.mark.parametrize("scale", [19, 22, 24, 27, 28, 29, 30, 31, 32, 33, 42])
def test_tuples_of_large_kronecker_graphs(scale):
    source = Kronecker(scale, 16)
    end = source.tuples
    check(source, (end - 5000, end), (end // 3, end // 3 + 100_003))


@pytest.mark.parametrize(
    "source",
    [
        Uniform(1, 10),
        Uniform(1000, 30_000, 3),
        Uniform(1 << 31, 1 << 35),
        Uniform((1 << 40) + 3, 1 << 35),
    ],
    ids=lambda s: f"{s.describe()['family']}-{s.n}",
)
def test_tuples_of_other_families(source):
    end = min(source.tuples, 100_000)
    tuples = check(source, (0, end), (end // 3, end - 1), (end // 2, end // 2))
    assert isinstance(tuples, FamilyTuples)


def test_tuples_of_a_family_without_a_kernel_are_copied():
    source = Road(1000)
    assert isinstance(check(source, (0, source.tuples), (9, 99)), HostTuples)


def test_tuples_of_any_other_source_are_copied():
    rng = np.random.default_rng(1)
    source = Tuples(99, *rng.integers(0, 99, (2, 1000)))
    tuples = check(source, (0, 1000), (13, 999), (5, 5))
    assert isinstance(tuples, HostTuples)


@pytest.mark.parametrize("wrong", [-1, 4, 1 << 33])
def test_ends_that_are_no_vertices(wrong):
    tuples = device_tuples(Tuples(4, [0, wrong], [1, 2]))
    with pytest.raises(InputError, match=r"end outside 0 … 3"):
        on_device(tuples, 0, 2)


def test_more_vertices_than_devices_number():
    with pytest.raises(UsageError, match="8796093022208 vertices do not fit"):
        device_tuples(Kronecker(43))
