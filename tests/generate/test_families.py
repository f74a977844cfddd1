"""Families by name: tuples again from what describe() told."""

import pytest
from slices import same, taken

from distbfs.generate.families import from_description
from distbfs.generate.kronecker import Kronecker
from distbfs.generate.road import Road
from distbfs.generate.uniform import Uniform
from distbfs.registry import FAMILIES

SOURCES = {
    "kronecker": Kronecker(6, 4, seed=3),
    "uniform": Uniform(70, 300, seed=4),
    "road": Road(300, seed=5),
}


def test_every_family_is_here():
    assert set(SOURCES) == set(FAMILIES)


@pytest.mark.parametrize("name", SOURCES)
def test_described_and_made_again(name):
    source = SOURCES[name]
    again = from_description(source.describe(), 1)
    assert type(again) is type(source)
    assert (again.n, again.tuples) == (source.n, source.tuples)
    same(taken(again, 0, again.tuples), taken(source, 0, source.tuples))
    assert again.describe() == source.describe()


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"family": "file", "path": "x"},
        {"family": ["kronecker"]},
        {"family": "kronecker", "scale": 6},
        {"family": "kronecker", "scale": 6, "edge_factor": "16", "seed": 1},
        {"family": "kronecker", "scale": 6, "edge_factor": 16, "seed": True},
        {"family": "kronecker", "scale": 99, "edge_factor": 16, "seed": 1},
        {"family": "kronecker", "scale": 6, "edge_factor": 16, "seed": 1, "noise": 2},
        {"family": "road", "n": 300, "seed": 1},
    ],
)
def test_what_no_family_makes(told):
    assert from_description(told) is None
