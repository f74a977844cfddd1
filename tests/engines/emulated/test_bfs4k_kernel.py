"""Engine ``bfs4k`` with its kernel run on the CPU: levels and parents."""

import numpy as np
import pytest
from device_graphs import HostGraph, hubs
from fast_graphs import (
    beside,
    binary_tree,
    bipartite,
    chained,
    circulant,
    lone,
    long_rows,
    pairs,
    path,
    shuffled,
    star,
)
from graphs import Tuples, complete, grid, kronecker, random_tuples, uniform

from distbfs.device import cuda
from distbfs.engines.cuda.papers.bfs4k.knobs import auto_knobs, degrees_of
from distbfs.engines.cuda.papers.bfs4k.search import STEPS, Bfs4kSearch
from distbfs.errors import UsageError
from distbfs.options import Knobs

SHAPES = {
    "one-edge": lambda: Tuples(4, [1, 1], [3, 3]),
    "random": lambda: random_tuples(1500, 4000, 11),
    "kronecker": lambda: kronecker(10),
    "star": lambda: star(2100),
    "grid": lambda: grid(14),
    "tree": lambda: shuffled(binary_tree(1023)),
    "complete": lambda: complete(70),
    "blobs": lambda: shuffled(chained(complete(60), path(12), complete(90))),
    "tiny": lambda: shuffled(beside(uniform(500, 2500), pairs(700), lone(200))),
    "hubs": lambda: hubs(3, 1300),
    "long-rows": lambda: shuffled(long_rows()),
    "bipartite": lambda: shuffled(bipartite(70, 190)),
    "ring": lambda: circulant(600, 40),
    "uniform": lambda: uniform(1500, 12_000),
}
# each forces ways that the others do not take
KNOBS = {
    "auto": Knobs(),
    "grid-edges": Knobs(k4=1, k5=0),
    "grid-edges-plain": Knobs(k4=1, k5=0, ext=False),
    "grid-warps-1": Knobs(k1=1, k4=0, k5=0, k7=1),
    "grid-warps-32": Knobs(k1=32, k4=0, k5=0, k6=64, k7=10),
    "block-warps": Knobs(k1=4, k4=0, k5=2),
    "block-edges": Knobs(k4=4, k5=4, ext=False),
    "second-queue": Knobs(k2=1.0, k3=1, k6=32, k5=1),
    "all-second-queue": Knobs(k2=100, k3=2, k6=128, k5=0),
    "small-table": Knobs(k6=32, k5=0, k1=2, k4=0),
}
MADE = {}


def host(name, wide=False):
    """Return a graph of SHAPES; kept, as are its levels."""
    if (name, wide) not in MADE:
        MADE[name, wide] = HostGraph(SHAPES[name](), wide)
    return MADE[name, wide]


def numbers_of(made):
    """Return the first number (a hub), and the last."""
    return [0, made.active - 1]


def look(made, search, numbers=None):
    for number in numbers or numbers_of(made):
        made.check(number, search.search(number))


ALL = [(named, True) for named in KNOBS]
PUBLISHED = [(named, False) for named in ("auto", "grid-warps-1", "second-queue")]


@pytest.mark.thorough
@pytest.mark.parametrize(("named", "claim"), [*ALL, *PUBLISHED])
def test_every_way_of_sharing(device, named, claim):
    """Half of the graphs, from a hub and from the last vertex in turns."""
    chosen = [*SHAPES][list(KNOBS).index(named) % 2 :: 2]
    for k, name in enumerate(chosen):
        made = host(name, wide=k % 3 == 2)
        search = Bfs4kSearch(
            made.graph, knobs=KNOBS[named], claim=claim, parents=k % 4 != 1
        )
        look(made, search, numbers_of(made)[(k + claim) % 2 :][:1])


def sizes_of(made, number):
    level = made.levels(number)
    return np.bincount(level[level >= 0])


@pytest.mark.thorough
@pytest.mark.parametrize("named", KNOBS)
def test_records_are_the_histogram_of_levels(device, named):
    seen = set()
    for name in ("kronecker", "hubs", "tiny", "uniform"):
        made = host(name)
        search = Bfs4kSearch(made.graph, knobs=KNOBS[named])
        for number in numbers_of(made):
            found = search.search(number, records=True)
            made.check(number, found)
            log, sizes = found.records, sizes_of(made, number)
            level = made.levels(number)
            assert [r.frontier for r in log] == sizes.tolist()
            assert [r.found for r in log] == [*sizes[1:].tolist(), 0]
            checks = [made.degrees[level == d].sum() for d in range(len(sizes))]
            assert [r.checks for r in log] == checks
            assert all(r.seconds >= 0 for r in log)
            seen |= {r.direction for r in log}
    assert seen <= set(STEPS)
    if named == "auto":
        assert {"push-block-edges", "push-edges"} <= seen
    if named in {"grid-edges", "grid-edges-plain"}:
        assert "push-edges" in seen
    if named in {"grid-warps-1", "grid-warps-32", "small-table"}:
        assert seen == {"push-warps"}
    if named.startswith("block"):
        assert any(step.startswith("push-block") for step in seen)


