"""Messages between devices of different domains, whose sizes only senders know.

Between ranks, messages go through the streams of the session's exchange if it has
streams (NCCL), else through host memory and MPI; on one rank, from device to device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from distbfs.device import cuda
from distbfs.device.arrays import brought_here
from distbfs.exchange import peer_memory

if TYPE_CHECKING:
    from distbfs.exchange.base import Exchange
    from distbfs.exchange.nccl_streams import NcclStreams
    from distbfs.partition.layout import Placement
    from distbfs.types import DeviceArray, Ids, World


@dataclass(frozen=True)
class Route:
    """The path of the items of one group from one part to another.

    place: place of ``goal`` on its rank
    group: index of the group in its part, which has one for each part, then one for
    each of its delegate lanes; delegates: whether it is one of these
    """

    source: int
    goal: int
    place: int
    group: int
    delegates: bool = False


Arrivals: TypeAlias = "list[tuple[Route, DeviceArray]]"


class PartMessages:
    """Sends items between parts of different domains; ``deliver`` is collective.

    placement: where the parts are; devices: the devices of this rank's parts
    exchange: exchange of the session, whose streams are used if it has any (collective)
    """

    def __init__(
        self,
        world: World,
        placement: Placement,
        devices: Sequence[int],
        exchange: Exchange,
    ) -> None:
        self._world, self.placement, self._devices = world, placement, list(devices)
        self._domains, rank = placement.domains, world.rank
        self._own = placement.parts_of(rank)
        self._rank_of = [placement.rank_of(part) for part in range(placement.parts)]
        self._routes = [
            route
            for route in self._all_routes()
            if rank in (self._rank_of[route.source], self._rank_of[route.goal])
        ]
        self._streams: NcclStreams | None = None
        each_its_own = placement.per_rank == 1 or bool(placement.owners)
        if exchange.streamed and world.size > 1 and each_its_own:
            self._streams = exchange.streams(self._devices)
            self._streams.connect([self._domains.apart_from(x) for x in self._own])

    def _all_routes(self) -> Iterator[Route]:
        """Yield all routes, in the same order on all ranks."""
        domains = self._domains
        for source in range(domains.shares):
            lanes = domains.lanes_of(source)
            for goal in domains.apart_from(source):
                place, there = self.placement.device_of(goal), domains.lanes_of(goal)
                yield Route(source, goal, place, goal)
                for k, lane in enumerate(lanes):
                    # mutant: lane in -> lane not in
                    #   : test_outer_bits::test_a_last_level
                    if lane in there:
                        yield Route(source, goal, place, domains.shares + k, True)

    def deliver(
        self,
        counts: Sequence[Ids],
        words: int,
        items: Callable[[int, int, int], DeviceArray],
    ) -> Arrivals:
        """Send the items of all parts to each other; return those for this rank.

        counts: number of items in each group of this rank's parts; words: uint64 words
        of an item items(place, group, count): returns the items of a part of this rank;
        called while its device is current
        """
        sizes, rank = self._all_counts(counts), self._world.rank
        arrived: Arrivals = []
        leaving: Arrivals = []
        coming: list[tuple[Route, int]] = []
        for route in self._routes:
            count = int(sizes[route.source][route.group])
            if not count:
                continue
            if self._rank_of[route.source] != rank:
                coming.append((route, words * count))
                continue
            place = self.placement.device_of(route.source)
            with peer_memory.on_device(self._devices[place]):
                array = items(place, route.group, count)
            if self._rank_of[route.goal] != rank:
                leaving.append((route, array))
                continue
            arrived.append(self._arrival(route, partial(brought_here, array)))
        if self._world.size > 1:
            pass_on = self._by_host if self._streams is None else self._by_streams
            arrived += pass_on(leaving, coming)
        return arrived

    def _arrival(
        self, route: Route, make: Callable[[], DeviceArray]
    ) -> tuple[Route, DeviceArray]:
        """Return a route with the items that ``make`` returns on its goal's device."""
        device = peer_memory.on_device(self._devices[route.place])
        with device, cuda.memory_of("words that arrive"):
            return route, make()

    def _all_counts(self, counts: Sequence[Ids]) -> dict[int, Ids]:
        """Return the number of items in each group of all parts (collective)."""
        sizes: dict[int, Ids] = {}
        for rank, own in enumerate(self._world.allgather(np.concatenate(counts))):
            parts, domains = self.placement.parts_of(rank), self._domains
            ends = np.cumsum([domains.shares + len(domains.lanes_of(x)) for x in parts])
            sizes |= zip(parts, np.split(own, ends[:-1]), strict=True)
        return sizes

    def _by_host(
        self, leaving: Arrivals, coming: Sequence[tuple[Route, int]]
    ) -> Arrivals:
        """Send through host memory (collective)."""
        ranks = range(self._world.size)
        sent: list[list[Any]] = [[np.zeros(0, np.uint64)] for _ in ranks]
        for route, array in leaving:
            with array.device:
                sent[self._rank_of[route.goal]].append(array.get())
        received = self._world.alltoall([np.concatenate(x) for x in sent])
        arrived = []
        for route, size in coming:
            rank = self._rank_of[route.source]
            values, received[rank] = np.split(received[rank], [size])
            make = partial(cuda.cupy().asarray, np.ascontiguousarray(values))
            arrived.append(self._arrival(route, make))
        return arrived

    def _by_streams(
        self, leaving: Arrivals, coming: Sequence[tuple[Route, int]]
    ) -> Arrivals:
        """Send on the streams of the exchange (collective)."""
        streams, place_of = self._streams, self.placement.device_of
        if streams is None:
            raise ValueError("there are no streams")
        empty, link = cuda.cupy().empty, streams.link
        arrived = [
            self._arrival(route, partial(empty, size, np.uint64))
            for route, size in coming
        ]
        link.follow()
        away = [(place_of(x.source), x.goal, array) for x, array in leaving]
        near = [(x.place, x.source, array) for x, array in arrived]
        streams.cross([], away, near)
        link.finish()
        return arrived
