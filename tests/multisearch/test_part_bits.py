"""Bit-parallel searches over parts, on ranks of every number, against NetworkX."""

import numpy as np
import pytest
from allocations import allocated
from covering import covered
from directed_graphs import distances, matrix_of, stored, tuples
from graphs import NAMED, Tuples, build, random_tuples
from sessions import parts_in_threads
from wholes import all_levels, host_searches
from worlds import on_ranks

from distbfs.errors import SearchStopped
from distbfs.multisearch import searchers as sharing
from distbfs.multisearch.apps.closeness import SAMPLED
from distbfs.multisearch.apps.harmonic import NEARNESS
from distbfs.multisearch.base import RunOptions
from distbfs.multisearch.part_bits import (
    OuterEnds,
    PartBitSearches,
    bytes_needed,
)
from distbfs.multisearch.part_loop import Wanted
from distbfs.multisearch.problem import Problem, State
from distbfs.multisearch.searchers import PartsSearcher
from distbfs.options import BuildOptions
from distbfs.partition.part import NUMBER_MASK, PART_SHIFT
from distbfs.ranks.world import SoloWorld
from distbfs.store.hdf5 import open_store
from distbfs.store.owned_rows import load_rows
from distbfs.store.schema import part_arrays
from distbfs.store.write import write_graph

RANKS = (1, 2, 3, 4)
SUMS = ("reached_from", "distance_from", "harmonic_from")
GRAPHS = {
    "random": random_tuples(150, 210, seed=3),
    "dense": random_tuples(70, 700, seed=4),
    "chain": Tuples(90, range(89), range(1, 90)),
    **{name: NAMED[name] for name in ("two-hubs", "isolated", "loops", "one-vertex")},
}


def found_by(
    world,
    source,
    roots,
    width,
    parts=1,
    threads=1,
    direction="auto",
    store=None,
    **options,
):
    """Return levels [k, n], counts and sums by vertex of all ranks.

    store: of one part, whose rows the ranks own
    """
    if store is None:
        made, _ = build(source, parts * world.size, world, threshold=3)
    else:
        made = [load_rows(store, world.size, world.rank)]
    on = host_searches(world, made, width, threads)
    # what a run leaves does not change the next
    on.run(roots[::-1], Wanted(levels=True))
    on.run(roots, Wanted(levels=True, sums=SUMS, direction=direction, **options))

    def by_id(arrays):
        out = np.zeros(source.n, dtype=arrays[0].dtype)
        for part, values in zip(made, arrays, strict=True):
            ids = part.layout.global_of(part.index, np.arange(len(values)))
            out[ids] = values
        return world.allreduce(out)

    levels = np.array([by_id(on.levels(k)) for k in range(len(roots))])
    searches, ids = np.divmod(np.arange(levels.size)[::-3], max(source.n, 1))
    at = on.levels_at(searches, ids)
    np.testing.assert_array_equal(at, levels[searches, ids])
    sums = {name: by_id(on.sums(name)) for name in SUMS}
    return levels.reshape(-1, source.n), on.counts(), sums


def check(results, level):
    """Compare with levels of NetworkX, [k, n]."""
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


@pytest.mark.parametrize(
    ("name", "ranks", "direction"),
    covered(list(GRAPHS), RANKS, ["auto", "push", "pull"]),
)
def test_ranks_of_every_number(name, ranks, direction):
    source, parts = GRAPHS[name], 1 + ranks % 2
    roots = np.random.default_rng(1).integers(0, source.n, 64)  # some of them twice
    level = all_levels(source)[roots]
    for results in on_ranks(
        ranks, lambda world: found_by(world, source, roots, 1, parts, 1, direction)
    ):
        check(results, level)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("ranks", [2, 3])
def test_rows_of_a_store_that_ranks_own(tmp_path, name, ranks):
    source = GRAPHS[name]
    write_graph(SoloWorld(), source, tmp_path / "graph", 1, BuildOptions())
    store = open_store(tmp_path / "graph")
    roots = np.random.default_rng(2).integers(0, source.n, 70)
    for results in on_ranks(
        ranks, lambda world: found_by(world, source, roots, 2, store=store)
    ):
        check(results, all_levels(source)[roots])


