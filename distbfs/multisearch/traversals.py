"""Traversals of a graph by as many searches at a time as memory allows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.errors import OutOfMemory, UsageError
from distbfs.exchange.router import gather
from distbfs.multisearch import bits, cuda_bits, domain_bits, domain_members
from distbfs.multisearch.part_bits import (
    BitSearch,
    PartBitSearches,
    bytes_needed,
    is_whole,
)
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
    from distbfs.types import Array, Ids, World

SPAN = 4096  # depth assumed in planning memory


class Traversals(ABC):
    """Searches a graph from several sources; methods are collective.

    session: the session whose parts are searched; None for a whole graph, whose ids are
    those of sources and results
    """

    def __init__(self, world: World, session: Session | None) -> None:
        self._world, self._session = world, session

    @abstractmethod
    def run(
        self, sources: Ids, options: RunOptions, wanted: Wanted
    ) -> tuple[PartSearches, int]:
        """Search from the first of the sources; return the searches, their number.

        sources: ids; options: only ``batch``, ``memory`` and ``threads`` count here
        """

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
    def reversed(self) -> Traversals:
        """Return searches along reversed edges of a directed graph.

        These searches must not run at the same time.
        """

    def _inside(self, sources: Ids) -> Ids:
        """Return the internal ids of the first sources, as many as run at once."""
        some, session = sources[: bits.MOST_SEARCHES], self._session
        return some if session is None else session.vertices.inside(some)

    def _by_id(self, shards: Sequence[Array], dtype: type[np.number[Any]]) -> Array:
        """Convert values by local id of each part to [n] on rank 0, [0] on others."""
        if self._session is None:
            return shards[0]
        block = self._session.vertices.block(shards, dtype)
        return np.concatenate(gather(self._world, block))


class OnHosts(Traversals):
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
        self._searches: tuple[tuple[int, int], PartBitSearches] | None = None

    def run(
        self, sources: Ids, options: RunOptions, wanted: Wanted
    ) -> tuple[PartSearches, int]:
        """Search from the first sources; see ``Traversals``."""
        planes = SPAN.bit_length() if wanted.levels else 0
        need = partial(bytes_needed, self._parts, planes=planes, sums=wanted.sums)
        size = min(options.batch or bits.MOST_SEARCHES, bits.MOST_SEARCHES)
        lanes = bits.width_for(min(size, len(sources)))
        if not options.batch:
            needs = np.array([need(lanes) for lanes in bits.WIDTHS])
            fits = self._world.allreduce(needs, "max") <= options.memory
            lanes = min(lanes, max(np.array(bits.WIDTHS)[fits], default=1))
        whole, threads = is_whole(self._parts[0]), options.threads or self._threads
        if self._searches is not None and (wanted.continued or not whole):
            lanes = max(lanes, self._searches[1].lanes)
        if self._searches is None or self._searches[0] != (lanes, threads):
            self._searches = None  # free the old ones before making others
            if not whole:
                self._check_room(bits.LANE * lanes, need(lanes))
            self._searches = (lanes, threads), self._make(lanes, threads)
        searches = self._searches[1]
        some = self._inside(sources[: min(size, searches.width)])
        searches.run(some, wanted)
        return searches, len(some)

    def _make(self, lanes: int, threads: int) -> PartBitSearches:
        """Return searches with a number of lanes."""
        parts = self._parts
        searches: PartBitSearches
        if is_whole(parts[0]):
            searches = BitSearch(parts[0], lanes, threads)
        else:
            searches = PartBitSearches(self._world, parts, lanes, threads)
        if self._session is not None:
            searches.by_id = self._by_id
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


class DeviceTraversals(Traversals):
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
        self._searches: domain_bits.DomainBitSearches | None = None
        self._most = cuda_bits.LANES[-1]
        self._messages: PartMessages | None = None
        separated = None if session is None else session.separated
        self._placement = None if separated is None else separated.placement
        if separated is not None and len(separated.placement.domains) > 1:
            devices = [member.cuda_device for member in members]
            self._messages = PartMessages(
                world, separated.placement, devices, separated.exchange
            )
        if session is not None:
            session.at_close.append(self.close)

    def run(
        self, sources: Ids, options: RunOptions, wanted: Wanted
    ) -> tuple[domain_bits.DomainBitSearches, int]:
        """Search from the first sources; see ``Traversals``."""
        most = min(options.batch or cuda_bits.LARGEST, cuda_bits.LARGEST)
        some = self._inside(sources[:most])
        lanes = next(x for x in cuda_bits.LANES if cuda_bits.SEARCHES * x >= len(some))
        searches, most = self._searches, min(lanes, self._most)
        if searches is None or not most <= searches.lanes <= self._most:
            self.close()
            self._searches = searches = self._make(most, levels=wanted.levels)
        some = some[: searches.width]
        searches.run(some, wanted)
        return searches, len(some)

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

    def _make(self, most: int, *, levels: bool) -> domain_bits.DomainBitSearches:
        """Return searches with a number of lanes, or with as many as fit."""
        world = self._world
        fits = domain_members.lanes_that_fit(
            world, self._members, levels=levels, most=most
        )
        if fits < most:
            self._most = fits
        searches = domain_bits.DomainBitSearches(
            world,
            self._members,
            lanes=fits,
            placement=self._placement,
            messages=self._messages,
        )
        if self._session is not None:
            searches.by_id = self._by_id
        return searches

    def close(self) -> None:
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
        return DeviceTraversals(world, members, session)
    if on_hosts:
        return OnHosts(world, held.parts, session.options.threads, session)
    raise UsageError(
        f"engine {engine} does not search these parts from many sources; allowed: "
        "engine openmp or xbfs, or the whole graph on each rank (--divide sources)"
    )
