"""Searches of one device that end before all is found: exactly there, in every step."""

import numpy as np
import pytest
from device_graphs import HostGraph, hubs
from fast_faults import Faults
from fast_graphs import (
    HUGE,
    beside,
    binary_tree,
    chained,
    fault,
    lone,
    pairs,
    path,
    shuffled,
    star,
    untils,
    wanted_levels,
)
from graphs import complete, grid, kronecker, uniform

from distbfs.engines.base import Until
from distbfs.engines.cuda.xbfs.cluster import (
    MEMBERS,
    MESSAGE_BYTES,
    ROOM,
    STATIC_BYTES,
    ClusterSearch,
)
from distbfs.engines.cuda.xbfs.search import FastSearch
from distbfs.errors import UsageError

IN_IDS = pytest.mark.parametrize("in_ids", [True, False], ids=["ids", "numbers"])
BLOB = complete(40)  # beside what a cluster would search

SHAPES = {
    "path": lambda: beside(path(24), BLOB),
    "grid": lambda: beside(shuffled(grid(14)), BLOB),
    "kronecker": lambda: kronecker(10),
    "star": lambda: star(700),
    "hubs": lambda: hubs(3, 1200),
    "tree": lambda: beside(shuffled(binary_tree(1023)), BLOB),
    "two-blobs": lambda: shuffled(chained(complete(60), path(25), complete(90))),
    "tiny": lambda: shuffled(beside(uniform(500, 2500), pairs(70), lone(20))),
}
SETTINGS = {
    "auto": {},
    "push": {"direction": "push"},
    "pull": {"direction": "pull", "parents": False},
    "always-mark": {"overrides": {"mark_edges": 0, "pull_edges": HUGE}},
    "pull-at-once": {"overrides": {"pull_edges": 0}},
    "pull-early": {"overrides": {"mark_edges": HUGE, "pull_edges": 50, "tile": 8}},
    "mark-then-pull": {"overrides": {"mark_edges": 20, "pull_edges": 400}},
    "never-pull": {"overrides": {"mark_edges": HUGE, "pull_edges": HUGE}},
}
MADE = {}


def host(name):
    """Return a graph of SHAPES; kept, as are its levels."""
    if name not in MADE:
        MADE[name] = HostGraph(SHAPES[name]())
    return MADE[name]


def roots(made):
    """A hub, and a vertex with few neighbours."""
    return int(made.source.degrees.argmax()), int(made.vertices[-1])


