"""Betweenness over parts on devices that are the CPU, against products by SciPy."""

from functools import lru_cache
from itertools import cycle

import networkx as nx
import numpy as np
import pytest
from bit_searches import BitSearches
from covering import covered
from device_graphs import HostGraph
from device_parts import LARGE
from fast_graphs import path, shuffled
from graphs import NAMED, Tuples, uniform
from hypothesis import given
from outer_searches import (
    ANY_DOMAINS,
    PLACEMENTS,
    by_id,
    few_examples,
    searching,
    session_of,
)
from part_graphs import GRAPHS as SHAPES
from shortest_paths import dependencies as dependencies_of
from test_between_kernels import StreamedThreads
from worlds import ThreadExchange, on_ranks

from distbfs.device import cuda
from distbfs.device.array_table import total_bytes
from distbfs.errors import OutOfMemory, SearchStopped, UsageError
from distbfs.multisearch import (
    cuda_bits,
    domain_paths,
    domain_share,
)
from distbfs.multisearch.apps import betweenness
from distbfs.multisearch.base import RunOptions
from distbfs.multisearch.part_loop import Wanted
from distbfs.multisearch.searchers import PartsSearcher

GRAPHS = {
    **{name: SHAPES[name] for name in SHAPES if name not in ("complete", "uniform")},
    **{name: NAMED[name] for name in ("two-hubs", "isolated", "loops", "one-vertex")},
}
KINDS = [ThreadExchange, StreamedThreads]
pytestmark = pytest.mark.usefixtures("peers")


def dependencies(source, roots):
    """Sum Brandes' dependencies of sources, which may be there twice."""
    return sum((dependency(source, x) for x in roots.tolist()), np.zeros(source.n))


@lru_cache(1024)
def dependency(source, root):
    return dependencies_of(source.matrix, source.distances(root))


def by_networkx(source):
    """Sum dependencies of all sources by NetworkX."""
    graph = nx.Graph()
    graph.add_nodes_from(range(source.n))
    graph.add_edges_from(zip(source.u.tolist(), source.v.tolist(), strict=True))
    values = nx.betweenness_centrality(graph, normalized=False)
    return 2 * np.array([values[v] for v in range(source.n)])


def found_by(roots, width=32):
    """Return a function for ``searching`` of the dependencies, [n].

    width: searches at a time that are checked
    """

    def work(world, searches, members):
        searches.run(roots[::-1][:9], Wanted(levels=True))
        searches.dependencies(None)
        searches.run(roots, Wanted(levels=True))
        sums = by_id(world, members, searches.dependencies(None))
        assert searches._paths is None or searches._paths.width == width
        return sums

    return work


# of each graph some placements, as levels and messages between them have tests of
# their own, of more graphs
CASES = zip(covered(list(GRAPHS), [0, 4, 20, LARGE], KINDS), cycle(PLACEMENTS))


@pytest.mark.parametrize(
    ("name", "threshold", "kind", "owners"), [(*some, own) for some, own in CASES]
)
def test_domains_of_all_kinds(name, threshold, kind, owners):
    source = GRAPHS[name]
    roots = np.random.default_rng(1).integers(0, source.n, 34)
    wanted = dependencies(source, roots)
    for sums in searching(source, PLACEMENTS[owners], threshold, kind, found_by(roots)):
        np.testing.assert_allclose(sums, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["kronecker", "two-hubs", "one-vertex"])
def test_a_device_with_a_whole_graph(name):
    """Whose levels one launch made."""
    source = GRAPHS[name]
    roots = np.random.default_rng(1).integers(0, source.n, 34)
    searches = BitSearches(HostGraph(source).graph, width=128)
    for some in (roots[:3], roots):
        (sums,) = searches.search(some).dependencies(None)
        wanted = dependencies(source, some)
        np.testing.assert_allclose(sums, wanted, rtol=1e-12, atol=1e-12)


MANY_GRANULES = uniform(2600, 8000, hub=900)


@pytest.mark.parametrize(
    ("owners", "width", "threshold"),
    [("two ranks", 8, 11), ("two and one", 32, 6), ("pairs of ranks", 8, LARGE)],
)
def test_rows_of_every_length(owners, width, threshold, monkeypatch):
    """For a block, a warp and 32 of a warp; delegates in many granules and lanes."""
    monkeypatch.setattr(domain_share, "HUB_DEGREE", 12)
    monkeypatch.setattr(domain_share, "WIDE_DEGREE", 5)
    monkeypatch.setattr(domain_paths, "WIDTHS", (width,))
    source = MANY_GRANULES
    roots = np.random.default_rng(3).integers(0, source.n, 11)
    wanted = dependencies(source, roots)
    for sums in searching(
        *(source, PLACEMENTS[owners], threshold, StreamedThreads),
        found_by(roots, width),
    ):
        np.testing.assert_allclose(sums, wanted, rtol=1e-12, atol=1e-12)


@few_examples
@given(**ANY_DOMAINS)
def test_any_graph(source, owners, threshold, kind):
    roots = np.arange(source.n)
    wanted = dependencies(source, roots)
    np.testing.assert_allclose(wanted, by_networkx(source), rtol=1e-9, atol=1e-9)
    for sums in searching(source, owners, threshold, kind, found_by(roots)):
        np.testing.assert_allclose(sums, wanted, rtol=1e-12, atol=1e-12)


