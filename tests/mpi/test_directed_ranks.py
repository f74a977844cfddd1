"""Directed graphs on the ranks that were started against SciPy.

Each rank owns rows, or has parts with delegates.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from directed_graphs import DENSE, check_arrays, matrix_of, stored, tuples
from masked import search_parts

import distbfs
from distbfs.errors import UsageError
from distbfs.search import opening
from distbfs.search.graph_input import HeldTuples
from distbfs.validation.host import validate

if TYPE_CHECKING:
    from distbfs.ranks.world import Ranks
    from distbfs.search.session import Session

FORMS = ["tuples", "parts", "separated", "store", "store of parts", "cut anew"]
STORES = FORMS[3:]


@pytest.fixture
def folder(world: Ranks, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all ranks."""
    return Path(world.broadcast(str(tmp_path_factory.mktemp("directed"))))


def opened(
    world: Ranks, seed: int, form: str, folder: Path, **options: Any
) -> tuple[int, np.ndarray, np.ndarray, Session]:
    """Return a random graph and its session on all ranks; vertices count from 0."""
    n, u, v = tuples(seed)
    options = {"engine": "openmp", "threads": 1, **options}
    options["comm"] = getattr(world, "comm", None)
    parts = {"store of parts": 2 * world.size, "cut anew": world.size + 1}.get(form, 1)
    if form in STORES:
        if world.rank == 0:
            threshold = None if parts == 1 else (0, 3, 1000)[seed % 3]
            stored(folder / "graph", n, u, v, parts, threshold)
        world.barrier()
        return n, u, v, distbfs.open(folder / "graph", **options)
    parts = world.size * (2 if form == "parts" else 1)
    made = HeldTuples(u, v, n)
    if form == "tuples":
        return n, u, v, distbfs.open(made, directed=True, **options)
    options["threshold"] = None if form == "parts" else (2, 5, 1000)[seed % 3]
    return n, u, v, distbfs.open(made, parts=parts, directed=True, **options)


@pytest.mark.parametrize("engine", ["openmp", "reference"])
@pytest.mark.parametrize("direction", ["auto", "push", "pull"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(8))
def test_directed_parts(
    world: Ranks, engine: str, direction: str, form: str, seed: int, folder: Path
) -> None:
    way = {"engine": engine, "direction": direction}
    n, u, v, session = opened(world, seed, form, folder, **way)
    matrix = matrix_of(n, u, v)
    with session:
        for root in np.random.default_rng(seed).integers(0, n, 6).tolist():
            result = session.search(root)
            level, parent = result.at(np.arange(n))
            check_arrays(matrix, root, level, parent)
            assert result.reached == (level >= 0).sum()
            assert result.nedge == (level[u] >= 0).sum()


@pytest.mark.parametrize("limit", [0, 1 << 20])
@pytest.mark.parametrize("seed", range(8))
def test_validation(world: Ranks, seed: int, limit: int) -> None:
    """Of searches; one arc that a tree needs, turned round, makes each wrong."""
    n, u, v, session = opened(world, seed, "tuples", Path())
    rng = np.random.default_rng(seed)
    options: dict[str, Any] = {"directed": True, "limit": limit, "threads": 1}
    with session:
        for root in rng.integers(0, n, 4).tolist():
            result = session.search(root)
            level, parent = result.at(np.arange(n))
            check_arrays(matrix_of(n, u, v), root, level, parent)
            for own in (result.to_numpy(), (result.to_numpy()[0], None)):
                told = validate(world, HeldTuples(u, v, n), root, *own, **options)
                assert told.valid, told.errors
                assert told.nedge == (level[u] >= 0).sum()
                assert (told.reached, told.depth) == (result.reached, level.max())
            needed = np.flatnonzero((level[v] > 0) & (parent[v] == u))
            if not len(needed):
                continue
            turned = (u == u[arc := rng.choice(needed)]) & (v == v[arc])
            made = HeldTuples(np.where(turned, v, u), np.where(turned, u, v), n)
            own = result.to_numpy()
            told = validate(world, made, root, *own, **options)
            assert [error[:6] for error in told.errors] == ["rule 5"]


def test_pulls_of_directed_parts(world: Ranks, folder: Path) -> None:
    """They read the edges into a vertex, where that is cheaper."""
    checks = {}
    for direction in ("auto", "push"):
        way = {"direction": direction}
        with opened(world, DENSE, "parts", folder, **way)[-1] as session:
            records = session.search(1, records=True).records
            checks[direction] = sum(sum(x["checks"].values()) for x in records)
    assert checks["auto"] < checks["push"] // 2


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(8, 12))
def test_directed_graphs_on_ranks(
    world: Ranks, form: str, seed: int, folder: Path
) -> None:
    """Sets, depths, targets and shortest paths, as one process has them."""
    n, u, v, session = opened(world, seed, form, folder)
    graph = distbfs.Graph.from_edges(u, v, n, directed=True)
    rng, every = np.random.default_rng(seed), np.arange(n)
    root, several = int(rng.integers(n)), np.unique(rng.integers(0, n, 3))
    alone = distbfs.bfs(graph, root, engine="reference")
    far = int(alone.level.argmax())
    with session:
        result = session.search(root)
        np.testing.assert_array_equal(
            result.predecessors_to(far), alone.predecessors_to(far)
        )
        assert result.path_count_to(far) == alone.path_count_to(far)
        assert result.path_to(far)[-1] == far
        counts = world.allgather(np.ascontiguousarray(result.path_counts()))
        np.testing.assert_array_equal(np.concatenate(counts), alone.path_counts())
        own = result.edges_within(2).edges.astype(np.int64).ravel()
        edges = np.concatenate(world.allgather(own)).reshape(-1, 2)
        assert sorted(edges.tolist()) == sorted(alone.edges_within(2).edges.tolist())
        for way in ({"depth_limit": 1}, {"targets": [far]}):
            wanted = distbfs.bfs(graph, root, engine="reference", **way).level
            limited = session.search(root, **way).at(every)[0]
            np.testing.assert_array_equal(limited, wanted)
        wanted = distbfs.bfs(graph, several, engine="reference").level
        np.testing.assert_array_equal(session.search(several).at(every)[0], wanted)


