"""Road tuples: any slicing, and the shape of the graph."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components, dijkstra
from slices import same, taken

from distbfs.errors import UsageError
from distbfs.generate import positions
from distbfs.generate.hashing import GOLDEN, mix64
from distbfs.generate.road import KEEP, MAX_VERTICES, Road, side_of


def walked(source):
    """Every tuple by a loop over the crossings in plain Python, and n."""
    side, key = source.side, source._key
    ids, edges, n = {}, [], 0
    for c in range(side * side):
        x = np.array([(key + c * GOLDEN) % 2**64], dtype=np.uint64)
        x = int(mix64(x)[0])
        ids[c] = n
        n += 1
        for there, share, on_it, far in (
            (c % side < side - 1, x >> 4, x & 3, c + 1),
            (c + side < side * side, x >> 34, x >> 2 & 3, c + side),
        ):
            if there and share % 2**30 < KEEP:
                edges.append((c, list(range(n, n + on_it)), far))
                n += on_it
    chains = [[ids[c], *middle, ids[far]] for c, middle, far in edges]
    return n, [link for chain in chains for link in pairwise(chain)]


@pytest.mark.parametrize("vertices", [4, 12, 100, 473, 3000])
@pytest.mark.parametrize("seed", [1, -7])
def test_all_agree_with_a_plain_loop(vertices, seed):
    source = Road(vertices, seed)
    n, links = walked(source)
    assert (source.n, source.tuples) == (n, len(links))
    u, v = np.array(links, dtype=np.int64).reshape(-1, 2).T
    same(taken(source, 0, source.tuples), (u, v))
    same(source.tuples_at(np.arange(source.tuples)), (u, v))


@pytest.mark.parametrize("vertices", [4, 12, 473, 30_000])
def test_coordinates_are_those_of_the_chains(vertices):
    source = Road(vertices, 3)
    places = source.coordinates()
    assert places.shape == (source.n, 2)
    assert len(np.unique(places.round(6), axis=0)) == source.n
    u, v = source.tuples_at(np.arange(source.tuples))
    step = places[v] - places[u]  # to the right or down, a whole edge over its links
    assert (np.count_nonzero(step, axis=1) == 1).all()
    lengths = step.max(axis=1)
    assert np.isclose(lengths[:, None], [1, 1 / 2, 1 / 3, 1 / 4]).any(axis=1).all()
    crossings = (places % 1 == 0).all(axis=1)
    assert crossings.sum() == source.side**2
    degrees = np.bincount(np.concatenate([u, v]), minlength=source.n)
    assert (degrees[~crossings] == 2).all()


@pytest.mark.parametrize("vertices", [50_000, 1 << 20])
def test_slices_are_what_positions_give(vertices):
    source = Road(vertices)
    for start in (0, source.tuples // 3, source.tuples - 5000):
        tuples = taken(source, start, start + 5000)
        same(tuples, source.tuples_at(np.arange(start, start + 5000)))
    mixed = np.random.default_rng(3).integers(0, source.tuples, 30_000)
    u, v = taken(source, 0, source.tuples)
    same(source.tuples_at(mixed), (u[mixed], v[mixed]))
    assert max(u.max(), v.max()) == source.n - 1


@settings(max_examples=30, deadline=None)
@given(st.integers(4, 6000), st.lists(st.integers(0, 1 << 16), max_size=6), st.data())
def test_any_slicing_gives_the_same(vertices, cuts, data):
    source = Road(vertices, seed=data.draw(st.integers(0, 99)))
    bounds = [0, *sorted(c % (source.tuples + 1) for c in cuts), source.tuples]
    pieces = [taken(source, a, b) for a, b in pairwise(bounds)]
    whole = source.tuples_at(np.arange(source.tuples))
    same([np.concatenate([p[end] for p in pieces]) for end in (0, 1)], whole)


def test_slices_longer_than_a_chunk(monkeypatch):
    monkeypatch.setattr(positions, "CHUNK", 1000)
    monkeypatch.setattr(Road, "at_a_time", 3)
    source = Road(20_000)
    same(taken(source, 5, 12_345), source.tuples_at(np.arange(5, 12_345)))
    assert taken(source, 7, 7)[0].size == 0
    assert taken(source, 7, 3)[0].size == 0


def test_blocks_counted_a_few_at_a_time(monkeypatch):
    source = Road(30_000)
    monkeypatch.setattr(Road, "at_a_time", 7)
    other = Road(30_000)
    assert (other.n, other.tuples) == (source.n, source.tuples)
    same(taken(other, 0, other.tuples), taken(source, 0, source.tuples))


def test_seeds_change_the_tuples():
    assert len({(Road(9000, k).n, Road(9000, k).tuples) for k in range(5)}) == 5


@pytest.mark.parametrize("vertices", [100, 10_000, 300_000, 4_200_000])
def test_about_as_many_vertices_as_asked_for(vertices):
    source = Road(vertices)
    assert abs(source.n / vertices - 1) < 0.3 / vertices**0.25
    assert source.tuples / source.n == pytest.approx(1.216, abs=1 / vertices**0.25)


@pytest.mark.parametrize("vertices", range(4, 3000, 97))
def test_the_nearest_side(vertices):
    def size(side):
        return side**2 + 2.7 * side * (side - 1)

    nearest = round((2.7 + np.sqrt(2.7**2 + 4 * 3.7 * vertices)) / 7.4)
    assert side_of(vertices) == max(nearest, 2)
    assert abs(size(side_of(vertices)) - vertices) < 4 * side_of(vertices) + 4


def test_shape_of_the_graph():
    """A thinned grid of chains: degrees, one large component, many levels."""
    source = Road(40_000)
    u, v = taken(source, 0, source.tuples)
    ones = np.ones(len(u), dtype=np.int8)
    upper = coo_matrix((ones, (np.minimum(u, v), np.maximum(u, v)))).tocsr()
    assert upper.nnz == source.tuples, "tuples repeat"
    assert not (u == v).any()
    graph = coo_matrix((ones, (u, v)), (source.n, source.n)).tocsr()
    graph = graph + graph.T
    degree = np.diff(graph.indptr)
    assert degree.max() == 4
    share = np.bincount(degree) / source.n
    assert share[2] == pytest.approx(0.74, abs=0.02)
    assert share[4] == pytest.approx(0.9**4 / 3.7, abs=0.02)
    assert share[3] == pytest.approx(4 * 0.9**3 * 0.1 / 3.7, abs=0.02)
    _, label = connected_components(graph, directed=False)
    sizes = np.bincount(label)
    assert sizes.max() > 0.99 * source.n
    root = int(np.flatnonzero(label == sizes.argmax())[source.n // 2])
    levels = dijkstra(graph, directed=False, indices=root, unweighted=True)
    levels = levels[np.isfinite(levels)].max()
    assert 1.5 * source.side < levels < 4 * source.side


def test_edges_are_kept_and_divided_as_told():
    """Nine of ten edges; 0 to 3 vertices equally often; within five deviations."""
    source = Road(200_000)
    crossings, there = source._crossings(np.arange(len(source._tuples) - 1))
    inner = np.zeros(source.side**2, dtype=bool).reshape(source.side, source.side)
    inner[:-1, :-1] = True
    both = [links[there][inner.ravel()] for links in crossings]
    for links in both:
        share = np.bincount(links, minlength=5) / len(links)
        chance = np.array([0.1, *[0.225] * 4])
        bound = 5 * np.sqrt(chance * (1 - chance) / len(links))
        assert (np.abs(share - chance) < bound).all(), share
    assert abs(np.corrcoef(*both)[0, 1]) < 0.025
    assert abs(np.corrcoef(both[0][1:], both[0][:-1])[0, 1]) < 0.025


def test_neighbours_have_close_numbers():
    source = Road(100_000)
    u, v = taken(source, 0, source.tuples)
    assert np.median(np.abs(u - v)) == 1
    assert np.abs(u - v).max() < 6 * source.side


@pytest.mark.parametrize("vertices", [3, 0, -1, MAX_VERTICES + 1])
def test_refused(vertices):
    with pytest.raises(UsageError, match=f"vertices is {vertices}; allowed: 4 to 687"):
        Road(vertices)


def test_description_recreates_the_tuples():
    source = Road(999, seed=42)
    description = source.describe()
    assert description.pop("family") == "road"
    again = Road(**description)
    assert (again.n, again.tuples) == (source.n, source.tuples)
    same(taken(again, 0, again.tuples), taken(source, 0, source.tuples))
