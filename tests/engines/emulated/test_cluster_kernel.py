"""Searches by one cluster with the kernel run on the CPU."""

import numpy as np
import pytest
from device_graphs import HostGraph
from fast_graphs import (
    beside,
    binary_tree,
    circulant,
    fault,
    path,
    roots_of,
    shuffled,
    star,
    wanted_levels,
)
from graphs import Tuples, grid, uniform

from distbfs.device import cuda
from distbfs.engines.base import WholeResult
from distbfs.engines.cuda.xbfs.cluster import (
    MEMBERS,
    MESSAGE_BYTES,
    ROOM,
    TURNS,
    ClusterSearch,
)
from distbfs.engines.cuda.xbfs.search import FastSearch

BOTH = [True, False]
IN_IDS = pytest.mark.parametrize("in_ids", BOTH, ids=["ids", "numbers"])
FIXED = 2048  # bytes of shared memory that are not asked for by size
ROOMS = {"shared": 227 << 10, "global": TURNS * MEMBERS * ROOM * MESSAGE_BYTES + FIXED}

GRAPHS = {
    "path": path(20),
    "shuffled-path": shuffled(path(33)),
    "grid": grid(12),
    "shuffled-grid": shuffled(grid(17)),
    "tree": binary_tree(500),
    "comb": Tuples(60, [*range(19), *range(20), *range(20)], range(1, 60)),
    "ring-6": shuffled(circulant(80, 6)),
    "ring-40": circulant(400, 40),
    "stars": beside(*[star(12)] * 8),
    "one-edge": Tuples(4, [1, 1], [3, 3]),
    "one-loop-more": Tuples(3, [0, 1], [0, 2]),
    "sparse": uniform(600, 500),
}


def by_cluster(made, root, *, in_ids=True, levels=True, parents=True):
    """Return the result of the second of two equal searches, None where it gave up."""
    cp = cuda.cupy()
    count = made.source.n if in_ids else made.active
    level = cp.full(count, 77, cp.int32) if levels else None
    parent = cp.full(count, 77, cp.int32) if parents else None
    search = ClusterSearch(made.graph, level, parent, in_ids=in_ids)
    for _ in range(2):
        depth, seconds, complete = search.search(root)
        if not complete:
            return None
    return WholeResult(level, parent, depth + 1, seconds)


@pytest.mark.parametrize(("room", "wide"), [("shared", False), ("global", True)])
def test_cluster(device, room, wide):
    """room: where the visited bits are; graphs by id and by number in turns."""
    device.shared = ROOMS[room]
    wrong = []
    for k, (name, source) in enumerate(GRAPHS.items()):
        made = HostGraph(source, wide)
        parents, in_ids = k % 4 != 3, (k + wide) % 2 == 0
        for root in roots_of(made, 2)[(k + wide) % 2 :: 2][:1]:
            found = by_cluster(made, root, in_ids=in_ids, parents=parents)
            if found is None:
                wrong.append(f"{name}, root {root}: it gave up")
                continue
            said = fault(made, root, found, in_ids=in_ids, parents=parents)
            wanted = wanted_levels(made, root).max() + 1
            if said is None and found.levels != wanted:
                said = f"{found.levels} levels, not {wanted}"
            if said:
                wrong.append(f"{name}, root {root}: {said}")
    assert not wrong, f"{len(wrong)}: {wrong[:8]}"


@IN_IDS
def test_a_cluster_of_one(device, in_ids):
    """As on devices without clusters."""
    device.capability = "80"
    for name in ("path", "shuffled-grid", "sparse"):
        made = HostGraph(GRAPHS[name])
        for root in roots_of(made, 2):
            found = by_cluster(made, root, in_ids=in_ids)
            assert fault(made, root, found, in_ids=in_ids) is None


def test_cluster_gives_up_where_inboxes_are_too_small(device):
    for source in (uniform(6000, 90_000), star(6000)):
        made = HostGraph(source)
        assert by_cluster(made, int(source.degrees.argmax())) is None
    device.capability = "80"
    made = HostGraph(star(300))
    assert by_cluster(made, 0) is None


@IN_IDS
def test_searches_beyond_the_cluster_stay_right(device, in_ids):
    device.capability = "80"
    made = HostGraph(shuffled(binary_tree(3000)))
    search = FastSearch(made.graph, in_ids=in_ids)
    top = int(np.flatnonzero(made.source.degrees == 2)[0])
    for root in [*roots_of(made, 2), top]:
        assert fault(made, root, search.search(root), in_ids=in_ids) is None
    assert search._cluster is None
