"""Shortest paths over the ranks that were started, against one process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from graphs import NAMED, build, random_tuples
from sessions import open_parts
from shortest_paths import diamonds, path_counts

import distbfs
from distbfs.errors import UsageError
from distbfs.generate.hashing import Permutation
from distbfs.options import SearchOptions
from distbfs.types import slice_bounds

if TYPE_CHECKING:
    from distbfs.ranks.world import Ranks

SEED = 5
GRAPHS = {
    "kronecker": NAMED["kronecker"],
    "random": random_tuples(200, 500, seed=8),
    "two-hubs": NAMED["two-hubs"],
}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize(("per_rank", "threshold"), [(1, 4), (2, 0), (2, 10**9)])
def test_paths(world: Ranks, name: str, per_rank: int, threshold: int) -> None:
    source = GRAPHS[name]
    parts, _ = build(
        source, per_rank * world.size, world, threshold=threshold, permute_seed=SEED
    )
    options = SearchOptions(engine="openmp", threads=1)
    session = open_parts(world, parts, options, Permutation(source.n, SEED))
    whole = distbfs.Graph.from_edges(source.u, source.v, n=source.n)
    low, high = slice_bounds(source.n, world.size, world.rank)
    root = int(source.degrees.argmax())
    result, alone = session.search(root), distbfs.bfs(whole, root, "reference")
    wanted = path_counts(source.matrix, alone.level)
    for dtype in ("uint64", "float64"):
        counts = result.path_counts(dtype)
        assert counts.dtype == dtype
        np.testing.assert_array_equal(counts, wanted[low:high])
    far = int(alone.level.argmax())
    np.testing.assert_array_equal(
        result.predecessors_to(far), alone.predecessors_to(far)
    )
    assert result.path_count_to(far) == wanted[far]
    edges = [len(x.edges_within(2)) for x in (result, alone)]
    assert world.allreduce(np.array(edges[:1]))[0] == edges[1]
    lost = np.flatnonzero(alone.level < 0)
    if len(lost):
        with pytest.raises(UsageError, match="was not reached"):
            result.predecessors_to(int(lost[0]))
    session.close()


def test_all_ranks_learn_that_a_count_is_too_large(world: Ranks) -> None:
    parts, _ = build(diamonds(65), world.size, world, threshold=3)
    session = open_parts(world, parts, SearchOptions(engine="openmp", threads=1))
    with pytest.raises(UsageError, match="on level 128; float64"):
        session.search(0).path_counts()
    session.close()
