"""Tuples of another source: counted pass by pass, permuted, reversed."""

import numpy as np

from distbfs.build.host.parts import construct
from distbfs.generate.derived import Counted, Permuted, Turned
from distbfs.generate.uniform import Uniform
from distbfs.options import BuildOptions
from distbfs.ranks.world import SoloWorld


def test_each_pass_is_told():
    source, reports = Uniform(5000, 40_000), []
    counted = Counted(source, reports.append)
    made = []
    few = BuildOptions(pass_bytes=1 << 20)  # one part a pass
    summary = construct(counted, SoloWorld(), 2, few, made.append)
    assert summary.passes == 4
    assert max(reports) == source.tuples
    assert reports.count(source.tuples) == summary.passes
    assert counted.describe() == source.describe()


def test_chunks_are_those_of_the_source():
    source = Uniform(100, 3000)
    for one, other in zip(
        Counted(source, lambda _: None).chunks(7, 2900),
        source.chunks(7, 2900),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)


def test_permuted_and_reversed():
    source = Uniform(100, 3000)
    ((u, v),) = source.chunks(5, 900)
    turned, permuted = Turned(source), Permuted(source, 3)
    ((head, tail),) = turned.chunks(5, 900)
    np.testing.assert_array_equal((tail, head), (u, v))
    assert turned.describe() == {**source.describe(), "turned": True}
    ((a, b),) = permuted.chunks(5, 900)
    ends = (permuted.permutation.forward(x) for x in (u, v))
    np.testing.assert_array_equal((a, b), tuple(ends))
    assert permuted.describe() == source.describe()
