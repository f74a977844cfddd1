"""What ``distbfs doctor`` measures between ranks."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import device_stand_in
import pytest

from distbfs.cli import links
from distbfs.exchange.nccl_link import link_of

if TYPE_CHECKING:
    from distbfs.ranks.world import Ranks


def check_pairs(world: Ranks, pairs: list[dict[str, Any]]) -> None:
    """Each pair of ranks once, on all ranks alike."""
    every = [tuple(one["ranks"]) for one in pairs]
    assert sorted(every) == list(combinations(range(world.size), 2))
    assert all(one["hosts"] == 1 for one in pairs)
    assert all(one["latency"] > 0 and one["rate"] > 0 for one in pairs)
    assert world.broadcast(pairs) == pairs


def test_messages(world: Ranks) -> None:
    facts = links.link_facts(world)
    assert facts["transfers"] == []
    check_pairs(world, facts["messages"])
    assert (facts["exchange"], facts["domains"]) == ("host", None)


def test_long_messages_take_longer(world: Ranks) -> None:
    """The rate is of the bytes that were sent, not of a word."""
    pairs = links.pairs_of(world, links.messages(world)) if world.size > 1 else []
    for one in pairs:
        assert links.LONG / one["rate"] > one["latency"]


def test_transfers_by_nccl(world: Ranks, monkeypatch: pytest.MonkeyPatch) -> None:
    comm = world.comm.Dup() if world.size > 1 else None
    device_stand_in.install(monkeypatch, comm, uuid=world.rank)
    swapped = []

    def counted(link: Any) -> links.Swap:
        swap = links.transfers(link)

        def count(other: int, size: int) -> None:
            swapped.append((other, size))
            swap(other, size)

        return count

    check_pairs(world, links.pairs_of(world, counted(link_of(world))))
    others = set(range(world.size)) - {world.rank}
    assert {other for other, _ in swapped} == others
    assert {size for _, size in swapped} == (
        {links.WORD, links.LONG} if others else set()
    )


def test_hosts_are_told_apart(world: Ranks, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"host{rank % 2}" for rank in range(world.size)]
    monkeypatch.setattr(world, "hosts", names)
    for one in links.link_facts(world)["messages"]:
        a, b = one["ranks"]
        assert one["hosts"] == 1 + (a % 2 != b % 2)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 8, 31, 32])
def test_all_meet_once(size: int) -> None:
    met = [list(links.partners(size, index)) for index in range(size)]
    for index, others in enumerate(met):
        for turn, other in enumerate(others):
            assert other is None or met[other][turn] == index
        ranks = [x for x in others if x is not None]
        assert sorted(ranks) == [x for x in range(size) if x != index]


def test_many_ranks_meet_some() -> None:
    size = 1000
    met = [list(links.partners(size, index)) for index in range(size)]
    for index, others in enumerate(met):
        assert len(others) == links.ROUNDS
        assert all(x is None or met[x][k] == index for k, x in enumerate(others))
        ranks = {x for x in others if x is not None}
        assert index not in ranks
        assert len(ranks) == links.ROUNDS - others.count(None) >= 24
        far = sum(abs(x - index) >= 64 for x in ranks)
        assert 0 < far < len(ranks)  # on other hosts, and on its own
