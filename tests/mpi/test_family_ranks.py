"""Families on the ranks that were started: together the tuples that one process makes.

Also the parts of a graph that is built of them, and refusals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from graphs import build

from distbfs.cli.generate import make_source
from distbfs.generate.families import from_description
from distbfs.progress import no_progress
from distbfs.ranks.world import SoloWorld
from distbfs.registry import FAMILIES
from distbfs.types import slice_bounds

if TYPE_CHECKING:
    from distbfs.ranks.world import Ranks
    from distbfs.types import Ids, TupleSource

SEEDED = {"seed": 3}
DESCRIBED: dict[str, dict[str, Any]] = {
    "kronecker": {"scale": 6, "edge_factor": 4, **SEEDED},
    "uniform": {"n": 70, "tuples": 300, **SEEDED},
    "road": {"vertices": 300, **SEEDED},
    "geometric": {"vertices": 200, "degree": 7.5, **SEEDED},
    "triangulation": {"vertices": 70, **SEEDED},
    "small-world": {"vertices": 50, "neighbours": 4, "rewired": 0.25, **SEEDED},
    "stencil": {"vertices": 70, "neighbours": 10, "dimensions": 3},
    "chung-lu": {
        "vertices": 90,
        "degree": 6.0,
        "exponent": 2.5,
        "highest": 30,
        "inside": 0.3,
        "community": 7,
        **SEEDED,
    },
    "forest-fire": {"vertices": 80, "forward": 0.35, "backward": 0.3, **SEEDED},
    "rmat-er": {"scale": 6, "edge_factor": 4, **SEEDED},
    "rmat-g": {"scale": 6, "edge_factor": 4, **SEEDED},
    "rmat-b": {"scale": 6, "edge_factor": 4, **SEEDED},
    "complete": {"vertices": 20},
}


def pairs(source: TupleSource, start: int, stop: int) -> Ids:
    """The tuples of a slice, u and v in turn."""
    turns = [np.stack(pair).ravel("F") for pair in source.chunks(start, stop)]
    return np.concatenate([np.zeros(0, dtype=np.int64), *turns])


def example(name: str) -> TupleSource:
    """A small graph of a family."""
    if name not in DESCRIBED:
        return make_source(name, 1, {"scale": 5}, no_progress)
    source = from_description({"family": name, **DESCRIBED[name]}, 1)
    assert source is not None
    return source


@pytest.mark.parametrize("name", FAMILIES)
def test_slices_of_ranks_make_the_whole(world: Ranks, name: str) -> None:
    source = example(name)
    start, stop = slice_bounds(source.tuples, world.size, world.rank)
    mine = [np.stack(pair).ravel("F").copy() for pair in source.chunks(start, stop)]
    empty = np.zeros(0, dtype=np.int64)
    gathered = world.allgather(np.concatenate([empty, *mine]))
    whole = [
        np.stack(pair).ravel("F").copy() for pair in source.chunks(0, source.tuples)
    ]
    np.testing.assert_array_equal(np.concatenate(gathered), np.concatenate(whole))


@pytest.mark.parametrize(
    "name", ["geometric", "forest-fire", "triangulation", "rmat-b"]
)
def test_parts_are_those_of_one_process(world: Ranks, name: str) -> None:
    source = example(name)
    made, summary = build(source, 4, world)
    alone, wanted = build(source, 4, SoloWorld())
    assert (summary.m, summary.edges) == (wanted.m, wanted.edges)
    for part in made:
        other = alone[part.index]
        for graph in ("nn", "nd", "dn", "dd"):
            one, two = getattr(part, graph), getattr(other, graph)
            np.testing.assert_array_equal(one.offsets, two.offsets)
            np.testing.assert_array_equal(one.columns, two.columns)


def test_rows_of_directed_graphs_are_owned_on_ranks(world: Ranks) -> None:
    source = from_description({"family": "path", "vertices": 9}, 1)
    if world.size == 1:
        [part], _ = build(source, 1, world, directed=True)
        assert part.directed
        return
    [part], summary = build(source, world.size, world, directed=True, owned=True)
    assert (summary.delegates, summary.edges["dd"], part.active) == (9, 8, 0)
    assert (part.delegates[part.dd.sources()] % world.size == world.rank).all()
