"""Kernel 1: every edge once, where Algorithm 1 puts it, however it is built."""

from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from algorithm1 import assert_same_parts, check_parts, edge_distributor
from covering import covered
from directed_graphs import check_arrays, matrix_of
from graphs import NAMED, NO_VERTEX, Tuples, build, kronecker, random_tuples, sources
from hypothesis import given, settings
from hypothesis import strategies as st
from sessions import open_parts
from worlds import on_ranks

from distbfs.build.host.parts import construct, in_groups
from distbfs.errors import LaunchError
from distbfs.generate.hashing import Permutation
from distbfs.generate.kronecker import Kronecker
from distbfs.graph.degrees import DegreeHistogram
from distbfs.options import BuildOptions, SearchOptions
from distbfs.partition.part import INTO, ids_of_nn
from distbfs.plan.threshold import suggest_host_threshold
from distbfs.ranks.world import SoloWorld

PARTS = [1, 2, 3, 8, 64]
THRESHOLDS = [None, 0, 2, 16, 10**9]
BLOCK = 1 << 15


@cache
def graph(scale):
    return kronecker(scale)


def splits(parts):
    """The ways to see parts as ranks times devices."""
    return [(r, parts // r) for r in range(1, parts + 1) if parts % r == 0]


def table_one(summary, parts):
    """Bytes of Table I over all parts."""
    total = 8 * summary.n + 8 * summary.delegates * parts + 4 * summary.m
    return total + 4 * summary.edges["nn"]


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_kronecker(parts, threshold):
    source = graph(12)
    made, summary = build(source, parts, threshold=threshold)
    p_rank, p_gpu = splits(parts)[len(splits(parts)) // 2]
    check_parts(source, made, summary.threshold, p_rank, p_gpu, BLOCK)
    assert sum(part.edges for part in made) == summary.m


@pytest.mark.parametrize("scale", [13, 14])
def test_larger_kronecker(scale):
    made, summary = build(graph(scale), 8)
    check_parts(graph(scale), made, summary.threshold, 4, 2, BLOCK)


@pytest.mark.parametrize("parts", [*range(2, 18), 31, 32, 48, 63, 64])
def test_bytes_are_those_of_table_one(parts):
    """Exactly, for every threshold; p = 1 needs less, its nn columns are 32-bit."""
    for threshold in (None, 30):
        made, summary = build(graph(10), parts, threshold=threshold)
        assert sum(part.graph_bytes for part in made) == table_one(summary, parts)


def test_one_part_is_a_plain_csr():
    made, summary = build(graph(10), 1)
    assert summary.delegates == 0
    assert made[0].graph_bytes == 8 * summary.n + 4 * summary.m
    # neighbours by falling degree, so that a pull asks the likeliest first
    source, column = made[0].nn.sources(), made[0].nn.columns
    falling = np.diff(made[0].degrees[column]) <= 0
    assert (falling | (np.diff(source) > 0)).all()


@pytest.mark.parametrize(
    ("name", "parts", "threshold"),
    covered([n for n in NAMED if n != "kronecker"], [1, 3, 8, 64], [None, 0, 2, 10**9]),
)
def test_named_graphs(name, parts, threshold):
    made, summary = build(NAMED[name], parts, threshold=threshold, order_block=4)
    p_rank, p_gpu = splits(parts)[-1]
    check_parts(NAMED[name], made, summary.threshold, p_rank, p_gpu, 4)


@settings(max_examples=40, deadline=None)
@given(sources(), st.sampled_from(PARTS), st.sampled_from(THRESHOLDS), st.data())
def test_any_graph(source, parts, threshold, data):
    block = data.draw(st.sampled_from([1, 3, BLOCK]))
    pass_bytes = data.draw(st.sampled_from([1, 200, 1 << 30]))
    options = {"order_block": block, "pass_bytes": pass_bytes}
    made, summary = build(source, parts, threshold=threshold, **options)
    for p_rank, p_gpu in splits(parts):
        check_parts(source, made, summary.threshold, p_rank, p_gpu, block)


@pytest.mark.parametrize("parts", [1, 2, 8])
def test_no_vertex(parts):
    made, summary = build(NO_VERTEX, parts)
    assert len(made) == parts
    check_parts(NO_VERTEX, made, 0, 1, parts, BLOCK)
    assert (summary.n, summary.m, summary.delegates, summary.repeats) == (0, 0, 0, 0)


def test_fewer_vertices_than_parts():
    source = Tuples(3, [0, 1], [1, 2])
    made, _ = build(source, 8, threshold=1)
    assert [part.local_count for part in made] == [1, 1, 1, 0, 0, 0, 0, 0]
    check_parts(source, made, 1, 2, 4, BLOCK)


@pytest.mark.parametrize("parts", [1, 3, 8])
def test_tiny_passes_build_the_same_parts(parts):
    source = graph(12)
    wanted, once = build(source, parts, threshold=16)
    made, summary = build(source, parts, threshold=16, pass_bytes=1)
    assert_same_parts(made, wanted)
    assert once.passes == 1
    assert summary.passes == (1 if parts == 1 else 2 * parts)
    two, some = build(source, parts, threshold=16, pass_bytes=64 * source.tuples // 2)
    assert_same_parts(two, wanted)
    assert some.passes in (1, 2 * -(-parts // 2), 2 * parts)


@pytest.mark.parametrize(
    ("ranks", "parts"), [(2, 2), (2, 8), (3, 3), (3, 6), (4, 4), (4, 8)]
)
@pytest.mark.parametrize("pass_bytes", [1, 1 << 30])
@pytest.mark.parametrize("threshold", [None, 0, 16])
def test_ranks_build_the_same_parts(ranks, parts, pass_bytes, threshold):
    source = random_tuples(500, 4000, seed=parts)
    wanted, alone = build(source, parts, threshold=threshold, permute_seed=5)

    def work(world):
        options = {"threshold": threshold, "permute_seed": 5, "pass_bytes": pass_bytes}
        return build(source, parts, world, **options)

    results = on_ranks(ranks, work)
    assert_same_parts([results[k % ranks][0][k // ranks] for k in range(parts)], wanted)
    for _, summary in results:
        for name in ("m", "loops", "repeats", "threshold", "delegates", "edges"):
            assert getattr(summary, name) == getattr(alone, name), name
        np.testing.assert_array_equal(summary.histogram.counts, alone.histogram.counts)


@pytest.mark.parametrize("parts", [1, 4])
def test_vertices_are_permuted_by_the_seed(parts):
    source = graph(10)
    permutation = Permutation(source.n, 77)
    inside = Tuples(source.n, *map(permutation.forward, (source.u, source.v)))
    made, summary = build(source, parts, permute_seed=77, threshold=8)
    check_parts(inside, made, 8, 1, parts, BLOCK)
    assert summary.m == len(source.edges)


def test_generator_and_arrays_give_the_same():
    wanted, _ = build(graph(10), 4)
    made, _ = build(Kronecker(10), 4)
    assert_same_parts(made, wanted)


@pytest.mark.parametrize("name", NAMED)
def test_summary(name):
    source = NAMED[name]
    _, summary = build(source, 2, threshold=3)
    loops = int((source.u == source.v).sum())
    assert (summary.n, summary.tuples) == (source.n, source.tuples)
    assert (summary.parts, summary.threshold) == (2, 3)
    assert summary.m == len(source.edges) == sum(summary.edges.values())
    assert summary.loops == loops
    assert summary.repeats == source.tuples - loops - len(source.edges) // 2
    assert summary.delegates == (source.degrees > 3).sum()
    assert summary.histogram.n == source.n
    assert summary.generation_seconds >= 0
    assert summary.construction_seconds > 0


def test_a_suggestion_is_used():
    _, summary = build(graph(12), 4)
    values, counts = np.unique(graph(12).degrees, return_counts=True)
    suggested = suggest_host_threshold(DegreeHistogram(values, counts), 4)
    assert summary.threshold == suggested
    assert summary.delegates == (values > suggested) @ counts


def test_ranks_that_round_differently_take_one_threshold(monkeypatch):
    suggestions = iter([3, 9, 5])
    name = "distbfs.build.host.parts.suggest_host_threshold"
    monkeypatch.setattr(name, lambda *_: next(suggestions))
    summaries = [x for _, x in on_ranks(3, lambda world: build(graph(9), 3, world))]
    assert len({x.threshold for x in summaries}) == 1
    assert {x.delegates for x in summaries} == {
        int((graph(9).degrees > summaries[0].threshold).sum())
    }


def test_parts_that_do_not_divide():
    def work(world):
        build(graph(10), 3, world)

    with pytest.raises(
        LaunchError, match="3 parts cannot be split evenly over 2 ranks"
    ):
        on_ranks(2, work)


def test_parts_are_handed_over_one_by_one():
    """Never are two parts in hand: the sink has each before the next is made."""
    seen = []
    options = BuildOptions(threshold=4, pass_bytes=1)
    construct(
        NAMED["star"], SoloWorld(), 4, options, lambda part: seen.append(part.index)
    )
    assert seen == [0, 1, 2, 3]


def test_wide_lookup_of_delegates(monkeypatch):
    wanted, _ = build(graph(10), 4, threshold=16)
    none, _ = build(graph(10), 4, threshold=10**9)
    monkeypatch.setattr("distbfs.partition.delegates.DENSE_VERTICES", 0)
    made, _ = build(graph(10), 4, threshold=16)
    assert_same_parts(made, wanted)
    made, _ = build(graph(10), 4, threshold=10**9)
    assert_same_parts(made, none)


@given(st.integers(1, 20), st.integers(0, 1000), st.integers(1, 5000))
def test_groups_fit_the_limit(count, raw_bytes, limit):
    groups = in_groups(count, raw_bytes, limit)
    assert [k for group in groups for k in group] == list(range(count))
    assert all(len(g) == 1 or len(g) * raw_bytes <= limit for g in groups)
    assert all(len(g) == len(groups[0]) for g in groups[:-1])


def arcs_of(part, parts, *, into):
    """The arcs (u, v) of a part, and the subgraph where each is stored."""
    ids, kinds = {x.index: x.ids() for x in parts}, {x: y for y, x in INTO.items()}
    for name, rows in part.subgraphs.items():
        kind = kinds.get(name, name)
        if (name in kinds) != into:
            continue
        row, column = rows.sources(), rows.columns
        ends = part.delegates[row] if kind[0] == "d" else part.ids()[row]
        if kind[1] == "d":
            others = part.delegates[column]
        elif kind == "nn" and len(parts) > 1:
            others = ids_of_nn(column, ids.__getitem__)
        else:
            others = part.ids()[column]
        pair = (others, ends) if into else (ends, others)
        yield from ((u, v, kind) for u, v in zip(*pair, strict=True))


@settings(max_examples=80, deadline=None)
@given(
    source=sources(),
    threshold=st.sampled_from(THRESHOLDS),
    count=st.sampled_from([1, 2, 3, 5]),
    ranks=st.sampled_from([1, 2]),
)
def test_directed_parts_by_algorithm_1(source, threshold, count, ranks):
    """Edges out and edges in are each where the sum of both degrees puts them."""
    options = {"directed": True, "threshold": threshold}

    def made(world):
        return build(source, count * ranks, world, **options)

    every = on_ranks(ranks, made)
    parts = sorted((x for one in every for x in one[0]), key=lambda x: x.index)
    summary, other = every[0][1], source.u != source.v
    arcs = np.unique(np.stack([source.u, source.v], axis=1)[other], axis=0)
    degree = np.bincount(arcs.ravel(), minlength=source.n)
    place = edge_distributor(arcs, degree, summary.threshold, ranks, count)
    at = place[0] + place[1] * ranks
    wanted = [{}, {}]
    for (u, v), part in zip(arcs.tolist(), at.tolist(), strict=True):
        high = "nd"[int(degree[u] > summary.threshold)], degree[v] > summary.threshold
        name = high[0] + "nd"[int(high[1])]
        wanted[0][u, v] = (part, name)
        lies = v % len(parts) if name == "nn" else part
        wanted[1][u, v] = (lies, name[::-1])
    for into in (False, True):
        stored = {}
        for part in parts:
            part.check()
            for u, v, kind in arcs_of(part, parts, into=into):
                assert (u, v) not in stored
                stored[u, v] = part.index, kind
        assert stored == wanted[into]
        assert len(stored) == summary.m
    leaving = np.bincount(source.u, minlength=source.n)
    for part in parts:
        np.testing.assert_array_equal(part.degrees, degree[part.ids()])
        np.testing.assert_array_equal(part.tuple_degrees, 2 * leaving[part.ids()])
        assert (part.delegate_degrees == degree[part.delegates]).all()
    assert summary.loops == (~other).sum()
    assert summary.repeats == source.tuples - summary.loops - summary.m


SHAPES = {
    "none": ([], []),
    "one": ([0], [1]),
    "loops": ([0, 1, 2, 2], [0, 1, 2, 3]),
    "out-star": ([0] * 39, range(1, 40)),
    "in-star": (range(1, 40), [0] * 39),
    "path": (range(39), range(1, 40)),
    "ring": (range(40), [*range(1, 40), 0]),
    "both-ways": ([*range(39), *range(1, 40)], [*range(1, 40), *range(39)]),
    "random": np.random.default_rng(2).integers(0, 40, (2, 90)),
    "dense": np.random.default_rng(3).integers(0, 40, (2, 700)),
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("count", [1, 2, 4, 50])
@pytest.mark.parametrize("threshold", [None, 0, 3, 10**9])
def test_directed_host_parts(name, count, threshold):
    """Searches of them, and of the reversed ones, find what SciPy finds."""
    u, v = SHAPES[name]
    source, matrix = Tuples(41, u, v), matrix_of(41, u, v)
    parts, _ = build(source, count, directed=True, threshold=threshold)
    entering = np.bincount(source.v, minlength=41)
    for k, direction in enumerate(("auto", "push", "pull")):
        engine = ("openmp", "reference")[(k + count + len(u)) % 2]
        options = SearchOptions.named(engine=engine, direction=direction, threads=1)
        for turned in (False, True):
            held = [part.reversed() if turned else part for part in parts]
            arcs = matrix.T.tocsr() if turned else matrix
            ends = entering if turned else np.bincount(source.u, minlength=41)
            with open_parts(SoloWorld(), held, options) as session:
                for root in (0, 1, 39, 40):
                    result = session.search(root)
                    level, parent = result.to_numpy()
                    check_arrays(arcs, root, level, parent)
                    assert result.nedge == ends[level >= 0].sum()


@pytest.mark.parametrize("block", [4, 1 << 12])
def test_vertices_that_no_edge_enters_come_last(block):
    source = random_tuples(300, 500, 8)
    [part], _ = build(source, 1, directed=True, order_block=block)
    entered = np.diff(part.pulled.offsets[: part.active + 1].astype(np.int64)) > 0
    count = np.count_nonzero(entered)
    assert 0 < count < part.active < 300
    assert entered[:count].all()


@settings(max_examples=80, deadline=None)
@given(
    source=sources(), seed=st.none() | st.integers(0, 3), count=st.sampled_from([1, 3])
)
def test_directed_graphs_keep_edges_out_and_in(source, seed, count):
    """One part has them by vertices, several by vertices that they own."""
    parts, summary = build(source, count, directed=True, permute_seed=seed, owned=True)
    n, other = source.n, source.u != source.v
    ones = np.ones(other.sum())
    wanted = sp.csr_matrix((ones, (source.u[other], source.v[other])), shape=(n, n))
    degrees = np.diff(wanted.indptr) + np.diff(wanted.tocsc().indptr)
    leaving = np.bincount(source.u, minlength=n)

    def input_ids(ids):
        permuted = seed is not None and n > 1
        return Permutation(n, seed).inverse(ids) if permuted else ids

    edges, back = [], []
    for part in parts:
        part.check()
        rows = part.nn if count == 1 else part.dd
        named = input_ids(part.ids() if count == 1 else part.delegates)
        own = set(named[rows.occupied()].tolist())
        assert own <= set(input_ids(part.ids()).tolist())
        edges += zip(named[rows.sources()], named[rows.columns], strict=True)
        into = part.pulled if count == 1 else part.incoming["dd"]
        back += zip(named[into.columns], named[into.sources()], strict=True)
        ids = input_ids(part.ids())
        np.testing.assert_array_equal(part.tuple_degrees, 2 * leaving[ids])
        np.testing.assert_array_equal(part.degrees, degrees[ids])
        if count == 1:
            assert (part.degrees[: part.active] > 0).all()
            assert not part.degrees[part.active :].any()
        else:
            assert part.active == 0
    arcs = sorted(map(tuple, np.transpose(wanted.nonzero()).tolist()))
    assert sorted(edges) == sorted(back) == arcs
    assert len(arcs) == summary.m == summary.edges["nn" if count == 1 else "dd"]
    assert summary.loops == (~other).sum()
    assert summary.repeats == source.tuples - summary.loops - summary.m
