"""Many searches of directed graphs on devices, which are the CPU, against SciPy."""

import sys
from functools import cache
from itertools import cycle
from pathlib import Path

import h5py
import networkx as nx
import numpy as np
import pytest
from covering import covered
from device_parts import LARGE
from directed_graphs import stored
from directed_hosts import (
    SHAPES,
    Arcs,
    any_arcs,
    ring,
    split_at_eight,
    turned,
)
from hypothesis import given
from hypothesis import strategies as st
from outer_searches import (
    FORMS,
    PLACEMENTS,
    by_id,
    few_examples,
    searching,
    session_of,
)
from resident_parts import NOTHING, device_searches, resident_parts
from sessions import query_session
from shortest_paths import dependencies as dependencies_of
from test_between_kernels import StreamedThreads
from test_domain_bits import ALWAYS_PULL, NEVER_PULL, check
from test_outer_bits import check as check_all
from test_outer_bits import found_by
from thread_peers import ThreadPeers
from wholes import (
    betweenness,
    by_networkx,
    check_applications,
    check_betweenness,
    whole,
)
from worlds import ThreadExchange, on_ranks

from distbfs.build.cuda import inner_domains
from distbfs.build.cuda.room import LEAST_KEPT, Fit, Room
from distbfs.errors import OutOfMemory
from distbfs.multisearch import domain_share
from distbfs.multisearch.base import RunOptions
from distbfs.multisearch.domain_bits import DomainBitSearches
from distbfs.multisearch.part_loop import Wanted
from distbfs.multisearch.searchers import PartsSearcher
from distbfs.ranks.world import SoloWorld
from distbfs.search import choose as choosing
from distbfs.search import device_opening, domain_group
from distbfs.search.choose import choose_searcher
from distbfs.service.shared_traversal import batch_searcher

sys.path.append(str(Path(__file__).parents[2] / "cli"))

from commands import here

KINDS = [ThreadExchange, StreamedThreads]
LEAST = Room(None, None, NOTHING)  # with ``least_kept``
pytestmark = pytest.mark.usefixtures("peers")


@pytest.fixture
def least_kept(monkeypatch):
    """Rows that may have tails have all but the first LEAST_KEPT columns there."""
    monkeypatch.setattr(Fit, "most", lambda _: LEAST_KEPT)


@pytest.fixture
def short_rows(monkeypatch):
    """Rows of few columns are those of hubs, or of warps."""
    monkeypatch.setattr(domain_share, "HUB_DEGREE", 40)
    monkeypatch.setattr(domain_share, "WIDE_DEGREE", 9)


@cache
def source_of(name):
    """Return a graph of SHAPES."""
    return SHAPES[name]()


@cache
def levels_of(name, count=34):
    """Return roots, some of them twice, and their levels."""
    source = source_of(name)
    roots = np.random.default_rng(2).integers(0, source.n, count)
    roots[:2] = source.degrees.argmax(), source.entering.argmax()
    return roots, source.levels_from(roots)


@pytest.mark.parametrize("tails", [False, True])
@pytest.mark.parametrize("pull_edges", [ALWAYS_PULL, NEVER_PULL, None])
@pytest.mark.parametrize("parts", [1, 2, 3])
def test_domains(least_kept, short_rows, parts, pull_edges, tails):
    """And along reversed edges."""
    for k, name in [*enumerate(SHAPES)][parts % 3 :: 3]:
        source, room = source_of(name), LEAST if tails else None
        made, _ = resident_parts(source, parts, directed=True, room=room)
        members = [*made]
        for side in (source, turned(source)):
            ways = {"lanes": (1, 2, 4)[k % 3], "pull_edges": pull_edges}
            on = device_searches(SoloWorld(), members, **ways)
            roots = levels_of(name)[0]
            check(on, side, roots)
            assert bool(on.tail_counts()) == (made[0].out.tails is not None)
            on.close()
            members = [member.turned() for member in members]


