"""Algorithm 1: which part holds which edge, and the parts that come of it.

Source: Pan, Pearce, Owens 2018, Section III-B.  The rows that a part has collected are
those of the vertices that it serves.  That is already where Algorithm 1 puts every
nn and nd edge.  A dn edge goes to the server of its target, so dn is nd turned round;
a dd edge goes to the server of the end with the lower degree (equal: the lower id), so
each part keeps those of its delegates' edges and turns them round as well.  Only the
numbers of remote normal vertices have to be asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from distbfs.graph.build import Rows
from distbfs.graph.csr import CSR, row_offsets
from distbfs.graph.relabel import degree_order
from distbfs.partition.degree import DelegateIndex, gather_delegates
from distbfs.partition.layout import Layout, Placement
from distbfs.partition.part import PART_SHIFT, Part
from distbfs.types import Array, Ids, World

SHIFT = np.uint64(PART_SHIFT)


@dataclass(frozen=True)
class Numbering:
    """Numbers of the vertices of one part (see ``graph.relabel``)."""

    vertices: Array
    numbers: Array
    active: int


class Distributor:
    """Turns the rows of this rank's parts into degree-separated parts.

    degrees: part -> int64 [local], for every part of this rank (construction is
    collective, and so is ``split``).
    """

    def __init__(
        self,
        world: World,
        layout: Layout,
        threshold: int,
        degrees: Mapping[int, Ids],
        order_block: int,
    ) -> None:
        self.world = world
        self.layout = layout
        self.placement = Placement(layout.parts, world.size)
        self.threshold = threshold
        self.delegates, self.delegate_degrees = gather_delegates(
            world,
            [layout.global_of(k, np.arange(len(d))) for k, d in degrees.items()],
            list(degrees.values()),
            threshold,
        )
        self.index = DelegateIndex(layout.n, self.delegates)
        self.numbering = {
            part: Numbering(*degree_order(d, (d == 0) | (d > threshold), order_block))
            for part, d in degrees.items()
        }

    def split(self, part: int, rows: Rows) -> Part:
        """Return one part of this rank (collective: every rank passes one)."""
        degrees = rows.degrees
        numbering = self.numbering[part]
        if self.layout.parts == 1 and not len(self.delegates):
            graphs = self._whole(rows, numbering)
        else:
            graphs = self._separate(part, rows, numbering)
        return Part(
            self.layout,
            part,
            self.threshold,
            self.delegates,
            self.delegate_degrees,
            *graphs,
            numbering.vertices,
            degrees[numbering.vertices],
            rows.tuple_degrees[numbering.vertices],
            numbering.active,
        )

    def _whole(self, rows: Rows, numbering: Numbering) -> tuple[CSR, CSR, CSR, CSR]:
        """One part without delegates: nn alone, neighbours by descending degree."""
        by_degree = np.argsort(-rows.degrees, kind="stable")
        place = np.empty(len(by_degree), dtype=np.uint32)
        place[by_degree] = np.arange(len(by_degree), dtype=np.uint32)
        keys = np.repeat(numbering.numbers.astype(np.uint64) << SHIFT, rows.degrees)
        keys |= place[rows.columns]
        nn = CSR.from_keys(len(place), keys)
        nn = CSR(nn.offsets, numbering.numbers[by_degree][nn.columns])
        none = CSR.empty(0)
        return nn, CSR.empty(len(place)), none, none

    def _separate(
        self, part: int, rows: Rows, numbering: Numbering
    ) -> tuple[CSR, CSR, CSR, CSR]:
        d = len(self.delegates)
        count = len(numbering.numbers)
        degrees = rows.degrees
        target = self.index.find(rows.columns)
        from_normal = np.repeat(degrees <= self.threshold, degrees)

        nn_edge = from_normal & (target < 0)
        row = np.repeat(np.arange(count), degrees)[nn_edge]
        lengths = np.bincount(row, minlength=count)
        columns = self._resolve(rows.columns[nn_edge])
        nn = CSR(row_offsets(lengths), columns).permute_rows(numbering.vertices)
        del row, columns, nn_edge

        nd_edge = from_normal & (target >= 0)
        number = np.repeat(numbering.numbers, degrees)[nd_edge].astype(np.uint64)
        delegate = target[nd_edge].astype(np.uint64)
        nd = CSR.from_keys(count, number << SHIFT | delegate)
        dn = CSR.from_keys(d, delegate << SHIFT | number)
        del number, delegate, nd_edge

        source = np.repeat(self.index.find(self._own_ids(part, count)), degrees)
        dd_edge = ~from_normal & (target >= 0)
        u, v = source[dd_edge].astype(np.int64), target[dd_edge].astype(np.int64)
        du, dv = self.delegate_degrees[u], self.delegate_degrees[v]
        kept = (du < dv) | ((du == dv) & (self.delegates[u] < self.delegates[v]))
        a, b = u[kept].astype(np.uint64), v[kept].astype(np.uint64)
        dd = CSR.from_keys(d, np.concatenate([a << SHIFT | b, b << SHIFT | a]))
        return nn, nd, dn, dd

    def _own_ids(self, part: int, count: int) -> Ids:
        return self.layout.global_of(part, np.arange(count))

    def _resolve(self, vertices: Ids) -> Array:
        """Return the columns of nn for normal vertices anywhere (collective)."""
        parts = self.layout.part_of(vertices)
        local = self.layout.local_of(vertices)
        columns = np.zeros(len(vertices), dtype=np.uint64)
        rank = self.placement.rank_of(parts)
        for part, numbering in self.numbering.items():
            here = parts == part
            columns[here] = numbering.numbers[local[here]]
        remote = np.flatnonzero(rank != self.world.rank)
        wanted = np.unique(vertices[remote])
        owner = self.placement.rank_of(self.layout.part_of(wanted))
        asked = self.world.alltoall(
            [wanted[owner == r] for r in range(self.world.size)]
        )
        answers = self.world.alltoall([self._numbers_of(ids) for ids in asked])
        number = np.zeros(len(wanted), dtype=np.uint32)
        for r, answer in enumerate(answers):
            number[owner == r] = answer
        columns[remote] = number[np.searchsorted(wanted, vertices[remote])]
        if self.layout.parts == 1:
            return columns.astype(np.uint32)
        return columns | parts.astype(np.uint64) << SHIFT

    def _numbers_of(self, ids: Ids) -> Array:
        """Return the numbers of vertices that this rank serves, uint32."""
        parts, local = self.layout.part_of(ids), self.layout.local_of(ids)
        out = np.zeros(len(ids), dtype=np.uint32)
        for part, numbering in self.numbering.items():
            here = parts == part
            out[here] = numbering.numbers[local[here]]
        return out
