"""What ``distbfs doctor`` says of the exchange between ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distbfs.cli import trials

if TYPE_CHECKING:
    from distbfs.ranks.world import Ranks


def test_without_devices(world: Ranks) -> None:
    facts = trials.link_facts(world)
    assert (facts["exchange"], facts["domains"]) == ("host", None)
    assert facts["reason"]
    assert world.broadcast(facts) == facts
