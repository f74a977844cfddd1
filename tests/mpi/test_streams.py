"""Arrays that go between parts on streams, with the stand-in for NCCL."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import device_stand_in
import numpy as np
import pytest

from distbfs.exchange.nccl import NcclExchange
from distbfs.options import ExchangeOptions
from distbfs.partition.layout import Placement

if TYPE_CHECKING:
    from distbfs.ranks.world import Ranks

ROUNDS = 5


@pytest.mark.parametrize("each", [1, 2])
@pytest.mark.parametrize("domains", ["devices", "ranks"])
def test_what_crosses(
    world: Ranks, monkeypatch: pytest.MonkeyPatch, each: int, domains: str
) -> None:
    """Several arrays of two parts, in their order; parts that have none."""
    comm = world.comm.Dup() if world.size > 1 else None
    cp = device_stand_in.install(monkeypatch, comm, uuid=world.rank)
    owners = [[rank] * each for rank in range(world.size)]
    if domains == "devices":
        owners = [[rank] for rank in range(world.size) for _ in range(each)]
    placement = Placement.of_domains(owners, world.size)
    parts = range(placement.parts)
    mine = placement.parts_of(world.rank)
    exchange = NcclExchange(world, placement, 0, ExchangeOptions())
    streams = exchange.streams(range(each))
    streams.connect([[part for part in parts if part != own] for own in mine])
    random = np.random.default_rng(3)  # the same on all ranks
    for turn in range(ROUNDS):
        sizes = random.integers(0, 3, (len(parts), len(parts), 2))
        arrays = {
            (a, b): [np.array(random.integers(0, 9, k), np.uint64) for k in sizes[a, b]]
            for a, b in product(parts, parts)
            if a != b
        }
        leaving = [
            (place, part, cp.asarray(array))
            for place, own in enumerate(mine)
            for part in parts
            for array in arrays.get((own, part), ())
            if array.size
        ]
        streams.link.follow()
        coming, wanted = [], []
        for place, own in enumerate(mine):
            came = [(part, x) for part in parts for x in arrays.get((part, own), ())]
            space, start = streams.room(place, sum(x.size for _, x in came)), 0
            for part, array in came:
                if array.size:
                    coming.append((place, part, space[start : start + array.size]))
                    wanted.append(array)
                start += array.size
        counts = [cp.asarray(np.array([own, turn], np.uint64)) for own in mine]
        whole = [cp.empty(2 * len(parts), np.uint64) for _ in mine]
        streams.link.follow()
        streams.cross((), leaving, coming)
        streams.cross([(k, *x) for k, x in enumerate(zip(counts, whole, strict=True))])
        for place in range(each):
            with streams.here(place):
                done = cp.cuda.get_current_stream().record()
            streams.link.wait(done)
        for (_, _, array), values in zip(coming, wanted, strict=True):
            np.testing.assert_array_equal(array.get(), values)
        order = [
            part for rank in range(world.size) for part in placement.parts_of(rank)
        ]
        for array in whole:
            rows = array.get().reshape(-1, 2)
            np.testing.assert_array_equal(rows[:, 0], order)
            assert (rows[:, 1] == turn).all()
    exchange.close()
