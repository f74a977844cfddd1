"""Small queries from many sources, answered by one bit-parallel traversal."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np

from distbfs.errors import ResourceError, UsageError
from distbfs.graph.device_graph import DeviceGraph
from distbfs.multisearch import cuda_bits, cuda_meet
from distbfs.multisearch.base import RunOptions
from distbfs.multisearch.bits import LANE, OPEN, BitSearch
from distbfs.multisearch.lookups import Lookups
from distbfs.multisearch.part_loop import PartSearches, Wanted
from distbfs.multisearch.started import Started
from distbfs.multisearch.traversals import Traversals, traversals_of
from distbfs.partition.part import Part
from distbfs.search.session import Session
from distbfs.store.whole import in_input_ids
from distbfs.types import Array, Ids, Numbers, Stop

LOG = logging.getLogger("distbfs.service")
FEWEST = 8  # sources from which on one traversal costs less than separate searches
LOOKED_UP = 2  # the same, where edge lookups come first
MOST = LANE  # sources of a traversal

Levels = list[list[int]]  # the requested ones, by request


def _joined(asked: Sequence[Sequence[int]]) -> Ids:
    """Return the targets of all lists, int64 [k]."""
    return np.array([v for targets in asked for v in targets], dtype=np.int64)


def _parted(levels: Array, asked: Sequence[Sequence[int]]) -> Levels:
    """Return levels of all targets by list."""
    rest = iter(levels.tolist())
    return [[*islice(rest, len(targets))] for targets in asked]


class Together(ABC):
    """Searches from several sources at once, next to a session.

    ahead: whether they go on while this thread does something else
    fewest: sources from which on that costs less than separate searches
    """

    ahead = False
    fewest = FEWEST

    def levels(
        self, sources: Sequence[int], asked: Sequence[Sequence[Any]], stop: Stop
    ) -> tuple[float, Levels]:
        """Search from sources; return (seconds, the requested levels).

        sources: up to MOST ids, distinct; asked: pairs (source, targets), whose levels
        come as lists in this order, -1 = unreached. Raises SearchStopped when ``stop``
        returns True.
        """
        return self.start(sources, asked, stop).finish()

    def start(
        self, sources: Sequence[int], asked: Sequence[Sequence[Any]], stop: Stop
    ) -> Started[Levels]:
        """Begin ``levels``; to be finished before the next search of any kind."""
        row = {source: k for k, source in enumerate(sources)}
        targets = [targets for _, targets in asked]
        own = np.array([row[source] for source, _ in asked], dtype=np.int64)
        rows = own.repeat([*map(len, targets)])
        ids = np.array(sources, dtype=np.int64)
        begun = self._start(ids, rows, _joined(targets), stop)

        def finish() -> tuple[float, Levels]:
            seconds, levels = begun.finish()
            return seconds, _parted(levels, targets)

        return Started(finish, begun.ended)

    def near(
        self, source: int, asked: Sequence[Sequence[int]]
    ) -> tuple[float, Levels] | None:
        """Return (seconds, levels) of lists of targets from one source.

        By edge lookups; None where these do not suffice.
        """
        began = time.perf_counter()
        levels = self._near(source, _joined(asked))
        if levels is None or (levels == OPEN).any():
            return None
        return time.perf_counter() - began, _parted(levels, asked)

    def _near(self, source: int, vertices: Ids) -> Array | None:  # noqa: ARG002
        """Look up edges; return levels from a source, integers [k], OPEN if not known.

        vertices: int64 [k]; None: there are no lookups
        """
        return None

    @abstractmethod
    def _start(
        self, sources: Ids, rows: Ids, vertices: Ids, stop: Stop
    ) -> Started[Array]:
        """Begin to find the level of vertices[j] from sources[rows[j]], -1 = unreached.

        rows, vertices: int64 [k]; the result: integers [k] on the host
        """


class AtTheEnd(Together):
    """Searches that ``finish`` begins."""

    def _start(
        self, sources: Ids, rows: Ids, vertices: Ids, stop: Stop
    ) -> Started[Array]:
        def search() -> tuple[float, Array]:
            began = time.perf_counter()
            levels = self._levels(sources, rows, vertices, stop)
            return time.perf_counter() - began, levels

        return Started(search)

    @abstractmethod
    def _levels(self, sources: Ids, rows: Ids, vertices: Ids, stop: Stop) -> Array:
        """Return the levels; see ``_start``."""


class ByMeeting(AtTheEnd):
    """Searches by the kernel for CPUs, from the sources and from the vertices.

    numbers: of vertices by id, uint32 [n]; lookups: of edges, None where rows have
    another order
    """

    def __init__(
        self, search: BitSearch, numbers: Numbers, lookups: Lookups | None
    ) -> None:
        self._search, self._numbers, self._lookups = search, numbers, lookups
        self.fewest = FEWEST if lookups is None else LOOKED_UP

    def _near(self, source: int, vertices: Ids) -> Array | None:
        if self._lookups is None:
            return None
        sources = np.full(len(vertices), source)
        return self._look_up(sources, vertices, self._lookups)

    def _levels(self, sources: Ids, rows: Ids, vertices: Ids, stop: Stop) -> Array:
        if self._lookups is None:
            return self._search.meet(sources, rows, vertices, stop)
        levels = self._look_up(sources[rows], vertices, self._lookups)
        far = np.flatnonzero(levels == OPEN)
        if len(far):
            some, searches = np.unique(rows[far], return_inverse=True)
            ends = vertices[far]
            levels[far] = self._search.meet(sources[some], searches, ends, stop)
        return levels

    def _look_up(self, sources: Ids, vertices: Ids, lookups: Lookups) -> Array:
        return lookups.levels(self._numbers[sources], self._numbers[vertices])


class ByLevel(AtTheEnd):
    """Searches over the parts or devices of all ranks, collective.

    A first search, of one level, shows whether there is memory for them.
    """

    def __init__(self, session: Session, traversals: Traversals) -> None:
        self._vertices, self._traversals = session.vertices, traversals
        zero = np.zeros(min(session.layout.n, 1), dtype=np.int64)
        self._search(zero, Wanted(levels=True, counts=False, limit=0))

    def _levels(self, sources: Ids, rows: Ids, vertices: Ids, stop: Stop) -> Array:
        searches = self._search(sources, Wanted(levels=True, counts=False, stop=stop))
        return searches.levels_at(rows, self._vertices.inside(vertices))

    def _search(self, sources: Ids, wanted: Wanted) -> PartSearches:
        """Search from up to MOST sources."""
        options = RunOptions(batch=MOST)
        inside = self._vertices.inside(sources)
        searches, _ = self._traversals.run(inside, options, wanted)
        return searches


class MeetingOnDevice(Together):
    """Searches on the device that holds the graph, and back from the vertices."""

    ahead, fewest = True, LOOKED_UP

    def __init__(self, search: cuda_meet.MeetingSearches) -> None:
        self._search = search

    def _near(self, source: int, vertices: Ids) -> Array | None:
        return self._search.near(source, vertices)

    def _start(
        self, sources: Ids, rows: Ids, vertices: Ids, stop: Stop
    ) -> Started[Array]:
        return self._search.start(sources, rows, vertices, stop)


class OnDeviceAndHost(AtTheEnd):
    """Searches on a device whose graph has columns in host memory: of all levels.

    What looks back would read them at each vertex.
    """

    def __init__(self, graph: DeviceGraph) -> None:
        self._search = cuda_bits.BitSearches(graph, width=cuda_bits.SEARCHES)

    def _levels(self, sources: Ids, rows: Ids, vertices: Ids, stop: Stop) -> Array:
        searches: Any = self._search.search(sources, stop=stop)
        return searches.levels_at(rows, vertices).get()


def together(session: Session) -> Together | None:
    """Return a batched searcher beside a session, or None.

    Collective, and so are its searches. Available for one rank that searches a whole
    graph by engine openmp or on a device, and for parts, and devices of a domain, that
    ``traversals_of`` searches; None where there is too little memory, which is logged.
    """
    held = session.held
    try:
        if held.rows or session.world.size > 1 or session.layout.parts > 1:
            traversals = traversals_of(session)
            return None if traversals is None else ByLevel(session, traversals)
        if held.graph is not None:
            return _on_one_device(held.graph)
        about = session.describe()
        if about["engine"] != "openmp" or about["mode"] != "resident":
            return None
        part = in_input_ids(held.parts[0], session.vertices.permutation)
        searches = BitSearch(part, MOST // LANE, about["threads"])
        lookups = lookups_of(held.parts[0], about["threads"])
        return ByMeeting(searches, part.numbers, lookups)
    except ResourceError as error:
        LOG.warning("small queries are searched for one by one: %s", error)
    except UsageError:
        pass
    return None


def lookups_of(part: Part, threads: int) -> Lookups | None:
    """Return lookups of a part's edges, None where its rows have another order."""
    try:
        return Lookups(part, threads)
    except UsageError:
        return None


def _on_one_device(graph: DeviceGraph) -> Together | None:
    """Return a searcher for the graph of one device, None if it has no edges."""
    if not graph.active:
        return None
    if graph.tails is not None:
        return OnDeviceAndHost(graph)
    return MeetingOnDevice(cuda_meet.MeetingSearches(graph))
