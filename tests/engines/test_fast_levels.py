"""Method fast of engine openmp: how levels are searched, and what is taken back."""

import numpy as np
import pytest
from graphs import Tuples, build, check_search, random_tuples
from variants import make_engine

from distbfs.engines.base import Until
from distbfs.graph.csr import CSR
from distbfs.search.graph_rows import part_of_rows


def searcher(part, **options):
    return make_engine("openmp", "fast", **options).whole(part)


def whole(source):
    return build(source)[0][0]


def directed_part(n, u, v):
    """Arcs, each once, as one part."""
    u, v = np.unique([u, v], axis=1)
    back = np.lexsort((u, v))
    rows = CSR(np.searchsorted(u, np.arange(n + 1)).astype(np.uint32), v.astype("u4"))
    ends = np.searchsorted(v[back], np.arange(n + 1)).astype(np.uint32)
    into = CSR(ends, u[back].astype(np.uint32))
    return part_of_rows(rows.offsets, rows.columns, into)


def mesh(width):
    """A cube of vertices, each joined to 14 near ones."""
    at = np.arange(width**3).reshape(width, width, width)
    ends = []
    for x, y, z in [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (0, 1, 1), (1, 1, 1)]:
        low = at[: width - x, : width - y, : width - z]
        ends.append((low.ravel(), at[x:, y:, z:].ravel()))
    u, v = (np.concatenate(side) for side in zip(*ends, strict=True))
    return Tuples(width**3, u, v, size=1 << 20)


def test_slowly_growing_levels_are_not_marked():
    """A mesh is pushed through, until few vertices are left."""
    source = mesh(30)
    search = searcher(whole(source), threads=1)
    result = search.search(5, records=True)
    check_search(source, 5, result.level, result.parent)
    kinds = [record.direction for record in result.records]
    assert set(kinds[: len(kinds) // 2]) == {"push-serial"}
    assert sum(record.checks for record in result.records) <= len(source.u) * 2


def test_what_cannot_be_reached_is_not_pulled_for():
    """Wide levels behind a dense start, and many arcs among what no path leads to."""
    rng = np.random.default_rng(1)
    core, width, levels, lost = 2000, 500, 20, 2000
    first = core + width * levels
    arcs = [rng.integers(0, core, (2, 20 * core))]
    for level in range(levels):
        low = core + width * (level - 1) if level else 0
        to = np.arange(core + width * level, core + width * (level + 1))
        arcs.append(np.stack([low + rng.permutation(width), to]))
    arcs.append(first + rng.integers(0, lost, (2, 10 * lost)))
    part = directed_part(first + lost, *np.concatenate(arcs, axis=1))
    result = searcher(part, threads=1).search(0, records=True)
    kinds = [record.direction for record in result.records]
    assert "pull" in kinds, "the dense start"
    assert set(kinds[-15:]) == {"push-serial"}
    assert np.count_nonzero(result.level >= 0) == first


@pytest.mark.parametrize("threads", [1, 2])
def test_vertices_that_no_edge_enters(threads):
    """No pull looks at them, and each is reached from itself alone."""
    n = 5000
    u = np.append(np.arange(n - 1), np.arange(2500, n))
    v = np.append(np.arange(n - 1) // 2 + 1, np.full(2500, 3))
    inside = np.bincount(v, minlength=n)
    search = searcher(directed_part(n, u, v), threads=threads, direction="pull")
    for root in (0, 4999, 7):
        result = search.search(root, records=True)
        assert np.flatnonzero(result.level == 0).tolist() == [root]
        others = np.delete(result.level, root)
        assert (others[np.delete(inside, root) == 0] == -1).all()
        assert all(record.checks <= len(u) for record in result.records)


@pytest.mark.parametrize("hubs", [1, 3])
def test_rows_longer_than_a_batch(hubs):
    """Of 40,000 columns; they are looked at in pieces, between rows that are short."""
    leaves = np.arange(hubs, hubs + 40_000)
    u = np.concatenate([np.full(len(leaves), hub) for hub in range(hubs)] + [leaves])
    v = np.concatenate([leaves] * hubs + [np.roll(leaves, 1)])
    source = Tuples(hubs + len(leaves), u, v, size=1 << 20)
    part = whole(source)
    for root in (0, hubs, source.n - 1):
        result = searcher(part, threads=1, direction="push").search(root)
        check_search(source, root, result.level, result.parent)


def components(seed):
    """Small components of all shapes, trees among them, and a large one, shuffled."""
    rng = np.random.default_rng(seed)
    u, v, n = [], [], 0
    for size in [*rng.integers(1, 30, 60).tolist(), 300]:
        tree = rng.integers(0, np.arange(1, size)) if size > 1 else np.zeros(0, int)
        more = rng.integers(0, size, (2, int(rng.integers(0, 4))))
        u += [n + np.arange(1, size), n + more[0]]
        v += [n + tree, n + more[1]]
        n += size
    order = rng.permutation(n)
    return Tuples(n, order[np.concatenate(u)], order[np.concatenate(v)])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_searches_with_and_without_trees_in_turn(seed, threads):
    """The little that was reached is taken back, whatever the next one leaves out."""
    source = components(seed)
    search = searcher(whole(source), threads=threads)
    roots = np.random.default_rng(seed).permutation(source.n)[:400].tolist()
    for k, root in enumerate(roots):
        until = [Until(), Until(), Until(depth=2), Until(depth=source.n)][k * 7 % 4]
        result = search.search(root, until=until)
        distances = source.distances(root)
        if until.depth is not None:
            distances = np.where(distances > until.depth, -1, distances)
        np.testing.assert_array_equal(result.level, distances)
        np.testing.assert_array_equal(result.parent >= 0, distances >= 0)
        if until.depth is None:
            check_search(source, root, result.level, result.parent)


def test_few_are_found_at_the_price_of_few():
    """Vertices of the graph that a search does not reach are not written again."""
    chains = 4000
    at = np.arange(3 * chains).reshape(-1, 3)
    u, v = np.concatenate([at[:, [0, 1]], at[:, [1, 2]]]).T
    source = Tuples(at.size, u, v, size=1 << 20)
    search = searcher(whole(source), threads=1)
    search.search(0)
    level = search.search(3).level
    level[100] = 7  # marks what is written
    level = search.search(4).level
    assert level[100] == 7
    assert np.flatnonzero(level == 0).tolist() == [4]
    assert np.flatnonzero(level == 1).tolist() == [3, 5]
    assert np.count_nonzero(level >= 0) == 4


def test_a_search_that_was_stopped_leaves_nothing():
    source = random_tuples(400, 900, seed=2)
    search = searcher(whole(source), threads=1)
    search.search(1)
    asked = []

    def stop():
        asked.append(None)
        return len(asked) > 2

    with pytest.raises(Exception, match="stopped"):
        search.search(2, stop=stop)
    for root in (3, 4, 5):
        result = search.search(root)
        check_search(source, root, result.level, result.parent)


def test_searches_that_pull_take_nothing_back():
    """What they find stands in no queue; the next search begins anew."""
    source = components(4)
    search = searcher(whole(source), threads=1, direction="pull")
    for root in range(0, source.n, 3):
        result = search.search(root)
        check_search(source, root, result.level, result.parent)
