"""Bit-parallel searches between domains, whose devices are the CPU, against SciPy."""

from functools import cache, partial
from types import SimpleNamespace

import numpy as np
import pytest
from covering import covered
from device_parts import LARGE
from fast_graphs import path, shuffled
from graphs import NAMED, Tuples, uniform
from hypothesis import given
from hypothesis import strategies as st
from outer_searches import (
    ANY_DOMAINS,
    FORMS,
    PLACEMENTS,
    by_id,
    few_examples,
    searching,
    session_of,
)
from part_graphs import GRAPHS as SHAPES
from test_between_kernels import StreamedThreads
from wholes import check_applications
from worlds import ThreadExchange, on_ranks

from distbfs.device import cuda
from distbfs.errors import OutOfMemory, SearchStopped
from distbfs.multisearch import cuda_bits, domain_share, outer_bits
from distbfs.multisearch.apps.closeness import SAMPLED
from distbfs.multisearch.base import RunOptions
from distbfs.multisearch.domain_bits import DomainBitSearches
from distbfs.multisearch.part_loop import Wanted
from distbfs.multisearch.problem import Problem, State
from distbfs.multisearch.searchers import PartsSearcher
from distbfs.search import choose as choosing

SUMS = ("reached_from", "distance_from", "harmonic_from")
ALWAYS_PULL, NEVER_PULL = 1, 1 << 62
GRAPHS = {
    **{name: SHAPES[name] for name in ("kronecker", "hub", "path", "grid", "random")},
    **{name: NAMED[name] for name in ("two-hubs", "isolated", "one-vertex")},
}
pytestmark = pytest.mark.usefixtures("peers")


@cache
def levels_of(source):
    return source.levels_from(range(source.n))


def found_by(roots, n, before=None, **options):
    """Return a function for ``searching`` of levels [k, n], counts and sums.

    before: the last level of the run before
    """

    def work(world, searches, members):
        searches.run(roots[::-1], Wanted(levels=True, limit=before))
        searches.run(roots, Wanted(levels=True, sums=SUMS, **options))

        whole = partial(by_id, world, members)
        levels = [whole(searches.levels(k)) for k in range(len(roots))]
        sums = {name: whole(searches.sums(name)) for name in SUMS}
        return np.array(levels).reshape(-1, n), searches.counts(), sums

    return work


def check(results, level):
    """Compare what one rank has with levels of SciPy, [k, n]."""
    levels, counts, sums = results
    np.testing.assert_array_equal(levels, level)
    deepest = level.max(initial=0)
    wanted = [(level == depth).sum(axis=1) for depth in range(deepest + 1)]
    np.testing.assert_array_equal(counts, np.array(wanted).T)
    reached = level >= 0
    np.testing.assert_array_equal(sums["reached_from"], reached.sum(axis=0))
    distances = np.where(reached, level, 0).sum(axis=0)
    np.testing.assert_array_equal(sums["distance_from"], distances)
    near = np.divide(1, level, out=np.zeros(level.shape), where=level > 0).sum(axis=0)
    np.testing.assert_allclose(sums["harmonic_from"], near, rtol=1e-12)


# graphs in turns; each is in domains of several kinds
KINDS = covered(
    *(list(PLACEMENTS), [0, 4, 20, LARGE], [None, ALWAYS_PULL, NEVER_PULL, 200]),
    [ThreadExchange, StreamedThreads],
)
NAMES = [name for name in GRAPHS if name != "random"]


@pytest.mark.parametrize(
    ("name", "owners", "threshold", "pull_edges", "kind"),
    [(NAMES[k % len(NAMES)], *kinds) for k, kinds in enumerate(KINDS)],
)
def test_domains_of_all_kinds(name, owners, threshold, pull_edges, kind):
    """Some sources twice; a run that ends early leaves nothing to the next."""
    source = GRAPHS[name]
    roots = np.random.default_rng(1).integers(0, source.n, 65)
    for results in searching(
        *(source, PLACEMENTS[owners], threshold, kind),
        found_by(roots, source.n, before=2),
        pull_edges=pull_edges,
    ):
        check(results, levels_of(source)[roots])


@pytest.mark.thorough
@pytest.mark.parametrize(("count", "lanes"), [(1, 1), (64, 2), (200, 2), (512, 4)])
@pytest.mark.parametrize("owners", ["two of one rank", "two and one"])
def test_words_of_every_width(owners, count, lanes):
    source = GRAPHS["random"]
    roots = np.random.default_rng(2).integers(0, source.n, count)
    work = found_by(roots, source.n)
    for pull_edges in (ALWAYS_PULL, NEVER_PULL):
        owned, ways = PLACEMENTS[owners], {"lanes": lanes, "pull_edges": pull_edges}
        for results in searching(source, owned, 3, ThreadExchange, work, **ways):
            check(results, levels_of(source)[roots])