@pytest.mark.parametrize("named", SETTINGS)
@IN_IDS
def test_levels_and_targets(device, in_ids, named):
    """Nothing beyond the last level; the search after it is whole again.

    Half of the graphs are searched by id. Settings and roots take the ends of a graph
    in turns.
    """
    faults, turn = Faults(), 2 * list(SETTINGS).index(named) + in_ids
    for k, name in enumerate([*SHAPES][in_ids::2]):
        made, told = host(name), SETTINGS[named]
        search = FastSearch(made.graph, in_ids=in_ids, **told)
        at = (k + turn // 2) % 2
        root = roots(made)[at]
        first = (k + turn + 3 * at) % 6
        for until in untils(wanted_levels(made, root), root)[first::6]:
            faults.look(made, search, root, name, until=until, **told)
        faults.look(made, search, root, name, **told)
    faults.tell()


@IN_IDS
def test_records_end_there(device, in_ids):
    faults = Faults()
    for k, name in enumerate(SHAPES):
        made = host(name)
        search = FastSearch(made.graph, in_ids=in_ids)
        root = roots(made)[k % 2]
        for until in untils(wanted_levels(made, root), root)[(k + in_ids) % 2 :: 2]:
            faults.look(made, search, root, name, records=True, until=until)
    faults.tell()


@IN_IDS
def test_after_every_step(device, in_ids):
    """Each step is once the last one, in one launch and level by level."""
    device.multiprocessors = 3
    core, last = uniform(3000, 45_000), set()
    for source, told in (
        (shuffled(chained(core, path(6))), {}),
        (shuffled(chained(complete(120), path(9), complete(200), path(5))), {}),
        (uniform(2000, 20_000), SETTINGS["never-pull"]),
        (uniform(2000, 20_000), SETTINGS["always-mark"]),
        (shuffled(beside(path(23), complete(12))), {"direction": "pull"}),
    ):
        made = HostGraph(source)
        search = FastSearch(made.graph, in_ids=in_ids, **told)
        root = int(source.degrees.argmax()) if source.n > 60 else int(source.u[0])
        levels = wanted_levels(made, root)
        for depth in range(1, levels.max() + 1):
            target = int(np.flatnonzero(levels == depth)[-1])
            for until in (Until(depth), Until(None, np.array([target]))):
                if (depth + (until.depth is None)) % 2:
                    found = search.search(root, until=until)
                    assert fault(made, root, found, in_ids=in_ids, until=until) is None
                    continue
                found = search.search(root, records=True, until=until)
                assert fault(made, root, found, in_ids=in_ids, until=until) is None
                assert len(found.records) == depth
                last.add(found.records[-1].direction)
    wanted = {"push-block", "push", "push-marking", "pull", "pull-last"}
    assert last == wanted


@IN_IDS
def test_the_last_level_of_signed_bytes(device, in_ids):
    made = HostGraph(beside(path(140), BLOB))
    search = FastSearch(made.graph, in_ids=in_ids)
    for records in (False, True):
        for depth in (125, 126, 127, 139):
            for until in (Until(depth), Until(None, np.array([min(depth, 139)]))):
                found = search.search(0, until=until, records=records)
                assert fault(made, 0, found, in_ids=in_ids, until=until) is None
                kind = np.int8 if depth <= 126 else np.int32
                assert found.level.dtype == kind


@pytest.mark.parametrize("capability", ["90", "80"])
@IN_IDS
def test_in_one_cluster(device, in_ids, capability):
    """With the visited bits in shared memory and, in turn, in global memory."""
    device.capability = capability
    faults, whole = Faults(), device.shared
    shapes = {
        "path": shuffled(path(9)),
        "grid": grid(4),
        "apart": shuffled(beside(path(9), star(3), lone(3))),
    }
    for name, source in shapes.items():
        made = HostGraph(source)
        search = FastSearch(made.graph, in_ids=in_ids)
        arrays = search.arrays
        for shared in (whole, 2 * MEMBERS * ROOM * MESSAGE_BYTES + STATIC_BYTES):
            device.shared = shared
            search._cluster = ClusterSearch(
                made.graph, arrays.wide, arrays.parent, in_ids=in_ids
            )
            device.shared = whole
            root = int(made.vertices[-1])
            for until in untils(wanted_levels(made, root), root)[shared == whole :: 2]:
                found = faults.look(made, search, root, name, until=until)
                assert found.level.dtype == np.int32
            assert search._cluster is not None
    faults.tell()


def test_a_cluster_that_gives_up(device):
    """What follows it ends at the same place."""
    device.capability = "80"
    made = HostGraph(shuffled(binary_tree(3000)))
    root = int(np.flatnonzero(made.source.degrees == 2)[0])
    for until in untils(wanted_levels(made, root), root):
        search = FastSearch(made.graph)
        found = search.search(root, until=until)
        assert fault(made, root, found, until=until) is None


@IN_IDS
def test_roots_without_edges(device, in_ids):
    made = host("tiny")
    root = int(np.flatnonzero(made.source.degrees == 0)[0])
    other = int(made.vertices[0])
    search = FastSearch(made.graph, in_ids=in_ids)
    for until in untils(wanted_levels(made, root), root):
        found = search.search(root, until=until)
        assert fault(made, root, found, in_ids=in_ids, until=until) is None
    until = Until(None, np.array([other, root]))  # which has no number
    found = search.search(other, until=until)
    assert fault(made, other, found, in_ids=in_ids, until=until) is None


def test_targets_that_are_no_vertices_are_refused(device):
    made = host("grid")
    search, n = FastSearch(made.graph), host("grid").source.n
    for wrong in (-1, n, 1 << 40):
        with pytest.raises(UsageError, match=f"target is {wrong}; allowed: 0 to"):
            search.search(3, until=Until(None, np.array([1, wrong])))
    assert fault(made, 3, search.search(3)) is None
