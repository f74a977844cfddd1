"""Ranks that wait for a call leave their core to others and answer soon."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import pytest

from distbfs.errors import UsageError

if TYPE_CHECKING:
    from distbfs.exchange.world import Ranks


@pytest.mark.parametrize("wait", [0.0, 0.02])
@pytest.mark.parametrize(
    "value", [None, 7, {"op": "end", "ids": [1, 2]}, "x" * 300_000], ids=type
)
def test_everyone_gets_the_object(world: Ranks, value: object, wait: float) -> None:
    for root in {0, world.size - 1}:
        if world.rank == root:
            time.sleep(wait)
        given = value if world.rank == root else "not this"
        assert world.patient_broadcast(given, root) == value


def test_calls_stay_in_order_among_other_messages(world: Ranks) -> None:
    for k in range(50):
        assert world.patient_broadcast(k if world.rank == 0 else None) == k
        assert world.allreduce(np.array([k]))[0] == k * world.size
        sent = [np.array([k])] * world.size
        assert [int(x[0]) for x in world.alltoall(sent)] == [k] * world.size


def test_a_rank_that_waits_sleeps(world: Ranks) -> None:
    """Processor time of the wait, not wall time: a tenth is far above what it takes."""
    world.barrier()
    used = time.thread_time()
    if world.rank == 0:
        time.sleep(1.0)
    world.patient_broadcast("now" if world.rank == 0 else None)
    assert time.thread_time() - used < 0.1


def test_only_json(world: Ranks) -> None:
    if world.rank == 0:
        with pytest.raises(UsageError, match="only JSON-like"):
            world.patient_broadcast({1, 2})
    world.barrier()
