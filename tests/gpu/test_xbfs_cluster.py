"""Searches by one cluster, and what happens where a frontier is too wide for it."""

import numpy as np
import pytest
from device_graphs import HostGraph
from fast_graphs import (
    beside,
    binary_tree,
    circulant,
    fault,
    host,
    path,
    roots_of,
    shuffled,
    star,
    wanted_levels,
)
from graphs import Tuples, grid, kronecker, uniform

from distbfs.device import cuda
from distbfs.engines.base import WholeResult
from distbfs.engines.cuda.xbfs import cluster
from distbfs.engines.cuda.xbfs.cluster import ClusterSearch
from distbfs.engines.cuda.xbfs.search import FastSearch

BOTH = [True, False]
IN_IDS = pytest.mark.parametrize("in_ids", BOTH, ids=["ids", "numbers"])


def by_cluster(made, root, *, in_ids=True, parents=True):
    """Return the result of one cluster, or None where it gave up."""
    cp = cuda.cupy()
    count = made.source.n if in_ids else made.active
    level = cp.full(count + 64, 77, cp.int32)
    parent = cp.full(count + 64, 77, cp.int32) if parents else None
    search = ClusterSearch(made.graph, level, parent, in_ids=in_ids)
    results = []
    for one in (root, root):
        depth, seconds, complete = search.search(one)
        if not complete:
            return None
        results.append((depth, level[:count].get()))
    np.testing.assert_array_equal(results[0][1], results[1][1])
    parent = None if parent is None else parent[:count]
    return WholeResult(level[:count], parent, depth + 1, seconds)


NARROW_GRAPHS = {
    "path": lambda: path(3000),
    "shuffled-path": lambda: shuffled(path(3000)),
    "grid": lambda: grid(90),
    "shuffled-grid": lambda: shuffled(grid(70)),
    "tree": lambda: binary_tree(1500),
    "comb": lambda: Tuples(900, [*range(299), *range(300), *range(300)], range(1, 900)),
    "ring-6": lambda: shuffled(circulant(4000, 6)),
    "ring-40": lambda: circulant(2000, 40),
    "star-12": lambda: beside(*[star(12)] * 40),
    "caterpillar": lambda: host("caterpillar").source,
    "tiny": lambda: Tuples(4, [1, 1], [3, 3]),
    "one-loop-more": lambda: Tuples(3, [0, 1], [0, 2]),
    "sparse": lambda: uniform(3000, 2500),
}


@pytest.mark.parametrize("wide", BOTH, ids=["u64", "u32"])
@pytest.mark.parametrize("inside", BOTH, ids=["shared", "global"])
@pytest.mark.parametrize("parents", BOTH, ids=["parents", "levels"])
@IN_IDS
def test_cluster(in_ids, parents, inside, wide, monkeypatch):
    """inside: whether visited bits are in shared memory."""
    if not inside:
        room = cluster.TURNS * cluster.MEMBERS * cluster.ROOM
        room *= cluster.MESSAGE_BYTES
        limit = room + cluster.STATIC_BYTES
        monkeypatch.setattr(cuda, "shared_limit", lambda: limit)
    wrong = []
    for name, make in NARROW_GRAPHS.items():
        made = HostGraph(make(), wide)
        for root in roots_of(made, 3):
            found = by_cluster(made, root, in_ids=in_ids, parents=parents)
            if found is None:
                said = "it gave up"
            else:
                said = fault(made, root, found, in_ids=in_ids, parents=parents)
                wanted = wanted_levels(made, root).max()
                if said is None and found.levels != wanted + 1:
                    said = f"levels is {found.levels}, not {wanted + 1}"
            if said:
                wrong.append(f"{name}, root {root}: {said}")
    assert not wrong, f"{len(wrong)}: {wrong[:8]}"


def test_cluster_gives_up_where_inboxes_are_too_small():
    for source in (kronecker(13), uniform(60_000, 960_000), star(40_000)):
        made = HostGraph(source)
        assert by_cluster(made, int(source.degrees.argmax())) is None


@IN_IDS
def test_searches_beyond_the_cluster_stay_right(in_ids):
    """Degrees like a road's, frontiers too wide for inboxes; also after it gave up."""
    wide = {
        "tree": shuffled(binary_tree(1 << 16)),
        "uniform": shuffled(uniform(120_000, 130_000)),
        "many-paths": star_of_paths(9000, 12),
        "grid": shuffled(grid(200)),
    }
    wrong = []
    for name, source in wide.items():
        made = HostGraph(source)
        search = FastSearch(made.graph, in_ids=in_ids)
        for root in [*roots_of(made, 3), 0]:
            said = fault(made, root, search.search(root), in_ids=in_ids)
            if said:
                wrong.append(f"{name}, root {root}: {said}")
    assert not wrong, f"{len(wrong)}: {wrong[:8]}"


def star_of_paths(arms, length):
    """A tree of degree 3 with many leaves, each the start of a path."""
    top = binary_tree(2 * arms - 1)
    first = top.n + np.arange(arms) * length
    u, v = [top.u, np.arange(arms - 1, 2 * arms - 1)], [top.v, first]
    for k in range(length - 1):
        u.append(first + k)
        v.append(first + k + 1)
    n = top.n + arms * length
    return Tuples(n, np.concatenate(u), np.concatenate(v), size=1 << 20)
