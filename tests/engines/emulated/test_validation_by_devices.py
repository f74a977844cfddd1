"""Validation by several devices, which are the CPU, against that on the host."""

import numpy as np
import pytest
from graphs import NAMED, kronecker, random_tuples
from validation.test_cuda_on_host import ArrayTuples, holds, planted
from validation.test_validate import search
from worlds import on_ranks

from distbfs.device import cuda
from distbfs.exchange.world import SoloWorld
from distbfs.generate import cuda as device_tuples
from distbfs.validation import cuda as module
from distbfs.validation.cuda import validate_on_devices
from distbfs.validation.cuda_device import Seat, Shard
from distbfs.validation.host import validate

GRAPHS = {
    "random": random_tuples(300, 700, 3),
    "sparse": random_tuples(500, 300, 4),
    "kronecker": kronecker(8),
    "isolated": NAMED["isolated"],
}
SHAPES = [(2, 2), (3, 3), (4, 2), (3, 1), (1, 1), (16, 3)]  # parts, devices


def seats_of(tuples, level, parent, parts, devices, mine):
    """The devices ``mine``, with the parts of each, dealt in turn."""
    cp = cuda.cupy()

    def on_device(values, part):
        return None if values is None else cp.asarray(values[part::parts].copy())

    return [
        Seat(
            tuples,
            [
                Shard(part, on_device(level, part), on_device(parent, part))
                for part in range(device, parts, devices)
            ],
        )
        for device in mine
    ]


def told(source, root, level, parent, shape, *, world=None, mine=None, **options):
    """What devices say of a result; of those of this rank."""
    parts, devices = shape
    wide = device_tuples.id_type(source.n)
    tuples = ArrayTuples(source, cuda.cupy(), wide)
    level_type = next(x for x in module.LEVEL_TYPES if holds(level, x))
    types = module.PARENT_TYPES[wide is np.uint64 :]
    if parent is not None:
        parent = parent.astype(next(x for x in types if holds(parent, x)))
    mine = range(devices) if mine is None else mine
    level = level.astype(level_type)
    seats = seats_of(tuples, level, parent, parts, devices, mine)
    known = (source.n, parts, root)
    with_parents = parent is not None
    return validate_on_devices(
        world or SoloWorld(), seats, *known, parents=with_parents, **options
    )


def same(verdict, source, root, level, parent):
    expected = validate(SoloWorld(), source, root, level, parent, threads=1)
    for name in ("errors", "valid", "nedge", "reached", "depth", "checked"):
        assert getattr(verdict, name) == getattr(expected, name), name
    return expected


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape[0]} on {shape[1]}")
def test_planted_faults(device, id_bits, shape):
    for k, source in enumerate(GRAPHS.values()):
        if source.n < shape[0]:
            continue
        root = int(source.u[0])
        level, parent = search(source.n, source.u, source.v, root)
        cases = list(planted(source, root, level, parent, seed=7))
        for name, *case in cases[k % 4 :: 4] + cases[:1]:
            chunk = (1000, 37, 64)[k % 3]
            for found in (case, [*case[:-1], None]):
                expected = same(told(*found, shape, chunk=chunk), *found)
                assert expected.valid or name != "none"


def test_one_wrong_parent_or_level_of_another_device(device):
    """Each vertex once, on whichever device it is."""
    source = kronecker(6)
    root = int(source.u[0])
    level, parent = search(source.n, source.u, source.v, root)
    for x in np.flatnonzero((level > 0) & (np.arange(source.n) != root))[::3].tolist():
        for which, value in ((level, level[x] + 1), (parent, root), (parent, x)):
            kept, which[x] = which[x], value
            same(told(source, root, level, parent, (3, 3)), source, root, level, parent)
            which[x] = kept


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks(device, ranks):
    """The last of three has no device; boxes are full more than once."""
    source = random_tuples(400, 5000, 9)
    root = int(source.u[0])
    level, parent = search(source.n, source.u, source.v, root)
    for name, *case in planted(source, root, level, parent, seed=5):
        if name not in ("none", "parents any", "levels random", "lost", "root level"):
            continue

        def rank(world, case=case):
            mine = ([0, 2], [1], [])[world.rank]
            return told(*case, (6, 3), world=world, mine=mine, chunk=64)

        for verdict in on_ranks(ranks, rank):
            same(verdict, *case)
