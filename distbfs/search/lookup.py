"""Levels and parents of a few vertices, wherever their parts are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from distbfs.generate.hashing import Permutation
from distbfs.partition.layout import Layout, Placement
from distbfs.types import UNREACHED, Array, Ids, World

Take = Callable[[Any, Ids], Array]


def host_take(values: Array, places: Ids) -> Array:
    """Return the values at places of an array on the host."""
    taken: Array = values[places]
    return taken


def gathered(world: World, values: Array | None) -> Array | None:
    """Return the whole of an array of blocks on rank 0 (collective).

    Other ranks get an array of length 0, all None where ``values`` is None.
    """
    if values is None:
        return None
    blocks = world.alltoall([values] + [values[:0]] * (world.size - 1))
    return np.concatenate(blocks)


def values_at(
    world: World,
    layout: Layout,
    permutation: Permutation | None,
    level: Sequence[Any],
    parent: Sequence[Any],
    ids: Ids,
    take: Take = host_take,
) -> tuple[Array, Array | None]:
    """Return (level int32 [k], parent int64 [k] or None) of input ids (collective).

    level, parent: of the parts of this rank, by local id, ids inside
    take: how values are taken from such an array

    Parents are input ids; -1 stands for what was not reached.
    """
    inside = ids if permutation is None else permutation.forward(ids)
    part, local = layout.part_of(inside), layout.local_of(inside)
    with_parents = all(values is not None for values in parent)
    found = np.full((2 if with_parents else 1, len(ids)), UNREACHED, dtype=np.int64)
    mine = Placement(layout.parts, world.size).parts_of(world.rank)
    for place, index in enumerate(mine):
        here = np.flatnonzero(part == index)
        found[0, here] = take(level[place], local[here])
        if with_parents:
            found[1, here] = take(parent[place], local[here])
    found = world.allreduce(found, "max")
    if not with_parents:
        return found[0].astype(np.int32), None
    above = found[1]
    if permutation is not None:
        above[above >= 0] = permutation.inverse(above[above >= 0])
    return found[0].astype(np.int32), above