@pytest.mark.thorough
@pytest.mark.parametrize("pull_edges", [ALWAYS_PULL, NEVER_PULL])
@pytest.mark.parametrize("owners", ["two ranks", "two and one"])
@pytest.mark.parametrize("threshold", [6, 11, LARGE])
def test_delegates_in_many_granules(owners, pull_edges, threshold, monkeypatch):
    """Which lanes take in turns; rows for all warps and for one, inside and outside."""
    monkeypatch.setattr(domain_share, "HUB_DEGREE", 12)
    monkeypatch.setattr(domain_share, "WIDE_DEGREE", 5)
    source = uniform(3700, 18_500, hub=700)
    roots = np.random.default_rng(3).integers(0, source.n, 9)
    wanted = source.levels_from(roots)
    for results in searching(
        *(source, PLACEMENTS[owners], threshold, StreamedThreads),
        found_by(roots, source.n),
        pull_edges=pull_edges,
    ):
        check(results, wanted)


@pytest.mark.parametrize("limit", [0, 1, 4])
def test_a_last_level(limit):
    source, roots = GRAPHS["random"], np.arange(60)
    level = levels_of(source)[roots]
    level[level > limit] = -1
    work = found_by(roots, source.n, limit=limit)
    for results in searching(source, ((0,), (1,)), 4, ThreadExchange, work):
        check(results, level)


@pytest.mark.thorough
@pytest.mark.parametrize("threshold", [1, LARGE])
def test_levels_beyond_a_byte(threshold):
    """Planes and counts grow while levels are searched."""
    source = shuffled(path(270))
    end = int(np.flatnonzero(source.degrees == 1)[0])
    roots = np.array([5, end, 200])
    work = found_by(roots, source.n)
    wanted = source.levels_from(roots)
    for results in searching(source, ((0,), (1,)), threshold, StreamedThreads, work):
        check(results, wanted)


def test_a_rank_that_stops_stops_all():
    def work(world, searches, members):
        asked = []
        stop = lambda: world.rank == 1 and (asked.append(1) or len(asked) > 5)  # noqa: E731
        with pytest.raises(SearchStopped, match="stopped at level 5"):
            searches.run(np.arange(9), Wanted(stop=stop))
        searches.run(np.arange(9), Wanted())
        return searches.counts().sum()

    source = Tuples(90, range(89), range(1, 90))
    for owners in (((0,), (1,)), ((0, 1), (2,))):
        for total in searching(source, owners, 3, ThreadExchange, work):
            assert total == 9 * 90


def test_no_bit_goes_to_a_target_twice():
    """Every word that is sent has bits which its target was not sent before."""
    source, sent = uniform(300, 2000), {}
    take = outer_bits.Outside.take

    def watched(self, items, *, delegates):
        assert not delegates
        depth = self._params.depth
        for where, *words in items.reshape(-1, self.item).tolist():
            key = id(self), where
            bits = sum(word << 64 * k for k, word in enumerate(words))
            assert bits
            for other, before in sent.get(key, []):
                assert other != depth or before != bits
            sent.setdefault(key, []).append((depth, bits))
        take(self, items, delegates=delegates)

    def work(world, searches, members):
        searches.run(np.arange(128), Wanted())
        return searches.counts().sum()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outer_bits.Outside, "take", watched)
        totals = searching(source, ((0,), (1,)), LARGE, ThreadExchange, work)
    reached = (levels_of(source)[:128] >= 0).sum()
    assert set(totals) == {reached}
    for messages in sent.values():
        union = 0
        for _, bits in messages:  # from the one other part
            assert not union & bits
            union |= bits


@few_examples
@given(pull=st.sampled_from([None, 1, 30, NEVER_PULL]), **ANY_DOMAINS)
def test_any_graph(source, owners, threshold, pull, kind):
    work = found_by(np.arange(source.n), source.n)
    for results in searching(
        source, owners, threshold, kind, work, pull_edges=pull, lanes=1
    ):
        check(results, source.levels_from(range(source.n)))


