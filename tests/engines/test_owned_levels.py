"""Parts that own rows, level by level: engine openmp against SciPy, without ranks."""

import numpy as np
import pytest
from directed_graphs import check_arrays, matrix_of, tuples
from graphs import build
from variants import make_engine

from distbfs.graph.csr import CSR
from distbfs.partition.layout import Placement
from distbfs.search.graph_input import HeldTuples


def parts_of(n, u, v, count):
    return build(HeldTuples(u, v, n), count, directed=True, owned=True)[0]


def search(searches, root, directions, *, ends=None):
    """Run a search over all parts; ends: the level after which it is given up."""
    part = searches[0].part
    [number] = np.flatnonzero(part.delegates == root)
    for one in searches:
        one.start(None, int(number))
    for level in range(1000):
        work = sum(one.work().copy() for one in searches)
        if not work[1]:
            break
        choice = {"outer": "push", "inner": directions[level % len(directions)]}
        bins, masks = zip(*(one.advance(choice) for one in searches), strict=True)
        assert not any(len(own.items) for own in bins)
        if level == ends:
            return None
        mask = np.bitwise_or.reduce(masks)
        for one in searches:
            one.accept(mask, ())
    n = part.layout.n
    level, parent = np.full(n, -1), np.full(n, -1)
    for one in searches:
        ids = part.layout.global_of(one.part.index, np.arange(one.part.local_count))
        level[ids], parent[ids] = one.finish()
    return level, parent


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("directions", [("push",), ("pull",), ("push", "pull")])
def test_any_turn(count, threads, directions):
    for seed in range(6):
        n, u, v = tuples(seed)
        parts = parts_of(n, u, v, count)
        engine = make_engine("openmp", threads=threads)
        searches = [engine.domain(part, Placement(len(parts), 1)) for part in parts]
        matrix = matrix_of(n, u, v)
        for root in parts[0].delegates[:4].tolist():
            check_arrays(matrix, root, *search(searches, root, directions))


def test_a_level_that_was_not_ended():
    """What it has found does not come back in the next search."""
    n, u, v = tuples(3)
    parts = parts_of(n, u, v, 2)
    engine = make_engine("openmp", threads=1)
    searches = [engine.domain(part, Placement(len(parts), 1)) for part in parts]
    matrix = matrix_of(n, u, v)
    for root in parts[0].delegates[:9].tolist():
        for ends in range(3):
            search(searches, root, ("push",), ends=ends)
            last = int(parts[0].delegates[-1])
            check_arrays(matrix, last, *search(searches, last, ("push",)))


@pytest.mark.thorough
def test_offsets_of_64_bits_on_one_side():
    """As a part has them with 2^32 edges or more in one direction."""
    n, u, v = tuples(0)
    parts = parts_of(n, u, v, 2)
    for part in parts:
        into = part.incoming["dd"]
        wide = CSR(into.offsets.astype(np.uint64), into.columns)
        part.incoming["dd"] = wide
    engine = make_engine("openmp", threads=1)
    searches = [engine.domain(part, Placement(len(parts), 1)) for part in parts]
    for root in parts[0].delegates[:3].tolist():
        found = search(searches, root, ("push", "pull"))
        check_arrays(matrix_of(n, u, v), root, *found)
