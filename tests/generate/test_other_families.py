"""What the graphs of the smaller families are, against NetworkX and SciPy."""

from hashlib import sha256

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import Delaunay
from slices import same, taken

from distbfs.errors import UsageError
from distbfs.generate import forest_fire, geometric
from distbfs.generate.chung_lu import ChungLu
from distbfs.generate.forest_fire import ForestFire
from distbfs.generate.formula import MAX_COMPLETE, BinaryTree, Complete, Path, Star
from distbfs.generate.geometric import Geometric
from distbfs.generate.kronecker import Kronecker
from distbfs.generate.rmat import RmatB, RmatER, RmatG
from distbfs.generate.road import Road
from distbfs.generate.small_world import SmallWorld
from distbfs.generate.stencil import Stencil
from distbfs.generate.triangulation import Triangulation
from distbfs.progress import untold


def edges(source):
    """The tuples as sorted pairs, and that none comes twice or is a loop."""
    ends = np.sort(np.transpose(taken(source, 0, source.tuples)), axis=1)
    pairs = {tuple(pair) for pair in ends.tolist()}
    assert len(pairs) == source.tuples
    assert all(a < b for a, b in pairs)
    return pairs


def graph(source):
    made = nx.Graph()
    made.add_nodes_from(range(source.n))
    made.add_edges_from(edges(source))
    return made


def wanted(made):
    return {tuple(sorted(edge)) for edge in made.edges}


@pytest.mark.parametrize("n", [1, 2, 3, 8, 33])
def test_shapes_are_those_of_networkx(n):
    assert edges(Complete(n)) == wanted(nx.complete_graph(n))
    assert edges(Star(n)) == wanted(nx.star_graph(n - 1))
    assert edges(Path(n)) == wanted(nx.path_graph(n))
    assert edges(BinaryTree(n)) == wanted(nx.full_rary_tree(2, n))


@settings(max_examples=200)
@given(n=st.integers(2, MAX_COMPLETE), data=st.data())
def test_pairs_of_large_complete_graphs(n, data):
    source = Complete(n)
    v = data.draw(st.integers(1, n - 1))
    for u in (0, v - 1):
        at = v * (v - 1) // 2 + u
        one, other = source.tuples_at(np.array([at]))
        assert (int(one[0]), int(other[0])) == (u, v)
    assert source.tuples == n * (n - 1) // 2


@pytest.mark.parametrize("kind", [Complete, Star, Path, BinaryTree])
def test_shapes_that_are_refused(kind):
    with pytest.raises(UsageError, match="vertices is 0; allowed: 1 to"):
        kind(0)
    with pytest.raises(UsageError, match="allowed: 1 to"):
        kind(kind.most + 1)


# small world