SMALL = ("isolated", "one-vertex", "two-components")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("form", "name", "kind", "threshold"),
    [
        (form, SMALL[(k + turn) % 3], kind, (2, LARGE)[(k // 2 + turn) % 2])
        for k, form in enumerate(form for form in FORMS if form != "four ranks")
        for turn, kind in enumerate((ThreadExchange, StreamedThreads))
    ],
)
def test_applications(ranks, monkeypatch, form, name, kind, threshold):
    """On domains of every size; traversals are few, as none takes turns."""
    monkeypatch.setattr("distbfs.multisearch.searchers.ROWS_BYTES", 4096)
    names, counts, domain = FORMS[form]
    source = NAMED[name]

    def rank(world):
        world = ranks(world, names, counts, kind)
        session = session_of(world, source, domain, threshold)
        searcher = PartsSearcher(session, RunOptions())
        session.search = None  # which is not called
        assert searcher.smallest == 512
        check_applications(searcher, source, (None, 2))
        session.close()

    if len(names) == 1:
        monkeypatch.setattr(choosing, "take_devices", lambda *_, **__: [0] * counts[0])
    on_ranks(len(names), rank)


@pytest.mark.thorough
@pytest.mark.parametrize("batch", [0, 40, 129, 600])
def test_batches_of_any_size(ranks, monkeypatch, batch):
    """Fewer traversals than sources."""
    source, run, traversals = GRAPHS["random"], DomainBitSearches.run, []

    def counted(searches, some, wanted):
        traversals.append((searches.lanes, len(some)))
        return run(searches, some, wanted)

    monkeypatch.setattr(DomainBitSearches, "run", counted)
    states = (State("level", "int8", "pair", -1), State("reachable", "bool", "pair"))
    problem = Problem("both", states, bits=True)
    roots = np.random.default_rng(5).integers(0, source.n, 300)
    level = levels_of(source)[roots]
    reached = level >= 0

    def rank(world):
        session = session_of(ranks(world, "aa", (1, 1), ThreadExchange), source, 1, 4)
        on = PartsSearcher(session, RunOptions(batch=batch))
        assert on.smallest == min(batch or 512, 512)
        results = on.run(SAMPLED, roots), on.run(problem, roots)
        session.close()
        return results

    for number, (sums, pairs) in enumerate(on_ranks(2, rank)):
        np.testing.assert_array_equal(sums["reached"], reached.sum(axis=1))
        np.testing.assert_array_equal(sums["depth"], level.max(axis=1))
        np.testing.assert_array_equal(sums["reached_from"], reached.sum(axis=0))
        if number:
            assert len(pairs["level"]) == len(pairs["reachable"]) == 0
            continue
        np.testing.assert_array_equal(pairs["level"], level)
        np.testing.assert_array_equal(pairs["reachable"], reached)
    lanes = {0: 4, 40: 1, 129: 2, 600: 4}[batch]
    size = min(batch or 300, 300)
    assert {x for x, _ in traversals} == {lanes}
    assert len(traversals) == 2 * 2 * -(-300 // size)


def test_narrower_words_where_memory_is_short(ranks, monkeypatch):
    """At first, and when one of the ranks finds no room for levels; on all ranks."""
    source, make_room = GRAPHS["random"], domain_share.BitShare.make_room
    roots, tried = np.arange(source.n).repeat(4), []
    level = levels_of(source)[roots]
    problem = Problem("levels", (State("level", "int8", "pair", -1),), bits=True)

    def some_room(share, depth):
        tried.append(share.lanes)
        if share.lanes > 1 and share.part == 1:
            raise OutOfMemory("no room for levels")
        make_room(share, depth)

    def rank(world):
        session = session_of(ranks(world, "aa", (1, 1), ThreadExchange), source, 1, 4)
        on = PartsSearcher(session, RunOptions())
        world.barrier()
        frees[0] = frees[1]
        found = on.run(problem, roots)["level"]
        session.close()
        return found

    frees = [0, 0]  # bytes while a graph is loaded, and then
    monkeypatch.setattr(cuda, "free_bytes", lambda: frees[0])
    monkeypatch.setattr(domain_share.BitShare, "make_room", some_room)
    for free, most in ((1 << 40, 4), (cuda_bits.RESERVE + 150_000, 2)):
        tried.clear()
        frees[:] = 1 << 40, free
        found, none = on_ranks(2, rank)
        np.testing.assert_array_equal(found, level)
        assert not len(none)
        assert max(tried) == most
        assert set(tried) >= {1, 2}
    frees[:] = 1 << 40, cuda_bits.RESERVE + 100
    for said in on_ranks(2, lambda world: refusal(rank, world, OutOfMemory)):
        assert "rank 0: bit-parallel searches need" in said


def refusal(work, world, kind):
    """Return what a rank says."""
    with pytest.raises(kind) as caught:
        work(world)
    return str(caught.value)


def test_dependencies_need_all_columns_on_all_devices(ranks):
    """All ranks learn it where one device has columns in host memory."""

    def rank(world):
        source = NAMED["two-hubs"]
        session = session_of(ranks(world, "aa", (1, 1), ThreadExchange), source, 1, 4)
        searcher = PartsSearcher(session, RunOptions())
        share = session.separated.shares[0]
        if world.rank:
            object.__setattr__(share.out, "tails", SimpleNamespace())
        options = RunOptions()
        on = searcher._searches
        searched = []
        session.search = lambda root, **_: searched.append(root) or exit
        with pytest.raises(AttributeError, match="shards"):
            on.dependencies_of_first(np.arange(3), options)
        assert searched == [0], "each source is searched from"
        object.__setattr__(share.out, "tails", None)
        assert on.dependencies_of_first(np.arange(3), options)[1] == 3
        session.close()

    on_ranks(2, rank)
