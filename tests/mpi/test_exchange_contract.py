"""What every exchange does, over the registry, compared with plain NumPy.

All ranks draw the same random levels from a common seed and so know what each part
must receive.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from distbfs.errors import LaunchError, ResourceError, UsageError
from distbfs.options import SearchOptions
from distbfs.partition.layout import Placement
from distbfs.registry import EXCHANGES, lookup

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distbfs.exchange.world import Ranks

LONGEST = (1 << 31) - 1
DELEGATES = 200
Level = tuple[list[np.ndarray], list[list[np.ndarray]]]


@contextmanager
def exchange_of(
    name: str, world: Ranks, per_rank: int, delegates: int = DELEGATES, **options: Any
) -> Iterator[Any]:
    """An exchange from the registry; skips where it does not serve this world."""
    placement = Placement(per_rank * world.size, world.size)
    factory = lookup(EXCHANGES, "exchange", name)
    try:
        exchange = factory(world, placement, delegates, SearchOptions(**options))
    except (UsageError, ResourceError) as error:
        if name == "host" or (name == "solo" and world.size == 1):
            raise
        pytest.skip(str(error))
    try:
        yield exchange
    finally:
        exchange.close()


def random_level(parts: int, seed: int, delegates: int = DELEGATES) -> Level:
    """Masks [parts] and bins [source][destination]; a third of the bins is empty."""
    generator = np.random.default_rng([parts, seed])
    words = (delegates + 63) // 64
    masks = [
        generator.integers(0, 1 << 63, words, dtype=np.uint64) for _ in range(parts)
    ]
    bins = []
    for _ in range(parts):
        counts = generator.integers(0, 8, parts) * generator.integers(0, 2, parts)
        bins.append([generator.integers(0, 40, n, dtype=np.uint32) for n in counts])
    return masks, bins


def expected_normals(
    world: Ranks, bins: list[list[np.ndarray]]
) -> list[list[tuple[int, np.ndarray]]]:
    """What each part of this rank receives, by source rank."""
    parts = len(bins)
    received = []
    for part in range(world.rank, parts, world.size):
        sources = []
        for rank in range(world.size):
            arrays = [bins[source][part] for source in range(rank, parts, world.size)]
            array = np.concatenate(arrays)
            if array.size:
                sources.append((rank, array))
        received.append(sources)
    return received


def same_normals(found: Any, expected: Any, *, unique: bool = False) -> None:
    """Compare what was received; as sets where duplicates may be removed."""
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert [rank for rank, _ in one] == [rank for rank, _ in other]
        for (_, array), (_, wanted) in zip(one, other, strict=True):
            assert array.dtype == np.uint32
            prepared = np.unique if unique else np.asarray
            np.testing.assert_array_equal(prepared(array), prepared(wanted))


def mine(world: Ranks, items: list[Any]) -> list[Any]:
    """The items of this rank's parts in device order."""
    return items[world.rank :: world.size]


def run_level(exchange: Any, world: Ranks, level: Level) -> tuple[Any, Any]:
    """One level with masks and normals under way together."""
    masks, bins = level
    exchange.start_masks(mine(world, masks))
    exchange.start_normals(mine(world, bins))
    mask = exchange.finish_masks()
    return mask, exchange.finish_normals()


@pytest.mark.parametrize("name", EXCHANGES)
@pytest.mark.parametrize("per_rank", [1, 2, 3])
@pytest.mark.parametrize("chunk", [1, 3, LONGEST])
@pytest.mark.parametrize("local_all2all", [False, True], ids=["-", "L"])
@pytest.mark.parametrize("uniquify", [False, True], ids=["-", "U"])
@pytest.mark.parametrize("reduce", ["blocking", "nonblocking"])
def test_levels_in_a_row(
    world: Ranks,
    name: str,
    per_rank: int,
    chunk: int,
    local_all2all: bool,
    uniquify: bool,
    reduce: str,
) -> None:
    options = {
        "chunk_elements": chunk,
        "local_all2all": local_all2all,
        "uniquify": uniquify,
        "mask_reduce": reduce,
    }
    with exchange_of(name, world, per_rank, **options) as exchange:
        for seed in range(4):
            level = random_level(per_rank * world.size, seed)
            mask, received = run_level(exchange, world, level)
            np.testing.assert_array_equal(mask, np.bitwise_or.reduce(level[0]))
            assert mask.dtype == np.uint64
            same_normals(received, expected_normals(world, level[1]), unique=uniquify)


@pytest.mark.parametrize("name", EXCHANGES)
@pytest.mark.parametrize("reduce", ["blocking", "nonblocking"])
def test_orders_of_start_and_finish(world: Ranks, name: str, reduce: str) -> None:
    masks, bins = random_level(2 * world.size, 9)
    wanted_mask = np.bitwise_or.reduce(masks)
    wanted = expected_normals(world, bins)
    with exchange_of(name, world, 2, mask_reduce=reduce) as exchange:
        for _ in range(2):
            exchange.start_normals(mine(world, bins))
            exchange.start_masks(mine(world, masks))
            same_normals(exchange.finish_normals(), wanted)
            np.testing.assert_array_equal(exchange.finish_masks(), wanted_mask)
            exchange.start_masks(mine(world, masks))
            exchange.start_normals(mine(world, bins))
            same_normals(exchange.finish_normals(), wanted)
            np.testing.assert_array_equal(exchange.finish_masks(), wanted_mask)
        # levels without any delegate found send only normals, and the reverse
        exchange.start_normals(mine(world, bins))
        same_normals(exchange.finish_normals(), wanted)
        exchange.start_masks(mine(world, masks))
        np.testing.assert_array_equal(exchange.finish_masks(), wanted_mask)


