"""Traversals of a session's parts by as many searches at a time as memory allows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from distbfs.errors import OutOfMemory, UsageError
from distbfs.multisearch import bits, cuda_bits, domain_bits, domain_members
from distbfs.multisearch.part_bits import PartBitSearches, bytes_needed
from distbfs.multisearch.part_loop import Wanted
from distbfs.multisearch.part_messages import PartMessages
from distbfs.plan.memory import may_fill, readable
from distbfs.ranks.agreement import first_reason

if TYPE_CHECKING:
    from distbfs.multisearch.base import RunOptions
    from distbfs.multisearch.part_loop import PartSearches
    from distbfs.partition.part import Part
    from distbfs.partition.share import Share
    from distbfs.search.session import Session
    from distbfs.types import Array, Ids

SPAN = 4096  # depth assumed in planning memory


class Traversals(ABC):
    """Searches a session's parts from several sources; methods are collective."""

    def __init__(self, session: Session) -> None:
        self._session, self._world = session, session.world

    @abstractmethod
    def run(
        self, sources: Ids, options: RunOptions, wanted: Wanted
    ) -> tuple[PartSearches, int]:
        """Search from the first of the sources; return the searches, their number.

        sources: ids; options: only ``batch``, ``memory`` and ``threads`` count here;
        ``wanted`` has the last level and ``stop``
        """

    def dependencies(
        self, sources: Ids, options: RunOptions
    ) -> tuple[list[Array], int]:
        """Return the dependencies of the first ones of ``sources``, and their number.

        They are summed over these sources: float64 by local id, for each part (Brandes
        2001). sources, options: as in ``run``; ``stop`` counts as well. By default a
        separate search finds the dependencies of one source.
        """
        root, session = int(sources[0]), self._session
        result = session.search(root, parents=False, stop=options.stop)
        return session.paths.dependencies([level for level, _ in result.shards]), 1

    @abstractmethod
    def reversed(self) -> Traversals:
        """Return searches along reversed edges of a directed graph.

        These searches must not run at the same time.
        """

    def _inside(self, sources: Ids) -> Ids:
        """Return the internal ids of the first sources, as many as run at once."""
        return self._session.vertices.inside(sources[: bits.MOST_SEARCHES])


class OnHosts(Traversals):
    """Traversals of parts in host memory."""

    def __init__(self, session: Session, parts: Sequence[Part]) -> None:
        super().__init__(session)
        self._parts = parts
        self._searches: PartBitSearches | None = None

    def run(
        self, sources: Ids, options: RunOptions, wanted: Wanted
    ) -> tuple[PartSearches, int]:
        """Search from the first sources; see ``Traversals``."""
        parts, sources = self._parts, self._inside(sources)
        planes = SPAN.bit_length() if wanted.levels else 0
        need = partial(bytes_needed, parts, planes=planes, sums=wanted.sums)
        one = np.array([need(1)])
        of_one = int(self._world.allreduce(one, "max")[0])
        size = bits.sources_at_once(len(sources), options, lambda x: x * of_one)
        lanes, some = bits.width_for(size), sources[:size]
        searches = self._searches
        if searches is None or searches.lanes < lanes:
            self._searches = searches = None  # free the old one before making another
            self._check_room(bits.LANE * lanes, need(lanes))
            threads = options.threads or self._session.options.threads
            searches = PartBitSearches(self._world, parts, lanes, threads)
            self._searches = searches
        searches.direction = options.direction
        searches.run(some, wanted)
        return searches, len(some)

    def reversed(self) -> OnHosts:
        """Return searches along reversed edges; see ``Traversals``."""
        self._searches = None  # they take as much memory
        return OnHosts(self._session, [part.reversed() for part in self._parts])

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


