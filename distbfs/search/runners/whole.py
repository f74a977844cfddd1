"""Searches of one part: the engine runs everything from the root to the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from distbfs.device import cuda
from distbfs.engines.base import Query, WholeSearch
from distbfs.errors import SearchStopped
from distbfs.ranks.world import SoloWorld
from distbfs.search.runners.base import (
    Found,
    Runner,
    check_not_stopped,
    made_later,
    records_of,
)

if TYPE_CHECKING:
    from distbfs.timing import Trace
    from distbfs.types import Root, World


class OnHost(Runner):
    """Searches by the threads of one process."""

    def __init__(self, search: WholeSearch) -> None:
        self._search, self.path = search, search.path

    def answer(self, root: Root, query: Query) -> Found:
        """Search from an internal id; ``stop`` is called before each level."""
        result = self._search.answer(root, query)
        return Found(
            [result.level],
            [result.parent if query.parents else None],
            result.levels,
            result.seconds,
            records_of(result.records),
            order=result.order,
            give=result.give,
        )

    def see(self, views: Sequence[Any]) -> None:
        """Restrict later searches to some edges; see ``WholeSearch.see``."""
        self._search.see(views[0])


class OnDevice(OnHost):
    """Searches by one device with the graph.

    by_id: converts results by number, see ``Share.by_id``; None for results by id.
    It is called on first access, which the search's time does not include
    """

    def __init__(
        self,
        search: WholeSearch,
        by_id: Callable[[Root, Any, Any], tuple[Any, Any]] | None = None,
    ) -> None:
        super().__init__(search)
        self._by_id = by_id

    def answer(self, root: Root, query: Query) -> Found:
        """Search from an id; ``stop`` is called first, and as in ``WholeSearch``."""
        check_not_stopped(SoloWorld(), query.stop)
        with cuda.memory_of("a search"):
            result = super().answer(root, query)
        convert = self._by_id
        if convert is not None:
            level, parent = result.level[0], result.parent[0]

            def converted() -> tuple[list[Any], list[Any]]:
                with cuda.memory_of("results in input ids"):
                    by_id = convert(root, level, parent)
                return [by_id[0]], [by_id[1]]

            result.level, result.parent = made_later(1, converted)
            result.give = lambda: None  # later searches do not write to these arrays
        return result

    def close(self) -> None:
        """Free unused device memory."""
        cuda.release()


class OnFirst(Runner):
    """Searches of a graph that rank 0 holds; the other ranks wait.

    runner: that of rank 0, None on the others
    """

    def __init__(self, world: World, runner: Runner | None) -> None:
        self._world, self._runner = world, runner

    def answer(self, root: Root, query: Query) -> Found:
        """Search from an internal id; see ``runners.base.Runner``.

        ``stop`` is called on all ranks before the search, and on rank 0 during it.
        """
        check_not_stopped(self._world, query.stop)
        result, reason, facts = Found([], [], 0), "", None
        if self._runner is not None:
            try:
                result = self._runner.answer(root, query)
            except SearchStopped as stopped:
                reason = str(stopped)
            facts = result.levels, result.seconds, result.records, result.phases
        reason, facts = self._world.broadcast((reason, facts))
        if reason:
            raise SearchStopped(reason)
        result.levels, result.seconds, result.records, result.phases = facts
        return result

    def see(self, views: Sequence[Any]) -> None:
        """Restrict later searches to views; see ``runners.base.Runner``."""
        if self._runner is not None:
            self._runner.see(views)

    def watch(self, trace: Trace | None) -> None:
        """Record the phases of later searches; see ``Runner``."""
        if self._runner is not None:
            self._runner.watch(trace)

    def close(self) -> None:
        """Free the memory of searches."""
        if self._runner is not None:
            self._runner.close()
