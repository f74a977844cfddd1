"""Each engine beside the reference engine, level by level, on the same parts."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
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

from distbfs.engines.base import Work
from distbfs.errors import UsageError
from distbfs.graph.csr import CSR
from distbfs.partition.layout import Placement
from distbfs.partition.part import mask_words
from distbfs.registry import ENGINES, lookup
from distbfs.types import SUBGRAPHS

PART_ENGINES = [name for name in ENGINES if not on_a_device(name)]
OTHERS = [name for name in PART_ENGINES if name != "reference"]
CHOICES = list(product(["push", "pull"], repeat=3))


class Offered:
    """What a domain offers in a level, each once."""

    def __init__(self):
        self.given = {}

    def normals(self, bins):
        assert "bins" not in self.given
        self.given["bins"] = dict(bins.pieces())

    def bits(self, mask):
        assert "mask" not in self.given
        self.given["mask"] = mask.copy()


class Pair:
    """One part in the hands of two engines."""

    def __init__(self, part, wanted, found):
        self.part = part
        self.wanted = wanted.domain(part, Placement(part.layout.parts, 1))
        self.found = found.domain(part, Placement(part.layout.parts, 1))
        self.active = np.arange(part.active)

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
        wanted, found = self.both("work")
        np.testing.assert_array_equal(found, wanted)
        return wanted.copy()

    def advance(self, choice, *, counting):
        """Run a level; returns (bins, mask) of the first engine."""
        checks, given = [], []
        for search in (self.wanted, self.found):
            offered = Offered()
            checks.append(list(search.advance(choice, offered)))
            given.append(offered.given)
        wanted, found = given
        assert list(found) == ["bins", "mask"], "normals first"
        if counting:
            self.compare(choice, *checks)
        np.testing.assert_array_equal(found["mask"], wanted["mask"])
        assert list(found["bins"]) == list(wanted["bins"]) == sorted(wanted["bins"])
        for part, one in found["bins"].items():
            assert one.dtype == np.uint32
            assert len(one)
            np.testing.assert_array_equal(np.sort(one), np.sort(wanted["bins"][part]))
        assert self.part.index not in found["bins"]
        return wanted["bins"], wanted["mask"]

    @staticmethod
    def compare(choice, wanted, found):
        """Compare checks; a pull may count less where vertices were found before."""
        for k, name in enumerate(SUBGRAPHS):
            if name in ("nd", "dn") and choice[name] == "pull":
                assert found[k] <= wanted[k]
            else:
                assert found[k] == wanted[k], name

    def accept(self, mask, arrived):
        self.both("accept", mask, arrived)
        np.testing.assert_array_equal(*self.both("level_of", self.active))

    def complete(self):
        """Compare what is left to ask for, and what each part tells of delegates."""
        for one, other in zip(*self.both("unresolved"), strict=True):
            assert one.dtype == other.dtype
        (wanted, ranks), (found, found_ranks) = self.both("unresolved")
        order, found_order = np.argsort(wanted), np.argsort(found)
        np.testing.assert_array_equal(found[found_order], wanted[order])
        np.testing.assert_array_equal(found_ranks[found_order], ranks[order])
        np.testing.assert_array_equal(*self.both("parents_wanted"))
        every = np.arange(self.part.delegate_count)
        wanted, found = self.both("parents_of", every)
        np.testing.assert_array_equal(found >= 0, wanted >= 0)

    def levels(self):
        wanted, found = self.both("finish")
        np.testing.assert_array_equal(found[0], wanted[0])
        assert (found[0].dtype, wanted[0].dtype) == (np.int32, np.int32)
        if wanted[1] is not None:
            np.testing.assert_array_equal(found[1] >= 0, wanted[1] >= 0)
        return found[0]


def lockstep(source, pairs, root, choose, ranks, *, counting=True):
    """Search with both engines; both must give the distances.

    ``choose`` draws the directions of a level; parts are placed on ``ranks`` ranks.
    """
    for pair in pairs:
        pair.start(root, counting=counting)
    words = mask_words(pairs[0].part.delegate_count)
    wanted = source.distances(root)
    depth = 0
    while True:
        total = Work._make(sum(pair.work() for pair in pairs).tolist())
        at = wanted == depth
        delegates = source.degrees[at] > pairs[0].part.threshold
        assert total.delegates == delegates.sum()
        assert total.normals == (at.sum() - delegates.sum())
        forward = total.nn + total.dd_forward + total.dn_forward + total.nd_forward
        assert forward == source.degrees[at].sum()
        if not total.normals + total.delegates:
            break
        choice = choose(depth)
        bins, masks = zip(
            *(pair.advance(choice, counting=counting) for pair in pairs), strict=True
        )
        mask = np.bitwise_or.reduce([*masks, np.zeros(words, np.uint64)])
        for k, pair in enumerate(pairs):
            sent = [(i % ranks, own[k]) for i, own in enumerate(bins) if k in own]
            pair.accept(mask, sorted(sent, key=lambda item: item[0]))
        depth += 1
    level = np.full(source.n, -1, dtype=np.int32)
    for pair in pairs:
        ids = pair.part.layout.global_of(
            pair.part.index, np.arange(pair.part.local_count)
        )
        pair.complete()
        level[ids] = pair.levels()
    np.testing.assert_array_equal(level, wanted)


def pairs_of(source, parts, threshold, other, **options):
    made, _ = build(source, parts, threshold=threshold)
    wanted, found = make_engine("reference", **options), make_engine(other, **options)
    return [Pair(part, wanted, found) for part in made]


def drawn(seed):
    """Directions, different at each level."""
    rng = np.random.default_rng(seed)

    def choose(_):
        return dict(zip(("dd", "dn", "nd"), CHOICES[rng.integers(8)], strict=True))

    return choose


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("name", [n for n in NAMED if n != "path"])
@pytest.mark.parametrize(
    ("parts", "threshold"), [(1, 2), (2, 2), (3, 0), (8, 4), (4, 99)]
)
def test_named_graphs(other, name, parts, threshold):
    source = NAMED[name]
    pairs = pairs_of(source, parts, threshold, other, threads=2)
    for root in (int(source.degrees.argmax()), source.n - 1, source.n // 2):
        lockstep(source, pairs, root, drawn(root), min(parts, 2))


@settings(max_examples=60, deadline=None)
@given(
    sources(),
    st.sampled_from([1, 2, 3, 8]),
    st.sampled_from([None, 0, 1, 2, 5, 10**9]),
    st.integers(0, 1 << 30),
    st.sampled_from(OTHERS),
)
def test_any_graph(source, parts, threshold, seed, other):
    pairs = pairs_of(source, parts, threshold, other, threads=1)
    for root in {seed % source.n, source.n - 1}:
        lockstep(source, pairs, root, drawn(seed), parts)


GRAPH = kronecker(13)


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("fixed", CHOICES, ids="-".join)
def test_every_direction_on_a_larger_graph(other, threads, fixed):
    """Queues of edges that are long enough for several threads."""
    source = GRAPH
    pairs = pairs_of(source, 2, 8, other, threads=threads)
    directions = dict(zip(("dd", "dn", "nd"), fixed, strict=True))
    root = int(np.flatnonzero(source.degrees == 3)[0])
    lockstep(source, pairs, root, lambda _: directions, 2, counting=False)


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("direction", ["push", "pull"])
def test_bitmaps_that_threads_share(other, direction):
    """More than 65536 normal vertices and 4096 delegates."""
    source = uniform(120_000, 360_000)
    pairs = pairs_of(source, 1, 8, other, threads=3)
    assert pairs[0].part.active > 1 << 16
    assert pairs[0].part.delegate_count > 1 << 12
    directions = dict.fromkeys(("dd", "dn", "nd"), direction)
    lockstep(source, pairs, 7, lambda _: directions, 1, counting=False)


@pytest.mark.parametrize("other", OTHERS)
def test_searches_do_not_leak(other):
    source = random_tuples(80, 100, seed=2)
    pairs = pairs_of(source, 3, 3, other, threads=2)
    for root in np.random.default_rng(0).permutation(80).tolist():
        lockstep(source, pairs, root, drawn(root), 3)


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("wide", SUBGRAPHS)
@pytest.mark.parametrize("parts", [1, 3])
def test_offsets_of_64_bits(other, wide, parts):
    """One subgraph with 2^32 edges or more is enough to make all offsets wide."""
    source = NAMED["kronecker"]
    wanted, found = make_engine("reference"), make_engine(other, threads=2)
    pairs = []
    for part in build(source, parts, threshold=8)[0]:
        graph = getattr(part, wide)
        graph = CSR(graph.offsets.astype(np.uint64), graph.columns)
        pairs.append(Pair(replace(part, **{wide: graph}), wanted, found))
    for root in some_roots(source, 3):
        lockstep(source, pairs, root, drawn(root), parts)


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
    if not engine.alone:
        pytest.skip("searches parts alone")
    for part in build(NAMED["kronecker"], 2, threshold=8)[0]:
        with pytest.raises(UsageError, match="one part without delegates"):
            engine.whole(part)


@pytest.mark.parametrize("name", ENGINES)
def test_engines_declare_what_they_do(name):
    kind = lookup(ENGINES, "engine", name)
    assert kind.alone == hasattr(kind, "whole")
    ways = hasattr(kind, "domain"), hasattr(kind, "of_shares")  # of one, or several
    assert sum(ways) == kind.domains
    assert kind.on_device == on_a_device(name)
    assert kind.alone or not kind.directed
    assert kind.devices == (8 if name == "xbfs" else 1)
