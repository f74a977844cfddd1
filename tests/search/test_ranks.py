"""Searches over several ranks that are threads; MPI ranks are in ``tests/mpi``."""

import masked
import networkx as nx
import numpy as np
import pytest
from covering import covered
from drawn_examples import examples
from graphs import (
    NAMED,
    NO_VERTEX,
    Tuples,
    build,
    check_search,
    random_tuples,
    some_roots,
    sources,
)
from hypothesis import given
from hypothesis import strategies as st
from sessions import open_parts
from shortest_paths import path_counts
from worlds import on_ranks

import distbfs
from distbfs import registry
from distbfs.engines.base import on_device
from distbfs.errors import UsageError
from distbfs.generate.hashing import Permutation
from distbfs.options import BuildOptions, Factors, SearchOptions
from distbfs.ranks.world import SoloWorld
from distbfs.search.holding import Source
from distbfs.search.open import open_source
from distbfs.store.hdf5 import open_store
from distbfs.store.write import write_graph
from distbfs.types import slice_bounds
from distbfs.validation.host import validate

HOSTED = [
    name
    for name in registry.ENGINES
    if not on_device(registry.lookup(registry.ENGINES, "engine", name))
]
ANY = examples(40)


@pytest.fixture(autouse=True)
def threads_exchange(monkeypatch):
    monkeypatch.setitem(registry.EXCHANGES, "threads", "worlds:ThreadExchange")


def search_on_ranks(source, ranks, parts, roots, *, threshold=None, seed=None, **more):
    """Search on ranks; each result must be valid there and is returned whole."""
    options = SearchOptions.named(exchange="threads", threads=1, stepwise=True, **more)
    permutation = None if seed is None else Permutation(source.n, seed)

    def work(world):
        made, _ = build(source, parts, world, threshold=threshold, permute_seed=seed)
        session = open_parts(world, made, options, permutation)
        rows = []
        for root in roots:
            outcome = session.search(root, records=True)
            level, parent = outcome.to_numpy()
            answer = validate(world, source, root, level, parent, threads=1)
            assert answer.valid, answer.errors
            assert answer.nedge == outcome.nedge
            rows.append((level.copy(), outcome.depth + 1, outcome.records))
        session.close()
        return rows

    results = on_ranks(ranks, work)
    merged = []
    for k in range(len(roots)):
        every = [rank[k] for rank in results]
        assert len({levels for _, levels, _ in every}) == 1
        for name in ("directions", "normals", "delegates", "checks"):
            directions = [
                [record[name] for record in records] for _, _, records in every
            ]
            assert all(x == directions[0] for x in directions), name
        merged.append((np.concatenate([level for level, _, _ in every]), *every[0][1:]))
    return merged


def check(source, ranks, parts, roots, **options):
    searches = search_on_ranks(source, ranks, parts, roots, **options)
    for root, (level, levels, _) in zip(roots, searches, strict=True):
        wanted = source.distances(root)
        np.testing.assert_array_equal(level, wanted)
        assert levels == wanted.max() + 1


@pytest.mark.parametrize("name", [n for n in NAMED if n not in ("path", "binary-tree")])
@pytest.mark.parametrize(("ranks", "parts"), [(2, 4), (3, 3), (4, 8)])
def test_named_graphs(name, ranks, parts):
    source = NAMED[name]
    for threshold in (0, 4):
        check(source, ranks, parts, some_roots(source, 2), threshold=threshold)


@ANY
@given(sources(max_n=30), st.integers(1, 4), st.integers(1, 3), st.data())
def test_any_graph(source, ranks, per_rank, data):
    def draw(*values):
        return data.draw(st.sampled_from(values))

    roots = data.draw(st.lists(st.integers(0, source.n - 1), min_size=1, max_size=3))
    options = {
        "threshold": draw(None, 0, 1, 3, 10**9),
        "seed": draw(None, 7),
        "engine": draw(*HOSTED),
        "direction": draw("auto", "push", "pull"),
        "parents": draw(True, True, False),
    }
    if options["engine"] == "reference":
        options["dn"] = draw(Factors(0.05, 1e-7), Factors(0.01, 0.01))
    check(source, ranks, ranks * per_rank, roots, **options)


