"""A degree-separated part as one graph, for an engine that searches between domains.

The inner graph of a domain has nd, dn, dd and the edges of nn that stay in the domain.
Each device of a domain has a share of its rows: those of its normal vertices and of
some delegates, including the delegates that it owns. Domains may have any number of
devices; ``partition.layout.Domains`` maps shares to devices.

On a device, vertices are numbers: its delegates in their global order; a gap; then the
normal vertices with edges by descending class of their degree inside the domain. Normal
vertices whose only edge leads to a delegate come last. Searches leave these leaves out
(``graph.trees``), whose numbers begin at the same multiple of the granule on all
devices of a domain. Numbers of the devices of a domain are interleaved in granules of
1,024 as positions (see domain.py). Delegates have the same positions in every domain,
whatever its size (see ``Delegates``), so a mask of delegates is the first words of a
bitmap by position. With one device, numbers are positions. Rows are by number, and
columns are positions. A row may be empty, and may continue in host memory
(``DeviceGraph.tails``). The outer edges, those of nn to other domains, are stored as
rows by normal number.

In a directed graph, degrees are sums of edges out and in, no vertex is left out, and
there are two sets of inner rows and two of outer edges: those out, which are pushed,
and those in, along which vertices ask.

Source: Pan, Pearce, Owens 2018, Section III (the subgraphs of a part).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from distbfs.build.cuda.share_rows import GRANULE, ShareRows, numbers_of, positions_of
from distbfs.device.array_table import ArrayPlan, ArrayTable
from distbfs.device.take import take
from distbfs.generate.cuda import id_type
from distbfs.graph.device_graph import ISOLATED, graph_table
from distbfs.partition.layout import Domains, Layout
from distbfs.types import Ids

WIDE = 1 << 32


def apart_table(
    n: int, positions: int, *, normals: int, owned: int, edges: int, targets: int
) -> ArrayTable:
    """Return the arrays of an ``InnerPart`` that exist before its rows.

    n: number of vertices of the graph; positions: positions of the domain
    normals, owned: normal vertices with edges and owned delegates of the share
    edges, targets: number of outer edges and of their targets
    """
    return {
        "ids": ArrayPlan(id_type(n), slots_after(positions) + normals + owned + 1),
        "outer_offsets": ArrayPlan(np.uint64, normals + 1),
        "outer_columns": ArrayPlan(np.uint32, edges),
        "outer_targets": ArrayPlan(np.uint32, targets),
    }


def inner_table(
    local: int, active: int, m: int, *, directed: bool = False
) -> ArrayTable:
    """Return the arrays of an ``InnerPart``'s graph besides those of its part.

    local, active, m: as in ``DeviceGraph``
    """
    # an id more, of vertices elsewhere
    table = graph_table(local + 1, active, m, directed=directed, wide=directed)
    del table["tuple_degrees"]
    return table


@dataclass(frozen=True)
class ShareCounts:
    """Counts that determine the memory of searches of a share; see ``InnerPart``.

    active, m, at_least: as in ``DeviceGraph``; delegates: number of positions of
    delegates
    targets: number of targets of outer edges; outer_edges: number of outer edges to
    each share, int64 [shares], as in ``InnerPart.edges_to``; owned: number of delegates
    that each share owns, int64 [shares]
    directed: whether the graph is directed
    """

    layout: Layout
    index: int
    domains: Domains
    active: int
    m: int
    at_least: Ids
    delegates: int
    targets: int
    outer_edges: Ids
    owned: Ids
    directed: bool = False


@dataclass(frozen=True)
class Outer:
    """The outer edges of a share as rows by normal number; CuPy arrays.

    offsets: uint64 [normal vertices + 1]; columns: uint32 [outer edges], indices of
    targets: uint32 [targets], their local ids on their shares, by share
    starts: first target of each share, int64 [shares + 1]; edges: number of edges to
    each share, int64 [shares]; both on the host
    on_host: whether ``columns`` lies in pinned host memory, which kernels read in place
    """

    offsets: Any
    columns: Any
    targets: Any
    starts: Ids
    edges: Ids
    on_host: bool = False

    @property
    def host_bytes(self) -> int:
        """Bytes of the columns if they are in host memory, else 0."""
        return int(self.columns.nbytes) * self.on_host

    @property
    def device_bytes(self) -> int:
        """Bytes of the arrays on the device."""
        return sum(int(x.nbytes) for x in self.arrays) - self.host_bytes

    @property
    def arrays(self) -> tuple[Any, Any, Any]:
        """Offsets, columns and targets."""
        return self.offsets, self.columns, self.targets


@dataclass(kw_only=True)
class InnerPart(ShareRows):
    """One device's share of a part, on that device. Arrays are CuPy's.

    Its ``delegates`` are equal on all devices. The ``active`` of its graph counts all
    numbers; ``vertices`` is ISOLATED for delegates of other parts and in the gap.
    ids: uint32 or uint64 [slots + room]; from ``slots`` on, there is room for an id of
    another domain for each vertex with edges of this share, and for one more
    outer: the outer edges; in a directed graph those out
    incoming: the outer edges in of a directed graph; None if edges lead both ways
    """

    outer: Outer
    incoming: Outer | None = None

    @property
    def asked(self) -> Outer:
        """The outer edges along which vertices ask."""
        return self.outer if self.incoming is None else self.incoming

    def reversed(self) -> InnerPart:
        """Return the rows with all edges of a directed graph reversed."""
        return replace(super().reversed(), outer=self.asked, incoming=self.outer)

    @property
    def outer_sides(self) -> list[Outer]:
        """The outer edges: those out and, in a directed graph, those in."""
        return [self.outer] if self.incoming is None else [self.outer, self.incoming]

    @property
    def edges_to(self) -> Ids:
        """Number of outer edges to each share, or from it if those are more."""
        return np.maximum(self.outer.edges, self.asked.edges)

    @property
    def id_bits(self) -> int:
        """Bits of an id in a message."""
        return max((self.layout.n - 1).bit_length(), 32) if self.wide else 32

    @property
    def delegate_count(self) -> int:
        """Number of positions of delegates (d plus gaps; the same in all domains)."""
        return len(self.delegates)

    def numbers_of(self, places: Ids) -> Ids:
        """Return the numbers of local ids, int64 [k] on the host.

        A vertex without edges has WIDE + local id.
        """
        numbers = take(self.graph.numbers, places).astype(np.int64)
        return np.where(numbers == ISOLATED, WIDE + places, numbers)

    def numbers_at(self, positions: Ids) -> Ids:
        """Return the numbers of positions, int64 [k], -1 if on other devices."""
        device, numbers = numbers_of(positions, self.domain.devices)
        return np.where(device == self.device, numbers, -1)


class Delegates:
    """Positions of delegates on the devices of a domain.

    A granule of positions lies on device (granule modulo the domain's size). So
    granules with the same remainder modulo ``lanes``, a common multiple of all sizes,
    lie on one device in every domain. The delegates owned by device k of a domain of D
    devices are dealt by local id to lanes k, k + D, …, which lie on that device. The
    delegates of a lane fill its granules in global order.

    ids: int64 [d], by global delegate number; count: number of positions, including
    gaps at the ends of lanes; normals: first number of a normal vertex

    device, number, position: where each delegate is, int64 [d]
    """

    def __init__(self, ids: Ids, domains: Domains, index: int) -> None:
        sizes, lanes = np.array(domains.sizes), domains.lanes
        owner, local = ids % domains.shares, ids // domains.shares
        own = sizes[domains.domain_of(owner)]
        # mutant: domains.device_of(owner) + own * (local % (lanes // own)) -> local %
        #   lanes : test_between_kernels::test_domains_of_several_devices
        lane = domains.device_of(owner) + own * (local % (lanes // own))
        counts = np.bincount(lane, minlength=lanes)
        order, places = np.argsort(lane, kind="stable"), np.arange(len(ids))
        in_lane = np.empty_like(places)
        in_lane[order] = places - np.repeat(np.cumsum(counts) - counts, counts)
        unit = GRANULE if lanes > 1 else 64
        self.count = -(-int(counts.max()) // unit) * unit * lanes
        devices = domains.sizes[index]
        self.ids, self.normals = ids, self.count // devices
        self.position = positions_of(in_lane, lane, lanes)
        self.device, self.number = numbers_of(self.position, devices)
        self._lanes = lanes

    def by_position(self) -> Ids:
        """Return the ids by position, int64, -1 in the gaps between lanes."""
        if self._lanes == 1:
            return self.ids
        every = np.full(self.count, -1, np.int64)
        every[self.position] = self.ids
        return every

    def of(self, device: int) -> Ids:
        """Return the delegate numbers of a device, int64, ascending."""
        return np.flatnonzero(self.device == device)


def slots_after(count: int) -> int:
    """Return the length of an array of ids by position, in whole tiles of 256."""
    return -(-count // 256) * 256