def test_more_levels_than_planned():
    """Digits of levels are added; each vertex is listed on its one level."""
    source = shuffled(path(270))
    end = int(np.flatnonzero(source.degrees == 1)[0])
    middle = int(np.flatnonzero(source.distances(end) == 135)[0])
    roots = np.array([[middle], [end]])

    def work(world, searches, members):
        sums = []
        for some in roots:
            searches.run(some, Wanted(levels=True))
            sums.append(by_id(world, members, searches.dependencies(None)))
            listed = sum(paths._sweeps._begins[-1] for paths in searches._paths._shares)
            assert world.allreduce(np.array([listed]))[0] == source.n
        return sums

    wanted = [dependencies(source, some) for some in roots]
    for sums in searching(source, ((0,), (1,)), LARGE, ThreadExchange, work):
        np.testing.assert_allclose(sums, wanted, rtol=1e-12)


def bytes_of(record, table):
    """Return the bytes of a structure's arrays that a table names."""
    some = [record.held[name] for name in table if name in record.held]
    lists = [x if isinstance(x, list) else [x] for x in some]
    return sum(array.nbytes for arrays in lists for array in arrays)


@pytest.mark.parametrize("owners", ["one", "pairs of a rank", "two and one"])
def test_memory_is_what_was_counted(owners):
    """Of searches, of what they send to other domains, and of dependencies."""
    sums = tuple(cuda_bits.SUMS)

    def work(world, searches, members):
        searches.run(np.arange(40), Wanted(levels=True, sums=sums))
        searches.dependencies(None)
        for share, paths in zip(searches._shares, searches._paths._shares, strict=True):
            member, outside = share.member, share.outside
            active = member.active
            searches.levels(0)
            n = member.n
            own = cuda_bits.own_table(1, n, active, levels=True, sums=0)
            assert len(share._planes) == cuda_bits.MORE_PLANES  # of twice as many
            held = bytes_of(share.params, cuda_bits.shared_of(member, 1) | own)
            held += total_bytes({"plane": own["plane"]}) // 2 + bytes_of(
                share.params, sums
            )
            if member.members is None:  # it has numbers by id
                held += 4 * (n + 1)
            else:
                held += share._numbers.nbytes
            if outside is not None:
                own = cuda_bits.outer_table(
                    1, active, len(member.out.outer.targets), member.normals
                )
                held += bytes_of(outside._params, own)
                held += outside._params.held["out.row"].nbytes
            need = cuda_bits.bytes_needed(member, 1, levels=True, sums=len(sums))
            assert held == need
            asked = paths._asked
            assert bool(asked) == (outside is not None)
            table = domain_paths.shared_table(member, paths._width)
            table |= domain_paths.own_table(
                member, paths._width, searches.deepest, asked
            )
            need = domain_paths.bytes_needed(
                member, paths._width, searches.deepest, asked
            )
            order = paths._params.held["order"]  # of which not all is needed
            assert order.nbytes <= table["order"].nbytes
            need -= table["order"].nbytes - order.nbytes
            assert bytes_of(paths._params, table) == need
        return True

    places = PLACEMENTS[owners]
    assert all(searching(GRAPHS["random"], places, 4, ThreadExchange, work))


def test_a_rank_that_stops_stops_all():
    def work(world, searches, members):
        asked = []
        searches.run(np.arange(60), Wanted(levels=True))
        stop = lambda: world.rank == 1 and (asked.append(1) or len(asked) > 1)  # noqa: E731
        with pytest.raises(SearchStopped, match="stopped after 32 of 60 sources"):
            searches.dependencies(stop)
        return by_id(world, members, searches.dependencies(None))

    source = Tuples(90, range(89), range(1, 90))
    wanted = dependencies(source, np.arange(60))
    for sums in searching(source, ((0,), (1,)), 3, ThreadExchange, work):
        np.testing.assert_allclose(sums, wanted, rtol=1e-12)


def test_fewer_searches_at_a_time_where_memory_is_short(monkeypatch):
    """On one rank: on all; none where 8 do not fit."""
    source, frees = GRAPHS["random"], [1 << 40]
    roots = np.arange(40)
    wanted = dependencies(source, roots)
    monkeypatch.setattr(cuda, "free_bytes", lambda: frees[0])

    def short(world, searches, members):
        searches.run(roots, Wanted(levels=True))
        world.barrier()
        frees[0] = cuda_bits.RESERVE + 8
        with pytest.raises(OutOfMemory, match="values of betweenness need"):
            searches.dependencies(None)
        world.barrier()
        frees[0] = cuda_bits.RESERVE + 1000
        monkeypatch.setattr(
            domain_paths,
            "bytes_needed",
            lambda member, width, *_: 1000 if width == 8 or member.index else 1001,
        )
        world.barrier()
        sums = by_id(world, members, searches.dependencies(None))
        assert searches._paths.width == 8
        world.barrier()
        frees[0] = 1 << 40
        return sums

    for sums in searching(source, ((0,), (1,)), 4, ThreadExchange, short):
        np.testing.assert_allclose(sums, wanted, rtol=1e-12, atol=1e-12)


def test_more_paths_than_a_double_can_count(ranks):
    """347 layers of 8 vertices, each complete to the next, have 2^1041 of them."""
    width, layers = 8, 347
    layer = np.arange(layers)[:, None, None] * width
    u = (layer + np.arange(width)[:, None] + np.zeros(width, int)).ravel()
    v = (layer + width + np.zeros((width, 1), int) + np.arange(width)).ravel()
    source = Tuples(width * (layers + 1), u, v)

    def rank(world):
        session = session_of(ranks(world, "aa", (1, 1), ThreadExchange), source, 1, 4)
        on = PartsSearcher(session, RunOptions())
        with pytest.raises(UsageError, match=r"at most 1\.8e308 shortest paths"):
            betweenness.sums(on, np.array([0]))
        session.close()

    on_ranks(2, rank)
