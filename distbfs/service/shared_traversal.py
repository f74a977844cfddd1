"""Small queries from many sources, answered by one bit-parallel traversal."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np

from distbfs.errors import ResourceError, UsageError
from distbfs.graph.device_graph import DeviceGraph
from distbfs.multisearch.bits import LANE, BitSearch
from distbfs.multisearch.cuda_bits import SEARCHES, BitSearches
from distbfs.multisearch.cuda_meet import MeetingSearches
from distbfs.multisearch.domain_bits import DomainBitSearches
from distbfs.multisearch.domain_members import Member
from distbfs.multisearch.input_graph import in_input_ids
from distbfs.multisearch.part_loop import Wanted
from distbfs.multisearch.started import Started
from distbfs.search.session import Session
from distbfs.types import Array, Ids, Stop

FEWEST = 8  # sources from which on one traversal costs less than separate searches
MOST = LANE  # sources of a traversal

Levels = list[list[int]]  # the requested ones, by request


class Together(ABC):
    """Searches from several sources at once, next to a session.

    ahead: whether they go on while this thread does something else
    """

    ahead = False

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
        lengths = [len(targets) for _, targets in asked]
        rows = np.repeat([row[source] for source, _ in asked], lengths)
        flat = np.array([v for _, targets in asked for v in targets], dtype=np.int64)
        begun = self._start(np.array(sources, dtype=np.int64), rows, flat, stop)

        def finish() -> tuple[float, Levels]:
            seconds, levels = begun.finish()
            rest = iter(levels.tolist())
            return seconds, [[*islice(rest, length)] for length in lengths]

        return Started(finish, begun.ended)

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
    """Searches by the kernel for CPUs, from the sources and from the vertices."""

    def __init__(self, search: BitSearch) -> None:
        self._search = search

    def _levels(self, sources: Ids, rows: Ids, vertices: Ids, stop: Stop) -> Array:
        return self._search.meet(sources, rows, vertices, stop)


class ByLevel(AtTheEnd):
    """Searches over the devices of a domain; collective on several ranks."""

    def __init__(self, search: DomainBitSearches) -> None:
        self._search = search

    def _levels(self, sources: Ids, rows: Ids, vertices: Ids, stop: Stop) -> Array:
        self._search.run(sources, Wanted(levels=True, counts=False, stop=stop))
        return self._search.levels_at(rows, vertices)


class OnDevice(Together):
    """Searches on the device that holds the graph, and back from the vertices."""

    ahead = True

    def __init__(self, search: MeetingSearches) -> None:
        self._search = search

    def _start(
        self, sources: Ids, rows: Ids, vertices: Ids, stop: Stop
    ) -> Started[Array]:
        return self._search.start(sources, rows, vertices, stop)


class OnDeviceAndHost(AtTheEnd):
    """Searches on a device whose graph has columns in host memory: of all levels.

    What looks back would read them at each vertex.
    """

    def __init__(self, search: BitSearches) -> None:
        self._search = search

    def _levels(self, sources: Ids, rows: Ids, vertices: Ids, stop: Stop) -> Array:
        levels: Array = (
            self._search.search(sources, stop=stop).levels_at(rows, vertices).get()
        )
        return levels


def together(session: Session) -> Together | None:
    """Return a batched searcher beside a session, or None.

    Collective, and so are its searches. Available for one rank that searches a whole
    graph by engine openmp or on a device with enough memory, and for ranks that search
    one on a domain of devices with enough memory.
    """
    held = session.held
    try:
        if held.rows:
            members = [Member.of_rows(rows) for rows in held.rows]
            domain_search = DomainBitSearches(session.world, members)
            session.at_close.append(domain_search.close)
            return ByLevel(domain_search)
        if session.world.size > 1 or session.layout.parts > 1:
            return None
        if held.graph is not None:
            return _on_one_device(held.graph)
        about = session.describe()
        if about["engine"] != "openmp" or about["mode"] != "resident":
            return None
        part = in_input_ids(held.parts[0], session.vertices.permutation)
        return ByMeeting(BitSearch(part, MOST // LANE, about["threads"]))
    except (ResourceError, UsageError):
        return None


def _on_one_device(graph: DeviceGraph) -> Together | None:
    """Return a searcher for the graph of one device, None if it has no edges."""
    if not graph.active:
        return None
    if graph.tails is not None:
        return OnDeviceAndHost(BitSearches(graph, width=SEARCHES))
    return OnDevice(MeetingSearches(graph))
