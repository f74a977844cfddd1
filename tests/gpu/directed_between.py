"""Parts of directed graphs on devices, and what a right one is."""

import numpy as np

from distbfs.build.cuda.parts import construct_on_devices
from distbfs.options import BuildOptions
from distbfs.partition.layout import Placement
from distbfs.ranks.world import SoloWorld
from distbfs.types import SUBGRAPHS


def directed_parts(source, parts, world=None, *, threshold, **options):
    """Build the parts of this rank, of edges out and of edges in."""
    form = BuildOptions(directed=True, threshold=threshold)
    world = world or SoloWorld()
    placement = Placement(parts, world.size)
    return construct_on_devices(source, world, placement, form, **options)[0]


def check_parts(source, made):
    """Assert that parts have each arc once, out and in, and their numbers of tuples."""
    n, count = source.n, len(made)
    delegates = made[0].delegates
    high = np.isin(np.arange(n), delegates)
    degrees = source.degrees + source.entering
    np.testing.assert_array_equal(high, degrees > made[0].threshold)
    assert (np.diff(degrees[delegates]) <= 0).all()
    arcs = source.edges[:, 0] * n + source.edges[:, 1]
    local = [part.vertices.get().astype(np.int64) for part in made]
    for side in range(2):
        keys = []
        for k, part in enumerate(made):
            own = local[k] * count + k
            for name in SUBGRAPHS:
                rows = part.sides[side][name]
                lengths = np.diff(rows.offsets.get().astype(np.int64))
                of = own if name[0] == "n" else delegates
                row = np.repeat(of, lengths)
                column = rows.columns[: rows.edges].get().astype(np.int64)
                if name[1] == "d":
                    ends = delegates[column]
                elif name == "nn" and count > 1:
                    to, number = column >> 32, column & 0xFFFFFFFF
                    ends = np.zeros(len(column), np.int64)
                    for other in range(count):
                        there = to == other
                        ends[there] = local[other][number[there]] * count + other
                else:
                    ends = own[column]
                assert (high[row] == (name[0] == "d")).all()
                assert (high[ends] == (name[1] == "d")).all()
                keys.append(ends * n + row if side else row * n + ends)
        np.testing.assert_array_equal(np.sort(np.concatenate(keys)), arcs)
    wanted = 2 * np.bincount(source.u, minlength=n)
    for k, part in enumerate(made):
        ends = np.zeros(len(local[k]), np.int64)
        ends[local[k]] = part.tuple_degrees.get()
        np.testing.assert_array_equal(ends, wanted[k::count])