@pytest.mark.thorough
@pytest.mark.parametrize("pull_edges", [ALWAYS_PULL, NEVER_PULL, None])
def test_a_whole_graph_in_host_memory(short_rows, pull_edges):
    """Its levels are led by the host; rows out and rows in have tails."""
    read = []
    for name in ("kronecker", "hubs", "hubs-turned", "uniform", "star-in"):
        member = split_at_eight(source_of(name))
        assert member.held_back
        for own, side in (
            (member, source_of(name)),
            (member.turned(), turned(source_of(name))),
        ):
            on = device_searches(SoloWorld(), [own], pull_edges=pull_edges)
            assert on.launched is None
            check(on, side, levels_of(name)[0])
            read.append(on.tail_counts()["tail_edges"])
            on.close()
    assert len(read) == 10
    assert np.count_nonzero(read) > 5


# of each shape some placements
CASES = zip(
    covered(list(SHAPES), [0, 6, 40, LARGE], KINDS, [ALWAYS_PULL, NEVER_PULL]),
    cycle(PLACEMENTS),
)


@pytest.mark.parametrize(
    ("name", "threshold", "kind", "pull_edges", "owners"),
    [(*some, own) for some, own in CASES],
)
def test_between_domains(short_rows, name, threshold, kind, owners, pull_edges):
    source, (roots, wanted) = source_of(name), levels_of(name)
    work = found_by(roots, source.n)
    form = (source, PLACEMENTS[owners], threshold, kind, work)
    for results in searching(*form, pull_edges=pull_edges):
        check_all(results, wanted)


@pytest.mark.thorough
@pytest.mark.parametrize("owners", ["two ranks", "two and one", "pairs of ranks"])
@pytest.mark.parametrize("threshold", [12, LARGE])
def test_between_domains_in_host_memory(
    monkeypatch, least_kept, short_rows, owners, threshold
):
    make = inner_domains.inner_domains
    monkeypatch.setattr(inner_domains, "inner_domains", lambda *x: make(*x[:-1], LEAST))
    for name, pull_edges in (("hubs", ALWAYS_PULL), ("kronecker", NEVER_PULL)):
        source, (roots, wanted) = source_of(name), levels_of(name)
        rows = found_by(roots, source.n)

        def work(world, searches, members, rows=rows):
            split = [member.out.tails is not None for member in members]
            return rows(world, searches, members), searches.tail_counts(), split

        form = (source, PLACEMENTS[owners], threshold, StreamedThreads, work)
        for results, counts, split in searching(*form, pull_edges=pull_edges):
            check_all(results, wanted)
            assert all(split)
            assert counts["tail_edges"] > 0


def sums_of(source, roots):
    """Sum the dependencies of sources, which may be there twice."""
    every = [dependencies_of(source.matrix, source.distances(int(x))) for x in roots]
    return np.sum(every, axis=0)


def dependent(roots):
    """Return a function for ``searching`` of dependencies, [n]."""

    def work(world, searches, members):
        searches.run(roots, Wanted(levels=True))
        return by_id(world, members, searches.dependencies(None))

    return work


DEEP = ["kronecker", "dead-ends", "layers", "acyclic", "small-world"]
FEW = zip(covered(DEEP, [0, 6, LARGE], KINDS), cycle(PLACEMENTS))


@pytest.mark.parametrize(
    ("name", "threshold", "kind", "owners"), [(*some, own) for some, own in FEW]
)
def test_dependencies(short_rows, name, threshold, kind, owners):
    """Forward along edges in, backward along edges out, inside domains and between."""
    source, roots = source_of(name), levels_of(name)[0][:9]
    wanted = sums_of(source, roots)
    form = (source, PLACEMENTS[owners], threshold, kind, dependent(roots))
    for sums in searching(*form):
        np.testing.assert_allclose(sums, wanted, rtol=1e-12, atol=1e-12)


