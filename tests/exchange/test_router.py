"""Items reach the ranks that own them, in order, and answers come back."""

import numpy as np
import pytest
from graphs import build, random_tuples
from worlds import on_ranks

from distbfs.exchange.part_rows import to_parts
from distbfs.exchange.router import Delivery, gather, send, swap
from distbfs.partition.layout import Placement
from distbfs.partition.part import NUMBER_MASK, PART_SHIFT

RANKS = (1, 2, 3, 4)
LOADS = ("even", "to one", "to none", "of one", "nothing")


def owners_of(load, world, count=50):
    """Owners of the items of a rank; some ranks have none, or get none."""
    rng = np.random.default_rng(7 * world.rank + 1)
    owners = rng.integers(0, world.size, count)
    if load == "to one":
        owners[:] = world.size - 1
    if load == "to none":
        owners[owners == 0] = world.size - 1
    if load == "nothing" or (load == "of one" and world.rank):
        owners = owners[:0]
    return owners


def all_items(load, ranks):
    """The items (rank, place) of all ranks, and their owners."""

    def rank(world):
        owners = owners_of(load, world)
        ranks = np.full(len(owners), world.rank)
        return np.column_stack([ranks, np.arange(len(owners))]), owners

    return [np.concatenate(x) for x in zip(*on_ranks(ranks, rank), strict=True)]


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("wide", [False, True])
def test_items(ranks, load, wide):
    """Those of a sender arrive in their order, and those of lower ranks first."""
    items, owners = all_items(load, ranks)

    def rank(world):
        own = items[items[:, 0] == world.rank]
        return send(world, own if wide else own[:, 1], owners_of(load, world))

    for number, arrived in enumerate(on_ranks(ranks, rank)):
        wanted = items[owners == number]
        np.testing.assert_array_equal(arrived, wanted if wide else wanted[:, 1])


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("dtype", [np.uint32, np.int64])
def test_answers(ranks, load, dtype):
    """Each question gets the answer of its owner, whose delivery can be used again."""

    def rank(world):
        owners = owners_of(load, world)
        asked = np.random.default_rng(world.rank).integers(0, 1000, len(owners))
        delivery = Delivery(world, owners)
        for times in (1, 3):

            def answer(some, times=times):
                return (times * some + 10_000 * world.rank).astype(dtype)

            replies = delivery.ask(asked, answer)
            assert replies.dtype == dtype
            np.testing.assert_array_equal(replies, times * asked + 10_000 * owners)

    on_ranks(ranks, rank)


@pytest.mark.parametrize("ranks", RANKS)
def test_all_to_the_first(ranks):
    def rank(world):
        return [x.tolist() for x in gather(world, np.full(world.rank, world.rank))]

    first, *others = on_ranks(ranks, rank)
    assert first == [[number] * number for number in range(ranks)]
    assert others == [[[]] * ranks] * (ranks - 1)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("parts", [1, 2])
def test_rows_to_parts_of_vertices(ranks, parts):
    source = random_tuples(90, 200, seed=4)

    def rank(world):
        made, _ = build(source, parts * world.size, world, threshold=5)
        rng = np.random.default_rng(world.rank)
        table = np.zeros((40, 3), dtype=np.uint64)
        part = rng.integers(0, parts * world.size, 40).astype(np.uint64)
        number = rng.integers(0, 9, 40).astype(np.uint64)
        table[:, 0] = part << np.uint64(PART_SHIFT) | number
        table[:, 1], table[:, 2] = part, number
        placement = Placement(parts * world.size, world.size)
        seen = 0
        for place, numbers, rest in to_parts(world, placement, made, table):
            np.testing.assert_array_equal(rest[:, 0], made[place].index)
            np.testing.assert_array_equal(rest[:, 1], numbers)
            assert numbers.max(initial=0) <= NUMBER_MASK
            seen += len(numbers)
        return seen

    assert sum(on_ranks(ranks, rank)) == 40 * ranks


@pytest.mark.parametrize("counts", [(1,), (2,), (1, 1), (2, 1), (1, 3, 2)])
@pytest.mark.parametrize("kind", [np.uint32, np.uint64])
def test_between_devices(counts, kind):
    """Each gets what each has for it; numbers need not follow the ranks."""
    total = sum(counts)
    numbers = np.random.default_rng(3).permutation(total)
    seats = [x.tolist() for x in np.split(numbers, np.cumsum(counts)[:-1])]

    def box(sender, target):
        return np.full((sender + 2 * target) % 4, 10 * sender + target, kind)

    def rank(world):
        mine = seats[world.rank]
        boxes = [[box(x, y) for y in range(total)] for x in mine]
        arrived = swap(world, boxes, seats, np.dtype(kind))
        for target, came in zip(mine, arrived, strict=True):
            for sender, values in enumerate(came):
                assert values.dtype == kind
                np.testing.assert_array_equal(values, box(sender, target))

    on_ranks(len(counts), rank)
