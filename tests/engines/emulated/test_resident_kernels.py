"""Searches that are resident on devices, which are the CPU: levels against scipy.

The driver is the real one; each launch runs in a thread of its own, so that devices
write to each other while they search.
"""

from functools import cache

import numpy as np
import pytest
from device_graphs import hubs
from fast_graphs import (
    HUGE,
    beside,
    binary_tree,
    bipartite,
    chained,
    lone,
    long_rows,
    pairs,
    path,
    shuffled,
    star,
)
from graphs import (
    Tuples,
    complete,
    grid,
    kronecker,
    random_tuples,
    some_roots,
    uniform,
)
from resident_parts import look, resident_driver

from distbfs.engines.base import Query
from distbfs.engines.cuda.xbfs import ranges
from distbfs.errors import DistbfsError, SearchStopped, UsageError
from distbfs.plan import pull_shares

BOTH = [True, False]
INTERNAL = pytest.mark.parametrize("internal", BOTH, ids=["internal", "ids"])
SHAPES = {
    "one-edge": lambda: Tuples(4, [1, 1], [3, 3]),
    "random": lambda: random_tuples(1500, 4000, 11),
    "kronecker": lambda: kronecker(10),
    "star": lambda: star(700),
    "grid": lambda: grid(14),
    "tree": lambda: beside(shuffled(binary_tree(1023)), complete(40)),
    "complete": lambda: complete(24),
    "two-blobs": lambda: shuffled(chained(complete(60), path(25), complete(90))),
    "two-big": lambda: shuffled(
        beside(random_tuples(1500, 5000, 3), uniform(1200, 6000))
    ),
    "tiny": lambda: shuffled(beside(uniform(500, 2500), pairs(700), lone(200))),
    "hubs": lambda: hubs(3, 1800),
    "long-rows": lambda: shuffled(long_rows()),
    "bipartite": lambda: shuffled(bipartite(70, 190)),
    "granules": lambda: uniform(9000, 60_000, hub=4000),
}
OVERRIDES = {
    "plain": {},
    "always-mark": {"mark_edges": 0, "pull_edges": HUGE},
    "mark-early": {"mark_edges": 50, "pull_edges": HUGE, "tile": 8},
    "pull-at-once": {"pull_edges": 0},
    "pull-early": {"mark_edges": HUGE, "pull_edges": 50, "tile": 8},
    "mark-then-pull": {"mark_edges": 20, "pull_edges": 400},
    "never-pull": {"mark_edges": HUGE, "pull_edges": HUGE},
    "few-hub-bits": {"hub_words": 4, "mark_edges": 30, "tile": 8},
}


@cache
def source_of(name):
    return SHAPES[name]()


@pytest.mark.full_blocks(named="mark-early")
@pytest.mark.full_blocks(named="mark-then-pull")
@pytest.mark.parametrize("named", OVERRIDES)
def test_thresholds_that_force_each_way(device, named):
    """Every second graph; full blocks see results in one form."""
    turn, full = list(OVERRIDES).index(named), named in ("mark-early", "mark-then-pull")
    for k, name in enumerate(SHAPES):
        if (k + turn) % 2:
            continue
        source, parts = source_of(name), (2, 3, 2, 4, 1)[k % 5]
        told = {"internal_ids": not full and k % 4 < 2}
        told["wide"] = not full and k % 3 == 0
        driver = resident_driver(source, parts, overrides=OVERRIDES[named], **told)
        for root in dict.fromkeys(some_roots(source, 2)):
            look(driver, source, root)
        driver.close()


@pytest.mark.thorough
@INTERNAL
@pytest.mark.parametrize("fetch_edges", [0, HUGE])
def test_marks_by_short_and_long_ranges(device, monkeypatch, internal, fetch_edges):
    """Those of hubs are cut once; a frontier of few edges takes several as one."""
    device.multiprocessors = 3
    monkeypatch.setattr(ranges, "FETCHED_WORDS", 4)
    limits = {"mark_edges": 0, "pull_edges": HUGE, "fetch_edges": fetch_edges}
    groups, turn = [], internal + (fetch_edges == 0)
    for k, name in enumerate(("random", "kronecker", "hubs", "granules", "long-rows")):
        if (k + turn) % 2 and name != "granules":
            continue
        source, parts = source_of(name), (2, 3, 4)[k % 3]
        told = {"internal_ids": internal, "overrides": limits}
        driver = resident_driver(source, parts, **told)
        p = driver._parts[0].params.own
        assert p.ranges % p.group == 0
        groups.append(p.hubs and p.group)
        for root in dict.fromkeys(some_roots(source, 2)):
            look(driver, source, root)
        driver.close()
    assert max(groups) > 2