def test_repeats_are_counted(device):
    """What a table finds, misses and mixes up adds up to what was looked at twice."""
    made = HostGraph(shuffled(bipartite(190, 260)))
    for claim in (True, False):
        knobs = Knobs(k1=2, k4=0, k5=0, k6=1024)
        search = Bfs4kSearch(made.graph, knobs=knobs, claim=claim)
        found = search.search(0, records=True)
        made.check(0, found)
        counts = [r.extra for r in found.records]
        assert sum(c["repeats_found"] for c in counts) > 100
        frontier = sum(r.frontier for r in found.records)
        reached = (made.levels(0) >= 0).sum()
        missed = sum(c["repeats_missed"] for c in counts)
        assert frontier == reached + (0 if claim else missed)


def test_a_smaller_table_has_more_conflicts(device):
    made = HostGraph(uniform(6000, 90_000))
    conflicts = []
    for k6 in (32, 1024):
        knobs = Knobs(k1=2, k4=0, k5=0, k6=k6)
        log = Bfs4kSearch(made.graph, knobs=knobs).search(0, records=True).records
        conflicts.append(sum(r.extra["conflicts"] for r in log))
    assert conflicts[0] > conflicts[1]


def test_repeats_beyond_the_room_of_the_queue(device):
    """The queue is made again, without repeats."""
    device.multiprocessors = 3
    made = HostGraph(shuffled(bipartite(700, 120)))
    over = 0
    for k2 in (0, 100):
        knobs = Knobs(k1=1, k2=k2, k3=1, k4=0, k5=0, k6=32)
        search = Bfs4kSearch(made.graph, knobs=knobs, claim=False, capacity=700)
        if k2:
            search.params.piece_capacity = 2800
        for number in (0, made.active - 1):
            made.check(number, search.search(number))
            found = search.search(number, records=True)
            made.check(number, found)
            over += any(
                r.found + r.extra["repeats_missed"] > 700 for r in found.records
            )
    assert over


@pytest.mark.thorough
def test_sizes_at_the_borders_of_words_and_warps(device):
    for n in (2, 32, 33, 1024, 1026):
        for source in (path(min(n, 12)), star(n - 1), random_tuples(n, 3 * n, seed=n)):
            made = HostGraph(source)
            if not made.active:
                continue
            for knobs in (Knobs(), Knobs(k2=100, k3=1, k6=32), Knobs(k5=0, k4=0)):
                look(made, Bfs4kSearch(made.graph, knobs=knobs))


def test_degree_statistics(device):
    for name in SHAPES:
        made = host(name)
        found = degrees_of(made.graph)
        assert found.maximum == made.degrees.max()
        np.testing.assert_allclose(found.average, made.degrees.mean())
        np.testing.assert_allclose(found.deviation, made.degrees.std(), atol=1e-6)


def test_too_many_levels_for_records(device, monkeypatch):
    monkeypatch.setattr("distbfs.engines.cuda.common.resident.RECORDS", 20)
    made = HostGraph(path(50))
    search = Bfs4kSearch(made.graph)
    with pytest.raises(UsageError, match="records 20 levels"):
        search.search(0, records=True)
    made.check(0, search.search(0))


def test_numbers_that_are_not_there(device):
    search = Bfs4kSearch(host("grid").graph)
    for number in (-1, 196):
        with pytest.raises(UsageError, match="allowed: 0 to 195"):
            search.search(number)


def test_memory_is_what_was_said(device):
    """No array is longer than the kernel is told."""
    made = host("hubs")
    search = Bfs4kSearch(made.graph, knobs=Knobs(k2=2, k3=1, k6=32, k5=4))
    assert search.shared <= device.shared
    assert cuda.shared_limit() == device.shared
    assert search.knobs == auto_knobs(search.degrees).__class__(
        **{**auto_knobs(search.degrees).as_dict(), "k2": 2, "k3": 1, "k6": 32, "k5": 4}
    )
