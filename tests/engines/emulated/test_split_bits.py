"""Many searches in one traversal over rows that have tails in host memory."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from device_graphs import HostGraph, hubs
from fast_graphs import path, shuffled, star
from graphs import complete, kronecker, random_tuples, uniform
from outer_searches import PLACEMENTS, searching
from resident_parts import NOTHING, budgets, device_searches, resident_parts
from sessions import open_tuples, query_session
from test_between_kernels import StreamedThreads
from test_domain_bits import ALWAYS_PULL, NEVER_PULL, check, some_sources
from test_outer_bits import LARGE, found_by
from test_outer_bits import check as check_all
from thread_peers import ThreadPeers
from worlds import ThreadExchange, on_ranks

import distbfs
from distbfs.build.cuda import inner_domains
from distbfs.build.cuda.room import LEAST_KEPT, Fit, Room
from distbfs.errors import OutOfMemory, UsageError
from distbfs.multisearch import domain_share
from distbfs.multisearch.base import RunOptions
from distbfs.multisearch.cuda_bits import RESERVE, bytes_beside, bytes_needed
from distbfs.multisearch.part_loop import Wanted
from distbfs.multisearch.searchers import PartsSearcher
from distbfs.options import BuildOptions
from distbfs.partition.layout import Domains
from distbfs.partition.share import ShareCounts, whole_counts
from distbfs.ranks.world import SoloWorld
from distbfs.search import choose as choosing
from distbfs.search import device_opening, domain_group
from distbfs.search.choose import Request, choose_searcher
from distbfs.service.shared_traversal import batch_searcher
from distbfs.store.write import write_graph

sys.path.append(str(Path(__file__).parents[2] / "cli"))

from commands import here
from wholes import betweenness, check_applications, whole

GRAPHS = {
    "kronecker": kronecker(8),
    "star": shuffled(star(500)),
    "complete": complete(60),
    "hubs": hubs(3, 700),
    "granules": uniform(3000, 20_000, hub=900),
    "random": random_tuples(600, 5000, 11),
    "path": shuffled(path(16)),
}
LEAST = Room(None, None, NOTHING)  # with ``least_kept``


@pytest.fixture(autouse=True)
def peers(device, monkeypatch):
    monkeypatch.setattr(domain_group, "PeerGroup", ThreadPeers)
    monkeypatch.setattr(device_opening, "PeerGroup", ThreadPeers)


@pytest.fixture
def least_kept(monkeypatch):
    """Where rows may have tails, they have all but the first LEAST_KEPT columns."""
    monkeypatch.setattr(Fit, "most", lambda _: LEAST_KEPT)


@pytest.mark.parametrize(
    ("name", "parts"),
    [(name, 1 + (k + j) % 3) for k, name in enumerate(GRAPHS) for j in range(2)],
)
def test_domains_from_the_least_to_all_on_the_devices(monkeypatch, name, parts):
    """Rows of hubs and of warps are short, so that tails begin in each kind."""
    monkeypatch.setattr(domain_share, "HUB_DEGREE", 60)
    monkeypatch.setattr(domain_share, "WIDE_DEGREE", 12)
    source = GRAPHS[name]
    least, every = budgets(source, parts, monkeypatch)
    roots = some_sources(source, 9)
    level = source.levels_from(roots)
    kept, ways = [], (NEVER_PULL, ALWAYS_PULL, None)
    turn = list(GRAPHS).index(name) + parts
    for k, share in enumerate((0, (0.4, 0.9)[turn % 2], 1)):
        room = Room(int(least + share * (every - least)), None, NOTHING)
        made, _ = resident_parts(source, parts, room=room)
        tails = made[0].out.tails
        kept.append(tails.kept if tails else 1 << 30)
        pull_edges = ways[(turn + k) % 3]
        searches = device_searches(
            SoloWorld(),
            [*made],
            lanes=(1, 2, 4)[(k + parts) % 3],
            pull_edges=pull_edges,
        )
        check(searches, source, roots)
        if k == 0:
            searches.run(roots, Wanted())
        counts = searches.tail_counts()  # of the last run
        searches.close()
        if tails is None:
            assert counts == {}
            continue
        beyond = np.maximum(source.degrees - tails.kept, 0)
        steps = range(level.max() + 1)
        pushed = sum(beyond[(level == d).any(axis=0)].sum() for d in steps)
        read = counts["tail_edges"]
        assert read == pushed or pull_edges != NEVER_PULL
        assert 128 * -(-read // 32) <= counts["tail_bytes"] <= 128 * read
    assert kept == sorted(kept)
    assert kept[-1] == 1 << 30


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("owners", "name", "threshold", "pull_edges", "kind"),
    [
        (
            *(owners, ("kronecker", "star", "path")[(k + j) % 3]),
            *((4, 20, LARGE)[(k // 3 + j) % 3], pull_edges),
            (ThreadExchange, StreamedThreads)[(k + j) % 2],
        )
        for k, owners in enumerate(PLACEMENTS)
        for j, pull_edges in enumerate((ALWAYS_PULL, None))
    ],
)
def test_between_domains(
    monkeypatch, least_kept, owners, name, threshold, pull_edges, kind
):
    source, make = GRAPHS[name], inner_domains.inner_domains
    monkeypatch.setattr(inner_domains, "inner_domains", lambda *x: make(*x[:-1], LEAST))
    roots = np.random.default_rng(1).integers(0, source.n, 65)
    wanted = source.levels_from(roots)
    rows = found_by(roots, source.n)

    def work(world, searches, members):
        split = [member.out.tails is not None for member in members]
        return rows(world, searches, members), searches.tail_counts(), split

    every = searching(
        *(source, PLACEMENTS[owners], threshold, kind, work), pull_edges=pull_edges
    )
    for results, counts, split in every:
        check_all(results, wanted)
        assert all(split)
        assert counts == every[0][1]
        assert counts["tail_bytes"] % 128 == 0


@pytest.mark.thorough
@pytest.mark.parametrize("count", [1, 3])
def test_applications_of_sessions(monkeypatch, least_kept, count):
    """None takes turns; betweenness is refused, in one line."""
    monkeypatch.setattr(choosing, "take_devices", lambda *_, **__: [0] * count)
    monkeypatch.setattr("distbfs.exchange.peer_memory.peer_problem", lambda *_: "")
    source = random_tuples(150, 1200, 4)
    request = Request(domain=count, divided=True, beside=bytes_beside)
    session = open_tuples(source, request=request, engine="xbfs", parents=False)
    assert "of the edges are in host memory" in session.why
    searcher = PartsSearcher(session, RunOptions())
    words = "edges are in host memory" if count == 1 else "not on several devices"
    with pytest.raises(UsageError, match=words):
        betweenness(searcher, np.arange(3))
    session.search = None  # which is not called
    check_applications(searcher, source)
    assert searcher.tails["tail_edges"] > 0
    session.close()


def test_applications_of_a_whole_graph(least_kept):
    """Problems with functions need all columns, and say so."""
    source = random_tuples(150, 1200, 4)
    kind, _ = choose_searcher("xbfs")
    searcher = kind(SoloWorld(), whole(source), RunOptions())
    assert "beyond 8 of a row" in searcher.where
    check_applications(searcher, source)
    assert searcher.tails["tail_edges"] > 0
    with pytest.raises(OutOfMemory, match=r"the whole graph .* use engine openmp"):
        betweenness(searcher, np.arange(3))


def test_limits_of_python(least_kept):
    source = GRAPHS["kronecker"]
    graph = distbfs.Graph.from_edges(source.u, source.v, n=source.n)
    exact = distbfs.search_many(graph, "closeness", None, "openmp")
    assert "tail_edges" not in exact.facts
    results = distbfs.search_many(
        graph, "closeness", None, "xbfs", device_memory=1 << 30
    )
    np.testing.assert_allclose(results["value"], exact["value"], rtol=1e-12)
    assert 0 < 4 * results.facts["tail_edges"] <= results.facts["tail_bytes"]
    with pytest.raises(OutOfMemory, match="there are 10 B"):
        distbfs.search_many(graph, "closeness", [0], "xbfs", host_memory=10)
    with pytest.raises(UsageError, match="device_memory is not an option of engine"):
        distbfs.search_many(graph, "closeness", [0], "openmp", device_memory=1 << 30)


@pytest.mark.parametrize("divide", ["sources", "parts"])
def test_the_command_says_what_is_read(least_kept, tmp_path, divide):
    source = GRAPHS["kronecker"]
    write_graph(SoloWorld(), source, tmp_path / "store", 1, BuildOptions())
    options = ("--sources", 20, "--engine", "xbfs", "--divide", divide)
    run = here("multisearch", "closeness", tmp_path / "store", *options, "--json")
    assert run.code == 0, run.err
    assert "beyond 8 of a row" in run.err
    tails = json.loads(run.out)["tails"]
    assert 0 < 4 * tails["tail_edges"] <= tails["tail_bytes"]
    run = here("multisearch", "closeness", tmp_path / "store", *options)
    assert f"{tails['tail_edges']} columns of tails" in run.out
    run = here(
        *("multisearch", "closeness", tmp_path / "store", *options),
        *("--host-memory", 10),
    )
    assert run.code == 3
    assert run.err.count("\n") == 1


def test_rows_leave_room_for_a_traversal(monkeypatch):
    """What a device has left after a build is enough for searches."""
    source = GRAPHS["kronecker"]
    made = HostGraph(source)
    for devices in (1, 2, 3):
        rows, _ = resident_parts(source, devices)
        for one in rows:
            need = bytes_needed(one, 1, levels=True, sums=3) + RESERVE
            place = one.layout, one.index, Domains((devices,))
            counts = ShareCounts(*place, one.active, one.m, one.at_least)
            assert bytes_beside(counts) >= need
    state, fit = [], Room.fit

    def watch(self, n, numbering, sides):
        at_least = numbering.at_least
        counts = whole_counts(n, made.active, made.m // len(sides), at_least)
        state.append(self.state(counts))
        return fit(self, n, numbering, sides)

    monkeypatch.setattr(Room, "fit", watch)
    for beside in (None, bytes_beside):
        request = Request() if beside is None else Request(beside=beside)
        open_tuples(source, request=request, engine="xbfs").close()
    counts = whole_counts(made.graph.n, made.active, 0, np.zeros(0, np.int64))
    assert state[1] - state[0] == bytes_beside(counts)


def test_queries_of_a_service():
    source = GRAPHS["kronecker"]
    made = HostGraph(source)
    at_once = batch_searcher(query_session(made.split(8)))
    roots = list(range(0, source.n, 8))
    _, levels = at_once.levels([(v, [0, v, 7]) for v in roots], lambda: False)
    for root, own in zip(roots, levels, strict=True):
        assert own == source.distances(root)[[0, root, 7]].tolist()


def test_ranks_of_a_domain(least_kept):
    """All ranks have the same counts."""
    source = GRAPHS["granules"]
    roots = some_sources(source, 9)

    def rank(world):
        made, _ = resident_parts(source, world.size, world, room=LEAST)
        searches = device_searches(world, [*made])
        check(searches, source, roots)
        searches.run(roots, Wanted())
        counts = searches.tail_counts()
        searches.close()
        return counts

    first, second = on_ranks(2, rank)
    assert first == second
    assert first["tail_edges"] > 0