def test_every_step_is_seen(device):
    seen = set()
    core = uniform(6000, 90_000)
    shapes = (
        (chained(complete(120), path(50), complete(200), path(20)), {}),
        (beside(uniform(1500, 9000), uniform(2500, 20_000, seed=8)), {}),
        (shuffled(chained(core, path(30))), {}),
        (shuffled(beside(path(40), complete(12))), {"direction": "pull"}),
        (uniform(3000, 30_000), {"overrides": OVERRIDES["never-pull"]}),
        (uniform(3000, 30_000), {"overrides": OVERRIDES["always-mark"]}),
    )
    for source, told in shapes:
        driver = resident_driver(source, 2, **told)
        for root in (int(source.degrees.argmax()), int(source.degrees.argmin())):
            look(driver, source, root, records=True)
            for part in driver._parts:
                seen |= {name for name, *_ in part.steps()}
    assert seen == {
        *("push-block", "push", "push-marking", "pull", "pull-last"),
        *("gather", "flush", "merge"),
    }


@pytest.mark.parametrize("direction", ["push", "pull"])
@INTERNAL
def test_directions(device, direction, internal):
    for k, name in enumerate(("random", "kronecker", "two-blobs", "hubs")):
        source, parents = source_of(name), (k + internal) % 2 == 0
        told = {"direction": direction, "parents": parents}
        driver = resident_driver(source, 2, internal_ids=internal, **told)
        for root in some_roots(source, 2):
            found = look(driver, source, root)
            assert (found.parent[0] is not None) == parents
    assert look(driver, source, 0, parents=False).parent[0] is None


