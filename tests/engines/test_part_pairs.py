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
from distbfs.registry import ENGINES
from distbfs.types import SUBGRAPHS

PART_ENGINES = [name for name in ENGINES if not on_a_device(name)]
OTHERS = [name for name in PART_ENGINES if name != "reference"]
CHOICES = list(product(["push", "pull"], repeat=3))
VISITS = ["nn", "nd", "dd", "dn"]
TARGETS = {"nn": "n", "dn": "n", "nd": "d", "dd": "d"}


class Pair:
    """One part in the hands of two engines."""

    def __init__(self, part, wanted, found):
        self.part = part
        self.wanted = wanted.attach(part, Placement(part.layout.parts, 1))
        self.found = found.attach(part, Placement(part.layout.parts, 1))
        self.active = np.arange(part.active)

    def both(self, name, *arguments):
        return [getattr(s, name)(*arguments) for s in (self.wanted, self.found)]

    def start(self, root):
        number = np.flatnonzero(self.part.ids() == root)
        delegate = np.flatnonzero(self.part.delegates == root)
        normal = len(number) and not len(delegate)
        self.both(
            "start",
            int(number[0]) if normal else None,
            int(delegate[0]) if len(delegate) else None,
        )

    def previsit(self):
        wanted, found = self.both("previsit")
        assert found == wanted
        return wanted

    def visit(self, name, direction, first):
        """Run one visit; a pull may count less where vertices were found before."""
        before = self.discovered(name)
        arguments = () if name == "nn" else (direction,)
        wanted, found = self.both(f"visit_{name}", *arguments)
        if direction == "push" or first:
            assert found == wanted, name
        else:
            assert found <= wanted
        if name in ("nd", "dd") and direction == "pull":
            assert found >= self.discovered(name) - before
        np.testing.assert_array_equal(*self.both("new_mask"))

    def discovered(self, name):
        if name not in ("nd", "dd"):
            return 0
        return int(np.bitwise_count(self.found.new_mask()).sum())

    def bins(self):
        wanted, found = self.both("bins")
        assert len(found) == len(wanted) == self.part.layout.parts
        for one, other in zip(found, wanted, strict=True):
            assert one.dtype == np.uint32
            np.testing.assert_array_equal(np.sort(one), np.sort(other))
        assert len(found[self.part.index]) == 0
        return wanted

    def end(self, mask, arrived):
        for rank, numbers in arrived:
            self.both("take_normals", rank, numbers)
        self.both("take_mask", mask)
        self.both("end_level")
        np.testing.assert_array_equal(*self.both("level_of", self.active))

    def finish(self):
        """Compare what is left to ask for, and what each part tells of delegates."""
        self.both("adopt_delegates")
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
        wanted, found = self.both("result")
        np.testing.assert_array_equal(found[0], wanted[0])
        assert (found[0].dtype, wanted[0].dtype) == (np.int32, np.int32)
        if wanted[1] is not None:
            np.testing.assert_array_equal(found[1] >= 0, wanted[1] >= 0)
        return found[0]


def lockstep(source, pairs, root, choose, ranks):
    """Search with both engines; both must give the distances.

    ``choose`` draws the directions and the order of the visits of a level; parts are
    placed on ``ranks`` ranks.
    """
    for pair in pairs:
        pair.start(root)
    words = mask_words(pairs[0].part.delegate_count)
    wanted = source.distances(root)
    depth = 0
    while True:
        work = [pair.previsit() for pair in pairs]
        total = Work.from_array(sum(w.to_array() for w in work))
        at = wanted == depth
        delegates = source.degrees[at] > pairs[0].part.threshold
        assert total.delegates == delegates.sum()
        assert total.normals == (at.sum() - delegates.sum())
        assert total.nn + total.dd[0] + total.dn[0] + total.nd[0] == (
            source.degrees[at].sum()
        )
        if not total.normals + total.delegates:
            break
        directions, order = choose(depth)
        for pair in pairs:
            touched = set()
            for name in order:
                first = TARGETS[name] not in touched
                pair.visit(name, {"nn": "push", **directions}[name], first)
                touched.add(TARGETS[name])
        bins = [pair.bins() for pair in pairs]
        masks = [pair.found.new_mask() for pair in pairs]
        mask = np.bitwise_or.reduce([*masks, np.zeros(words, np.uint64)])
        for k, pair in enumerate(pairs):
            sent = [(i % ranks, own[k]) for i, own in enumerate(bins) if len(own[k])]
            pair.end(mask, sorted(sent, key=lambda item: item[0]))
        depth += 1
    level = np.full(source.n, -1, dtype=np.int32)
    for pair in pairs:
        ids = pair.part.layout.global_of(
            pair.part.index, np.arange(pair.part.local_count)
        )
        pair.finish()
        level[ids] = pair.levels()
    np.testing.assert_array_equal(level, wanted)


def pairs_of(source, parts, threshold, other, **options):
    made, _ = build(source, parts, threshold=threshold)
    wanted, found = make_engine("reference", **options), make_engine(other, **options)
    return [Pair(part, wanted, found) for part in made]


def drawn(seed):
    """Directions and orders of visits, different at each level."""
    rng = np.random.default_rng(seed)

    def choose(_):
        names = dict(zip(("dd", "dn", "nd"), CHOICES[rng.integers(8)], strict=True))
        return names, [VISITS[k] for k in rng.permutation(4)]

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
    order = [VISITS[k] for k in np.random.default_rng(threads).permutation(4)]
    root = int(np.flatnonzero(source.degrees == 3)[0])
    lockstep(source, pairs, root, lambda _: (directions, order), 2)


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("direction", ["push", "pull"])
def test_bitmaps_that_threads_share(other, direction):
    """More than 65536 normal vertices and 4096 delegates."""
    source = uniform(120_000, 360_000)
    pairs = pairs_of(source, 1, 8, other, threads=3)
    assert pairs[0].part.active > 1 << 16
    assert pairs[0].part.delegate_count > 1 << 12
    directions = dict.fromkeys(("dd", "dn", "nd"), direction)
    lockstep(source, pairs, 7, lambda _: (directions, VISITS), 1)


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
    search = make_engine(name, parents=False).attach(part, placement)
    search.start(0, None)
    level, parent = search.result()
    assert parent is None
    assert (level >= 0).sum() == 1


@pytest.mark.parametrize("name", [name for name in ENGINES if on_a_device(name)])
def test_engines_of_whole_graphs_refuse_parts(name):
    engine = make_engine(name)
    alone = f"engine {name} searches a graph in one part alone"
    for part in build(NAMED["kronecker"], 2, threshold=8)[0]:
        if name != "xbfs":  # which searches parts on devices too
            with pytest.raises(UsageError, match=alone):
                engine.attach(part, Placement(part.layout.parts, 1))
        with pytest.raises(UsageError, match="one part without delegates"):
            engine.whole(part)


def test_work_there_and_back():
    work = Work(1, 2, 3, (4, 5, 6, 7), (8, 9, 10, 11), (12, 13, 14, 15))
    array = work.to_array()
    assert array.dtype == np.int64
    assert array.tolist() == list(range(1, 16))
    assert len(array) == Work.SIZE
    assert Work.from_array(array) == work
    assert not Work().to_array().any()