@pytest.mark.parametrize("direction", ["auto", "push", "pull"])
@pytest.mark.parametrize("seed", range(4))
def test_rows_of_a_directed_store(tmp_path, seed, direction):
    n, u, v = tuples(seed + 20)
    stored(tmp_path / "graph", n, u, v)
    matrix, store = matrix_of(n, u, v), open_store(tmp_path / "graph")
    roots = np.random.default_rng(seed).integers(0, n, 64)
    searches, ids = np.divmod(np.arange(64 * n), n)

    def search(world):
        part = load_rows(store, world.size, world.rank)
        on = host_searches(world, [part], 1, 1)
        on.run(roots, Wanted(levels=True, direction=direction))
        return on.levels_at(searches, ids).reshape(64, n)

    for levels in on_ranks(2, search):
        np.testing.assert_array_equal(levels, [distances(matrix, x) for x in roots])


@pytest.mark.parametrize("direction", ["auto", "push", "pull"])
def test_edges_in_alone(tmp_path, direction):
    """Edges lead from the part of odd vertices to that of even ones."""
    u, v = np.array([1, 3, 5]), np.array([2, 2, 0])
    stored(tmp_path / "graph", 6, u, v)
    store = open_store(tmp_path / "graph")

    def search(world):
        part = load_rows(store, world.size, world.rank)
        on = host_searches(world, [part], 1, 1)
        on.run(u, Wanted(levels=True, direction=direction))
        return on.levels_at(np.arange(3), v)

    for levels in on_ranks(2, search):
        assert levels.tolist() == [1, 1, 1]


@pytest.mark.thorough
@pytest.mark.parametrize("width", [1, 2, 4, 8])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("direction", ["auto", "pull"])
def test_words_of_every_width(width, threads, direction):
    source, count = GRAPHS["random"], 64 * width - 5
    roots = np.random.default_rng(2).integers(0, source.n, count)
    level = all_levels(source)[roots]
    for results in on_ranks(
        2, lambda world: found_by(world, source, roots, width, 2, threads, direction)
    ):
        check(results, level)


@pytest.mark.parametrize("lone", [False, True])
def test_pulls_read_few_edges_of_hubs(monkeypatch, lone):
    """Nor does a search that has ended, as one from a vertex without edges."""
    leaves = np.arange(2, 3000)
    hubs = Tuples(3001, np.repeat([0, 1], 2998), np.tile(leaves, 2))
    roots, along = np.arange(2, 64), PartBitSearches._along
    if lone:
        roots = np.append(roots, 3000)
    made, _ = build(hubs, 1, threshold=100)
    on, pushed = host_searches(SoloWorld(), made, 1, 1), []

    def noted(on, edges, start, goal, columns=None):
        pushed.append((edges is made[0].dn, int(start.view.count)))
        along(on, edges, start, goal, columns)

    monkeypatch.setattr(PartBitSearches, "_along", noted)
    on.run(roots, Wanted(levels=True))
    assert not any(queued for dn, queued in pushed if dn), "each leaf asks one hub"
    assert (False, len(roots)) in pushed, "a few leaves tell the hubs"
    np.testing.assert_array_equal(on.levels(5)[0], hubs.distances(roots[5]))


@pytest.mark.parametrize("limit", [0, 1, 4])
def test_a_last_level(limit):
    source, roots = GRAPHS["random"], np.arange(60)
    level = all_levels(source)[roots]
    level[level > limit] = -1
    for results in on_ranks(
        2, lambda world: found_by(world, source, roots, 1, limit=limit)
    ):
        check(results, level)


def test_a_rank_that_stops_stops_all():
    def work(world):
        made, _ = build(GRAPHS["chain"], 2, world, threshold=3)
        on, asked = host_searches(world, made, 1, 1), []
        stop = lambda: world.rank == 1 and (asked.append(1) or len(asked) > 5)  # noqa: E731
        with pytest.raises(SearchStopped, match="stopped at level 5"):
            on.run(np.arange(9), Wanted(stop=stop))
        on.run(np.arange(9), Wanted())
        return on.counts().sum()

    assert on_ranks(2, work) == [9 * 90] * 2


