"""Searches of engine xbfs that write parents and no levels, with kernels on the CPU.

The levels that the parents tell must be distances, in every form of the search.
"""

import numpy as np
import pytest
from device_graphs import HostGraph
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
    untils,
    wanted_levels,
)
from graphs import Tuples, complete, grid, kronecker, levels_by, random_tuples, uniform
from masked_graphs import random_mask
from resident_parts import look, resident_driver
from test_cluster_kernel import by_cluster
from test_fast_kernels import OVERRIDES, none_of_few

from distbfs.engines.cuda.xbfs.arrays import Arrays
from distbfs.engines.cuda.xbfs.search import FastSearch

BOTH = [True, False]
IN_IDS = pytest.mark.parametrize("in_ids", BOTH, ids=["ids", "numbers"])
BLOB = complete(40)  # beside what a cluster would search


def bushy(length):
    """A random graph with trees of several levels, pairs, and vertices without edges.

    Trees hang on a path, too: on one of 300 vertices they pass a byte.
    """
    core = chained(path(length), complete(30), uniform(400, 1600))
    rng, n, count = np.random.default_rng(3), core.n, 900
    above = [int(rng.integers(0, n + k // 2)) for k in range(count)]
    tree = Tuples(n + count, [*core.u, *above], [*core.v, *range(n, n + count)])
    return shuffled(beside(tree, pairs(40), lone(30)))


SHAPES = {
    "random": lambda: random_tuples(1500, 4000, 11),
    "kronecker": lambda: kronecker(10),
    "grid": lambda: beside(grid(14), BLOB),
    "tree": lambda: beside(shuffled(binary_tree(1023)), BLOB),
    "two-blobs": lambda: shuffled(chained(complete(60), path(70), complete(90))),
    "tiny": lambda: shuffled(beside(uniform(500, 2500), pairs(700), lone(200))),
    "bushy": lambda: bushy(20),
    "deep": lambda: bushy(300),
    "chain": lambda: beside(path(40), BLOB),
    "comb": lambda: beside(
        Tuples(80, [*range(39), *range(40)], [*range(1, 40), *range(40, 80)]), BLOB
    ),
}
MADE = {}


def host(name):
    """Return a graph of SHAPES; kept, as are its levels."""
    if name not in MADE:
        MADE[name] = HostGraph(SHAPES[name]())
    return MADE[name]


def roots(made):
    """Return a hub, the last id, a leaf, and one without edges where there is any."""
    degrees = made.source.degrees
    some = [[degrees.argmax(), made.source.n - 1]]
    some += [np.flatnonzero(degrees == k)[:1] for k in (1, 0)]
    return list(dict.fromkeys(np.concatenate(some).tolist()))


@pytest.mark.parametrize("few", BOTH, ids=["few", "many"])
@IN_IDS
def test_every_way(device, monkeypatch, in_ids, few):
    """Each graph is searched as it comes, and from two roots in other ways in turn."""
    device.multiprocessors = 3
    if not few:
        monkeypatch.setattr(Arrays, "forms_of_few", none_of_few)
    faults = Faults()
    for k, name in enumerate(SHAPES):
        made = host(name)
        for j, way in enumerate(({}, *OVERRIDES.values())):
            if j and (j + k + 2 * in_ids + 3 * few) % 6:
                continue
            told = {"levels": False}
            search = FastSearch(made.graph, in_ids=in_ids, overrides=way, **told)
            some = j or name == "deep"
            for root in roots(made)[j % 2 :: 2] if some else roots(made):
                faults.look(made, search, root, name, overrides=way, **told)
            assert search.arrays.level is search.arrays.wide is None
    faults.tell()


@IN_IDS
def test_levels_of_trees_beyond_a_byte(device, monkeypatch, in_ids):
    """A byte of 255 says that a vertex of a tree is not reached."""
    monkeypatch.setattr(Arrays, "forms_of_few", none_of_few)
    ends = np.arange(260)
    leaves = np.arange(260, 520)
    source = Tuples(520, [*ends[:-1], *ends, 259, 259], [*ends[1:], *leaves, 257, 256])
    made = HostGraph(beside(source, BLOB))
    search = FastSearch(made.graph, in_ids=in_ids, levels=False)
    assert search.params.chain
    faults = Faults()
    for root in (0, 260, 259, 519):
        faults.look(made, search, root, "comb", levels=False)
    faults.tell()


@IN_IDS
def test_the_end_of_a_search(device, in_ids):
    """Last levels and targets, roots in trees and deep ones among them, in turns."""
    faults, turn = Faults(), int(in_ids)
    for name in ("random", "tree", "bushy", "chain"):
        made = host(name)
        for way in ({}, {"overrides": {"mark_edges": HUGE, "pull_edges": 50}}):
            search = FastSearch(made.graph, in_ids=in_ids, levels=False, **way)
            for root in roots(made):
                turn += 1
                for until in untils(wanted_levels(made, root), root)[turn % 4 :: 4]:
                    faults.look(made, search, root, name, levels=False, until=until)
    faults.tell()


@IN_IDS
def test_records_count_levels(device, in_ids):
    """Searches with records have levels; those between and after them have none."""
    faults = Faults()
    for name in ("kronecker", "bushy", "chain"):
        made = host(name)
        search = FastSearch(made.graph, in_ids=in_ids, levels=False)
        for root in roots(made)[:2]:
            for records in (False, True, False):
                faults.look(made, search, root, name, records=records, levels=False)
    faults.tell()


@IN_IDS
def test_results_that_are_given_away(device, in_ids):
    made = host("bushy")
    search = FastSearch(made.graph, in_ids=in_ids, levels=False)
    one, other = roots(made)[:2]
    found = search.search(one)
    if found.give is not None:
        found.give()
        search.search(other)
        form = {"in_ids": in_ids, "levels": False}
        assert fault(made, one, found, **form) is None
    assert (found.give is not None) == in_ids


@IN_IDS
def test_a_part_of_the_graph(device, in_ids):
    for name in ("kronecker", "bushy"):
        made = host(name)
        search = FastSearch(made.graph, in_ids=in_ids, levels=False)
        seen, left = random_mask(made, 4, 0.6)
        search.see(seen)
        for root in roots(made)[:3]:
            found = search.search(root)
            assert fault(left, root, found, in_ids=in_ids, levels=False) is None


@IN_IDS
def test_sets(device, in_ids):
    rng = np.random.default_rng(2)
    for name in ("kronecker", "bushy", "tiny"):
        made = host(name)
        search = FastSearch(made.graph, in_ids=in_ids, levels=False)
        some = np.unique(rng.integers(0, made.source.n, 7))
        found = search.search(some)
        wanted = made.source.distances(some)
        assert found.level is None
        assert found.levels == wanted.max() + 1
        level = levels_by(found.parent.get())
        if in_ids:
            np.testing.assert_array_equal(level, wanted)
        else:
            np.testing.assert_array_equal(level, wanted[made.vertices])


@IN_IDS
def test_a_cluster(device, in_ids):
    for source in (path(60), shuffled(grid(11)), binary_tree(500)):
        made = HostGraph(source)
        for root in roots(made)[in_ids::2][:1]:
            found = by_cluster(made, root, in_ids=in_ids, levels=False)
            assert fault(made, root, found, in_ids=in_ids, levels=False) is None


@IN_IDS
def test_a_cluster_of_the_engine(device, in_ids):
    """A search that it gives up goes on without levels, too."""
    faults = Faults()
    for source in (shuffled(path(60)), beside(path(60), lone(3))):
        made = HostGraph(source)
        search = FastSearch(made.graph, in_ids=in_ids, levels=False)
        assert search._cluster is not None
        for root in (0, source.n - 1):
            faults.look(made, search, root, "cluster", levels=False)
        search._cluster = None
        faults.look(made, search, 0, "after it", levels=False)
    faults.tell()


@pytest.mark.parametrize(
    "parts", [*(pytest.param(k, marks=pytest.mark.thorough) for k in (1, 2)), 3]
)
def test_a_domain(device, parts):
    for k, (name, way) in enumerate(
        (
            ("kronecker", {}),
            ("bushy", {"mark_edges": HUGE, "pull_edges": 30, "tile": 8}),
            ("bushy", {"mark_edges": HUGE, "pull_edges": HUGE}),
            ("tiny", {"pull_edges": 0}),
            ("chain", {}),
        )
    ):
        made = host(name)
        driver = resident_driver(
            made.source,
            parts,
            internal_ids=(k + parts) % 2 == 0,
            levels=False,
            wide=k % 2,
            overrides=way,
        )
        some = roots(made)
        for root in some[(k + parts) % 2 :: 2]:
            found = look(driver, made.source, root)
            assert all(x is None for x in found.level)
        for until in untils(wanted_levels(made, some[0]), some[0])[::4]:
            look(driver, made.source, some[0], until=until)
        if not k % 2:  # records are the same for offsets of both widths
            found = look(driver, made.source, some[0], records=True)
            told = [one["found"] for one in found.records if one["found"]]
            level = wanted_levels(made, some[0])
            assert told == np.bincount(level[level > 0])[1:].tolist()
        look(driver, made.source, some[1])
        driver.close()


def test_ids_of_any_width(device, id_bits):
    source = bushy(20)
    driver = resident_driver(source, 3, levels=False)
    for root in np.flatnonzero(source.degrees < 3)[::300].tolist():
        parent = look(driver, source, root).parent[0]
        assert parent.dtype.itemsize * 8 == id_bits
    driver.close()


def test_leaves_of_a_domain(device):
    """They pass a byte, and hang on what was pushed and on what was pulled."""
    core = chained(path(160), uniform(600, 3000))
    rng = np.random.default_rng(5)
    u = [*core.u, *rng.integers(0, core.n, 6000)]
    v = [*core.v, *range(core.n, core.n + 6000)]
    source = shuffled(Tuples(core.n + 6000, u, v))
    for internal in BOTH:
        driver = resident_driver(source, 2, internal_ids=internal, levels=False)
        leaf = int(np.flatnonzero(source.degrees == 1)[0])
        for root in (int(source.degrees.argmax()), leaf):
            look(driver, source, root)
            assert all(part.leaves_out for part in driver._parts)
        driver.close()
