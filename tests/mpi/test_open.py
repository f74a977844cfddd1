"""``distbfs.open`` with a communicator: what a program of several ranks calls."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graphs import check_search, kronecker
from launching import clean_environment

import distbfs
from distbfs.errors import UsageError
from distbfs.options import Factors
from distbfs.plan import host_memory
from distbfs.ranks.world import MpiWorld, Ranks
from distbfs.types import slice_bounds

MOST, SPARE = 3000, 32  # communicators: more than MPICH has, and what is left of them


def joined(world: Ranks, block: np.ndarray) -> np.ndarray:
    """The whole of an array of blocks."""
    return np.concatenate(world.allgather(block))


@pytest.mark.parametrize("threshold", [None, 8])
def test_tuples(world: Ranks, threshold: int | None) -> None:
    source = kronecker(8)
    comm = getattr(world, "comm", None)
    with distbfs.open(source, comm=comm, threshold=threshold, threads=1) as session:
        found = session.search(3)
        level, parent = found.to_numpy()
        low, high = slice_bounds(source.n, world.size, world.rank)
        assert (len(level), len(parent)) == (high - low, high - low)
        wanted = check_search(source, 3, joined(world, level), joined(world, parent))
        assert found.reached == (wanted >= 0).sum()
        assert found.nedge == source.ends[wanted >= 0].sum() // 2
        far = int(wanted.argmax())
        path = found.path_to(far)
        assert (path[0], path[-1], len(path)) == (3, far, wanted.max() + 1)
        kept, near = found.keep(), session.search(3, depth_limit=1)
        assert near.depth == 1
        assert kept.depth == wanted.max()
        if world.size > 1:
            with pytest.raises(UsageError, match=r"to_numpy\(\)"):
                _ = near.level


@pytest.mark.parametrize(
    ("options", "room", "owned"),
    [
        ({}, True, True),
        ({"engine": "reference"}, True, True),
        ({}, False, False),
        ("hosts", True, False),
        ("cores", True, False),
        ({"threshold": 8}, True, False),
        ({"parts": 4}, True, False),
        ({"engine": "reference", "dd": Factors(0.1, 0.1)}, True, False),
    ],
)
def test_ranks_that_own_rows(
    world: Ranks,
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, Any] | str,
    room: bool,
    owned: bool,
) -> None:
    """On one host with room; unless parts with delegates, or their options, are asked.

    options: "hosts": ranks are on two of them; "cores": there are fewer than ranks
    """
    cores = world.size - (options == "cores")
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    if options == "hosts":

        class Elsewhere(MpiWorld):
            def __init__(self, *args: Any) -> None:
                super().__init__(*args)
                self.hosts = ["a", *["b"] * (world.size - 1)]

        monkeypatch.setattr("distbfs.search.open.MpiWorld", Elsewhere)
    if isinstance(options, str):
        options = {}
    here = room or world.rank > 0
    monkeypatch.setattr(
        host_memory, "may_fill", lambda _: (1 << 40 if here else 0, "memory")
    )
    comm, source = getattr(world, "comm", None), kronecker(8)
    way = {"comm": comm, "engine": "openmp", "threads": 1, **options}
    with distbfs.open(source, **way) as session:
        owns = {part.owns_rows for part in session.held.parts}
        assert owns == {owned and world.size > 1}
        level, parent = map(joined, [world] * 2, session.search(3).to_numpy())
        check_search(source, 3, level, parent)


def test_a_store_that_all_ranks_open(world: Ranks, tmp_path_factory) -> None:
    folder = world.broadcast(str(tmp_path_factory.mktemp("stores")))
    store = Path(folder) / "graph"
    words = ["generate", "kronecker", "--scale", "7", "--parts", str(world.size)]
    words = [sys.executable, "-m", "distbfs", *words, "-o", str(store)]
    if world.rank == 0:
        subprocess.run(
            [*words, "--threshold", "6"],
            check=True,
            capture_output=True,
            env=clean_environment(),
        )
    world.barrier()
    comm = getattr(world, "comm", None)
    with distbfs.open(store, comm=comm, engine="reference") as session:
        found = session.search(1)
        level, parent = (joined(world, x) for x in found.to_numpy())
    check_search(kronecker(7), 1, level, parent)


def all_but_few() -> list[Any]:
    """Take the communicators of this rank but for SPARE; none where there is no end."""
    from mpi4py import MPI  # noqa: PLC0415

    held: list[Any] = []
    with contextlib.suppress(MPI.Exception):
        while len(held) < MOST:
            held.append(MPI.COMM_SELF.Dup())
    for _ in range(SPARE if len(held) < MOST else len(held)):
        held.pop().Free()
    return held


def test_sessions_give_their_communicators_back(world: Ranks) -> None:
    comm = getattr(world, "comm", None)
    if comm is not None:
        from distbfs.ranks.mpi import MpiWorld  # noqa: PLC0415

        held = all_but_few()
        for _ in range(SPARE + 8 if held else MOST):
            MpiWorld(comm).free()
        for one in held:
            one.Free()
    graph = distbfs.Graph.from_edges([0], [1])
    if world.size > 1:
        with pytest.raises(UsageError, match="in the memory of one process"):
            distbfs.open(graph, comm=comm)
