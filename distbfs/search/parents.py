"""Completion of a distributed search's parents, after its last level.

A vertex found inside a part has its parent there; a vertex that is sent carries its
parent. A delegate has an owner like any vertex; if the owner did not find it, the parts
that found it know its parent. Source: Pan, Pearce, Owens 2018, Section VI-A3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

from distbfs.engines.base import CarryingSearch, DelegateSearch, MaximumSearch
from distbfs.exchange.base import Exchange

if TYPE_CHECKING:
    from distbfs.search.runners.streamed import StreamedLevels


@dataclass
class ParentCost:
    """Cost of completing the parents of a search on this rank.

    bytes_sent, messages_sent: sent to other ranks; a reduction or gather counts once
    """

    bytes_sent: int = 0
    messages_sent: int = 0


class Finder(Protocol):
    """Completes the parents of a search on the parts of one rank."""

    def complete(self) -> ParentCost:
        """Set the parent of every reached vertex of this rank (collective)."""


class FoundParents:
    """Parts that have found the parents of all their vertices."""

    def complete(self) -> ParentCost:
        """Do nothing: all parents are set."""
        return ParentCost()


class CarriedParents:
    """Parts where only the parents of delegates are missing."""

    def __init__(
        self,
        exchange: Exchange,
        searches: Sequence[CarryingSearch],
        streamed: StreamedLevels | None,
    ) -> None:
        self._exchange, self._searches = exchange, searches
        self._streamed = streamed

    def complete(self) -> ParentCost:
        """Set the parent of every reached delegate (collective)."""
        if not self._searches[0].part.delegate_count:
            return ParentCost()
        traffic = self._exchange.traffic
        sent_before, messages_before = traffic.total()
        if self._streamed is not None:
            self._streamed.complete()
        elif self._searches[0].asks_for_delegates:
            self._ask(cast("Sequence[DelegateSearch]", self._searches))
        else:
            self._take_largest(cast("Sequence[MaximumSearch]", self._searches))
        sent, messages = traffic.total()
        return ParentCost(
            bytes_sent=sent - sent_before, messages_sent=messages - messages_before
        )

    def _ask(self, searches: Sequence[DelegateSearch]) -> None:
        """Ask the parts that found delegates which their owner did not find."""
        exchange = self._exchange
        for turn in range(searches[0].parent_rounds):
            with exchange.traffic.of("parents"):
                exchange.start_normals([x.ask_parents(turn) for x in searches])
                asked = exchange.finish_normals()
                pairs = zip(searches, asked, strict=True)
                exchange.start_normals([x.answer_parents(some) for x, some in pairs])
                answers = exchange.finish_normals()
            for search, arrived in zip(searches, answers, strict=True):
                search.take_parents(arrived)

    def _take_largest(self, searches: Sequence[MaximumSearch]) -> None:
        """Reduce the parents that all parts found to the largest id."""
        candidates = [search.delegate_parents() for search in searches]
        parents = self._exchange.max_delegates(candidates)
        for search in searches:
            search.take_delegate_parents(parents)
