"""Families by name: tuples again from what describe() told, slice by slice."""

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slices import same, taken

from distbfs.cli.generate import make_source
from distbfs.device.structures import structure
from distbfs.generate.chung_lu import ChungLu
from distbfs.generate.families import from_description
from distbfs.generate.forest_fire import ForestFire
from distbfs.generate.formula import Complete
from distbfs.generate.geometric import Geometric
from distbfs.generate.kronecker import Kronecker
from distbfs.generate.positions import ByPosition
from distbfs.generate.rmat import RmatB, RmatER, RmatG
from distbfs.generate.road import Road
from distbfs.generate.small_world import SmallWorld
from distbfs.generate.stencil import Stencil
from distbfs.generate.triangulation import Triangulation
from distbfs.generate.uniform import Uniform
from distbfs.progress import no_progress
from distbfs.registry import FAMILIES

EXAMPLES = {
    "kronecker": Kronecker(6, 4, seed=3),
    "uniform": Uniform(70, 300, seed=4),
    "road": Road(300, seed=5),
    "geometric": Geometric(200, 7.5, seed=6),
    "triangulation": Triangulation(70, seed=7),
    "small-world": SmallWorld(50, 4, 0.25, seed=8),
    "stencil": Stencil(70, 10, 3),
    "chung-lu": ChungLu(90, 6.0, 2.5, 30, 0.3, 7, seed=10),
    "forest-fire": ForestFire(80, 0.35, 0.3, seed=9),
    "rmat-er": RmatER(6, 4, seed=3),
    "rmat-g": RmatG(6, 4, seed=3),
    "rmat-b": RmatB(6, 4, seed=3),
    "complete": Complete(20),
}
SOURCES = {
    name: EXAMPLES.get(name) or make_source(name, 1, {"scale": 5}, no_progress)
    for name in FAMILIES
}


@pytest.mark.parametrize("name", SOURCES)
def test_described_and_made_again(name):
    source = SOURCES[name]
    again = from_description(json.loads(json.dumps(source.describe())), 1)
    assert type(again) is type(source)
    assert (again.n, again.tuples) == (source.n, source.tuples)
    same(taken(again, 0, again.tuples), taken(source, 0, source.tuples))
    assert again.describe() == source.describe()


@pytest.mark.parametrize(
    "description",
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
        {"family": "path", "vertices": 3.0},
        {"family": "path", "vertices": 3, "seed": 1},
        {
            "family": "small-world",
            "vertices": 50,
            "neighbours": 4,
            "rewired": 1,
            "seed": 1,
        },
    ],
)
def test_what_no_family_makes(description):
    assert from_description(description) is None


@pytest.mark.thorough
@pytest.mark.parametrize("name", SOURCES)
@settings(max_examples=15, deadline=None)
@given(cuts=st.lists(st.integers(0, 1 << 16), max_size=5))
def test_any_slicing_gives_the_same(name, cuts):
    """As ranks ask for slices: the same tuples for every number of them."""
    source = SOURCES[name]
    bounds = [0, *sorted(c % (source.tuples + 1) for c in cuts), source.tuples]
    pieces = [taken(source, a, b) for a, b in pairwise(bounds)]
    whole = source.tuples_at(np.arange(source.tuples))
    same([np.concatenate([p[end] for p in pieces]) for end in (0, 1)], whole)
    for ids in whole:
        assert ids.min() >= 0
        assert ids.max() < source.n
    at = np.random.default_rng(len(cuts)).permutation(source.tuples)[:9]
    same(source.tuples_at(at), [ids[at] for ids in whole])


SEEDED = [name for name in SOURCES if "seed" in SOURCES[name].describe()]


@pytest.mark.parametrize("name", SEEDED)
def test_seeds_change_the_tuples(name):
    source = SOURCES[name]
    other = from_description({**source.describe(), "seed": 12_345}, 1)
    pairs = [
        set(zip(*(x.tolist() for x in taken(s, 0, s.tuples)), strict=True))
        for s in (source, other)
    ]
    assert pairs[0] != pairs[1]


KERNELS = [name for name in SOURCES if isinstance(SOURCES[name], ByPosition)]


def test_families_with_kernels():
    assert {"kronecker", "uniform", "rmat-b"} <= set(KERNELS)


@pytest.mark.parametrize("name", KERNELS)
def test_c_and_cuda_take_the_same_slice(name):
    path = SOURCES[name].source.with_suffix(".cu")
    text = path.read_text(encoding="utf-8")
    assert f"{path.stem}_tuples(const slice s)" in text
    kind = structure(path, "slice")
    assert kind is structure(SOURCES[name].source, "slice")
    members = {"start", "count", "u", "v", "threads", *SOURCES[name].members()}
    assert members == {x for x, _ in kind._fields_}
