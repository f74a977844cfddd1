"""What each knob of engine ``bfs4k`` changes, as its records count it."""

import numpy as np
import pytest
from device_graphs import HostGraph, hubs
from fast_graphs import bipartite, shuffled, star
from graphs import uniform

from distbfs.engines.cuda.papers.bfs4k import search as bfs4k
from distbfs.engines.cuda.papers.bfs4k.search import Bfs4kEngine, Bfs4kSearch, bits_of
from distbfs.options import Knobs, SearchOptions

BATCH, LOCAL = 4, 16  # as in bfs4k.cuh
THREADS = 2 * bfs4k.THREADS  # that are resident on the emulated device
GRID = {"k4": 0, "k5": 0}  # all levels by the grid, by virtual warps


def records(made, number=0, *, claim=True, **knobs):
    """Search by given knobs, without a second queue if not told; the records."""
    chosen = Knobs(**{"k2": 0, **knobs})
    search = Bfs4kSearch(made.graph, knobs=chosen, claim=claim)
    found = search.search(number, records=True)
    made.check(number, found)
    return found.records


def total(log, name):
    return sum(record.extra[name] for record in log)


@pytest.mark.parametrize("k1", [1, 2, 4, 8, 16, 32])
def test_k1_is_the_least_virtual_warp(device, k1):
    """Leaves of degree 1 have the places of a virtual warp each, and fill one."""
    for leaves in (64, 256, 4096):  # rows come out even between warps
        log = records(HostGraph(star(leaves)), k1=k1, **GRID)
        width = k1
        while width < 32 and leaves * width * 2 <= THREADS:
            width *= 2
        assert log[1].checks == leaves
        assert log[1].extra["places"] == leaves * width * BATCH


@pytest.mark.parametrize("k3", [1, 4])
@pytest.mark.parametrize("k2", [0, 0.06, 1, 100])
def test_k2_and_k3_cut_rows_of_hubs_into_pieces(device, k2, k3):
    made = HostGraph(hubs(3, 2500))
    queued = int(k2 / 100 * made.active)
    for number in (0, made.active - 1):
        level, seen = made.levels(number), 0
        for depth, record in enumerate(records(made, number, k2=k2, k3=k3, **GRID)):
            frontier = np.flatnonzero(level == depth)
            degrees = made.degrees[frontier[frontier < queued]]
            assert record.extra["pieces"] == (-(-degrees // (32 * k3))).sum()
            seen += record.extra["pieces"]
        assert bool(seen) == bool(queued)


@pytest.mark.parametrize("k4", [0, 1, 2, 64])
def test_k4_shares_short_frontiers_out_by_edges(device, k4):
    seen = set()
    for source in (star(3700), uniform(4000, 30_000), hubs(2, 700)):
        log = records(HostGraph(source), k4=k4, k5=0, ext=False)
        for record in log:
            edges = record.frontier * k4 < THREADS if k4 else False
            assert record.direction == ("push-edges" if edges else "push-warps")
            seen.add(record.direction)
            if edges:
                assert record.extra["searches"] == record.checks
            if not k4:
                assert record.extra["searches"] == 0
    assert ("push-edges" in seen) == (k4 > 0)
    assert "push-warps" in seen


@pytest.mark.parametrize("k5", [0, 1, 2, 4])
def test_k5_leaves_small_frontiers_to_one_block(device, k5):
    """Of at most 1024 K5 vertices with twice as many edges."""
    for leaves in (900, 1900, 3700, 5000):
        log = records(HostGraph(star(leaves)), k5=k5, k4=1)
        alone = [record.direction.startswith("push-block") for record in log]
        most = bfs4k.THREADS * k5
        wanted = [r.frontier <= most and r.checks <= 2 * most for r in log]
        assert alone == wanted


@pytest.mark.parametrize("k6", [32, 64, 256, 1024])
def test_k6_shares_a_table_between_warps(device, k6):
    """A table of a quarter of the threads has a quarter of the memory."""
    search = Bfs4kSearch(HostGraph(star(40)).graph, knobs=Knobs(k6=k6, **GRID))
    assert search.params.group_warps == k6 // 32
    queues = 4 * bfs4k.WARPS * LOCAL * 32
    assert search.params.table == bits_of((search.shared - queues) * k6 // 1024)


def test_k6_of_more_threads_has_fewer_conflicts(device):
    made = HostGraph(uniform(6000, 90_000))
    logs = [records(made, k6=k6, k1=2, **GRID) for k6 in (32, 128, 1024)]
    conflicts = [total(log, "conflicts") for log in logs]
    assert conflicts == sorted(set(conflicts), reverse=True)


@pytest.mark.parametrize("k7", [0, 1, 5, 6, LOCAL])
def test_k7_is_the_average_from_which_lanes_write_in_turns(device, k7):
    """A warp that finds the leaves of a star has full local queues."""
    leaves = 8 * 32 * LOCAL
    log = records(HostGraph(star(leaves)), k7=k7, k1=32, **GRID)
    assert log[0].extra["in_turns"] == (leaves if k7 else 0) // 32 * 32
    few = records(HostGraph(star(5 * 32)), k7=k7, k1=32, **GRID)
    assert few[0].extra["in_turns"] == (5 * 32 if k7 in (1, 5) else 0)


@pytest.mark.parametrize("k5", [0, 4])
def test_ext_goes_through_long_rows_without_searches(device, k5):
    """Beyond its first 32 x 4 edges, but for what is not a whole warp."""
    made = HostGraph(star(3700))
    ahead = 32 * BATCH
    for ext, wanted in ((False, 3700), (True, ahead + (3700 - ahead) % 32)):
        log = records(made, k4=1, k5=k5, ext=ext)
        assert log[0].direction == ("push-block-edges" if k5 else "push-edges")
        assert log[0].extra["searches"] == wanted


@pytest.mark.parametrize("claim", [True, False], ids=["claim", "hash"])
def test_repeats_are_dropped_by_the_table(device, claim):
    """Lanes that see a vertex at once keep it once, but where entries collide."""
    made = HostGraph(shuffled(bipartite(190, 260)))
    log = records(made, claim=claim, k1=2, k6=1024, **GRID)
    dropped, missed = (total(log, f"repeats_{x}") for x in ("found", "missed"))
    assert dropped > missed
    reached = int((made.levels(0) >= 0).sum())
    queued = sum(record.frontier for record in log)
    assert queued == reached + (0 if claim else missed)


@pytest.mark.parametrize(("method", "claims"), [("claim", True), ("hash", False)])
def test_methods_claim_or_not(device, method, claims):
    """Only method hash queues repeats."""
    options = SearchOptions.named(
        engine="bfs4k", method=method, direction="push", knobs=Knobs(k1=2, **GRID)
    )
    made = HostGraph(shuffled(bipartite(190, 260)))
    search = Bfs4kEngine(options).by_number(made.graph)
    log = search.search(0, records=True).records
    assert bool(search.params.words == len(search._arrays["visited"])) == claims
    queued = sum(record.frontier for record in log)
    missed = 0 if claims else total(log, "repeats_missed")
    assert queued == made.active + missed