@pytest.mark.parametrize("form", [*FORMS, "graph"])
@pytest.mark.parametrize("seed", range(4))
def test_reversed_edges(world: Ranks, form: str, seed: int, folder: Path) -> None:
    """As of the graph of turned tuples; those of a store count once."""
    if form == "graph":
        n, u, v = tuples(seed)
        graph = distbfs.Graph.from_edges(u, v, n, directed=True)
        session = distbfs.open(graph, engine="openmp", reverse=True)
    else:
        n, u, v, session = opened(world, seed, form, folder, reverse=True)
    matrix = matrix_of(n, u, v)
    inside = np.diff(matrix.tocsc().indptr) if form in STORES else np.bincount(v)
    inside = np.append(inside, np.zeros(n - len(inside), int))
    with session:
        for root in np.random.default_rng(seed).integers(0, n, 4).tolist():
            result = session.search(root)
            level, parent = result.at(np.arange(n))
            check_arrays(matrix.T.tocsr(), root, level, parent)
            assert result.nedge == inside[level >= 0].sum()


@pytest.mark.mpi
def test_rows_that_ranks_have_no_room_for(
    world: Ranks, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store is cut anew."""
    monkeypatch.setattr(opening, "is_divided_by_rows", lambda *_: False)
    monkeypatch.setattr(opening, "has_room_for_rows", lambda *_: False)
    n, u, v, session = opened(world, 3, "store", folder)
    with session:
        assert not session.held.parts[0].owns_rows
        level, parent = session.search(1).at(np.arange(n))
        check_arrays(matrix_of(n, u, v), 1, level, parent)


def test_masks_of_directed_parts(world: Ranks) -> None:
    for seed in range(1, 9):
        search_parts(seed, getattr(world, "comm", None), directed=True)


def test_what_directed_parts_are_not_for(world: Ranks) -> None:
    n, u, v = tuples(3)
    made, comm = HeldTuples(u, v, n), getattr(world, "comm", None)
    with pytest.raises(UsageError, match="engine pan searches symmetric graphs"):
        distbfs.open(made, comm=comm, directed=True, engine="pan")
    with pytest.raises(UsageError, match="stores and graphs state it"):
        distbfs.open(distbfs.Graph.from_edges(u, v, n), directed=True)
    with pytest.raises(UsageError, match="reverse is for directed graphs"):
        distbfs.open(made, reverse=True)