@pytest.mark.parametrize("threshold", [0, 3, 10**9])
def test_every_part_of_a_rank_answers(threshold):
    """Parents of vertices that were delivered: the neighbour may be on any part."""
    source = random_tuples(400, 700, seed=12)
    check(source, 2, 8, some_roots(source, 6), threshold=threshold)


def test_ranks_do_the_work_of_one():
    """Counts, checks and directions do not change with the number of ranks."""
    source = NAMED["kronecker"]
    one = search_on_ranks(source, 1, 4, [5], threshold=8)
    for ranks in (2, 4):
        searches = search_on_ranks(source, ranks, 4, [5], threshold=8)
        for record, wanted in zip(searches[0][2], one[0][2], strict=True):
            for name in ("directions", "normals", "delegates", "checks"):
                assert record[name] == wanted[name]


def test_more_ranks_than_vertices():
    check(Tuples(2, [0], [1]), 4, 4, [0, 1])
    check(Tuples(1, [], []), 3, 6, [0])


@pytest.mark.parametrize(
    ("name", "direction", "engine", "ranks"),
    covered(list(NAMED), ["auto", "push", "pull"], HOSTED, [2, 3, 4]),
)
def test_owners_of_rows_of_a_store(tmp_path, name, direction, engine, ranks):
    """Of one part, which each rank reads; with masks, and counts of paths."""
    source, said = NAMED[name], []
    held = distbfs.Graph.from_edges(source.u, source.v, n=source.n)
    write_graph(SoloWorld(), source, tmp_path / "graph", 1, BuildOptions())
    roots = [*some_roots(source, 3), source.n - 1]
    options = SearchOptions.named(
        engine=engine, direction=direction, exchange="threads", threads=1
    )
    seen = np.random.default_rng(len(name)).random(source.n) < 0.8
    seen[roots] = True
    whole = nx.Graph(zip(source.u.tolist(), source.v.tolist(), strict=True))
    whole.add_nodes_from(range(source.n))
    whole.remove_edges_from(list(nx.selfloop_edges(whole)))
    left = whole.subgraph(np.flatnonzero(seen).tolist())

    def work(world):
        graph = Source(source.n, 1, store=open_store(tmp_path / "graph"))
        session = open_source(world, graph, options, say=said.append)
        with session:
            for root in roots:
                result = session.search(root)
                level, parent = result.at(np.arange(source.n))
                check_search(source, root, level, parent)
                own = slice(*slice_bounds(source.n, world.size, world.rank))
                counts = path_counts(source.matrix, level)[own]
                np.testing.assert_array_equal(result.path_counts(), counts)
                alone = distbfs.bfs(held, root, "reference")
                back = [x.predecessors_to(int(level.argmax())) for x in (result, alone)]
                np.testing.assert_array_equal(*back)
                edges = len(result.edges_within(2))
                edges = int(world.allreduce(np.array([edges]))[0])
                assert edges == len(alone.edges_within(2))
            session.see(session.view(vertices=seen))
            result = session.search(roots[0])
            level, parent = result.at(np.arange(source.n))
            masked.check(level, parent, result.nedge, roots[0], left)

    on_ranks(ranks, work)
    assert f"1 part is divided by its rows for {ranks} ranks" in said


def test_a_graph_without_vertices():
    def work(world):
        made, _ = build(NO_VERTEX, 4, world)
        session = open_parts(world, made, SearchOptions.named(exchange="threads"))
        session.search(0)

    with pytest.raises(UsageError, match="the graph has none"):
        on_ranks(2, work)


def test_connected_on_all_ranks():
    source = random_tuples(60, 30, seed=5)

    def work(world):
        made, _ = build(source, 4, world, permute_seed=3)
        options = SearchOptions.named(exchange="threads")
        session = open_parts(world, made, options, Permutation(60, 3))
        return session.connected(np.arange(60))

    for result in on_ranks(2, work):
        np.testing.assert_array_equal(result, source.degrees > 0)
