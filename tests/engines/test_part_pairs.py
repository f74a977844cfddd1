"""Each engine beside the reference engine, level by level, on the same parts."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from directed_graphs import whole_search
from graphs import (
    NAMED,
    build,
    kronecker,
    random_tuples,
    some_roots,
    sources,
    uniform,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from variants import make_engine, on_a_device

from distbfs.engines.base import CHOSEN, INNER, OUTER, Work
from distbfs.engines.openmp import part as openmp_part
from distbfs.errors import UsageError
from distbfs.graph.csr import CSR
from distbfs.partition.layout import Placement
from distbfs.partition.part import mask_words
from distbfs.registry import ENGINES, lookup
from distbfs.types import SUBGRAPHS

PART_ENGINES = [name for name in ENGINES if not on_a_device(name)]
OTHERS = [name for name in PART_ENGINES if name != "reference"]
NAMES = (*CHOSEN, INNER, OUTER)
CHOICES = list(product(["push", "pull"], repeat=len(NAMES)))


class Pair:
    """One part in the hands of two engines."""

    def __init__(self, part, wanted, found, ranks=1):
        self.part = part
        placement = Placement(part.layout.parts, ranks)
        self.wanted = wanted.domain(part, placement)
        self.found = found.domain(part, placement)

    def both(self, name, *arguments, **options):
        return [
            getattr(s, name)(*arguments, **options) for s in (self.wanted, self.found)
        ]

    def start(self, root, *, counting):
        layout = self.part.layout
        here = layout.part_of(root) == self.part.index
        delegate = np.flatnonzero(self.part.delegates == root)
        self.both(
            "start",
            layout.local_of(root) if here and not len(delegate) else None,
            int(delegate[0]) if len(delegate) else None,
            counting=counting,
        )

    def work(self):
        """Return the counts of the first engine."""
        wanted, found = (Work._make(x.tolist()) for x in self.both("work"))
        assert found[:2] == wanted[:2]
        assert found.targets == wanted.targets
        assert (found.nn > 0) <= (wanted.nn > 0)
        return np.array(wanted)

    def advance(self, choice):
        """Run a level; returns (bins, mask) of the first engine."""
        given = []
        for search in (self.wanted, self.found):
            steps = search.advance(choice)
            bins = dict(next(steps).pieces())
            given.append((bins, next(steps).copy()))
            assert not list(steps)
            assert len(search.checks()) == len(search.visits)
        (wanted, mask), (found, same) = given
        np.testing.assert_array_equal(same, mask)
        if choice[OUTER] == "pull":
            assert not found
            return wanted, mask
        assert list(found) == list(wanted) == sorted(wanted)
        for part, one in found.items():
            assert one.dtype == np.uint64
            assert len(one)
            np.testing.assert_array_equal(np.sort(one), np.sort(wanted[part]))
        assert self.part.index not in found
        return wanted, mask

    def found_delegates(self):
        """The parents of delegates that each engine tells; both find the same."""
        wanted, found = self.both("delegate_parents")
        np.testing.assert_array_equal(found >= 0, wanted >= 0)
        return wanted, found

    def results(self):
        wanted, found = self.both("finish")
        np.testing.assert_array_equal(found[0], wanted[0])
        assert (found[0].dtype, wanted[0].dtype) == (np.int32, np.int32)
        return found[0], (wanted[1], found[1])


def carried(bins, ranks):
    """What each part receives, by source rank; bins: by destination, of each part."""
    received = []
    for k in range(len(bins)):
        sent = [(i % ranks, own[k].copy()) for i, own in enumerate(bins) if k in own]
        received.append(sorted(sent, key=lambda item: item[0]))
    return received


def lockstep(source, pairs, root, choose, ranks, *, counting=True):
    """Search with both engines; both must give the distances.

    ``choose`` draws the directions of a level; parts are placed on ``ranks`` ranks.
    """
    for pair in pairs:
        pair.start(root, counting=counting)
    words = mask_words(pairs[0].part.delegate_count)
    distances = source.distances(root)
    depth = 0
    while True:
        total = Work._make(sum(pair.work() for pair in pairs).tolist())
        at = distances == depth
        delegates = source.degrees[at] > pairs[0].part.threshold
        assert total.delegates == delegates.sum()
        assert total.normals == (at.sum() - delegates.sum())
        forward = total.nn + total.dd_forward + total.dn_forward + total.nd_forward
        assert forward == source.degrees[at].sum()
        if not total.normals + total.delegates:
            break
        choice = choose(depth)
        bins, masks = zip(*(pair.advance(choice) for pair in pairs), strict=True)
        mask = np.bitwise_or.reduce([*masks, np.zeros(words, np.uint64)])
        pushed = arrived = carried(bins, ranks)
        if choice[OUTER] == "pull":
            asked = [dict(pair.found.questions().pieces()) for pair in pairs]
            every = zip(pairs, carried(asked, ranks), strict=True)
            answered = [dict(pair.found.answers(some).pieces()) for pair, some in every]
            arrived = carried(answered, ranks)
        for pair, sent, came in zip(pairs, pushed, arrived, strict=True):
            pair.wanted.accept(mask, sent)
            pair.found.accept(mask, came)
        depth += 1
    parents = np.full((2, source.n), -1)
    largest = [
        np.maximum.reduce(every)
        for every in zip(*(pair.found_delegates() for pair in pairs), strict=True)
    ]
    for pair in pairs:
        pair.wanted.take_delegate_parents(largest[0])
        pair.found.take_delegate_parents(largest[1])
        ids = pair.part.layout.global_of(
            pair.part.index, np.arange(pair.part.local_count)
        )
        level, of_engines = pair.results()
        np.testing.assert_array_equal(level, distances[ids])
        parents[:, ids] = of_engines
    below = np.flatnonzero(distances > 0)
    for one in parents:
        assert one[root] == root
        assert (one[distances < 0] == -1).all()
        assert (distances[one[below]] == distances[below] - 1).all()
        assert source.has_edges(one[below], below).all()


def pairs_of(source, parts, threshold, other, ranks=1, **options):
    made, _ = build(source, parts, threshold=threshold)
    wanted, found = make_engine("reference", **options), make_engine(other, **options)
    return [Pair(part, wanted, found, ranks) for part in made]


def drawn(seed):
    """Directions, different at each level."""
    rng = np.random.default_rng(seed)

    def choose(_):
        return dict(zip(NAMES, CHOICES[rng.integers(len(CHOICES))], strict=True))

    return choose


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("name", [n for n in NAMED if n != "path"])
@pytest.mark.parametrize(
    ("parts", "threshold"), [(1, 2), (2, 2), (3, 0), (8, 4), (4, 99)]
)
def test_named_graphs(other, name, parts, threshold):
    source, ranks = NAMED[name], math.gcd(parts, 2)
    pairs = pairs_of(source, parts, threshold, other, ranks, threads=2)
    for root in (int(source.degrees.argmax()), source.n - 1, source.n // 2):
        lockstep(source, pairs, root, drawn(root), ranks)


@settings(max_examples=60, deadline=None)
@given(
    sources(),
    st.sampled_from([1, 2, 3, 8]),
    st.sampled_from([None, 0, 1, 2, 5, 10**9]),
    st.integers(0, 1 << 30),
    st.sampled_from(OTHERS),
)
def test_any_graph(source, parts, threshold, seed, other):
    pairs = pairs_of(source, parts, threshold, other, parts, threads=1)
    for root in {seed % source.n, source.n - 1}:
        lockstep(source, pairs, root, drawn(seed), parts)


GRAPH = kronecker(13)


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("direction", ["push", "pull"])
def test_every_direction_on_a_larger_graph(other, threads, direction):
    """Queues of edges that are long enough for several threads."""
    source = GRAPH
    pairs = pairs_of(source, 2, 8, other, 2, threads=threads)
    directions = dict.fromkeys(NAMES, direction)
    root = int(np.flatnonzero(source.degrees == 3)[0])
    lockstep(source, pairs, root, lambda _: directions, 2, counting=False)


@pytest.mark.thorough
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("direction", ["push", "pull"])
def test_bitmaps_that_threads_share(other, direction):
    """More than 65536 normal vertices and 4096 delegates."""
    source = uniform(120_000, 360_000)
    pairs = pairs_of(source, 1, 8, other, threads=3)
    assert pairs[0].part.active > 1 << 16
    assert pairs[0].part.delegate_count > 1 << 12
    directions = dict.fromkeys(NAMES, direction)
    lockstep(source, pairs, 7, lambda _: directions, 1, counting=False)


@pytest.mark.thorough
@pytest.mark.parametrize("other", OTHERS)
def test_searches_do_not_leak(other):
    source = random_tuples(80, 100, seed=2)
    pairs = pairs_of(source, 3, 3, other, 3, threads=2)
    for root in np.random.default_rng(0).permutation(80).tolist():
        lockstep(source, pairs, root, drawn(root), 3)


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("wide", SUBGRAPHS)
@pytest.mark.parametrize("parts", [1, 3])
def test_offsets_of_64_bits(other, wide, parts):
    """One subgraph with 2^32 edges or more is enough to make all offsets wide."""
    source, pairs = NAMED["kronecker"], []
    wanted, found = make_engine("reference"), make_engine(other, threads=2)
    for part in build(source, parts, threshold=8)[0]:
        graph = getattr(part, wide)
        graph = CSR(graph.offsets.astype(np.uint64), graph.columns)
        pairs.append(Pair(replace(part, **{wide: graph}), wanted, found, parts))
    for root in some_roots(source, 3):
        lockstep(source, pairs, root, drawn(root), parts)


@pytest.mark.thorough
@pytest.mark.parametrize("threshold", [0, 8, 10**9])
def test_ids_of_64_bits(monkeypatch, threshold):
    """As of graphs with 2^31 vertices or more."""
    monkeypatch.setattr(openmp_part, "vertex_type", lambda n: np.int64)
    source = NAMED["kronecker"]
    pairs = pairs_of(source, 3, threshold, "openmp", 3, threads=2)
    assert pairs[0].found.finish()[1].dtype == np.int64
    for root in some_roots(source, 3):
        lockstep(source, pairs, root, drawn(root), 3)


def test_parts_that_are_too_large(monkeypatch):
    """Numbers, and places of parents in messages, have 32 bits."""
    part = build(NAMED["kronecker"], 2, threshold=8)[0][0]
    engine = make_engine("openmp")
    with pytest.raises(UsageError, match="parts per rank are too many"):
        engine.domain(part, TooMany(2, 1))
    monkeypatch.setattr(openmp_part, "MOST", 32)
    with pytest.raises(UsageError, match=r"up to 2\^31 - 1 in a part; use more parts"):
        engine.domain(part, Placement(2, 1))


class TooMany(Placement):
    """More parts per rank than there are."""

    per_rank = 1 << 31


@pytest.mark.parametrize("name", PART_ENGINES)
def test_levels_only(name):
    part = build(NAMED["kronecker"], 2, threshold=8)[0][0]
    placement = Placement(part.layout.parts, 1)
    search = make_engine(name, parents=False).domain(part, placement)
    search.start(int(part.vertices[0]), None)
    level, parent = search.finish()
    assert parent is None
    assert (level >= 0).sum() == 1


@pytest.mark.parametrize("name", [name for name in ENGINES if on_a_device(name)])
def test_engines_of_whole_graphs_refuse_parts(name):
    engine = make_engine(name)
    if not engine.whole_graphs:
        pytest.skip("searches parts alone")
    for part in build(NAMED["kronecker"], 2, threshold=8)[0]:
        with pytest.raises(UsageError, match="one part without delegates"):
            whole_search(engine, part)


@pytest.mark.parametrize("name", ENGINES)
def test_engines_declare_what_they_do(name):
    kind = lookup(ENGINES, "engine", name)
    assert kind.whole_graphs == hasattr(kind, "on_graph" if kind.on_device else "whole")
    ways = hasattr(kind, "domain"), hasattr(kind, "of_shares")  # of one, or several
    assert sum(ways) == kind.domains
    assert kind.on_device == on_a_device(name)
    assert kind.whole_graphs or not kind.directed
    assert kind.devices == (8 if name == "xbfs" else 1)
