"""Searches over the ranks that were started: valid there, with the levels of one."""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from graphs import NAMED, Tuples, build, random_tuples, some_roots, some_sets
from sessions import open_parts

from distbfs.errors import UsageError
from distbfs.exchange.traffic import KINDS
from distbfs.generate.hashing import Permutation
from distbfs.options import SearchOptions
from distbfs.ranks.world import SoloWorld
from distbfs.types import slice_bounds
from distbfs.validation.host import validate

if TYPE_CHECKING:
    from distbfs.ranks.world import Ranks

SEED = 5
OWN_ROWS = "own rows"
GRAPHS = {
    "kronecker": NAMED["kronecker"],
    "random": random_tuples(300, 700, seed=8),
    "two-hubs": NAMED["two-hubs"],
    "path": Tuples(12, range(11), range(1, 12)),
    "one-vertex": NAMED["one-vertex"],
}
OPTIONS = [
    {"local_all2all": a, "uniquify": u, "mask_reduce": m}
    for a, u, m in product([False, True], [False, True], ["blocking", "nonblocking"])
]


def name_of(options: dict[str, Any]) -> str:
    """L, U, BR and IR as in the paper."""
    reduction = "BR" if options["mask_reduce"] == "blocking" else "IR"
    return reduction + "L" * options["local_all2all"] + "U" * options["uniquify"]


@cache
def parts_of(
    world: Ranks, name: str, per_rank: int, threshold: int | str | None
) -> Any:
    """The parts of this rank; every rank asks for the same in the same order.

    threshold: OWN_ROWS for parts that own rows
    """
    options: dict[str, Any] = {"threshold": threshold, "permute_seed": SEED}
    if threshold == OWN_ROWS:
        options |= {"threshold": None, "owned": True}
    return build(GRAPHS[name], per_rank * world.size, world, **options)


def check(
    world: Ranks, name: str, parts: Any, options: SearchOptions, roots: Any = None
) -> None:
    """Search from a few roots, or from each of ``roots``; collective."""
    source = GRAPHS[name]
    permutation = Permutation(source.n, SEED) if source.n > 1 else None
    session = open_parts(world, parts, options, permutation)
    low, high = slice_bounds(source.n, world.size, world.rank)
    for root in roots or some_roots(source, 2):
        outcome = session.search(root, records=True)
        level, parent = outcome.to_numpy()
        wanted = source.distances(root)
        np.testing.assert_array_equal(level, wanted[low:high])
        assert outcome.depth + 1 == wanted.max() + 1 == len(outcome.records)
        assert (parent is None) is not options.parents
        answer = validate(world, source, root, level, parent, threads=1)
        assert answer.valid, answer.errors
        assert answer.nedge == outcome.nedge
    session.close()


@pytest.mark.parametrize("name", ["kronecker", "two-hubs"])
@pytest.mark.parametrize("per_rank", [1, 2])
@pytest.mark.parametrize("options", OPTIONS, ids=name_of)
def test_options_of_the_exchange(
    world: Ranks, name: str, per_rank: int, options: dict[str, Any]
) -> None:
    parts, _ = parts_of(world, name, per_rank, 4)
    check(world, name, parts, SearchOptions.named(threads=1, stepwise=True, **options))


@pytest.mark.parametrize("name", ["kronecker", "random", "path"])
@pytest.mark.parametrize("per_rank", [1, 2])
@pytest.mark.parametrize("threshold", [4, OWN_ROWS])
@pytest.mark.parametrize("direction", ["auto", "push", "pull"])
def test_vertices_in_two_hops(
    world: Ranks, name: str, per_rank: int, threshold: int | str, direction: str
) -> None:
    parts, _ = parts_of(world, name, per_rank, threshold)
    form = {"threads": 1, "stepwise": True, "direction": direction}
    check(world, name, parts, SearchOptions.named(relay_from=2, **form))


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("per_rank", [1, 2])
@pytest.mark.parametrize("threshold", [None, 0, 10**9, OWN_ROWS])
def test_thresholds(
    world: Ranks, name: str, per_rank: int, threshold: int | str | None
) -> None:
    parts, _ = parts_of(world, name, per_rank, threshold)
    check(world, name, parts, SearchOptions(threads=1))


@pytest.mark.parametrize("per_rank", [1, 2])
@pytest.mark.parametrize("parents", [True, False], ids=["parents", "levels"])
@pytest.mark.parametrize("direction", ["auto", "push", "pull"])
@pytest.mark.parametrize("threshold", [8, OWN_ROWS])
def test_directions(
    world: Ranks, per_rank: int, parents: bool, direction: str, threshold: int | str
) -> None:
    parts, _ = parts_of(world, "kronecker", per_rank, threshold)
    options = SearchOptions(threads=1, parents=parents, direction=direction)
    check(world, "kronecker", parts, options)


@pytest.mark.parametrize("engine", ["openmp", "reference"])
@pytest.mark.parametrize("name", GRAPHS)
def test_sets(world: Ranks, name: str, engine: str) -> None:
    """Of several parts, delegates and others; and from one vertex after each."""
    for threshold in (0, 4, 10**9, OWN_ROWS):
        parts, _ = parts_of(world, name, 1, threshold)
        roots = [x for some in some_sets(GRAPHS[name]) for x in (some, int(some[0]))]
        options = SearchOptions(engine=engine, threads=1)
        check(world, name, parts, options, roots)