@few_examples
@given(
    source=any_arcs(),
    owners=st.sampled_from(list(PLACEMENTS.values())),
    threshold=st.sampled_from([0, 1, 3, LARGE]),
    kind=st.sampled_from(KINDS),
    pull=st.sampled_from([None, 1, NEVER_PULL]),
)
def test_any_graph(source, owners, threshold, kind, pull):
    roots = np.arange(source.n)
    rows, paths = found_by(roots, source.n), dependent(roots)
    work = lambda *x: (rows(*x), paths(*x))  # noqa: E731
    levels, wanted = source.levels_from(roots), sums_of(source, roots)
    form = (source, owners, threshold, kind, work)
    for results, sums in searching(*form, pull_edges=pull, lanes=1):
        check_all(results, levels)
        np.testing.assert_allclose(sums, wanted, rtol=1e-12, atol=1e-12)


SMALL = {
    "chords": lambda: ring(14, 9),
    "random": lambda: Arcs(12, [0, 1, 2, 5, 6, 9, 3, 0], [1, 2, 0, 6, 9, 5, 0, 7]),
}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("form", "name", "kind", "threshold"),
    [
        (form, ("chords", "random")[k % 2], KINDS[k % 2], (2, LARGE)[k // 2 % 2])
        for k, form in enumerate(form for form in FORMS if form != "four ranks")
    ],
)
def test_applications(ranks, monkeypatch, form, name, kind, threshold):
    """On domains of every size; none takes turns."""
    names, counts, domain = FORMS[form]
    source = SMALL[name]()

    def rank(world):
        world = ranks(world, names, counts, kind)
        session = session_of(world, source, domain, threshold)
        searcher = PartsSearcher(session, RunOptions(), directed=True)
        session.search = None  # which is not called
        check_applications(searcher, source, (None, 2))
        check_betweenness(searcher, source)
        assert isinstance(searcher.turned()._searches, DomainBitSearches)
        session.close()

    if len(names) == 1:
        monkeypatch.setattr(choosing, "take_devices", lambda *_, **__: [0] * counts[0])
    on_ranks(len(names), rank)


@pytest.mark.thorough
def test_applications_in_host_memory(least_kept):
    """Betweenness needs all columns, and says so."""
    source = source_of("uniform")
    source = Arcs(120, source.u % 120, source.v % 120)
    kind = choose_searcher("xbfs")[0]
    searcher = kind(SoloWorld(), whole(source, True), RunOptions())
    assert "beyond 8 of a row" in searcher.where
    check_applications(searcher, source)
    assert searcher.tails["tail_edges"] > 0
    with pytest.raises(OutOfMemory, match=r"the whole graph .* use engine openmp"):
        betweenness(searcher, np.arange(3))


@pytest.mark.parametrize("divide", ["parts", "sources"])
@pytest.mark.parametrize("count", [1, 2])
def test_the_command(monkeypatch, least_kept, tmp_path, count, divide):
    """Of a store, with tails; it says how much of them was read."""
    monkeypatch.setattr(choosing, "take_devices", lambda *_, **__: [0] * count)
    monkeypatch.setattr(device_opening, "PeerGroup", ThreadPeers)
    monkeypatch.setattr(domain_group, "PeerGroup", ThreadPeers)
    monkeypatch.setattr("distbfs.exchange.peer_memory.peer_problem", lambda *_: "")
    source = source_of("uniform")
    source = Arcs(120, source.u % 120, source.v % 120)
    stored(tmp_path / "store", source.n, source.u, source.v)
    out = tmp_path / "out.h5"
    words = ("--engine", "xbfs", "--divide", divide, "-o", out)
    run = here("multisearch", "closeness", tmp_path / "store", *words)
    assert run.code == 0, run.err
    assert "columns of tails" in run.out
    wanted = nx.closeness_centrality(by_networkx(source, directed=True))
    with h5py.File(out) as file:
        np.testing.assert_allclose(file["value"], [wanted[v] for v in range(120)])


def test_queries_of_a_service(least_kept):
    """One traversal answers those of a graph that is partly in host memory."""
    source = source_of("uniform")
    session = query_session(split_at_eight(source))
    at_once = batch_searcher(session)
    assert at_once is not None
    roots = [*range(0, source.n, 20)]
    _, levels = at_once.levels([(v, [0, v, 7]) for v in roots], lambda: False)
    for root, own in zip(roots, levels, strict=True):
        assert own == source.distances(root)[[0, root, 7]].tolist()