@pytest.mark.parametrize(("n", "k"), [(3, 2), (10, 4), (11, 10), (60, 6)])
def test_without_rewiring_it_is_a_ring(n, k):
    made = nx.watts_strogatz_graph(n, k, 0)
    ends = np.sort(np.transpose(taken(SmallWorld(n, k, 0.0), 0, n * k // 2)), axis=1)
    assert {tuple(x) for x in ends.tolist()} == wanted(made)


def test_as_many_edges_are_rewired_as_were_asked_for():
    for share in (0.1, 0.5, 1.0):
        source = SmallWorld(20_000, 8, share, seed=4)
        u, v = taken(source, 0, source.tuples)
        np.testing.assert_array_equal(u, np.repeat(np.arange(20_000), 4))
        led = v != (u + np.tile(np.arange(1, 5), 20_000)) % source.n
        bound = 5 * np.sqrt(share * source.tuples) + share * 20
        assert abs(led.sum() - share * source.tuples) < bound
        counts = np.bincount(v[led] // 2000, minlength=10)
        assert np.abs(counts - led.sum() / 10).max() < 5 * np.sqrt(led.sum() / 10)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((2, 2, 0.1), "vertices is 2; allowed: 3 to"),
        ((9, 3, 0.1), "neighbours is 3; allowed: even, 2 to 8"),
        ((9, 10, 0.1), "neighbours is 10"),
        ((9, 0, 0.1), "neighbours is 0"),
        ((9, 2, 1.1), "rewired is 1.1; allowed: 0 to 1"),
        ((9, 2, float("nan")), "rewired is nan"),
    ],
)
def test_small_worlds_that_are_refused(words, text):
    with pytest.raises(UsageError, match=text):
        SmallWorld(*words)


# stencils


@pytest.mark.parametrize(
    ("vertices", "neighbours", "dimensions"),
    [(20, 4, 2), (60, 6, 3), (9, 2, 1), (30, 12, 2), (64, 26, 3), (81, 8, 4)],
)
def test_stencils_join_the_nearest_of_a_grid(vertices, neighbours, dimensions):
    source = Stencil(vertices, neighbours, dimensions)
    made = graph(source)
    assert source.n == np.prod(source.sides) == len(made)
    at = np.array(np.unravel_index(range(source.n), source.sides)).T
    for u, v in made.edges:
        assert ((at[u] - at[v]) ** 2).sum() <= 4
    if neighbours == 2 * dimensions:
        lattice = nx.grid_graph(list(source.sides)[::-1])
        ids = {c: np.ravel_multi_index(np.atleast_1d(c), source.sides) for c in lattice}
        assert wanted(made) == wanted(nx.relabel_nodes(lattice, ids))


def test_a_vertex_inside_a_stencil_has_all_its_neighbours():
    for neighbours, dimensions in ((4, 2), (6, 2), (48, 2), (14, 3), (80, 3), (18, 5)):
        source = Stencil(9**dimensions, neighbours, dimensions)
        u, v = source.tuples_at(np.arange(source.tuples))
        degrees = np.bincount(np.concatenate([u, v]), minlength=source.n)
        assert degrees[source.n // 2] == degrees.max() == neighbours
    assert Stencil(1_000_000, 4, 2).tuples == 3_996_000 // 2  # ecology1


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((1, 4, 2), "vertices is 1; allowed: 2 to"),
        ((9, 5, 2), "neighbours is 5; allowed: even, 2 to 256"),
        ((9, 4, 7), "dimensions is 7; allowed: 1 to 6"),
    ],
)
def test_stencils_that_are_refused(words, text):
    with pytest.raises(UsageError, match=text):
        Stencil(*words)


# power laws


def test_degrees_follow_the_power_law():
    n, degree, exponent = 100_000, 12.0, 2.4
    source = ChungLu(n, degree, exponent, 2000, 0.0, 2, seed=3)
    u, v = taken(source, 0, source.tuples)
    degrees = np.bincount(np.concatenate([u, v]), minlength=n)
    assert degrees.mean() == degree
    assert degrees.max() == pytest.approx(2000, rel=0.1)
    above = [np.count_nonzero(degrees >= d) for d in (40, 80, 160, 320)]
    slope = np.diff(np.log2(above))
    assert slope == pytest.approx(1 - exponent, abs=0.3)
    hubs = np.flatnonzero(degrees > 300)
    assert len(hubs) > 20, "of which ids"
    assert np.abs(np.median(hubs) / n - 0.5) < 0.25, "hubs are anywhere"


def test_communities_make_triangles():
    clustering, sizes = [], (0.0, 0.5)
    for inside in sizes:
        source = ChungLu(3000, 10.0, 2.5, 60, inside, 10, seed=5)
        u, v = taken(source, 0, source.tuples)
        near = u // 10 == v // 10
        assert near.mean() == pytest.approx(inside, abs=0.02)
        made = nx.Graph(zip(u.tolist(), v.tolist(), strict=True))
        made.remove_edges_from(nx.selfloop_edges(made))
        clustering.append(nx.average_clustering(made))
    assert clustering[0] < 0.03
    assert clustering[1] > 0.08  # about (inside)^2 of the density of a community


def test_even_weights_where_the_highest_is_no_more_than_the_mean():
    source = ChungLu(1000, 40.0, 2.5, 1, 0.0, 2)
    u, v = taken(source, 0, source.tuples)
    degrees = np.bincount(np.concatenate([u, v]), minlength=1000)
    assert degrees.std() == pytest.approx(40**0.5, rel=0.1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("vertices", 1), ("degree", 0), ("degree", float("nan")), ("exponent", 2)),
        *(("highest", 0), ("inside", 1.5), ("inside", float("nan")), ("community", 1)),
    ],
)
def test_power_laws_that_are_refused(name, value):
    usual = {"vertices": 9, "degree": 2.0, "exponent": 2.5, "highest": 4}
    usual |= {"inside": 0.1, "community": 3, name: value}
    with pytest.raises(UsageError, match=f"{name} is {value}; allowed: "):
        ChungLu(**usual)


# triangulation


@pytest.mark.parametrize("vertices", [4, 5, 6, 7, 100, 2000])
def test_triangulations_are_planar_and_full(vertices):
    source = Triangulation(vertices, seed=3)
    assert abs(source.n - vertices) <= np.sqrt(vertices)
    made = graph(source)
    assert nx.check_planarity(made)[0]
    outside = 4 * (source.side - 1)
    assert source.tuples == 3 * source.n - 3 - outside, "Euler, triangles inside"


def test_diagonals_are_those_of_delaunay():
    source = Triangulation(900, seed=2)
    points = np.stack(source.points(np.arange(source.n)), axis=1)
    both = 0
    for corner in range(source.n - source.side):
        if corner % source.side == source.side - 1:
            continue
        square = np.array(
            [corner, corner + 1, corner + source.side + 1, corner + source.side]
        )
        triangles = Delaunay(points[square]).simplices
        shared = set(triangles[0]) & set(triangles[1])
        diagonal = tuple(sorted(square[list(shared)].tolist()))
        assert diagonal in edges_of_900()
        both |= 1 << int(0 in shared)
    assert both == 3, "diagonals of both kinds"