@pytest.mark.parametrize("chunk", [1, 7])
def test_short_messages(world: Ranks, chunk: int) -> None:
    parts, _ = parts_of(world, "two-hubs", 2, 4)
    check(
        world, "two-hubs", parts, SearchOptions.named(threads=1, chunk_elements=chunk)
    )


def test_the_reference_engine(world: Ranks) -> None:
    parts, _ = parts_of(world, "random", 2, 4)
    check(world, "random", parts, SearchOptions(engine="reference"))


@pytest.mark.parametrize("engine", ["openmp", "reference"])
@pytest.mark.parametrize("name", ["kronecker", "two-hubs", "path"])
@pytest.mark.parametrize("per_rank", [1, 2])
@pytest.mark.parametrize("threshold", [0, 4, 10**9, OWN_ROWS])
def test_searches_that_end_early(
    world: Ranks, engine: str, name: str, per_rank: int, threshold: int | str
) -> None:
    """No rank has a level beyond the last one; all leave the loop together."""
    source = GRAPHS[name]
    parts, _ = parts_of(world, name, per_rank, threshold)
    permutation = Permutation(source.n, SEED)
    options = SearchOptions(engine=engine, threads=1, stepwise=True)
    session = open_parts(world, parts, options, permutation)
    low, high = slice_bounds(source.n, world.size, world.rank)
    for root in some_roots(source, 2):
        wanted = source.distances(root)
        far, lost = int(wanted.argmax()), np.flatnonzero(wanted < 0)
        for depth, ids in ((0, []), (1, []), (None, [root]), (None, [far, root])):
            found = session.search(root, depth_limit=depth, targets=ids)
            last = wanted[ids].max() if ids else min(depth, wanted.max())
            level, parent = found.to_numpy()
            capped = np.where(wanted <= last, wanted, -1)[low:high]
            np.testing.assert_array_equal(level, capped)
            np.testing.assert_array_equal(parent < 0, capped < 0)
            assert found.depth == last
        if len(lost):
            level, _ = session.search(root, targets=lost[:1]).to_numpy()
            np.testing.assert_array_equal(level, wanted[low:high])
    session.close()


@pytest.mark.parametrize("name", ["kronecker", "random"])
@pytest.mark.parametrize("per_rank", [1, 2])
def test_ranks_build_what_one_process_builds(
    world: Ranks, name: str, per_rank: int
) -> None:
    made, summary = parts_of(world, name, per_rank, 4)
    options = {"threshold": 4, "permute_seed": SEED}
    alone, wanted = build(GRAPHS[name], per_rank * world.size, SoloWorld(), **options)
    assert (summary.m, summary.loops, summary.repeats, summary.edges) == (
        wanted.m,
        wanted.loops,
        wanted.repeats,
        wanted.edges,
    )
    assert [part.index for part in made] == list(
        range(world.rank, per_rank * world.size, world.size)
    )
    for part in made:
        other = alone[part.index]
        for graph in ("nn", "nd", "dn", "dd"):
            one, two = getattr(part, graph), getattr(other, graph)
            np.testing.assert_array_equal(one.offsets, two.offsets)
            np.testing.assert_array_equal(one.columns, two.columns)
        for array in ("vertices", "degrees", "tuple_degrees", "delegates"):
            np.testing.assert_array_equal(getattr(part, array), getattr(other, array))


@pytest.mark.parametrize("per_rank", [1, 2])
@pytest.mark.parametrize("local_all2all", [False, True], ids=["-", "L"])
@pytest.mark.parametrize("direction", ["push", "pull"])
def test_records_of_what_is_sent(
    world: Ranks, per_rank: int, local_all2all: bool, direction: str
) -> None:
    """Bytes and messages agree by kind, domains add up to them, parents come last."""
    parts, _ = parts_of(world, "random", per_rank, 8)
    options = {"threads": 1, "stepwise": True, "local_all2all": local_all2all}
    options |= {"direction": direction}
    session = open_parts(
        world, parts, SearchOptions.named(**options), Permutation(300, SEED)
    )
    found = session.search(int(GRAPHS["random"].degrees.argmax()), records=True)
    total: Counter[str] = Counter()
    for record in found.records:
        size, messages = record["bytes_sent"], record["messages_sent"]
        total.update(messages)
        assert set(size) == set(messages) == set(KINDS)
        assert all((size[kind] > 0) == (messages[kind] > 0) for kind in KINDS)
        assert len(record["domains"]) == (per_rank if per_rank > 1 else 0)
        for own in record["domains"]:
            assert own["bytes_sent"]["masks"] == own["messages_sent"]["masks"] == 0
        if per_rank > 1:
            each = sum(own["bytes_sent"]["normals"] for own in record["domains"])
            assert each == size["normals"]
    for record in found.records[:-1]:
        assert record["messages_sent"]["parents"] == 0
    along = ("normals",) if direction == "push" else ("questions", "answers")
    for kind in KINDS:
        sent = world.size > 1 and kind in ("masks", "parents", *along)
        assert bool(total[kind]) == sent, kind
    session.close()


def test_a_source_that_is_no_vertex(world: Ranks) -> None:
    parts, _ = parts_of(world, "two-hubs", 1, 4)
    session = open_parts(world, parts, SearchOptions(threads=1))
    with pytest.raises(UsageError, match="source 70 is not a vertex"):
        session.search(70)
    session.close()
