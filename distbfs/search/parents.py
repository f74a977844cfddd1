"""Completion of a distributed search's parents, after its last level.

A vertex found inside a part has its parent there; a vertex that is sent carries its
parent. A delegate has an owner like any vertex; if the owner did not find it, the parts
that found it know its parent. Source: Pan, Pearce, Owens 2018, Section VI-A3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from distbfs.engines.base import ASKED, OWN

if TYPE_CHECKING:
    from distbfs.engines.base import DomainSearch
    from distbfs.exchange.base import Exchange
    from distbfs.exchange.traffic import Traffic
    from distbfs.search.runners.streamed import StreamedLevels
    from distbfs.types import World


@dataclass
class ParentCost:
    """Cost of completing the parents of a search on this rank.

    bytes_sent, messages_sent: sent to other ranks; a reduction or gather counts once
    """

    bytes_sent: int = 0
    messages_sent: int = 0


def complete_parents(
    world: World,
    exchange: Exchange,
    searches: Sequence[DomainSearch],
    streamed: StreamedLevels | None,
) -> None:
    """Set the parent of every reached delegate of this rank (collective)."""
    first = searches[0]
    if first.parents == OWN or not first.part.delegate_count:
        return
    if streamed is not None:
        streamed.complete()
    elif first.parents == ASKED:
        _ask(exchange, searches)
    else:
        _share_largest(world, exchange.traffic, searches)


def _share_largest(
    world: World, traffic: Traffic, searches: Sequence[DomainSearch]
) -> None:
    """Give all parts the largest parent that any of them knows (collective)."""
    largest = np.maximum.reduce([x.delegate_parents() for x in searches])
    if world.size > 1:
        traffic.count(largest.nbytes, "parents")
    largest = world.allreduce(largest, "max")
    for search in searches:
        search.take_delegate_parents(largest)


def _ask(exchange: Exchange, searches: Sequence[DomainSearch]) -> None:
    """Ask the parts that found delegates which their owner did not find."""
    for turn in range(searches[0].parent_rounds):
        with exchange.traffic.of("parents"):
            exchange.start_normals([x.ask_parents(turn) for x in searches])
            asked = exchange.finish_normals()
            pairs = zip(searches, asked, strict=True)
            exchange.start_normals([x.answer_parents(some) for x, some in pairs])
            answers = exchange.finish_normals()
        for search, arrived in zip(searches, answers, strict=True):
            search.take_parents(arrived)
