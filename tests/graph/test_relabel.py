"""Numbers by degree inside blocks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distbfs.graph import relabel
from distbfs.graph.relabel import degree_order
from distbfs.graph.trees import tree_vertices

BLOCKS = [1, 2, 7, 16, 1 << 15]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.integers(0, 9), max_size=60),
    st.sampled_from(BLOCKS),
    st.sampled_from([1, 2, 5]),
)
def test_properties(items, block, threads):
    degrees = np.array(items, dtype=np.int64)
    numbering = degree_order(degrees, block, threads)
    vertices, numbers = numbering.vertices, numbering.numbers
    count = len(degrees)
    assert vertices.dtype == numbers.dtype == numbering.falling.dtype == np.uint32
    assert numbering.active == (degrees > 0).sum()
    np.testing.assert_array_equal(np.sort(vertices), np.arange(count))
    np.testing.assert_array_equal(numbers[vertices], np.arange(count))
    order = [v for v in range(count) if degrees[v]]
    order.sort(key=lambda v: (v // block, -degrees[v], v))
    order += [v for v in range(count) if not degrees[v]]
    assert vertices.tolist() == order
    by_degree = sorted(range(count), key=lambda v: (-degrees[v], v))
    assert numbering.falling.tolist() == by_degree


@pytest.mark.parametrize("high", [1, (1 << 31) - 1, 1 << 40])
def test_wide_degrees(high):
    degrees = np.array([0, high, 3, high - 1, 1], dtype=np.int64)
    numbering = degree_order(degrees, 1 << 15)
    wanted = sorted(np.flatnonzero(degrees), key=lambda v: (-degrees[v], v))
    assert numbering.vertices[: numbering.active].tolist() == wanted


def test_results_stay_near_their_ids():
    """A number is never farther from its id than a block and the inactive ids."""
    rng = np.random.default_rng(0)
    degrees = rng.integers(0, 50, 5000)
    numbering = degree_order(degrees, 64)
    ids = np.flatnonzero(degrees)
    numbered = numbering.vertices[: numbering.active].astype(int)
    assert np.abs(numbered - ids).max() < 64 * 1.5


def by_depth(rows, degrees):
    """Return the rows with degrees, each component by depth from its least."""
    order, seen = [], set()
    for root in np.flatnonzero(degrees).tolist():
        stack = [root]
        while stack:
            v = stack.pop()
            if v in seen:
                continue
            seen.add(v)
            order.append(v)
            stack += [u for u in reversed(rows[v]) if degrees[u]]
    return order


def sparse_graph(rng, n, edges):
    """Return offsets, degrees, columns, and lists of neighbours."""
    pairs = rng.integers(0, n, (edges, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    both = np.unique(np.concatenate([pairs, pairs[:, ::-1]]), axis=0)
    degrees = np.bincount(both[:, 0], minlength=n)
    offsets = np.concatenate([[0], np.cumsum(degrees)])
    columns = both[:, 1].astype(np.uint32)
    return (
        offsets,
        degrees,
        columns,
        [x.tolist() for x in np.split(columns, offsets[1:-1])],
    )


@pytest.mark.parametrize("edges", [0, 40, 100, 140])
@pytest.mark.parametrize("block", [4, 1 << 15])
def test_cores_of_road_networks_are_numbered_depth_first(monkeypatch, edges, block):
    monkeypatch.setattr(relabel, "ROAD_VERTICES", 1)
    for seed in range(20):
        offsets, degrees, columns, rows = sparse_graph(
            np.random.default_rng(seed), 100, edges
        )
        trees = tree_vertices(offsets, degrees, columns)
        plain = degree_order(degrees, block, 1, trees)
        numbering = degree_order(degrees, block, 1, trees, (offsets, columns))
        core = numbering.active - len(trees)
        left = degrees.copy()
        left[trees] = 0
        road = core and left.max() <= 16 and left.sum() <= 4 * core
        wanted = by_depth(rows, left) if road else plain.vertices[:core].tolist()
        assert numbering.vertices[:core].tolist() == wanted
        np.testing.assert_array_equal(np.sort(numbering.vertices), np.arange(100))
        np.testing.assert_array_equal(
            numbering.numbers[numbering.vertices], np.arange(100)
        )
        np.testing.assert_array_equal(numbering.falling, plain.falling)
        assert (
            numbering.vertices[core : numbering.active] == trees
        ).all() or block < 100


def test_hubs_keep_the_order_by_degree(monkeypatch):
    monkeypatch.setattr(relabel, "ROAD_VERTICES", 1)
    n = 40  # a ring whose vertex 0 sees 17 others besides
    ring = [(v, (v + 1) % n) for v in range(n)] + [(0, v) for v in range(3, 3 + 17)]
    both = np.unique(np.array(ring + [x[::-1] for x in ring]), axis=0)
    degrees = np.bincount(both[:, 0])
    rows = np.concatenate([[0], np.cumsum(degrees)]), both[:, 1].astype(np.uint32)
    numbering = degree_order(degrees, 1 << 15, 1, None, rows)
    assert numbering.vertices.tolist() == numbering.falling.tolist()
