"""Ranks that wait for a call leave their core to others and answer soon."""

from __future__ import annotations

import threading
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING

import numpy as np
import pytest

from distbfs.errors import UsageError
from distbfs.ranks.watch import Watch

if TYPE_CHECKING:
    from distbfs.ranks.world import Ranks


@pytest.mark.parametrize("wait", [0.0, 0.02])
@pytest.mark.parametrize(
    "value", [None, 7, {"op": "end", "ids": [1, 2]}, "x" * 300_000], ids=type
)
def test_everyone_gets_the_object(world: Ranks, value: object, wait: float) -> None:
    for root in {0, world.size - 1}:
        if world.rank == root:
            time.sleep(wait)
        given = value if world.rank == root else "not this"
        assert world.broadcast(given, root, patient=True) == value


def test_calls_stay_in_order_among_other_messages(world: Ranks) -> None:
    for k in range(50):
        assert world.broadcast(k if world.rank == 0 else None, patient=True) == k
        assert world.allreduce(np.array([k]))[0] == k * world.size
        sent = [np.array([k])] * world.size
        assert [int(x[0]) for x in world.alltoall(sent)] == [k] * world.size


def test_a_rank_that_waits_sleeps(world: Ranks) -> None:
    """Processor time of the wait, not wall time: a tenth is far above what it takes."""
    world.barrier()
    used = time.thread_time()
    if world.rank == 0:
        time.sleep(1.0)
    world.broadcast("now" if world.rank == 0 else None, patient=True)
    assert time.thread_time() - used < 0.1


def watched(world: Ranks, monkeypatch: pytest.MonkeyPatch, *waiting: int) -> list[str]:
    """Return what a watch says while some ranks wait in a collective, or all."""
    said: list[str] = []
    monkeypatch.setattr(
        threading, "excepthook", lambda args: said.append(str(args.exc_value))
    )
    with Watch(world, 0.6, lambda: False) as watch:
        with world.waits("allreduce") if world.rank in waiting else nullcontext():
            end = time.monotonic() + (30 if len(waiting) == world.size else 2)
            while not said and time.monotonic() < end:
                time.sleep(0.1)
        said.append(watch.trouble())
        world.barrier()
    return said


def test_ranks_that_wait_for_one_another_are_stuck(
    world: Ranks, monkeypatch: pytest.MonkeyPatch
) -> None:
    if world.size == 1:
        pytest.skip("needs several ranks")
    said = watched(world, monkeypatch, *range(world.size))
    assert "wait for one another for" in said[0]
    assert said[0].endswith("s in allreduce")
    assert "wait for one another" in said[1]


def test_a_slow_rank_is_not_stuck(
    world: Ranks, monkeypatch: pytest.MonkeyPatch
) -> None:
    if world.size == 1:
        pytest.skip("needs several ranks")
    assert watched(world, monkeypatch, *range(1, world.size)) == [""]


def test_only_json(world: Ranks) -> None:
    if world.rank == 0:
        with pytest.raises(UsageError, match="only JSON-like"):
            world.broadcast({1, 2}, patient=True)
    world.barrier()
