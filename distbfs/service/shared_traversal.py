"""Small queries from many sources, answered by one bit-parallel traversal."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

import numpy as np

from distbfs.device.cc import thread_count
from distbfs.errors import ResourceError, UsageError
from distbfs.multisearch import cuda_meet
from distbfs.multisearch.base import RunOptions
from distbfs.multisearch.bits import LANE
from distbfs.multisearch.lookups import OPEN, Lookups
from distbfs.multisearch.part_bits import is_whole
from distbfs.multisearch.part_loop import PartSearches, Wanted
from distbfs.multisearch.searchers import searches_of
from distbfs.multisearch.started import Started
from distbfs.search.session import Session
from distbfs.types import Array, Ids, Stop

LOG = logging.getLogger("distbfs.service")
FEWEST = 8  # sources from which on one traversal costs less than separate searches
LOOKED_UP = 2  # the same, where edge lookups come first
MOST = LANE  # sources of a traversal

Levels = list[list[int]]  # the requested ones, by request
Begin = Callable[[Ids, Ids, Ids, Stop], Started[Array]]
FindLevels = Callable[[Ids, Ids, Ids, Stop], Array]  # of what ``Begin`` begins
Look = Callable[[int, Ids], Array | None]


def _joined(asked: Sequence[Sequence[int]]) -> Ids:
    """Concatenate lists of targets to one array, int64 [k]."""
    return np.array([v for targets in asked for v in targets], dtype=np.int64)


def _parted(levels: Array, asked: Sequence[Sequence[int]]) -> Levels:
    """Split the levels of all targets into one list per list of targets."""
    rest = iter(levels.tolist())
    return [[*islice(rest, len(targets))] for targets in asked]


class BatchSearcher:
    """Searches from several sources at once, next to a session.

    begin: function of (sources, rows, vertices, stop) that begins to find the level of
    each vertices[j] from sources[rows[j]]: integers [k] on the host, -1 = unreached
    look: function of (source, vertices) that returns levels by edge lookups, OPEN where
    they find none; None if there are no lookups
    ahead: whether searches continue while this thread does something else
    fewest: least number of sources for which this costs less than separate searches
    """

    def __init__(
        self, begin: Begin, look: Look | None = None, *, ahead: bool = False
    ) -> None:
        self._begin, self._look, self.ahead = begin, look, ahead
        self.fewest = FEWEST if look is None else LOOKED_UP

    def levels(
        self, asked: Sequence[Sequence[Any]], stop: Stop
    ) -> tuple[float, Levels]:
        """Search from sources; return (seconds, the requested levels).

        asked: pairs (source, targets), from up to MOST sources

        The levels are one list per pair, in this order, -1 = unreached. Raises
        SearchStopped if ``stop`` returns True.
        """
        return self.start(asked, stop).finish()

    def start(self, asked: Sequence[Sequence[Any]], stop: Stop) -> Started[Levels]:
        """Begin ``levels``; it must be finished before the next search of any kind."""
        sources = dict.fromkeys(source for source, _ in asked)
        row = {source: k for k, source in enumerate(sources)}
        targets = [targets for _, targets in asked]
        own = np.array([row[source] for source, _ in asked], dtype=np.int64)
        rows = own.repeat([*map(len, targets)])
        ids = np.array([*sources], dtype=np.int64)
        begun = self._begin(ids, rows, _joined(targets), stop)

        def finish() -> tuple[float, Levels]:
            seconds, levels = begun.finish()
            return seconds, _parted(levels, targets)

        return Started(finish, begun.ended)

    def by_lookups(
        self, source: int, asked: Sequence[Sequence[int]]
    ) -> tuple[float, Levels] | None:
        """Return (seconds, levels) for lists of targets from one source.

        The levels are found by edge lookups; return None if these do not suffice.
        """
        began = time.perf_counter()
        levels = self._look and self._look(source, _joined(asked))
        if levels is None or (levels == OPEN).any():
            return None
        return time.perf_counter() - began, _parted(levels, asked)


def at_the_end(levels: FindLevels) -> Begin:
    """Return a function that prepares searches, which then run in ``finish``."""

    def begin(sources: Ids, rows: Ids, vertices: Ids, stop: Stop) -> Started[Array]:
        def search() -> tuple[float, Array]:
            began = time.perf_counter()
            array = levels(sources, rows, vertices, stop)
            return time.perf_counter() - began, array

        return Started(search)

    return begin


def by_level(session: Session, searches: PartSearches) -> FindLevels:
    """Return a function that searches the parts or devices of all ranks (collective).

    A first search of one level shows whether there is enough memory.
    """
    inside = session.vertices.inside

    def search(sources: Ids, **wanted: Any) -> None:
        asked = Wanted(levels=True, counts=False, **wanted)
        searches.run_first(sources, RunOptions(batch=MOST), asked)

    def levels(sources: Ids, rows: Ids, vertices: Ids, stop: Stop) -> Array:
        search(sources, stop=stop)
        return searches.levels_at(rows, inside(vertices))

    search(np.zeros(min(session.layout.n, 1), dtype=np.int64), limit=0)
    return levels


def by_lookups(
    session: Session, lookups: Lookups, traverse: FindLevels
) -> BatchSearcher:
    """Return a batched searcher of a whole graph on CPUs by edge lookups.

    A few pairs that these leave open are searched from both ends, many by ``traverse``.
    """
    numbers, inside = session.held.parts[0].numbers, session.vertices.inside

    def look(sources: Ids | int, vertices: Ids) -> Array:
        begins = np.full(len(vertices), sources)
        return lookups.levels(numbers[inside(begins)], numbers[inside(vertices)])

    def levels(sources: Ids, rows: Ids, vertices: Ids, stop: Stop) -> Array:
        levels = look(sources[rows], vertices)
        far = np.flatnonzero(levels == OPEN)
        if len(far) >= FEWEST or not session.both_ends:
            some, searches = np.unique(rows[far], return_inverse=True)
            levels[far] = traverse(sources[some], searches, vertices[far], stop)
            return levels
        for k in far:
            ends = int(sources[rows[k]]), int(vertices[k])
            levels[k] = len(session.path(*ends, stop=stop) or ()) - 1
        return levels

    return BatchSearcher(at_the_end(levels), look)


def batch_searcher(session: Session) -> BatchSearcher | None:
    """Return a batched searcher beside a session, or None.

    This call and its searches are collective. There is a searcher for one device that
    holds a whole graph, and for the parts or the devices of a domain that
    ``searches_of`` supports. If memory is too small, that is logged, and None is
    returned.
    """
    held, shares = session.held, session.held.shares
    alone = session.world.size == session.layout.parts == 1
    try:
        if alone and shares and shares[0].whole and shares[0].out.tails is None:
            if not shares[0].active:
                return None
            meeting = cuda_meet.MeetingSearches(shares[0])
            return BatchSearcher(meeting.start, meeting.near, ahead=True)
        # what looks back would read columns of tails in host memory at each vertex
        levels = by_level(session, searches_of(session))
        if not shares and is_whole(held.parts[0]):
            threads = thread_count(session.options.threads)
            with suppress(UsageError):  # rows in another order
                return by_lookups(session, Lookups(held.parts[0], threads), levels)
        return BatchSearcher(at_the_end(levels))
    except ResourceError as error:
        LOG.warning("small queries are searched one by one: %s", error)
    except UsageError:
        pass
    return None
