"""The devices of a domain in searches that share one traversal: rows and memory.

The devices of a domain hold the rows of one inner graph and map each other's memory, in
one process or in several. ``domain_bits`` searches them.

For each 128 searches, a device needs 32.5 bytes for each position of any device of its
domain: two frontiers and their marks. For each own vertex it needs 16 bytes for visited
bits and 16 for each binary digit of the levels; to send words, it needs 48 for each
target of outer edges and 16 for each delegate. For each own vertex, queues take 8 bytes
and outer edges 8; reading levels takes 4 for each id.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from distbfs.build.cuda.domain import GRANULE, MemberRows
from distbfs.build.cuda.inner_part import InnerPart
from distbfs.device import cuda
from distbfs.device.array_table import ArrayPlan, ArrayTable, total_bytes
from distbfs.errors import OutOfMemory, UsageError
from distbfs.exchange.peer_memory import on_device
from distbfs.graph.device_graph import ISOLATED, MAX_VERTICES, DeviceGraph
from distbfs.multisearch.base import SUMS
from distbfs.multisearch.cuda_bits import (
    LANES,
    MARKS,
    MORE_PLANES,
    RESERVE,
    SEARCHES,
)
from distbfs.partition.delegates import DelegateNumbers
from distbfs.partition.layout import Layout
from distbfs.ranks.agreement import first_reason

if TYPE_CHECKING:
    from distbfs.build.cuda.inner_part import Outer as OuterEdges
    from distbfs.partition.layout import Domains
    from distbfs.types import Array, Ids, World


def shared_table(lanes: int, granules: int, devices: int) -> ArrayTable:
    """Return the arrays of searches that other devices access, in one allocation.

    granules: number of granules of each device; devices: number of devices of the
    domain
    """
    words, own = SEARCHES // 32 * lanes, granules * GRANULE
    positions = own * devices
    return {
        "front": [ArrayPlan(np.uint32, words * positions)] * 2,
        "mark": [ArrayPlan(np.uint32, positions // 32)] * MARKS,
        "seen": ArrayPlan(np.uint32, words * own),
    }


def own_table(
    lanes: int, n: int, active: int, *, levels: bool, sums: int
) -> ArrayTable:
    """Return the arrays of searches that only this device accesses.

    n, active: those of its rows, as in ``DeviceGraph``
    """
    row = max(active, 1) * SEARCHES // 32 * lanes
    return {
        "queue": [ArrayPlan(np.uint32, max(active, 1))] * 2,
        "plane": [ArrayPlan(np.uint32, row, later=True)] * (2 * MORE_PLANES * levels),
        "sums": [ArrayPlan(np.uint64, max(active, 1), later=True)] * sums,
        # an element more takes vertices of other devices
        "by_id": [ArrayPlan(np.uint32, n + 1, later=True)] * levels,
    }


def outer_table(lanes: int, active: int, targets: int, normals: int) -> ArrayTable:
    """Return the arrays of messages to other domains."""
    row = max(targets, 1) * SEARCHES // 32 * lanes
    return {
        "row": ArrayPlan(np.uint64, active + 1),
        "seen": ArrayPlan(np.uint32, row),
        "sends": ArrayPlan(np.uint32, row),
        "sending": ArrayPlan(np.uint32, targets // 32 + 1),
        "box": ArrayPlan(np.uint64, (targets + normals) * (1 + 2 * lanes)),
    }


def bytes_beside(n: int, active: int, devices: int, targets: int) -> int:
    """Return the bytes of a traversal of SEARCHES searches, as ``Request.beside``."""
    lanes, granules = LANES[0], -(-active // GRANULE) + 1
    shared = shared_table(lanes, granules, devices)
    own = own_table(lanes, n, active, levels=True, sums=len(SUMS))
    outer = outer_table(lanes, active, targets, active) if targets else {}
    return RESERVE + sum(map(total_bytes, (shared, own, outer)))


@dataclass(frozen=True)
class Member:
    """The rows of one device of a domain.

    layout, part: which vertices the device owns; devices: number of devices of its
    domain, of which this is the ``index``-th; granules: number of granules of each
    device
    delegates: ids of delegates by position, int64, -1 in gaps; normals: first number of
    a normal vertex
    outer, asked: edges to other domains, and those from them, see ``InnerPart``; None
    if there is only one domain
    domains: number of all domains; domain: index of this one
    whole: whether this is a whole graph, which may be directed
    """

    layout: Layout
    part: int
    graph: DeviceGraph
    devices: int
    index: int
    granules: int
    delegates: Ids | None = None
    normals: int = 0
    outer: OuterEdges | None = None
    asked: OuterEdges | None = None
    domains: Domains | None = None
    domain: int = 0
    whole: bool = False

    @classmethod
    def of_rows(cls, rows: MemberRows) -> Member:
        """Return the member with some rows of a graph without delegates."""
        parts = rows.layout.parts
        graph, granules = rows.graph, rows.granules
        return cls(rows.layout, rows.index, graph, parts, rows.index, granules)

    @classmethod
    def of_graph(cls, graph: DeviceGraph) -> Member:
        """Return the only member, which holds a whole graph.

        Raises UsageError if it is too large.
        """
        if graph.n > MAX_VERTICES:
            raise UsageError(f"{graph.n} vertices; allowed: {MAX_VERTICES}")
        granules = max(-(-graph.active // GRANULE), 1)
        return cls(Layout(graph.n, 1), 0, graph, 1, 0, granules, whole=True)

    @classmethod
    def of_share(cls, share: InnerPart) -> Member:
        """Return the member with a share of a part."""
        domain, several = share.domain, len(share.domain.of) > 1
        return cls(
            share.layout,
            share.index,
            share.graph,
            domain.devices,
            share.device,
            domain.granules,
            share.delegates,
            share.normals,
            share.outer if several else None,
            share.asked if several else None,
            domain.of,
            domain.index,
        )

    def reversed(self) -> Member:
        """Return the member with all edges of a directed graph reversed."""
        turned = self.graph.turned()
        return replace(self, graph=turned, outer=self.asked, asked=self.outer)

    @property
    def device(self) -> int:
        """The CUDA device."""
        return int(self.graph.numbers.device)

    @property
    def own_lanes(self) -> int:
        """Number of delegate lanes on this device; see ``build.cuda.inner_part``."""
        return 1 if self.domains is None else self.domains.lanes // self.devices

    @cached_property
    def _delegate_numbers(self) -> DelegateNumbers | None:
        return None if self.delegates is None else DelegateNumbers(self.delegates)

    def numbers_of(self, ids: Ids) -> Array:
        """Return the numbers that vertex ids have here, uint32, ISOLATED for none."""
        numbers = np.full(len(ids), ISOLATED, dtype=np.uint32)
        own = self.layout.part_of(ids) == self.part
        numbers[own] = self.graph.numbers_at(self.layout.local_of(ids[own]))
        if self._delegate_numbers is not None:
            position = self._delegate_numbers.of(ids)
            granule, inside = np.divmod(position, GRANULE)
            here = (position >= 0) & (granule % self.devices == self.index)
            numbers[here] = (granule // self.devices * GRANULE + inside)[here]
        return numbers

    def shared(self, lanes: int) -> ArrayTable:
        """Return the arrays that others access, see ``shared_table``."""
        return shared_table(lanes, self.granules, self.devices)

    def bytes_needed(self, lanes: int, *, levels: bool, sums: int = 0) -> int:
        """Return the bytes of searches, with room to add planes once."""
        n, active, outer = self.graph.n, self.graph.active, {}
        own = own_table(lanes, n, active, levels=levels, sums=sums)
        if self.outer is not None:
            outer = outer_table(lanes, active, len(self.outer.targets), self.normals)
        return sum(map(total_bytes, (self.shared(lanes), own, outer)))


def lanes_that_fit(
    world: World, members: Sequence[Member], *, levels: bool, most: int = LANES[-1]
) -> int:
    """Return the largest number of lanes whose searches fit all devices (collective).

    Raises OutOfMemory on all ranks if not even one lane fits.
    """
    return largest_that_fits(
        world,
        [lanes for lanes in LANES if lanes <= most],
        [member.device for member in members],
        lambda place, lanes: members[place].bytes_needed(
            lanes, levels=levels, sums=len(SUMS)
        ),
        "bit-parallel searches",
    )


def largest_that_fits(
    world: World,
    sizes: Sequence[int],
    devices: Sequence[int],
    bytes_needed: Callable[[int, int], int],
    what: str,
) -> int:
    """Return the largest size for which all devices have the memory (collective).

    sizes: sizes to try, ascending; devices: this rank's devices; bytes_needed(place,
    size): bytes that a size needs on the device at a place
    Raises OutOfMemory on all ranks if the smallest does not fit one device.
    """
    fits, reason = 0, ""
    for size in reversed(sizes):
        need: dict[int, int] = {}
        for place, device in enumerate(devices):
            need[device] = need.get(device, RESERVE) + bytes_needed(place, size)
        fits, reason = size, ""
        for device, count in need.items():
            with on_device(device):
                free = cuda.free_bytes()
            if count > free:
                fits = 0
                reason = f"{what} need {count} bytes of device memory; {free} are free"
        if fits:
            break
    if reason := first_reason(world, reason):
        raise OutOfMemory(reason)
    return int(world.allreduce(np.array([fits]), "min")[0])
