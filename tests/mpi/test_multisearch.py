"""Applications of many searches over the ranks that were started."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from directed_graphs import stored, tuples
from graphs import NAMED, Tuples, build, random_tuples
from sessions import open_parts
from wholes import (
    betweenness,
    check_applications,
    check_betweenness,
    closeness,
    eccentricity,
    harmonic,
    levels,
)

import distbfs
from distbfs.errors import InputError, TooDeep, UsageError
from distbfs.multisearch import searchers as sharing
from distbfs.multisearch.application import Task
from distbfs.multisearch.apps.betweenness import PROBLEM
from distbfs.multisearch.apps.diameter import diameter
from distbfs.multisearch.apps.harmonic import NEARNESS
from distbfs.multisearch.apps.khop import khop
from distbfs.multisearch.apps.paths import stream
from distbfs.multisearch.apps.reachability import reachability
from distbfs.multisearch.base import RunOptions
from distbfs.multisearch.problem import Problem, State
from distbfs.multisearch.searchers import PartsSearcher, Searcher, WholeSearcher
from distbfs.options import SearchOptions
from distbfs.ranks.world import SoloWorld
from distbfs.search.choose import choose_searcher
from distbfs.search.graph_input import HeldTuples

if TYPE_CHECKING:
    from distbfs.ranks.world import Ranks

GRAPHS = {
    "random": random_tuples(20, 18, seed=8),
    "two-components": Tuples(8, [0, 1, 2, 5], [1, 2, 3, 6]),
    "isolated": NAMED["isolated"],
    "one-vertex": NAMED["one-vertex"],
}
LONG = Tuples(257, range(256), range(1, 257))


def whole(world: Ranks, source: Tuples, name: str = "openmp") -> WholeSearcher:
    """Every rank holds the graph."""
    [part], _ = build(source, 1, SoloWorld(), threshold=1 << 62)
    kind, _ = choose_searcher(name)
    return kind(world, part, RunOptions(threads=1))


def in_parts(world: Ranks, source: Tuples) -> PartsSearcher:
    """The ranks hold two parts each."""
    parts, _ = build(source, 2 * world.size, world, threshold=2)
    options = SearchOptions(engine="openmp", parents=False, threads=1)
    session = open_parts(world, parts, options)
    return PartsSearcher(session, RunOptions())


WAYS = {
    "openmp": whole,
    "reference": lambda world, source: whole(world, source, "reference"),
    "parts": in_parts,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", GRAPHS)
def test_ranks_find_what_one_finds(
    world: Ranks, way: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of pairs are rank 0's; all else is on every rank."""
    monkeypatch.setattr(sharing, "ROWS_BYTES", 500)
    source = GRAPHS[name]
    on: Searcher = WAYS[way](world, source)
    alone = whole(SoloWorld(), source)
    pairs = np.random.default_rng(2).integers(0, source.n, (6, 2))
    for count in (0, 3 % source.n, source.n):
        sources = np.random.default_rng(count).permutation(source.n)[:count]
        wanted = levels(alone, sources)
        found = levels(on, sources)
        if world.rank == 0:
            np.testing.assert_array_equal(found, wanted)
        else:
            assert found.shape == (0, source.n)
        np.testing.assert_array_equal(closeness(on, sources), closeness(alone, sources))
        np.testing.assert_allclose(
            harmonic(on, sources), harmonic(alone, sources), rtol=1e-12
        )
        sums = on.run(NEARNESS, sources)["harmonic_from"]
        expected = alone.run(NEARNESS, sources)["harmonic_from"]
        np.testing.assert_allclose(sums, expected, rtol=1e-12)
        value, told = eccentricity(on, sources)
        again, expected = eccentricity(alone, sources)
        np.testing.assert_array_equal(value, again)
        assert told == expected
        for hops in (None, 1):
            np.testing.assert_array_equal(
                khop(on, sources, hops),
                khop(alone, sources, hops),
            )
        np.testing.assert_allclose(
            betweenness(on, sources), betweenness(alone, sources), atol=1e-12
        )
        if way != "parts":
            np.testing.assert_allclose(
                betweenness(on, sources, endpoints=True),
                betweenness(alone, sources, endpoints=True),
                rtol=1e-12,
            )
            functions = on.run(PROBLEM, sources)["value"]
            np.testing.assert_allclose(
                functions, alone.run(PROBLEM, sources)["value"], rtol=1e-12
            )
    found, wanted = diameter(on), diameter(alone)
    for told in ("radius", "diameter", "connected", "vertices"):
        assert found[told] == wanted[told]
    reached = reachability(on, pairs)
    if world.rank == 0:
        np.testing.assert_array_equal(reached, reachability(alone, pairs))
    else:
        assert not len(reached)