def edges_of_900(cache={}):  # noqa: B006
    if not cache:
        cache.update(dict.fromkeys(edges(Triangulation(900, seed=2))))
    return cache


def test_triangulations_that_are_refused():
    with pytest.raises(UsageError, match="vertices is 3; allowed: 4 to"):
        Triangulation(3)


# forest fire


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(1, 120),
    forward=st.floats(0, 0.6),
    backward=st.floats(0, 1),
    seed=st.integers(-5, 5),
)
def test_links_of_fires(n, forward, backward, seed):
    source = ForestFire(n, forward, backward, seed)
    u, v = taken(source, 0, source.tuples)
    assert (v < u).all(), "later vertices link to earlier ones"
    assert (np.diff(u) >= 0).all()
    assert len(set(zip(u.tolist(), v.tolist(), strict=True))) == source.tuples
    assert nx.is_connected(graph(source))


# as a program in plain Python made them, draw by draw
FIRES = {
    (9, 0.5, 1.0, 2): "8e7771fd1fe79a22",
    (120, 0.6, 0.5, -5): "2ccde9838c69397c",
    (700, 0.35, 0.914, 4): "ea2888e8e1b11dca",
}


@pytest.mark.parametrize("words", FIRES)
def test_fires_are_those_of_a_plain_program(words):
    source = ForestFire(*words)
    pairs = np.stack(taken(source, 0, source.tuples))
    assert sha256(pairs.tobytes()).hexdigest()[:16] == FIRES[words]


def test_fires_that_find_no_room_are_lit_again(monkeypatch):
    source = ForestFire(500, 0.4, 0.3)
    monkeypatch.setattr(forest_fire, "FIRST_ROOM", 1)
    other = ForestFire(500, 0.4, 0.3)
    assert source.tuples == other.tuples > 500
    same(taken(other, 0, other.tuples), taken(source, 0, source.tuples))


MADE_BEFORE = {
    "forest-fire": lambda tell: ForestFire(2000, 0.35, 0.3, tell=tell),
    "geometric": lambda tell: Geometric(20_000, tell=tell),
    "road": lambda tell: Road(20_000, tell=tell),
}


@pytest.mark.parametrize("name", MADE_BEFORE)
def test_what_comes_before_the_tuples_is_told(monkeypatch, name):
    """In slices, which change nothing."""
    wanted = MADE_BEFORE[name](untold)
    monkeypatch.setattr(forest_fire, "LIT", 99)
    monkeypatch.setattr(geometric, "CANDIDATES", 1)
    monkeypatch.setattr(Road, "at_a_time", 7)
    reports = []
    source = MADE_BEFORE[name](lambda *x: reports.append(x))
    done, totals = zip(*reports, strict=True)
    assert len(done) > 5
    assert list(done) == sorted(done)
    assert set(totals) == {done[-1]}
    assert (source.n, source.tuples) == (wanted.n, wanted.tuples)
    same(taken(source, 0, 2000), taken(wanted, 0, 2000))


def test_no_fire_is_a_random_tree_and_larger_fires_make_more_edges():
    assert ForestFire(1000, 0, 0).tuples == 999
    few, more = (ForestFire(3000, f, 0.32).tuples for f in (0.2, 0.35))
    assert 2999 < few < more
    v = taken(ForestFire(40_000, 0, 0), 0, 39_999)[1]
    late = v[20_000:] / np.arange(20_001, 40_000)
    counts = np.histogram(late, 10, (0, 1))[0]
    assert np.abs(counts - len(late) / 10).max() < 5 * np.sqrt(len(late) / 10)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((0, 0.1, 0.1), "vertices is 0"),
        ((9, 0.95, 0.1), "forward is 0.95; allowed: 0 to 0.9"),
        ((9, 0.1, 1.5), "backward is 1.5; allowed: 0 to 1"),
    ],
)
def test_fires_that_are_refused(words, text):
    with pytest.raises(UsageError, match=text):
        ForestFire(*words)


# R-MAT


@pytest.mark.parametrize("kind", [RmatER, RmatG, RmatB])
def test_initiators(kind):
    """Ends of tuples fall on the quarters of the matrix as the initiator says."""
    assert sum(kind.initiator) == pytest.approx(1)
    source = kind(12, 16, seed=5)
    u, v = (source._vertices.inverse(x) for x in taken(source, 0, source.tuples))
    for bit in (0, 5, 11):
        quarter = (u >> bit & 1) << 1 | v >> bit & 1
        shares = np.bincount(quarter, minlength=4) / source.tuples
        assert np.abs(shares - kind.initiator).max() < 5 / np.sqrt(source.tuples)
    assert source.describe()["family"] == kind.family
    assert Kronecker(12).describe()["family"] == "kronecker"
    same(taken(source, 9, 99), source.tuples_at(np.arange(9, 99)))
