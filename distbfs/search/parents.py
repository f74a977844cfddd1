"""The missing parents of a distributed search, completed after its last level.

Pan, Pearce, Owens 2018, Section VI-A3 sketches it: what dd, dn and nd find has its
parent on the same part at no cost; only vertices that nn alone reached need data from
another part. The owner of such a vertex asks the rank that delivered it for the levels
of its nn neighbours there; a neighbour one level up is its parent. (A delegate one
level up would have found it on its own part.) A delegate is owned like any vertex; if
its owner did not find it, all ranks are asked which of them did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np

from distbfs.engines.base import (
    AskingSearch,
    CarryingSearch,
    DelegateSearch,
    MaximumSearch,
)
from distbfs.exchange.base import Exchange
from distbfs.exchange.router import Delivery
from distbfs.partition.layout import Placement
from distbfs.partition.part import NUMBER_MASK, PART_SHIFT
from distbfs.types import Array, Ids, World

if TYPE_CHECKING:
    from distbfs.search.runners.streamed import StreamedLevels

NOT_ONE_UP = -1


@dataclass
class ParentCost:
    """Cost of completing the parents of a search on this rank.

    asked: vertices whose parents were requested from others
    bytes_sent, messages_sent: to other ranks, a reduction or gathering counts once
    """

    asked: int = 0
    bytes_sent: int = 0
    messages_sent: int = 0


class Finder(Protocol):
    """Completes the parents of a search on the parts of one rank."""

    def complete(self) -> ParentCost:
        """Set the parent of every reached vertex of this rank (collective)."""


class FoundParents:
    """Parts that have found the parents of all their vertices."""

    def complete(self) -> ParentCost:
        """Set nothing."""
        return ParentCost()


class CarriedParents:
    """Parts that send parents with vertices; only those of delegates are missing."""

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


class ParentFinder:
    """Completes the parents on the parts of one rank."""

    def __init__(
        self, world: World, placement: Placement, searches: Sequence[AskingSearch]
    ) -> None:
        self._world = world
        self._placement = placement
        self._searches = searches

    def complete(self) -> ParentCost:
        """Set the parent of every reached vertex of this rank (collective)."""
        cost = ParentCost()
        self._normals(cost)
        self._delegates(cost)
        return cost

    def _sent(self, arrays: Sequence[Array], cost: ParentCost) -> None:
        rank = self._world.rank
        sizes = [a.nbytes for r, a in enumerate(arrays) if r != rank and len(a)]
        cost.bytes_sent += sum(sizes)
        cost.messages_sent += len(sizes)

    def _normals(self, cost: ParentCost) -> None:
        """Ask the ranks that delivered vertices which neighbour is the parent."""
        asked_by: list[tuple[Array, Array, Array]] = []
        for search in self._searches:
            numbers, ranks = search.unresolved()
            index, columns = search.part.nn.edges_of(numbers)
            column = columns.astype(np.uint64)
            part = (column >> np.uint64(PART_SHIFT)).astype(np.int64)
            delivered = self._placement.rank_of(part) == ranks[index]
            level = search.level_of(numbers)[index[delivered]].astype(np.uint64)
            asked_by.append((numbers[index[delivered]], column[delivered], level))
        column = np.concatenate([item[1] for item in asked_by])
        level = np.concatenate([item[2] for item in asked_by])
        part = (column >> np.uint64(PART_SHIFT)).astype(np.int64)
        ranks = self._placement.rank_of(part)
        delivery = Delivery(self._world, ranks)
        questions = np.stack([column, level], axis=1)
        cost.asked = len(column)
        outgoing = delivery.split(questions)
        self._sent(outgoing, cost)
        answers = [self._answer(some) for some in delivery.pass_on(outgoing)]
        self._sent(answers, cost)
        replies = delivery.back(answers)
        start = 0
        for search, (numbers, _, _) in zip(self._searches, asked_by, strict=True):
            parents = replies[start : start + len(numbers)]
            start += len(numbers)
            known = parents != NOT_ONE_UP
            search.set_parents(numbers[known], parents[known])

    def _answer(self, questions: Array) -> Ids:
        """Return the vertex id of each neighbour that is one level up, else -1."""
        column, level = questions[:, 0], questions[:, 1].astype(np.int64)
        part = (column >> np.uint64(PART_SHIFT)).astype(np.int64)
        number = (column & np.uint64(NUMBER_MASK)).astype(np.int64)
        out = np.full(len(column), NOT_ONE_UP, dtype=np.int64)
        for search in self._searches:
            here = np.flatnonzero(part == search.part.index)
            fits = here[search.level_of(number[here]) == level[here] - 1]
            local = search.part.vertices[number[fits]]
            out[fits] = search.part.layout.global_of(search.part.index, local)
        return out

    def _delegates(self, cost: ParentCost) -> None:
        """Ask all ranks for the parents of delegates that their owner did not find."""
        wanted = [search.parents_wanted() for search in self._searches]
        requested = np.concatenate(wanted)
        cost.bytes_sent += requested.nbytes * (self._world.size - 1)
        cost.messages_sent += bool(len(requested) and self._world.size > 1)
        answers = []
        for asked in self._world.allgather(requested):
            largest = np.full(len(asked), -1, dtype=np.int64)
            for search in self._searches:
                np.maximum(largest, search.parents_of(asked), out=largest)
            answers.append(largest)
        self._sent(answers, cost)
        parents = np.full(len(requested), -1, dtype=np.int64)
        for answer in self._world.alltoall(answers):
            np.maximum(parents, answer, out=parents)
        start = 0
        for search, delegates in zip(self._searches, wanted, strict=True):
            stop = start + len(delegates)
            search.set_delegate_parents(delegates, parents[start:stop])
            start = stop
