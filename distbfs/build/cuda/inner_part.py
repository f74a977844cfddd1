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
(``Rows.tails``). The outer edges, those of nn to other domains, are stored as
rows by normal number.

In a directed graph, degrees are sums of edges out and in, no vertex is left out, and
there are two sets of inner rows and two of outer edges: those out, which are pushed,
and those in, along which vertices ask.

Source: Pan, Pearce, Owens 2018, Section III (the subgraphs of a part).
"""

from __future__ import annotations

import numpy as np

from distbfs.device.array_table import ArrayPlan, ArrayTable
from distbfs.generate.cuda import id_type
from distbfs.graph.device_graph import graph_table
from distbfs.partition.layout import Domains
from distbfs.partition.share import GRANULE, numbers_of, positions_of
from distbfs.types import Ids


def apart_table(
    n: int, positions: int, *, normals: int, owned: int, edges: int, targets: int
) -> ArrayTable:
    """Return the arrays of a share between domains that exist before its rows.

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
    """Return the arrays of its graph besides those of its part.

    local, active, m: as in ``Share``
    """
    # an id more, of vertices elsewhere
    table = graph_table(local + 1, active, m, directed=directed, wide=directed)
    del table["tuple_degrees"]
    return table


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
