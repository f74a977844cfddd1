"""Bit-parallel searches over several devices, which are the CPU, against SciPy."""

import numpy as np
import pytest
from device_graphs import HostGraph, hubs
from drawn_examples import examples
from fast_graphs import path, shuffled
from graphs import NAMED, NO_VERTEX, Tuples, random_tuples, sources, uniform
from hypothesis import given
from hypothesis import strategies as st
from resident_parts import device_searches, resident_parts
from thread_peers import ThreadPeers
from worlds import on_ranks

from distbfs.device import cuda
from distbfs.errors import ResourceError, SearchStopped, UsageError
from distbfs.multisearch import (
    cuda_bits,
    domain_bits,
    domain_share,
)
from distbfs.multisearch.cuda_bits import lanes_that_fit
from distbfs.multisearch.part_loop import Wanted
from distbfs.ranks.world import SoloWorld
from distbfs.search import domain_group

EACH = [0, 1, 2, 3]  # devices of a domain; 0: one that holds a whole graph
ALWAYS_PULL, NEVER_PULL = 1, 1 << 62
GRAPHS = {
    **NAMED,
    "hubs": hubs(3, 700),
    "random": random_tuples(600, 1500, 11),
    "granules": uniform(3000, 12_000, hub=900),
    "path": shuffled(path(40)),
}


def members(made):
    return [*made]


def searches_of(source, parts, *, wide=False, **options):
    if not parts:
        member = HostGraph(source, wide).graph
        return device_searches(SoloWorld(), [member], **options)
    made, _ = resident_parts(source, parts)
    for part in made[: 1 if wide else 0]:
        object.__setattr__(part.out, "offsets", part.out.offsets.astype(np.uint64))
    return device_searches(SoloWorld(), members(made), **options)


def check(searches, source, roots, stop=None):
    """Search; all levels, asked for in any order, are those of SciPy."""
    roots = np.asarray(roots, dtype=np.int64)
    searches.run(roots, Wanted(levels=True, stop=stop))
    rng = np.random.default_rng(len(roots))
    rows, targets = np.divmod(np.arange(len(roots) * source.n), source.n)
    order = rng.permutation(len(rows))
    found = searches.levels_at(rows[order], targets[order])
    assert found.dtype == np.int32
    wanted = np.concatenate([source.distances(int(r)) for r in roots])
    np.testing.assert_array_equal(found, wanted[order])


def some_sources(source, count):
    rng = np.random.default_rng(3)
    ends = [source.degrees.argmax(), source.degrees.argmin()]
    return np.concatenate([ends, rng.integers(0, source.n, count)])


PULLS = [None, ALWAYS_PULL, 300, NEVER_PULL]


@pytest.mark.full_blocks(parts=3, pull_edges=300)
@pytest.mark.parametrize("pull_edges", PULLS)
@pytest.mark.parametrize("parts", EACH)
def test_levels(device, parts, pull_edges):
    """The next batch right after one, of another size, with repeats.

    A third of the graphs each: all of them on each number of parts, and in each way.
    """
    turn = (parts + PULLS.index(pull_edges)) % 3
    for k, (name, source) in [*enumerate(GRAPHS.items())][turn::3]:
        searches = searches_of(source, parts, wide=k % 2 == 0, pull_edges=pull_edges)
        many = 126 if name in ("hubs", "path") else 20
        for count in (3, many):
            check(searches, source, some_sources(source, count))
        searches.close()


@pytest.mark.parametrize("at_once", [7, 64, 1000])
def test_levels_are_read_some_ids_at_a_time(device, monkeypatch, at_once):
    monkeypatch.setattr(domain_share, "IDS_AT_ONCE", at_once)
    source, parts = GRAPHS["random"], 2
    searches = searches_of(source, parts)
    roots = some_sources(source, 38)
    searches.run(roots, Wanted(levels=True))
    for search in (0, 31, 32, 39):
        levels, wanted = searches.levels(search), source.distances(int(roots[search]))
        for part, values in enumerate(levels):
            np.testing.assert_array_equal(values, wanted[part::parts])


@pytest.mark.parametrize("pull_edges", [ALWAYS_PULL, NEVER_PULL])
@pytest.mark.parametrize("parts", EACH)
def test_hubs_and_wide_rows(device, monkeypatch, parts, pull_edges):
    """Rows for all warps and for one, on every device."""
    monkeypatch.setattr(domain_share, "HUB_DEGREE", 12)
    monkeypatch.setattr(domain_share, "WIDE_DEGREE", 8)
    source = GRAPHS["granules"]
    searches = searches_of(source, parts, pull_edges=pull_edges)
    for share in searches._shares:
        assert 0 < share.params.hubs < share.params.wide < share.member.active
    check(searches, source, some_sources(source, 9))


