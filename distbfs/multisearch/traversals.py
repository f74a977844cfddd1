"""Traversals of a graph by as many searches at a time as memory allows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from distbfs.errors import OutOfMemory, UsageError
from distbfs.multisearch import bits, cuda_bits, domain_bits, domain_members
from distbfs.multisearch.part_bits import PartBitSearches, bytes_needed, is_whole
from distbfs.multisearch.part_loop import PartSearches, Wanted
from distbfs.multisearch.part_messages import PartMessages
from distbfs.plan.memory import may_fill, readable
from distbfs.ranks.agreement import first_reason

if TYPE_CHECKING:
    from distbfs.multisearch.base import RunOptions
    from distbfs.partition.part import Part
    from distbfs.partition.share import Share
    from distbfs.search.session import Session
    from distbfs.types import Array, Ids, World

SPAN = 4096  # depth assumed in planning memory
MOST = bits.MOST_SEARCHES  # of a traversal, on hosts as on devices


Searches = TypeVar("Searches", bound=PartSearches)


class Traversals(ABC, Generic[Searches]):
    """Searches a graph from several sources; methods are collective.

    session: the session whose parts are searched; None for a whole graph, whose ids are
    those of sources and results
    """

    def __init__(self, world: World, session: Session | None) -> None:
        self._world, self._session = world, session
        self._searches: Searches | None = None  # those of the last run

    def run(
        self, sources: Ids, options: RunOptions, wanted: Wanted
    ) -> tuple[Searches, int]:
        """Search from the first of the sources; return the searches, their number.

        sources: ids; options: only ``batch``, ``memory`` and ``threads`` count here
        """
        size = min(options.batch or MOST, MOST, len(sources))
        searches = self._searches_for(size, options, wanted)
        some = sources[: min(size, searches.width)]
        session = self._session
        searches.run(some if session is None else session.vertices.inside(some), wanted)
        return searches, len(some)

    @abstractmethod
    def _searches_for(self, size: int, options: RunOptions, wanted: Wanted) -> Searches:
        """Return searches for ``size`` sources, or for as many as memory allows."""

    def dependencies(
        self, sources: Ids, options: RunOptions
    ) -> tuple[list[Array], int]:
        """Return the dependencies of the first ones of ``sources``, and their number.

        They are summed over these sources: float64 by local id, for each part (Brandes
        2001). sources, options: as in ``run``; ``stop`` counts as well. By default a
        separate search of the session finds the dependencies of one source.
        """
        session = self._session
        if session is None:
            raise ValueError("there is no session")
        result = session.search(int(sources[0]), parents=False, stop=options.stop)
        return session.paths.dependencies([level for level, _ in result.shards]), 1

    def narrow(self) -> bool:
        """Halve the number of sources at once, as memory ran out.

        Returns False if they are as few as they can be.
        """
        return False

    @abstractmethod
    def reversed(self) -> Traversals[Searches]:
        """Return searches along reversed edges of a directed graph.

        These searches must not run at the same time.
        """


class OnHosts(Traversals[PartBitSearches]):
    """Traversals of parts in host memory.

    threads: of this rank, unless options say otherwise
    """

    def __init__(
        self,
        world: World,
        parts: Sequence[Part],
        threads: int = 0,
        session: Session | None = None,
    ) -> None:
        super().__init__(world, session)
        self._parts, self._threads = parts, threads

    def _searches_for(
        self, size: int, options: RunOptions, wanted: Wanted
    ) -> PartBitSearches:
        """Return searches, as many as ``options.memory`` allows by default."""
        planes = SPAN.bit_length() if wanted.levels else 0
        need = partial(bytes_needed, self._parts, planes=planes, sums=wanted.sums)
        lanes, searches = bits.width_for(size), self._searches
        if not options.batch:
            needs = np.array([need(lanes) for lanes in bits.WIDTHS])
            fits = self._world.allreduce(needs, "max") <= options.memory
            lanes = min(lanes, max(np.array(bits.WIDTHS)[fits], default=1))
        whole, threads = is_whole(self._parts[0]), options.threads or self._threads
        if searches is not None and (wanted.continued or not whole):
            lanes = max(lanes, searches.lanes)
        if searches is None or (searches.lanes, searches.threads) != (lanes, threads):
            searches = self._searches = None  # free the old ones first
            if not whole:
                self._check_room(bits.LANE * lanes, need(lanes))
            self._searches = searches = PartBitSearches(
                self._world, self._parts, lanes, threads, self._session
            )
        return searches

    def reversed(self) -> OnHosts:
        """Return searches along reversed edges; see ``Traversals``."""
        self._searches = None  # they take as much memory
        parts = [part.reversed() for part in self._parts]
        return OnHosts(self._world, parts, self._threads, self._session)

    def _check_room(self, searches: int, need: int) -> None:
        """Raise OutOfMemory on all ranks if searches do not fit beside the parts.

        need: bytes of that many searches at once
        """
        room, of_all = may_fill(self._world)
        rows = [x for part in self._parts for x in part.subgraphs.values()]
        room -= sum(x.nbytes for x in rows)
        lack = (
            f"{searches} searches at once take {readable(need)}, and a rank "
            f"may fill {readable(max(room, 0))} beside parts ({of_all})"
        )
        if reason := first_reason(self._world, lack if need > room else ""):
            raise OutOfMemory(reason)


class DeviceTraversals(Traversals["domain_bits.DomainBitSearches"]):
    """Traversals of parts on devices.

    members: the rows of this rank's devices
    """

    def __init__(
        self,
        world: World,
        members: Sequence[Share],
        session: Session | None = None,
    ) -> None:
        super().__init__(world, session)
        self._members = members
        self._most = cuda_bits.LANES[-1]
        self._messages: PartMessages | None = None
        separated = None if session is None else session.separated
        if separated is not None and len(separated.placement.domains) > 1:
            devices = [member.cuda_device for member in members]
            self._messages = PartMessages(
                world, separated.placement, devices, separated.exchange
            )
        if session is not None:
            session.at_close.append(self.close)

    def _searches_for(
        self,
        size: int,
        options: RunOptions,  # noqa: ARG002
        wanted: Wanted,
    ) -> domain_bits.DomainBitSearches:
        """Return searches, as many as the devices have memory for."""
        lanes = next(x for x in cuda_bits.LANES if cuda_bits.SEARCHES * x >= size)
        searches, most = self._searches, min(lanes, self._most)
        if searches is None or not most <= searches.lanes <= self._most:
            self.close()
            lanes = domain_members.lanes_that_fit(
                self._world, self._members, levels=wanted.levels, most=most
            )
            if lanes < most:
                self._most = lanes
            self._searches = searches = domain_bits.DomainBitSearches(
                self._world,
                self._members,
                lanes=lanes,
                messages=self._messages,
                session=self._session,
            )
        return searches

    def dependencies(
        self, sources: Ids, options: RunOptions
    ) -> tuple[list[Array], int]:
        """Return dependencies of the first sources; see ``Traversals``.

        The traversal has few lanes, since the values of its searches need memory. It
        has one source if any device has columns in host memory, which these traversals
        do not read.
        """
        split = any(member.out.tails is not None for member in self._members)
        if self._world.allreduce(np.array([int(split)]), "max")[0]:
            return super().dependencies(sources, options)
        wanted = Wanted(levels=True, counts=False, stop=options.stop)
        searches, count = self.run(sources[: cuda_bits.SEARCHES], options, wanted)
        return searches.dependencies(options.stop), count

    def reversed(self) -> DeviceTraversals:
        """Return searches along reversed edges; see ``Traversals``."""
        self.close()  # they take as much memory
        other = copy(self)
        other._members = [member.turned() for member in self._members]
        other._most = cuda_bits.LANES[-1]
        if self._session is not None:
            self._session.at_close.append(other.close)
        return other

    def narrow(self) -> bool:
        """Halve the number of sources at once; see ``Traversals``."""
        lanes = self._most if self._searches is None else self._searches.lanes
        self._most = max(lanes // 2, 1)
        return lanes > 1

    def close(self) -> None:
        """Free the memory of searches (collective)."""
        if self._searches is not None:
            self._searches.close()
            self._searches = None


def traversals_of(session: Session) -> Traversals[Any]:
    """Return the traversals of a session's parts (collective).

    With engine openmp, they search parts in host memory; with engine xbfs, rows on
    devices. Raises UsageError on all ranks for other engines, or if a rank has none of
    these.
    """
    held, engine, world = session.held, session.options.engine, session.world
    members: Sequence[Share] = []
    if engine == "xbfs":
        separated = session.separated
        members = held.shares if separated is None else separated.shares
    ways = np.array([bool(members), bool(held.parts) and engine == "openmp"])
    on_devices, on_hosts = world.allreduce(ways, "min").tolist()
    if on_devices:
        return DeviceTraversals(world, members, session)
    if on_hosts:
        return OnHosts(world, held.parts, session.options.threads, session)
    raise UsageError(
        f"engine {engine} does not search these parts from many sources; allowed: "
        "engine openmp or xbfs, or the whole graph on each rank (--divide sources)"
    )
