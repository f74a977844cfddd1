"""Many searches in a row on the same graph: nothing may depend on timing or leak."""

import gc
from functools import cache

import numpy as np
import pytest
from device_graphs import HostGraph
from fast_graphs import Proof, chained, fault, shuffled
from graphs import Tuples, complete, grid, kronecker

from distbfs.device import cuda
from distbfs.engines.base import WholeResult
from distbfs.engines.cuda.xbfs.cluster import ClusterSearch
from distbfs.engines.cuda.xbfs.search import FastSearch
from distbfs.generate.road import Road
from distbfs.options import SearchOptions
from distbfs.registry import ENGINES, lookup

SEARCHES = 1000
BOTH = [True, False]


@cache
def scale_18():
    made = HostGraph(kronecker(18))
    return made, Proof(made)


@cache
def road():
    source = Road(120_000)
    chunks = list(source.chunks(0, source.tuples))
    u, v = (np.concatenate([c[k] for c in chunks]) for k in (0, 1))
    made = HostGraph(Tuples(source.n, u, v, size=1 << 20))
    return made, Proof(made)


def roots_of(made, count, seed=6):
    drawn = np.random.default_rng(seed).integers(0, made.active, count)
    return made.vertices[drawn].tolist()


def used():
    gc.collect()
    pool = cuda.cupy().get_default_memory_pool()
    return pool.used_bytes(), pool.total_bytes()


def spoil(found):
    """Fill results with what no search may leave."""
    found.level.fill(99)
    if found.parent is not None:
        found.parent.fill(77)


def test_scale_18_a_thousand_times():
    cp = cuda.cupy()
    made, proof = scale_18()
    search = FastSearch(made.graph)
    roots, first = roots_of(made, 20), {}
    for root in roots:
        found = search.search(root)
        assert proof.fault(root, found) is None
        first[root] = found.level.copy()
    before = used()
    for k in range(SEARCHES):
        root = roots[k * 7 % 20]
        found = search.search(root)
        differ = int((found.level != first[root]).sum())
        assert not differ, f"search {k}, root {root}: {differ} levels differ"
        said = proof.fault(root, found)
        assert said is None, f"search {k}, root {root}: {said}"
        spoil(found)
    del found
    cp.cuda.runtime.deviceSynchronize()
    assert used()[0] == before[0]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"in_ids": False},
        {"direction": "push"},
        {"direction": "pull", "in_ids": False},
        {"parents": False},
        {"overrides": {"pull_edges": 1000}},
        {"overrides": {"mark_edges": 10}, "in_ids": False},
    ],
    ids=str,
)
def test_memory_does_not_grow(options):
    made, _ = scale_18()
    search = FastSearch(made.graph, **options)
    roots = roots_of(made, 20)
    for root in roots[:5]:
        search.search(root)
    before = used()
    for k in range(150):
        search.search(roots[k % 20])
    assert used() == before


@pytest.mark.parametrize("in_ids", BOTH, ids=["ids", "numbers"])
def test_each_setting_often(in_ids):
    made, proof = scale_18()
    searches = [
        FastSearch(made.graph, in_ids=in_ids, **options)
        for options in (
            {"direction": "push"},
            {"direction": "pull"},
            {"overrides": {"pull_edges": 1}},
            {"overrides": {"mark_edges": 5000}},
            {"overrides": {"hub_words": 0}},
        )
    ]
    for k, root in enumerate(roots_of(made, 40)):
        for which, search in enumerate(searches):
            found = search.search(root, records=k % 5 == 4)
            said = proof.fault(root, found, in_ids=in_ids)
            assert said is None, f"search {k} of setting {which}, root {root}: {said}"
            spoil(found)


@pytest.mark.parametrize("in_ids", BOTH, ids=["ids", "numbers"])
def test_road_by_the_cluster(in_ids):
    cp = cuda.cupy()
    made, proof = road()
    count = made.source.n if in_ids else made.active
    level, parent = cp.zeros(count, cp.int32), cp.zeros(count, cp.int32)
    search = ClusterSearch(made.graph, level, parent, in_ids=in_ids)
    roots, first = roots_of(made, 10), {}
    for k in range(300):
        root = roots[k % 10]
        depth, seconds, complete_ = search.search(root)
        assert complete_, f"search {k}, root {root}: gave up"
        found = WholeResult(level, parent, depth + 1, seconds)
        said = proof.fault(root, found, in_ids=in_ids)
        assert said is None, f"search {k}, root {root}: {said}"
        differ = int((first.setdefault(root, level.copy()) != level).sum())
        assert not differ, f"search {k}, root {root}: {differ} levels differ"
        assert depth == int(level.max())
        if k == 20:
            before = used()[0]
        spoil(found)
    assert used()[0] == before


def methods(graph, in_ids):
    """Searches by engines xbfs and xbfs-paper, each way."""
    kinds = [{"engine": "xbfs-paper"}, {}]
    kinds += [{"direction": way} for way in ("push", "pull")]
    kinds += [{"engine": "xbfs-paper", "balance": "donation"}]
    found = []
    for kind in kinds:
        given = SearchOptions.named(
            **{"engine": "xbfs", **kind}, internal_ids=not in_ids
        )
        made = lookup(ENGINES, "engine", given.engine)(given)
        found.append((kind, made.on_graph(graph)))
    return found


@pytest.mark.parametrize("in_ids", BOTH, ids=["ids", "numbers"])
@pytest.mark.parametrize("graph", ["road", "scale-18"])
def test_methods_take_turns(graph, in_ids):
    made, proof = road() if graph == "road" else scale_18()
    searches = methods(made.graph, in_ids)
    if graph == "road":  # by 900 launches, or 900 looks at all vertices
        searches = [s for s in searches if s[0].get("direction") != "pull"]
    for k, root in enumerate(roots_of(made, 6 if graph == "road" else 25)):
        for kind, search in searches:
            found = search.search(root)
            said = proof.fault(root, found, in_ids=in_ids)
            assert said is None, f"round {k}, {kind}, root {root}: {said}"
            spoil(found)


@pytest.mark.parametrize("in_ids", BOTH, ids=["ids", "numbers"])
def test_searches_that_end_differently_take_turns(in_ids):
    """By results, lists, one block alone or another launch; each leaves order."""
    source = chained(kronecker_like(), grid(12), complete(300), grid(17))
    made = HostGraph(shuffled(source))
    search = FastSearch(made.graph, in_ids=in_ids)
    roots = [*roots_of(made, 30), *np.flatnonzero(source.degrees == 0)[:2].tolist()]
    order = np.random.default_rng(8).integers(0, len(roots), 400)
    for k, which in enumerate(order.tolist()):
        root = roots[which]
        found = search.search(root, records=k % 11 == 10)
        said = fault(made, root, found, in_ids=in_ids)
        assert said is None, f"search {k}, root {root}: {said}"
        spoil(found)


def kronecker_like():
    source = kronecker(11)
    u, v = np.append(source.u, 0), np.append(source.v, source.n - 1)
    return Tuples(source.n, u, v, size=1 << 20)