@INTERNAL
def test_ids_of_any_width(device, id_bits, internal):
    """With roots that have no edges, and the first search that needs wide levels.

    Half of the graphs: each with both widths and both forms of results.
    """
    deep = shuffled(chained(path(300), complete(30)))
    shapes = [source_of(name) for name in ("random", "tiny", "hubs", "granules")]
    for k, source in enumerate((*shapes, Tuples(4, [1, 1], [3, 3]), deep)):
        if (k + internal + id_bits // 64) % 2:
            continue
        driver = resident_driver(source, (1, 2, 3, 4)[k % 4], internal_ids=internal)
        alone = np.flatnonzero(source.degrees == 0)[:2].tolist()
        for root in dict.fromkeys([*some_roots(source, 1), *alone[:1]]):
            parent = look(driver, source, root).parent[0]
            assert parent.dtype.itemsize * 8 == id_bits
        driver.close()


@pytest.mark.parametrize("parts", [2, 3])
def test_many_levels(device, parts):
    source = shuffled(chained(path(270), complete(30)))
    end = int(np.flatnonzero(source.degrees == 1)[0])
    for told in ({}, {"overrides": {"pull_edges": 1}}, {"direction": "pull"}):
        if told:  # each level is a meeting of all blocks
            source = shuffled(chained(path(30), complete(30)))
            end = int(np.flatnonzero(source.degrees == 1)[0])
        driver = resident_driver(source, parts, **told)
        look(driver, source, end)
        look(driver, source, int(source.degrees.argmax()))


@INTERNAL
def test_wide_frontiers_by_queue(device, internal):
    """More edges than one block takes, and none of them is marked."""
    device.multiprocessors = 3
    overrides = OVERRIDES["never-pull"]
    for source in (uniform(3000, 30_000), kronecker(11)):
        driver = resident_driver(source, 3, overrides=overrides, internal_ids=internal)
        for root in some_roots(source, 3):
            look(driver, source, root)


def test_pulls_after_pulls_that_became_pushes(device):
    """What was pushed in between, by one block or by all, is known everywhere."""
    core = uniform(12_000, 60_000)
    for pull_edges, step in ((4000, "push-block"), (60_000, "push")):
        source = shuffled(chained(complete(400), path(4), core))
        overrides = {"pull_edges": pull_edges, "mark_edges": HUGE}
        driver = resident_driver(source, 3, overrides=overrides)
        root = int(source.degrees.argmax())
        records = look(driver, source, root, records=True).records
        kinds = [record["direction"] for record in records]
        between = kinds.index("push-block", kinds.index("pull"))
        assert kinds[kinds.index("pull", between) - 1] == step, kinds
        for other in some_roots(source, 3):
            look(driver, source, other)


def test_a_wide_push_between_pulls(device):
    """A clique is pulled, what hangs on it is wide at once, and then much wider."""
    tops, each, leaves = 100, 150, 4
    clique, first = complete(200), 200 + tops
    middle = np.arange(tops * each) + first
    last = np.arange(len(middle) * leaves) + first + len(middle)
    u = [clique.u, np.arange(tops), 200 + (middle - first) // each]
    u.append(middle[np.arange(len(last)) // leaves])
    v = [clique.v, np.arange(200, first), middle, last]
    whole = Tuples(int(last[-1]) + 1, np.concatenate(u), np.concatenate(v), 1 << 20)
    overrides = {"pull_edges": 30_000, "mark_edges": HUGE}
    driver = resident_driver(shuffled(whole), 3, overrides=overrides)
    root = int(np.random.default_rng(9).permutation(whole.n)[0])
    records = look(driver, shuffled(whole), root, records=True).records
    kinds = [record["direction"] for record in records]
    assert kinds[:4] == ["push-block", "pull", "push", "pull"]


def test_blocks_that_lag_behind_the_first(device):
    """Block 0 exchanges levels while others still read what came before them."""
    device.multiprocessors = 4
    source = source_of("two-blobs")
    driver = resident_driver(source, 3, direction="push")
    for root in range(0, source.n, 16):
        look(driver, source, root)


def test_records(device):
    for parts in (1, 3):
        source = shuffled(chained(kronecker(10), path(30), complete(80)))
        driver = resident_driver(source, parts)
        for root in some_roots(source, 3):
            found = look(driver, source, root, records=True)
            wanted = source.distances(root)
            sizes = np.bincount(wanted[wanted >= 0])
            assert [x["found"] for x in found.records] == sizes[1:].tolist()
            assert all(x["direction"].startswith("pu") for x in found.records)
            look(driver, source, root)
            checks = sum(x["checks"] for x in found.records)
            reached = source.degrees[wanted >= 0].sum()
            assert checks >= (wanted > 0).sum()
            assert checks <= 3 * max(reached, 1) + source.matrix.nnz


def test_steps_are_those_of_one_device(device):
    """The same choices whatever the number of parts."""
    for name in ("kronecker", "granules", "two-blobs"):
        source, kinds = source_of(name), []
        root = int(source.degrees.argmax())
        share = source.matrix.nnz // pull_shares.DOMAIN  # one part has another
        for parts in (1, 2, 4):
            driver = resident_driver(source, parts, overrides={"pull_edges": share})
            records = look(driver, source, root, records=True).records
            kinds.append([x["direction"] for x in records])
        assert kinds[0] == kinds[1] == kinds[2]


@pytest.mark.thorough
def test_many_searches_leave_nothing_behind(device):
    rng = np.random.default_rng(3)
    for name in ("tiny", "two-big", "kronecker"):
        source = source_of(name)
        for overrides in ({}, {"pull_edges": 40}, {"mark_edges": 30}):
            driver = resident_driver(source, 2, overrides=overrides)
            lonely = np.flatnonzero(source.degrees == 0)[:2].tolist()
            roots = [*rng.integers(0, source.n, 5).tolist(), *lonely]
            for k, root in enumerate(rng.permutation(roots).tolist()):
                look(driver, source, root, records=k % 4 == 3)


@pytest.mark.thorough
@pytest.mark.parametrize("internal", BOTH)
def test_a_part_that_does_not_answer(device, internal):
    """All others give up and say so, and so does every search after that."""
    source = kronecker(9)
    driver = resident_driver(source, 3, internal_ids=internal)
    parts = driver._parts
    root = int(source.degrees.argmax())
    look(driver, source, root)
    for part in parts:
        part.params.patience = 50_000_000
    for missing in (parts[2],):
        running = [part for part in parts if part is not missing]
        for part in running:
            part.ready(root, Query())
            part.start()
        assert {part.wait()[2] for part in running} == {1 + missing.part.index}
    for other in (root, root, 0):
        with pytest.raises(DistbfsError, match="waited 8 s for the device of part 2"):
            driver.search(other)


def test_a_stop_and_what_is_refused(device):
    source = kronecker(7)
    driver = resident_driver(source, 2)
    with pytest.raises(SearchStopped):
        driver.search(1, stop=lambda: True)
    look(driver, source, 1, stop=lambda: False)
    with pytest.raises(UsageError, match="levels led by the host"):
        resident_driver(source, 2, stepwise=True)