@pytest.mark.parametrize("form", ["tuples", "delegates", "normals", "store"])
@pytest.mark.parametrize("seed", range(4))
def test_arcs_in_parts(
    world: Ranks,
    seed: int,
    form: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """All applications, against NetworkX; delegates are some vertices, all, or none."""
    n, u, v = tuples(seed)
    n = min(n, 25)
    inside = (u < n) & (v < n)
    source = Tuples(n, u[inside], v[inside])
    ways: dict[str, Any] = {"engine": "openmp", "threads": 1}
    ways["comm"] = getattr(world, "comm", None)
    if form == "store":
        folder = Path(world.broadcast(str(tmp_path_factory.mktemp("directed"))))
        if world.rank == 0:
            stored(folder / "graph", n, source.u, source.v)
        world.barrier()
        session = distbfs.open(folder / "graph", **ways)
    else:
        parts = world.size * (1 + (form == "delegates"))
        ways["threshold"] = {"delegates": 3, "normals": 99}.get(form)
        made = HeldTuples(source.u, source.v, n)
        session = distbfs.open(made, parts=parts, directed=True, **ways)
    with session:
        on = PartsSearcher(session, RunOptions(), directed=True)
        check_applications(on, source, (None, 2))
        if session.layout.parts > 1:
            check_betweenness(on, source)
        assert on.turned().turned() is on
        assert on.turned().dependencies(np.arange(1)) is None


@pytest.mark.parametrize("way", WAYS)
def test_a_level_that_does_not_fit_is_known_on_all_ranks(
    world: Ranks, way: str
) -> None:
    """Only the last source is too deep, which only one rank may search from."""
    on = WAYS[way](world, LONG)
    sources = np.array([128, 129, 127, 0])
    with pytest.raises(TooDeep):
        stream(Task(on, sources), "int8")
    found = levels(on, sources)
    assert found.dtype == np.int16
    if world.rank == 0:
        np.testing.assert_array_equal(found[-1], np.arange(257))


def test_from_python(world: Ranks, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The first rank has what an application finds, and keeps what is unfinished."""
    folder = world.broadcast(str(tmp_path_factory.mktemp("jobs")))
    source, comm, calls = GRAPHS["random"], getattr(world, "comm", None), []
    graph = distbfs.Graph.from_edges(source.u, source.v, n=source.n)
    ways: dict[str, Any] = {"engine": "openmp", "threads": 1, "batch": 2}
    for app, more in (
        ("harmonic", {}),
        ("closeness", {"samples": 6}),
        ("betweenness", {}),
        ("apsp", {}),
    ):
        kept = {"resume": f"{folder}/job"} if app == "harmonic" else {}
        wanted = distbfs.search_many(graph, app, None, **ways, **more)
        found = distbfs.search_many(
            graph,
            *(app, None),
            comm=comm,
            progress=lambda done, total: calls.append((done, total)),
            **(ways | more | kept),
        )
        if world.rank:
            assert found.values == {}
            continue
        done = calls.pop() if app != "betweenness" else (20, 20)
        assert done == ((6, 6) if app == "closeness" else (20, 20))
        for name, value in wanted.values.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-12)
    states = (
        State("level", "int8", "pair", -1),
        State("reached_from", "int64", "vertex"),
    )
    problem = Problem("both", states, bits=True)
    wanted = distbfs.search_many(graph, problem, None, **ways)
    found = distbfs.search_many(graph, problem, None, comm=comm, **ways)
    rows = source.n if world.rank == 0 else 0
    np.testing.assert_array_equal(found["level"], wanted["level"][:rows])
    np.testing.assert_array_equal(found["reached_from"], wanted["reached_from"])
    if world.rank == 0:
        Path(folder, "job").write_text("mine")
    with pytest.raises(InputError, match="is not an HDF5 file"):
        distbfs.search_many(graph, "harmonic", None, comm=comm, resume=f"{folder}/job")
    with pytest.raises(UsageError, match="khop cannot be resumed"):
        distbfs.search_many(graph, "khop", None, comm=comm, resume=f"{folder}/job")
    if world.size > 1:
        other = distbfs.Graph.from_edges([0], [1], n=3 + world.rank)
        with pytest.raises(UsageError, match="ranks hold different graphs"):
            distbfs.search_many(other, "harmonic", None, comm=comm)
