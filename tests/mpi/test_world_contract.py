"""What every World does, on the ranks that were started; expectations by NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from distbfs.errors import UsageError
from distbfs.ranks.world import MpiWorld, Ranks, SoloWorld

DTYPES = ["int32", "uint32", "int64", "uint64", "float64", "uint8"]


@pytest.fixture(params=[3, None], ids=["chunk-3", "chunk-max"])
def ranks(world: Ranks, request: pytest.FixtureRequest) -> Ranks:
    """The world with short and with long messages."""
    if isinstance(world, SoloWorld):
        return world
    if request.param is None:
        return world
    return MpiWorld(world.comm, chunk_elements=request.param)


def values_of(rank: int, count: int, dtype: str) -> np.ndarray:
    """The same on every rank that asks: random numbers of a rank."""
    generator = np.random.default_rng([rank, count])
    return generator.integers(0, 100, count).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", ["sum", "max", "min"])
@pytest.mark.parametrize("count", [0, 1, 10])
def test_allreduce(ranks: Ranks, dtype: str, op: str, count: int) -> None:
    mine = values_of(ranks.rank, count, dtype)
    before = mine.copy()
    result = ranks.allreduce(mine, op)
    every = np.array([values_of(r, count, dtype) for r in range(ranks.size)])
    expected = {"sum": np.add, "max": np.maximum, "min": np.minimum}[op]
    np.testing.assert_array_equal(result, expected.reduce(every, axis=0).astype(dtype))
    assert result.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(mine, before)
    assert not np.shares_memory(mine, result)


@pytest.mark.parametrize("dtype", ["uint64", "uint32", "int64", "bool"])
def test_allreduce_or(ranks: Ranks, dtype: str) -> None:
    mine = np.zeros(70, dtype=dtype)
    mine[ranks.rank] = 1
    result = ranks.allreduce(mine, "or")
    np.testing.assert_array_equal(result, np.arange(70) < ranks.size)
    assert result.dtype == np.dtype(dtype)


def test_allreduce_keeps_the_shape(ranks: Ranks) -> None:
    whole = np.arange(24, dtype=np.int64).reshape(4, 6)
    assert ranks.allreduce(whole[:, ::2]).shape == (4, 3)
    np.testing.assert_array_equal(
        ranks.allreduce(whole[:, ::2]), whole[:, ::2] * ranks.size
    )
    assert ranks.allreduce(np.int64(2)).shape == ()


def test_allreduce_refuses(ranks: Ranks) -> None:
    with pytest.raises(UsageError, match="does not take"):
        ranks.allreduce(np.ones(2), "or")
    with pytest.raises(UsageError, match="allowed: sum, max, min, or"):
        ranks.allreduce(np.ones(2), "product")


@pytest.mark.parametrize("dtype", DTYPES)
def test_allgather_of_different_lengths(ranks: Ranks, dtype: str) -> None:
    lengths = [(5 * r) % 12 for r in range(ranks.size)]
    arrays = ranks.allgather(values_of(ranks.rank, lengths[ranks.rank], dtype))
    assert len(arrays) == ranks.size
    for r, array in enumerate(arrays):
        np.testing.assert_array_equal(array, values_of(r, lengths[r], dtype))
        assert array.dtype == np.dtype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scale", [0, 1, 4])
def test_alltoall_of_any_length(ranks: Ranks, dtype: str, scale: int) -> None:
    size = ranks.size

    def sent(source: int, target: int) -> np.ndarray:
        count = scale * ((source + 2 * target) % 4)
        return values_of(source * size + target, count, dtype)

    arrays = ranks.alltoall([sent(ranks.rank, r) for r in range(size)])
    assert len(arrays) == size
    for r, array in enumerate(arrays):
        np.testing.assert_array_equal(array, sent(r, ranks.rank))
        assert array.dtype == np.dtype(dtype)


def test_results_are_copies(ranks: Ranks) -> None:
    mine = np.arange(4)
    received = ranks.alltoall([mine] * ranks.size)
    gathered = ranks.allgather(mine)
    mine[:] = 9
    np.testing.assert_array_equal(received[ranks.rank], np.arange(4))
    np.testing.assert_array_equal(gathered[ranks.rank], np.arange(4))


def test_broadcast(ranks: Ranks) -> None:
    for root in range(ranks.size):
        value = {"root": root, "list": [1, 2.5, None, True, "ü"], "nested": {"a": []}}
        given = value if ranks.rank == root else None
        assert ranks.broadcast(given, root) == value
    assert ranks.broadcast((1, 2)) == [1, 2]


def test_broadcast_refuses_on_the_root() -> None:
    with pytest.raises(UsageError, match="JSON-like"):
        SoloWorld().broadcast({1, 2})


def test_describe(ranks: Ranks) -> None:
    told = ranks.describe()
    assert told["ranks"] == ranks.size
    assert sum(told["hosts"].values()) == ranks.size
    assert 0 <= ranks.local_rank < ranks.local_size <= ranks.size
    expected = ranks.hosts.count(ranks.hosts[ranks.rank])
    assert ranks.local_size == expected
    ranks.barrier()


@pytest.mark.mpi(min_size=2)
def test_local_ranks_count_from_zero(world: MpiWorld) -> None:
    gathered = world.allgather(np.array([world.local_rank]))
    for host in set(world.hosts):
        here = [r for r, name in enumerate(world.hosts) if name == host]
        found = [int(gathered[r][0]) for r in here]
        assert found == list(range(len(found)))


def test_end_is_agreed(ranks: Ranks) -> None:
    ranks.finish()
    ranks.finish()