class DeviceTraversals(Traversals):
    """Traversals of parts on devices.

    members: the rows of this rank's devices
    """

    def __init__(self, session: Session, members: Sequence[Share]) -> None:
        super().__init__(session)
        self._members = members
        self._searches: domain_bits.DomainBitSearches | None = None
        self._most = cuda_bits.LANES[-1]
        self._messages: PartMessages | None = None
        separated = session.separated
        if separated is not None and len(separated.placement.domains) > 1:
            devices = [member.cuda_device for member in members]
            self._messages = PartMessages(
                self._world, separated.placement, devices, separated.exchange
            )
        session.at_close.append(self._close)

    def run(
        self, sources: Ids, options: RunOptions, wanted: Wanted
    ) -> tuple[PartSearches, int]:
        """Search from the first sources; see ``Traversals``."""
        most = options.batch or cuda_bits.LARGEST
        return self._tried(self._inside(sources), most, wanted)

    def dependencies(
        self, sources: Ids, options: RunOptions
    ) -> tuple[list[Array], int]:
        """Return dependencies of the first sources; see ``Traversals``.

        The traversal has few lanes, since the values of its searches need memory. It
        has one source if any device has columns in host memory, which these traversals
        do not read.
        """
        split = any(member.tails is not None for member in self._members)
        if self._world.allreduce(np.array([int(split)]), "max")[0]:
            return super().dependencies(sources, options)
        stop = options.stop
        sums: list[Array] = []
        _, count = self._tried(
            self._inside(sources),
            min(options.batch or cuda_bits.SEARCHES, cuda_bits.SEARCHES),
            Wanted(levels=True, counts=False, stop=stop),
            lambda searches: sums.extend(searches.dependencies(stop)),
        )
        return sums, count

    def reversed(self) -> DeviceTraversals:
        """Return searches along reversed edges; see ``Traversals``."""
        self._close()  # they take as much memory
        other = copy(self)
        other._members = [member.turned() for member in self._members]
        other._most = cuda_bits.LANES[-1]
        self._session.at_close.append(other._close)
        return other

    def _tried(
        self,
        sources: Ids,
        most: int,
        wanted: Wanted,
        then: Callable[[domain_bits.DomainBitSearches], object] | None = None,
    ) -> tuple[domain_bits.DomainBitSearches, int]:
        """Search from up to ``most`` sources, then call ``then`` with the searches.

        Halve the number of sources if memory runs out, for example because of deep
        levels.
        """
        at_once = min(most, len(sources), cuda_bits.LARGEST)
        while True:
            lanes = next(
                x for x in cuda_bits.LANES if cuda_bits.SEARCHES * x >= at_once
            )
            searches = self._with(min(lanes, self._most), levels=wanted.levels)
            count = min(at_once, searches.width, len(sources))
            try:
                searches.run(sources[:count], wanted)
                if then is not None:
                    then(searches)
                return searches, count
            except OutOfMemory:  # on all ranks
                if searches.lanes == cuda_bits.LANES[0]:
                    raise
                self._most = searches.lanes // 2
            self._close()

    def _with(self, lanes: int, *, levels: bool) -> domain_bits.DomainBitSearches:
        """Return searches with ``lanes`` lanes, or with as many as fit."""
        searches, separated = self._searches, self._session.separated
        if searches is None or searches.lanes < lanes:
            self._close()
            fits = domain_members.lanes_that_fit(
                self._world, self._members, levels=levels, most=lanes
            )
            if fits < lanes:
                self._most = fits
            self._searches = searches = domain_bits.DomainBitSearches(
                self._world,
                self._members,
                lanes=fits,
                placement=None if separated is None else separated.placement,
                messages=self._messages,
            )
        return searches

    def _close(self) -> None:
        """Free the memory of searches (collective)."""
        if self._searches is not None:
            self._searches.close()
            self._searches = None


def traversals_of(session: Session) -> Traversals:
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
        return DeviceTraversals(session, members)
    if on_hosts:
        return OnHosts(session, held.parts)
    raise UsageError(
        f"engine {engine} does not search these parts from many sources; allowed: "
        "engine openmp or xbfs, or the whole graph on each rank (--divide sources)"
    )
