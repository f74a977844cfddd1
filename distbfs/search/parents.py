"""Completion of a distributed search's parents, after its last level.

A vertex found inside a part has its parent there; a vertex that is sent carries its
parent. A delegate has an owner like any vertex; if the owner did not find it, the parts
that found it know its parent. Source: Pan, Pearce, Owens 2018, Section VI-A3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from distbfs.engines.base import ASKED, OWN

if TYPE_CHECKING:
    from distbfs.engines.base import DomainSearch
    from distbfs.exchange.base import Exchange
    from distbfs.search.runners.streamed import StreamedLevels


def complete_parents(
    exchange: Exchange,
    searches: Sequence[DomainSearch],
    streamed: StreamedLevels | None,
) -> tuple[int, int]:
    """Set the parent of every reached delegate of this rank (collective).

    Return the bytes and messages sent to other ranks for this; a reduction or gather
    counts once.
    """
    first = searches[0]
    if first.parents == OWN or not first.part.delegate_count:
        return 0, 0
    sent_before, messages_before = exchange.traffic.total()
    if streamed is not None:
        streamed.complete()
    elif first.parents == ASKED:
        _ask(exchange, searches)
    else:
        largest = exchange.max_delegates([x.delegate_parents() for x in searches])
        for search in searches:
            search.take_delegate_parents(largest)
    sent, messages = exchange.traffic.total()
    return sent - sent_before, messages - messages_before


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