def test_each_end_gets_one_word_a_level():
    """As many messages as outer ends, however many edges lead there."""
    n, hubs = 400, 20
    u, v = np.repeat(np.arange(hubs), n // 2), np.tile(np.arange(n // 2), hubs)
    source = Tuples(n, u, v + n // 2)

    def work(world):
        made, _ = build(source, 2, world, threshold=1 << 40)
        [part], sent = made, []
        on = host_searches(world, made, 1, 1)
        deliver = on._deliver
        on._deliver = lambda table: sent.append(len(table)) or deliver(table)
        on.run(np.arange(hubs), Wanted())
        ends = OuterEnds(part, 1).columns
        assert len(ends) == len(np.unique(part.nn.columns))
        assert (ends >> np.uint64(PART_SHIFT)).max() == 1
        assert (ends & np.uint64(NUMBER_MASK)).max() < part.local_count
        assert max(sent) <= len(ends)
        return max(sent), part.nn.edges

    for most, edges in on_ranks(2, work):
        assert 100 < most < edges / 5


@pytest.mark.parametrize(
    ("levels", "sums"), [(False, ()), (True, ()), (False, SUMS), (True, SUMS[1:])]
)
@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize(
    ("ends", "threshold", "least"), [(60, 60, 1), (5, 1, 1), (5, 60, 0.6)]
)
def test_memory_is_what_was_counted(ends, threshold, least, width, levels, sums):
    """To the byte if each edge has an end of its own; at most so much otherwise."""
    leaves = np.arange(60)
    source = Tuples(120, leaves, 60 + leaves % ends)
    parts, _ = build(source, 3, threshold=threshold)
    on = host_searches(SoloWorld(), parts, width, 1)
    on.run(np.array([0, 61]), Wanted(levels=levels, sums=sums))
    planes = len(on._delegates.planes)
    assert planes == 3 * levels
    holders = [(x.arrays, x.planes, x.sums) for x in on._searched]
    holders += [(vars(x), x.rows.arrays) for x in on._outer]
    lent = [x for part in parts for x in part_arrays(part).values()]
    held = allocated(holders, lent)
    need = bytes_needed(parts, width, planes=planes, sums=sums)
    assert least * need <= held <= need


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("ranks", "batch"),
    [(1, 0), (3, 0), (1, 7), (2, 64), (1, 100), (3, 100), (2, 600)],
)
def test_batches_of_any_size(ranks, batch, monkeypatch):
    """Fewer traversals than sources; memory for narrow words only changes nothing."""
    source = GRAPHS["random"]
    traversals, run = [], PartBitSearches.run

    def counted(on, sources, wanted):
        traversals.append((on.lanes, len(sources)))
        return run(on, sources, wanted)

    monkeypatch.setattr(PartBitSearches, "run", counted)
    states = (State("level", "int8", "pair", -1), State("reachable", "bool", "pair"))
    problem = Problem("both", states, bits=True)
    level, roots = all_levels(source), np.arange(source.n)

    def work(world):
        parts, _ = build(source, 2 * world.size, world, threshold=3)
        memory = 1 << 30 if batch else 1
        options = RunOptions(batch=batch, memory=memory)
        on = PartsSearcher(parts_in_threads(world, parts), options)
        assert on.smallest == min(batch or 512, 512)
        return on.run(SAMPLED, roots), on.run(NEARNESS, roots), on.run(problem, roots)

    for rank, results in enumerate(on_ranks(ranks, work)):
        sums, near, pairs = results
        reached = level >= 0
        np.testing.assert_array_equal(sums["reached"], reached.sum(axis=1))
        np.testing.assert_array_equal(sums["depth"], level.max(axis=1))
        np.testing.assert_array_equal(sums["reached_from"], reached.sum(axis=0))
        np.testing.assert_allclose(near["harmonic_from"], sums["harmonic"], rtol=1e-12)
        if rank:
            assert len(pairs["level"]) == len(pairs["reachable"]) == 0
            continue
        np.testing.assert_array_equal(pairs["level"], level)
        np.testing.assert_array_equal(pairs["reachable"], reached)
    size = batch or 64
    wide = sharing.bits.width_for(min(batch or 64, source.n))
    assert {width for width, _ in traversals} == {wide}
    assert len(traversals) == 3 * ranks * -(-source.n // min(size, 512))


def test_only_words_that_change_are_reduced():
    """A level of a chain whose vertices are all delegates changes one of them."""
    source = Tuples(300, range(299), range(1, 300))

    def work(world):
        made, _ = build(source, 2, world, threshold=1)
        on, sizes = host_searches(world, made, 1, 1), []
        assert made[0].delegate_count == 298
        reduce = world.allreduce
        world.allreduce = lambda values, op="sum": (
            sizes.append(values.size) or reduce(values, op)
        )
        on.run(np.array([0]), Wanted())
        assert on.counts().tolist() == [[1] * 300]
        return sizes[:-1]  # the last are the counts

    for sizes in on_ranks(2, work):
        assert max(sizes) == 5, "marks of 298 delegates are five words"
