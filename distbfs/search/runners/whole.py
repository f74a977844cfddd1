"""Searches of one part: the engine runs everything from the root to the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.device import cuda
from distbfs.engines.base import WHOLE, LevelRecord, Until, WholeSearch
from distbfs.errors import SearchStopped
from distbfs.search.runners.base import Found, Lazy, LazyArrays, Runner, WholeDomain

if TYPE_CHECKING:
    from distbfs.timing import Trace
    from distbfs.types import Root, Stop, World


def records_of(records: Sequence[LevelRecord]) -> list[dict[str, Any]]:
    """Return the records of an engine without an exchange as JSON values."""
    levels = []
    for k, record in enumerate(records, 1):
        values = {"level": k, **vars(record)}
        levels.append(values | values.pop("extra"))
    return levels


class OnHost(WholeDomain):
    """Searches by the threads of one process."""

    def __init__(self, search: WholeSearch) -> None:
        self._search = search
        self.path = search.path

    def search(
        self,
        root: Root,
        *,
        parents: bool = True,
        until: Until = WHOLE,
        stop: Stop | None = None,
        records: bool = False,
    ) -> Found:
        """Search from an internal id; ``stop`` is called before each level."""
        result = self._search.search(root, records=records, until=until, stop=stop)
        return Found(
            [result.level],
            [result.parent if parents else None],
            result.levels,
            result.seconds,
            result.records,
            order=result.order,
            give=result.give,
        )

    def see(self, views: Sequence[Any]) -> None:
        """Restrict later searches to some edges; see ``WholeSearch.see``."""
        self._search.see(views[0])


class OnDevice(OnHost):
    """Searches by one device with the graph.

    by_id: converts results by number, see ``ShareRows.by_id``; None for results by id.
    It is called on first access, which the search's time does not include
    """

    def __init__(
        self,
        search: WholeSearch,
        by_id: Callable[[Root, Any, Any], tuple[Any, Any]] | None = None,
    ) -> None:
        super().__init__(search)
        self._by_id = by_id

    def search(self, root: Root, **asked: Any) -> Found:
        """Search from an id; ``stop`` is called first, and as in ``WholeSearch``."""
        stop = asked.get("stop")
        if stop is not None and stop():
            raise SearchStopped("the search was stopped before it began")
        with cuda.memory_of("a search"):
            result = super().search(root, **asked)
        convert = self._by_id
        if convert is not None:
            level, parent = result.level[0], result.parent[0]

            def converted() -> tuple[list[Any], list[Any]]:
                with cuda.memory_of("results in input ids"):
                    by_id = convert(root, level, parent)
                return [by_id[0]], [by_id[1]]

            turned = LazyArrays(converted)
            result = result.copy_with(Lazy(1, 0, turned), Lazy(1, 1, turned))
            result.give = turned.own
        return result

    def close(self) -> None:
        """Free unused device memory."""
        cuda.release()


class WholeRunner(Runner):
    """Passes roots to the one domain; ranks without a share of it wait.

    search: the domain, None on ranks that wait
    """

    mode = "resident"

    def __init__(self, world: World, search: WholeDomain | None) -> None:
        self._world, self._search = world, search
        collective = search is not None and search.collective
        self._all_search = collective or world.size == 1  # and so know how it ends
        if search is not None and world.size == 1:
            self.path = search.path

    def search(self, root: Root, **asked: Any) -> Found:
        """Search from an internal id; see ``runners.base.Runner``.

        If one rank searches and the others wait, ``stop`` is called on all ranks before
        the search, and on the one that searches during it.
        """
        if self._search is not None and self._all_search:
            result = self._search.search(root, **asked)
            result.records = records_of(result.records)
            return result
        stop = asked.get("stop")
        if stop is not None:
            answer = self._world.allreduce(np.array([stop()], dtype=np.int64), "max")
            if answer[0]:
                raise SearchStopped("the search was stopped before it began")
        result, reason, facts = Found([], [], 0), "", None
        if self._search is not None:
            try:
                result = self._search.search(root, **asked)
            except SearchStopped as stopped:
                reason = str(stopped)
            log = records_of(result.records)
            facts = result.levels, result.seconds, log, result.phases
        reason, facts = self._world.broadcast((reason, facts))
        if reason:
            raise SearchStopped(reason)
        result.levels, result.seconds, result.records, result.phases = facts
        return result

    def see(self, views: Sequence[Any]) -> None:
        """Restrict later searches to views; see ``runners.base.Runner``."""
        if self._search is not None:
            self._search.see(views)

    def watch(self, trace: Trace | None) -> None:
        """Record the phases of later searches; see ``Runner``."""
        if self._search is not None:
            self._search.watch(trace)

    def describe(self) -> dict[str, Any]:
        """Return an empty dictionary: there is no exchange."""
        return {"mode": self.mode, "exchange": "none"}

    def close(self) -> None:
        """Free the memory of searches."""
        if self._search is not None:
            self._search.close()
