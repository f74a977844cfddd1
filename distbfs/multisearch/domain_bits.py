"""Up to 512 searches in one traversal over parts on devices (bits_domain.cu).

The host launches a level on all devices of a domain and waits for all before the next.
A device with a whole graph makes all levels in one launch (``LaunchedShare``), unless
some of the graph is in host memory. ``cuda_bits`` describes the rows of devices
and the bytes that searches take. Between domains (``outer_bits``), each level sends the
new words of delegates to all domains, and those of targets of outer edges to their
owners.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.device.array_table import total_bytes
from distbfs.engines.base import TAIL_COUNTS
from distbfs.errors import LaunchError, ResourceError, UsageError
from distbfs.exchange.peer_memory import on_device
from distbfs.graph.device_graph import ISOLATED
from distbfs.multisearch.base import check_sources
from distbfs.multisearch.cuda_bits import LANES, SEARCHES, lanes_that_fit, shared_of
from distbfs.multisearch.domain_paths import DomainPaths
from distbfs.multisearch.domain_share import BLOCK, BitShare, LaunchedShare
from distbfs.multisearch.outer_bits import Outside, exchanged
from distbfs.multisearch.part_loop import PartSearches, Wanted
from distbfs.partition.share import Share
from distbfs.plan import pull_shares
from distbfs.ranks.agreement import errors_of_all
from distbfs.search.domain_group import DomainGroup
from distbfs.types import UNREACHED

if TYPE_CHECKING:
    from distbfs.multisearch.base import RunOptions
    from distbfs.multisearch.part_messages import PartMessages
    from distbfs.search.session import Session
    from distbfs.types import Array, DeviceArray, Ids, Stop, World

NO_IDS: Ids = np.zeros(0, dtype=np.int64)


class DomainBitSearches(PartSearches):
    """Searches a graph on the devices of all ranks.

    members: this rank's members, in the order of ``placement``
    messages: sends messages between several domains; None if all devices are one
    pull_edges: pull frontiers of this many edges or more (default: a share of all)

    launched: the share that makes all levels in one launch, None if the host leads
    """

    def __init__(
        self,
        world: World,
        members: Sequence[Share],
        *,
        messages: PartMessages | None = None,
        pull_edges: int | None = None,
        session: Session | None = None,
    ) -> None:
        super().__init__(world, session)
        self._layout, self._messages = members[0].layout, messages
        self._members, self._most = members, LANES[-1]  # the most lanes
        edges = np.array([sum(member.m for member in members)])
        most = max(member.domain.devices for member in members)
        total = int(world.allreduce(edges)[0])
        most = int(world.allreduce(np.array([most]), "max")[0])
        split = members[0].out.tails is not None  # all have tails, or none
        to_peers = most > 1 and not split
        share = pull_shares.MANY_IN_DOMAIN if to_peers else pull_shares.MANY
        self._pull_edges = max(total // share, 1) if pull_edges is None else pull_edges
        self._shares: list[BitShare] = []
        self.launched: LaunchedShare | None = None
        self._sources: Ids = NO_IDS
        self._summed: Ids = NO_IDS  # sources of the sums
        self._blocks: tuple[int, list[Array]] | None = None
        self._paths: DomainPaths | None = None
        if session is not None:
            session.at_close.append(self.close)

    def _fit(self, size: int, options: RunOptions, wanted: Wanted) -> None:  # noqa: ARG002
        """Have memory for searches, as many as fit the devices."""
        lanes = next(x for x in LANES if SEARCHES * x >= size)
        most = min(lanes, self._most)
        if not most <= self.lanes <= self._most:
            self.close()
            lanes = lanes_that_fit(
                self._world, self._members, levels=wanted.levels, most=most
            )
            if lanes < most:
                self._most = lanes
            self.allocate(lanes)

    def narrow(self) -> bool:
        """Halve the number of sources at once; see ``PartSearches``."""
        lanes = self.lanes or self._most
        self._most = max(lanes // 2, 1)
        return lanes > 1

    def reversed(self) -> DomainBitSearches:
        """Return searches along reversed edges; see ``PartSearches``."""
        self.close()  # they take as much memory
        other = copy(self)
        other._members = [member.turned() for member in self._members]
        other._most = LANES[-1]
        if self._session is not None:
            self._session.at_close.append(other.close)
        return other

    def allocate(self, lanes: int) -> None:
        """Allocate the memory of searches, of so many lanes of 128 (collective).

        Raises ResourceError on all ranks if device memory is short on one.
        """
        members, messages = self._members, self._messages
        devices = [member.cuda_device for member in members]
        placement = None if messages is None else messages.placement
        self._group = DomainGroup(self._world, devices, placement)
        self.lanes, self.width = lanes, SEARCHES * lanes
        try:
            self._shares = self._group.make(
                [total_bytes(shared_of(member, lanes)) for member in members],
                "bit-parallel searches",
                lambda place, held, at: self._share(members[place], held, at),
            )
        except (LaunchError, ResourceError):
            self.close()
            raise

    def _share(self, member: Share, memory: DeviceArray, bases: Ids) -> BitShare:
        if not member.whole or member.out.tails is not None:
            return BitShare(member, self.lanes, memory, bases)
        self.launched = LaunchedShare(member, self.lanes, memory)
        return self.launched

    def _each(self, work: Callable[[BitShare], Any]) -> list[Any]:
        return self._group.each(self._shares, work)

    def _begin(self, sources: Ids, wanted: Wanted) -> None:
        """Forget all searches; put the sources on level 0."""
        check_sources(sources, self._layout.n)
        if len(sources) > self.width:
            raise UsageError(f"{len(sources)} searches at once; allowed: {self.width}")
        self._sources, self._blocks = sources, None
        numbers = [share.member.numbers_of_ids(sources) for share in self._shares]
        connected = np.any([x != ISOLATED for x in numbers], axis=0).astype(np.uint8)
        there = self._world.allreduce(connected, "max").astype(np.bool_)
        before = self._summed if wanted.continued else NO_IDS
        self._summed = np.concatenate([before, sources])
        with errors_of_all(self._world, ResourceError):
            for share, own in zip(self._shares, numbers, strict=True):
                with on_device(share.device):
                    share.clear(wanted)
                    share.begin(own, there)
        self._group.meet()

    def _search(self, wanted: Wanted) -> int:
        """Search by one launch, or level by level; return the largest level."""
        if self.launched is None:
            return super()._search(wanted)
        with on_device(self.launched.device):
            return self.launched.search(self._pull_edges)

    def _make_room(self, depth: int) -> None:
        """Allocate room for a level."""
        if depth > self._shares[0].room:  # as on all ranks
            with errors_of_all(self._world, ResourceError):
                self._each(lambda share: share.make_room(depth))

    def _push(self, depth: int) -> None:
        """Move words along the edges of domains, and between domains."""
        # mutant: >= -> < : test_a_small_frontier_is_pushed_and_a_large_one_pulled
        way = "pull_level" if self._edges >= self._pull_edges else "push_level"

        def step(share: BitShare) -> None:
            if share.member.out.tails is not None and way == "pull_level":
                share.step("live_level", depth)
            share.step(way, depth)
            if share.outside is not None:
                share.outside.push(depth)

        self._each(step)
        self._group.meet()
        if self._messages is None:
            return
        sides = [share.outside for share in self._shares if share.outside is not None]
        self._group.each(sides, Outside.collect)
        exchanged(self._messages, sides, self._group.devices)

    def _settle(self, depth: int) -> tuple[int, int]:
        """Make the new bits the frontier; count its vertices and edges out of them."""
        self._each(lambda share: share.settle(depth))
        sizes = self._each(lambda share: share.frontier(depth))
        queued, edges = np.array(sizes).sum(axis=0).tolist()
        return queued, edges

    def _own_counts(self) -> Array:
        """Count this rank's vertices by level and search, int64 [levels, width]."""
        levels = self.deepest + 1
        own: Array = np.sum(self._each(lambda x: x.level_counts(levels)), axis=0)
        # a source may have no edges and be in no row
        own[0, : self._count] = self._world.rank == 0
        return own

    def _own_sources(self, share: BitShare, sources: Ids) -> Ids:
        """Return the local ids of the sources that a share owns."""
        own = self._layout.part_of(sources) == share.part
        return self._layout.local_of(sources[own])

    def levels(self, search: int) -> list[Array]:
        """Return the levels of a search of each part by local id, in few bytes."""
        block, row = divmod(search, BLOCK)
        if self._blocks is None or self._blocks[0] != block:
            deepest, count = self.deepest, self._count
            read = self._each(lambda share: share.block_levels(deepest, block, count))
            self._blocks = block, read
        values, source = [rows[row] for rows in self._blocks[1]], self._sources[search]
        for share, level in zip(self._shares, values, strict=True):
            level[self._own_sources(share, np.atleast_1d(source))] = 0
        return values

    def sums(self, name: str) -> list[Array]:
        """Return sums of ``base.SUMS`` of each part by local id."""
        values: list[Array] = self._each(lambda share: share.sums(name))
        if name == "reached_from":
            for share, sums in zip(self._shares, values, strict=True):
                # mutant: 1) -> 0) : test_multisearch_bits::test_levels_and_counts
                np.add.at(sums, self._own_sources(share, self._summed), 1)
        return values

    def dependencies_of_first(
        self, sources: Ids, options: RunOptions
    ) -> tuple[list[Array], int]:
        """Return dependencies of the first sources; see ``PartSearches``.

        The traversal has few lanes, since the values of its searches need memory. It
        has one source if any device has columns in host memory, which these traversals
        do not read.
        """
        split = any(member.out.tails is not None for member in self._members)
        if self._world.allreduce(np.array([int(split)]), "max")[0]:
            return super().dependencies_of_first(sources, options)
        wanted = Wanted(levels=True, counts=False, stop=options.stop)
        count = self.run_first(sources[:SEARCHES], options, wanted)
        return self.dependencies(options.stop), count

    def dependencies(self, stop: Stop | None) -> list[Array]:
        """Return the dependencies of the sources of the last run, which kept levels.

        They are summed over the sources: float64 by local id, for each part; see
        ``domain_paths``. stop: as in ``Wanted``
        """
        if not self._wanted.levels:
            raise ValueError("levels were not requested")
        if self.deepest < 2:  # no path has a vertex between its ends
            return [np.zeros(share.member.n) for share in self._shares]
        if self._paths is None:
            self._paths = DomainPaths(
                self._group, self._shares, self._messages, self.deepest
            )
        return self._paths.dependencies(self._count, self.deepest, stop)

    def levels_at(self, searches: Ids, vertices: Ids) -> Array:
        """Return the level of each vertex in each search; see ``PartSearches``."""
        check_sources(vertices, self._layout.n, "target")
        levels = np.full(len(vertices), UNREACHED, dtype=np.int32)
        for share in self._shares:
            own = self._layout.part_of(vertices) == share.part
            with on_device(share.device):
                levels[own] = share.levels_in(
                    self.deepest, searches[own], vertices[own]
                )
        levels = self._world.allreduce(levels, "max")
        levels[self._sources[searches] == vertices] = 0  # including those without edges
        return levels

    def tail_counts(self) -> dict[str, int]:
        """Return the tail reads of the last run on all ranks (collective).

        Their names are those of ``TAIL_COUNTS``; the result is empty if no row has a
        tail.
        """
        if self._shares[0].member.out.tails is None:  # all have tails, or none
            return {}
        sums = self._world.allreduce(np.sum(self._each(BitShare.tail_reads), axis=0))
        return dict(zip(TAIL_COUNTS, sums.tolist(), strict=True))

    def close(self) -> None:
        """Free the memory of searches (collective)."""
        if self.lanes:
            self._shares, self._paths, self.launched, self.lanes = [], None, None, 0
            self._group.close()