def test_levels_beyond_a_byte_and_again(device):
    """Planes grow; the second batch finds them there."""
    source = shuffled(path(270))
    searches = searches_of(source, 2)
    end = int(np.flatnonzero(source.degrees == 1)[0])
    for roots in ([5, end, 200], [end, 0], [77]):
        check(searches, source, roots)


def test_a_small_frontier_is_pushed_and_a_large_one_pulled(device, monkeypatch):
    steps = []

    class BitShare(domain_bits.BitShare):
        def step(self, name, depth):
            steps.append((name, depth))
            super().step(name, depth)

    monkeypatch.setattr(domain_bits, "BitShare", BitShare)
    source = GRAPHS["random"]
    root = int(source.degrees.argmax())
    searches = searches_of(source, 2, pull_edges=300)
    levels = source.distances(root)
    edges = [source.degrees[levels == k].sum() for k in range(levels.max() + 1)]
    check(searches, source, [root])
    for way, pulled in (("pull", True), ("push", False)):
        wanted = [k + 1 for k, count in enumerate(edges) if (count >= 300) == pulled]
        assert wanted
        assert [depth for name, depth in steps if name == f"{way}_level"] == np.repeat(
            wanted, 2
        ).tolist()


def test_sources_without_edges_and_none(device):
    source = Tuples(9, [0, 1, 3, 7, 7], [1, 2, 3, 7, 5])  # loops at 3 and 7
    for parts in EACH:
        searches = searches_of(source, parts)
        check(searches, source, [3, 8, 0, 7])
        check(searches, source, [8])
        searches.run(np.zeros(0, np.int64), Wanted(levels=True))
        none = np.zeros(0, np.int64)
        assert not len(searches.levels_at(none, none))
        searches = searches_of(NAMED["no-edges"], parts)
        check(searches, NAMED["no-edges"], [0, 1])
    searches_of(NO_VERTEX, 2).run(none, Wanted())


def test_a_stop_between_levels(device):
    source = shuffled(path(60))
    searches = searches_of(source, 2, pull_edges=NEVER_PULL)
    root, asked = 11, iter([False, False, True])
    with pytest.raises(SearchStopped, match="stopped at level 2"):
        searches.run(np.array([root]), Wanted(stop=lambda: next(asked)))
    check(searches, source, [3, root], stop=lambda: False)


def test_refusals(device, monkeypatch):
    searches = searches_of(GRAPHS["random"], 2)
    with pytest.raises(UsageError, match="600 is not a vertex; allowed: 0 to 599"):
        searches.run(np.array([3, 600]), Wanted())
    with pytest.raises(UsageError, match="129 searches at once; allowed: 128"):
        searches.run(np.zeros(129, np.int64), Wanted())
    searches.run(np.array([3]), Wanted(levels=True))
    with pytest.raises(UsageError, match="-1 is not a vertex"):
        searches.levels_at(np.array([0]), np.array([-1]))
    made, _ = resident_parts(GRAPHS["random"], 2)
    monkeypatch.setattr(cuda, "free_bytes", lambda: cuda_bits.RESERVE + 1000)
    with pytest.raises(ResourceError, match="bit-parallel searches need"):
        lanes_that_fit(SoloWorld(), members(made), levels=True)


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks(device, monkeypatch, ranks):
    """Each with its devices; all of them get the same levels, and stop together."""
    source = GRAPHS["granules"]
    roots = some_sources(source, 9)

    def rank(world):
        made, _ = resident_parts(source, world.size, world)
        searches = device_searches(world, members(made))
        with pytest.raises(SearchStopped):
            searches.run(roots, Wanted(stop=lambda: world.rank == 1))
        check(searches, source, roots)
        searches.close()
        return True

    monkeypatch.setattr(domain_group, "PeerGroup", ThreadPeers)
    assert on_ranks(ranks, rank) == [True] * ranks


def test_one_rank_without_memory(device, monkeypatch):
    """All of them hear of it."""
    source, short = GRAPHS["random"], []

    class BitShare(domain_bits.BitShare):
        def make_room(self, depth):
            if short and self.part == 1:
                raise ResourceError("no room for levels")
            super().make_room(depth)

    def rank(world):
        made, _ = resident_parts(source, 2, world)
        searches = device_searches(world, members(made))
        short.append(world.rank)
        with pytest.raises(ResourceError, match="rank 1: no room for levels"):
            searches.run(np.array([3]), Wanted(levels=True))

    monkeypatch.setattr(domain_group, "PeerGroup", ThreadPeers)
    monkeypatch.setattr(domain_bits, "BitShare", BitShare)
    on_ranks(2, rank)


@examples(25)
@given(
    source=sources(),
    parts=st.integers(0, 4),
    pull=st.sampled_from([None, 1, 30, NEVER_PULL]),
)
def test_any_graph(device, source, parts, pull):
    check(searches_of(source, parts, pull_edges=pull), source, np.arange(source.n))