@pytest.mark.parametrize("name", EXCHANGES)
def test_results_outlive_the_next_level(world: Ranks, name: str) -> None:
    levels = [random_level(2 * world.size, seed) for seed in range(3)]
    with exchange_of(name, world, 2) as exchange:
        before = run_level(exchange, world, levels[0])
        for level, last in zip(levels[1:], levels[:-1], strict=True):
            now = run_level(exchange, world, level)
            np.testing.assert_array_equal(before[0], np.bitwise_or.reduce(last[0]))
            same_normals(before[1], expected_normals(world, last[1]))
            before = now


@pytest.mark.parametrize("name", EXCHANGES)
def test_inputs_are_left_alone(world: Ranks, name: str) -> None:
    masks, bins = random_level(2 * world.size, 5)
    again, bins_again = random_level(2 * world.size, 5)
    with exchange_of(name, world, 2, local_all2all=True, uniquify=True) as exchange:
        run_level(exchange, world, (masks, bins))
    np.testing.assert_array_equal(masks, again)
    for row, wanted in zip(bins, bins_again, strict=True):
        for array, other in zip(row, wanted, strict=True):
            np.testing.assert_array_equal(array, other)


@pytest.mark.parametrize("name", EXCHANGES)
def test_without_delegates_and_without_normals(world: Ranks, name: str) -> None:
    parts = 2 * world.size
    nothing = [[np.empty(0, np.uint32)] * parts] * parts
    no_masks = [np.empty(0, np.uint64)] * parts
    with exchange_of(name, world, 2, delegates=0) as exchange:
        mask, received = run_level(exchange, world, (no_masks, nothing))
        assert mask.size == 0
        assert received == [[], []]
        assert exchange.traffic.normals_sent == 0


@pytest.mark.parametrize("name", EXCHANGES)
@pytest.mark.parametrize("reduce", ["blocking", "nonblocking"])
def test_ranks_at_different_speeds(world: Ranks, name: str, reduce: str) -> None:
    """A rank that is a level ahead must not take messages of the level before."""
    generator = np.random.default_rng(world.rank)
    with exchange_of(name, world, 1, mask_reduce=reduce) as exchange:
        for seed in range(30):
            level = random_level(world.size, seed)
            busy = np.ones(int(generator.integers(1, 20000)))
            assert float(np.sort(busy).sum()) == busy.size
            mask, received = run_level(exchange, world, level)
            np.testing.assert_array_equal(mask, np.bitwise_or.reduce(level[0]))
            same_normals(received, expected_normals(world, level[1]))


@pytest.mark.parametrize("name", EXCHANGES)
@pytest.mark.parametrize("local_all2all", [False, True], ids=["-", "L"])
def test_traffic(world: Ranks, name: str, local_all2all: bool) -> None:
    per_rank, size = 3, world.size
    masks, bins = random_level(per_rank * size, 3)
    with exchange_of(name, world, per_rank, local_all2all=local_all2all) as exchange:
        run_level(exchange, world, (masks, bins))
        traffic = exchange.traffic
    remote = [
        array.size
        for row in mine(world, bins)
        for part, array in enumerate(row)
        if part % size != world.rank
    ]
    assert traffic.normals_sent == sum(remote)
    assert traffic.normal_bytes == 4 * sum(remote)
    if name == "host":
        pairs = per_rank * (size - 1) * (1 if local_all2all else per_rank)
        assert traffic.messages == pairs
        assert traffic.mask_bytes == (masks[0].nbytes if size > 1 else 0)


@pytest.mark.mpi(min_size=2)
def test_uniquify_sends_each_vertex_once(world: Ranks) -> None:
    parts = 2 * world.size
    bins = [[np.full(5, 7, np.uint32)] * parts] * parts
    masks = [np.zeros(1, np.uint64)] * parts
    for both, count in ((False, 2), (True, 1)):
        options = {"uniquify": True, "local_all2all": both}
        with exchange_of("host", world, 2, delegates=1, **options) as exchange:
            _, received = run_level(exchange, world, (masks, bins))
        for sources in received:
            for rank, array in sources:
                assert array.size == (10 if rank == world.rank else count)


@pytest.mark.mpi(min_size=2)
def test_solo_refuses_several_ranks(world: Ranks) -> None:
    solo = lookup(EXCHANGES, "exchange", "solo")
    placement = Placement(world.size, world.size)
    with pytest.raises(UsageError, match="allowed: host"):
        solo(world, placement, 1, SearchOptions())


@pytest.mark.parametrize("name", ["host", "solo"])
def test_placement_for_other_ranks_is_refused(world: Ranks, name: str) -> None:
    if name == "solo" and world.size > 1:
        pytest.skip("solo serves 1 rank")
    factory = lookup(EXCHANGES, "exchange", name)
    other = world.size + 1
    with pytest.raises(LaunchError, match=f"placed on {other} ranks"):
        factory(world, Placement(other, other), 1, SearchOptions())


@pytest.mark.parametrize("name", EXCHANGES)
def test_close_with_something_under_way_does_not_wait(world: Ranks, name: str) -> None:
    masks, bins = random_level(world.size, 1)
    with exchange_of(name, world, 1, mask_reduce="nonblocking") as exchange:
        exchange.start_masks(mine(world, masks))
        exchange.start_normals(mine(world, bins))
    exchange.close()
    world.barrier()
