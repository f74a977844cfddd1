"""Algorithm 1: the part that holds each edge, and the subgraphs of a part.

Source: Pan, Pearce, Owens 2018, Section III-B. A part has collected the rows of the
vertices that it owns, and Algorithm 1 assigns their nn and nd edges to it. A dn edge
goes to the owner of its target, so dn is the transpose of nd. A dd edge goes to the
owner of one end, so each part keeps dd edges of its delegates and adds their
transposes. The paper chooses the end of lower degree (if they are equal, of lower id).
One part then has all those neighbours of a delegate that have higher degrees, and pulls
in the other parts scan the rest in vain; therefore one edge in TURNED goes to the other
end.
Edges of a directed graph are assigned likewise, by the sum of both degrees; dn and dd
of edges in are made from the same keys as nd and dd of edges out. Only the numbers of
normal vertices on other parts must be requested.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, reduce
from typing import Any

import numpy as np

from distbfs.build.host.rows import ServedRows
from distbfs.distinct import distinct
from distbfs.exchange.router import Delivery
from distbfs.graph.csr import CSR, add_counts, index_dtype, row_blocks, row_offsets
from distbfs.graph.keys import BACK, BOTH, FORTH, Items
from distbfs.graph.relabel import PartNumbering, degree_order
from distbfs.graph.sorted_rows import inverse, ranked_rows, taken
from distbfs.graph.trees import tree_vertices
from distbfs.partition.delegates import ByOwner, DelegateNumbers, gather_delegates
from distbfs.partition.layout import Layout, Placement
from distbfs.partition.part import PART_SHIFT, Part
from distbfs.types import Array, Ids, Numbers, Words, World

SHIFT = np.uint64(PART_SHIFT)
TURNED = 4  # as in build/cuda/parts.cu


def whole_rows(rows: ServedRows, numbering: PartNumbering, threads: int = 0) -> CSR:
    """Return rows by number, neighbours by descending degree."""
    offsets, columns = ranked_rows(
        rows.offsets,
        rows.degrees,
        rows.columns,
        numbering.vertices,
        inverse(numbering.falling, threads),
        taken(numbering.numbers, numbering.falling, threads),
        index_dtype(len(rows.columns)),
        threads,
    )
    return CSR(offsets, columns)


def sum_of(sides: Sequence[ServedRows]) -> Ids:
    """Return the degrees of vertices, summed over edges out and in."""
    degrees = [rows.degrees for rows in sides]
    return reduce(np.add, degrees)


class Distributor:
    """Splits the rows of this rank's parts into degree-separated subgraphs.

    degrees: part -> int64 [local], for every part of this rank (construction and
    ``split`` are collective).
    """

    def __init__(
        self,
        world: World,
        layout: Layout,
        threshold: int,
        degrees: Mapping[int, Ids],
        order_block: int,
        threads: int = 0,
    ) -> None:
        self.world = world
        self.threads = threads
        self.layout = layout
        self.placement = Placement(layout.parts, world.size)
        self.threshold = threshold
        high = {part: np.flatnonzero(d > threshold) for part, d in degrees.items()}
        self.delegates, self.delegate_degrees = gather_delegates(
            world,
            [layout.global_of(part, ids) for part, ids in high.items()],
            [degrees[part][ids] for part, ids in high.items()],
        )
        self.order_block = order_block
        self.whole = layout.parts == 1 and not len(self.delegates)
        self.numbering: dict[int, PartNumbering] = {}
        for part, all_degrees in {} if self.whole else degrees.items():
            normal = all_degrees
            if len(high[part]):
                normal = all_degrees.copy()
                normal[high[part]] = 0
            self.numbering[part] = degree_order(normal, order_block, threads)

    @cached_property
    def index(self) -> DelegateNumbers:
        """The delegate numbers of vertices."""
        return DelegateNumbers(self.delegates, self.layout.n)

    @cached_property
    def rising(self) -> Array:
        """The position of each delegate in ascending order of degree, uint32 [d]."""
        rising = np.lexsort((self.delegates, self.delegate_degrees)).astype(np.uint32)
        return inverse(rising, self.threads)

    def split(self, part: int, *sides: ServedRows) -> Part:
        """Build one part of this rank (collective: every rank passes one).

        sides: the part's rows; for a directed graph, those of edges out and of edges in
        """
        rows = sides[0]
        if not self.whole:
            numbering = self.numbering[part]
            *made, incoming = self._separate(part, sides, numbering)
            return self._part(part, sides, numbering, made, incoming=incoming)
        incoming = {}
        if len(sides) > 1:
            entered_by_none = (sides[1].degrees == 0) & (rows.degrees > 0)
            numbering = degree_order(
                sum_of(sides),
                self.order_block,
                self.threads,
                np.flatnonzero(entered_by_none).astype(np.uint32),
            )
            incoming = {"nn": whole_rows(sides[1], numbering, self.threads)}
        else:
            trees = tree_vertices(rows.offsets, rows.degrees, rows.columns)
            adjacent = rows.offsets, rows.columns
            numbering = degree_order(
                rows.degrees, self.order_block, self.threads, trees, adjacent
            )
        nn, none = whole_rows(rows, numbering, self.threads), CSR.empty(0)
        graphs = nn, CSR.empty(nn.rows), none, none
        return self._part(part, sides, numbering, graphs, incoming=incoming)

    def own(self, part: int, *sides: ServedRows) -> Part:
        """Build a part that owns rows; all vertices with edges are delegates.

        sides: as in ``split``
        """
        numbers = self._by_owner
        dd, *others = (self._rows_of_delegates(part, rows) for rows in sides)
        normals = CSR.empty(len(sides[0].degrees))
        return self._part(
            part,
            sides,
            self.numbering[part],
            (normals, normals, CSR.empty(len(self.delegates)), dd),
            delegates=numbers.delegates,
            delegate_degrees=self.delegate_degrees[numbers.order],
            incoming=dict(zip(["dd"], others, strict=False)),
            owns_rows=True,
        )

    def _part(
        self,
        part: int,
        sides: Sequence[ServedRows],
        numbering: PartNumbering,
        graphs: Sequence[CSR],
        **others: Any,
    ) -> Part:
        """Return a part; others: fields that differ from the usual ones."""
        order, nn, nd, dn, dd = numbering.vertices, *graphs
        ends = [taken(x.tuple_degrees, order, self.threads) for x in sides]
        if len(sides) > 1:
            others["entering"] = 2 * ends[1]
        values = {
            "delegates": self.delegates,
            "delegate_degrees": self.delegate_degrees,
            "vertices": order,
            "degrees": taken(sum_of(sides), order, self.threads),
            "tuple_degrees": len(sides) * ends[0],
            "active": numbering.active,
        }
        made: dict[str, Any] = {"nn": nn, "nd": nd, "dn": dn, "dd": dd}
        return Part(self.layout, part, self.threshold, **{**made, **values, **others})

    @cached_property
    def _by_owner(self) -> ByOwner:
        """The order of delegates in parts that own rows."""
        return ByOwner(self.layout, self.delegates)

    @cached_property
    def _falling(self) -> Array:
        """Each delegate's position by descending degree, uint32 [n]; others have 0."""
        places = np.zeros(self.layout.n, dtype=np.uint32)
        places[self.delegates] = np.arange(len(self.delegates), dtype=np.uint32)
        return places

    def _rows_of_delegates(self, part: int, rows: ServedRows) -> CSR:
        """Return rows of a part by delegate, neighbours by descending degree."""
        numbers = self._by_owner
        own = np.flatnonzero(self.layout.part_of(numbers.delegates) == part)
        vertices = self.layout.local_of(numbers.delegates[own]).astype(np.uint32)
        lengths = np.zeros(len(self.delegates), dtype=np.int64)
        lengths[own] = rows.degrees[vertices]
        _, columns = ranked_rows(
            rows.offsets,
            rows.degrees,
            rows.columns,
            vertices,
            self._falling,
            numbers.numbers,
            index_dtype(len(rows.columns)),
            self.threads,
        )
        return CSR(row_offsets(lengths), columns)

    def _separate(
        self, part: int, sides: Sequence[ServedRows], numbering: PartNumbering
    ) -> tuple[CSR, CSR, CSR, CSR, dict[str, CSR]]:
        """Return nn, nd, dn, dd and, of a directed graph, the same of edges in."""
        d, count = len(self.delegates), len(numbering.numbers)
        nn, nd_keys, dd_keys = zip(
            *(self._sorted(part, rows, numbering) for rows in sides), strict=True
        )

        def rows_of(rows: int, keys: Words, way: int) -> CSR:
            return CSR.from_keys(rows, keys, way, self.threads)

        nd, dn = rows_of(count, nd_keys[0], FORTH), rows_of(d, nd_keys[-1], BACK)
        if len(sides) == 1:
            return nn[0], nd, dn, rows_of(d, dd_keys[0], BOTH), {}
        # mutant: Items(BACK, dd_keys[1]) -> Items(FORTH, dd_keys[1])
        #   : test_directed_host_parts
        keys = np.concatenate([dd_keys[0], Items(BACK, dd_keys[1]).keys()[0]])
        incoming = {
            "nn": nn[1],
            "nd": rows_of(count, nd_keys[1], FORTH),
            "dn": rows_of(d, nd_keys[0], BACK),
            "dd": rows_of(d, keys, BACK),
        }
        return nn[0], nd, dn, rows_of(d, keys, FORTH), incoming

    def _sorted(
        self, part: int, rows: ServedRows, numbering: PartNumbering
    ) -> tuple[CSR, Words, Words]:
        """Return nn, and the keys of nd and dd, from rows; dd without its transpose.

        It sorts the edges block by block of rows.
        """
        count = len(numbering.numbers)
        degrees = rows.degrees
        source = self.index.of(self.layout.global_of(part, np.arange(count)))
        number = numbering.numbers.astype(np.uint64)
        nn_lengths = np.zeros(count, dtype=np.int64)
        nn_ids: list[Ids] = [np.zeros(0, dtype=np.int64)]
        nd_keys: list[Words] = [np.zeros(0, dtype=np.uint64)]
        dd_keys: list[Words] = [np.zeros(0, dtype=np.uint64)]
        for first, last in row_blocks(rows.offsets):
            column = rows.columns[rows.offsets[first] : rows.offsets[last]]
            row = np.repeat(np.arange(first, last), degrees[first:last])
            target = self.index.of(column)
            normal = source[row] < 0
            nn_edge, nd_edge = normal & (target < 0), normal & (target >= 0)
            add_counts(nn_lengths, row[nn_edge])
            nn_ids.append(column[nn_edge])
            delegate = target[nd_edge].astype(np.uint64)
            nd_keys.append(number[row[nd_edge]] << SHIFT | delegate)
            dd_edge = ~normal & (target >= 0)
            dd_keys.append(self._dd_kept(source[row[dd_edge]], target[dd_edge]))
        columns = self._resolve(np.concatenate(nn_ids))
        nn = CSR(row_offsets(nn_lengths), columns).permute_rows(numbering.vertices)
        return nn, np.concatenate(nd_keys), np.concatenate(dd_keys)

    def _dd_kept(self, u: Array, v: Array) -> Words:
        """Return the keys of dd edges stored with their source."""
        # mutant: rising[u] < self.rising -> delegates[u] < self.delegates
        #   : test_host_parts::test_kronecker
        kept = (self.rising[u] < self.rising[v]) ^ ((u + v) % TURNED == 0)
        return u[kept].astype(np.uint64) << SHIFT | v[kept].astype(np.uint64)

    def _resolve(self, vertices: Ids) -> Array:
        """Return the nn columns of normal vertices of any part (collective)."""
        parts = self.layout.part_of(vertices)
        columns = self._numbers_of(vertices).astype(np.uint64)
        rank = self.placement.rank_of(parts)
        remote = np.flatnonzero(rank != self.world.rank)
        outside = distinct(vertices[remote])
        owner = self.placement.rank_of(self.layout.part_of(outside))
        number = Delivery(self.world, owner).ask(outside, self._numbers_of)
        columns[remote] = number[np.searchsorted(outside, vertices[remote])]
        if self.layout.parts == 1:
            return columns.astype(np.uint32)
        return columns | parts.astype(np.uint64) << SHIFT

    def _numbers_of(self, ids: Ids) -> Numbers:
        """Return the numbers of vertices of this rank's parts, uint32; 0 for others."""
        parts, local = self.layout.part_of(ids), self.layout.local_of(ids)
        out = np.zeros(len(ids), dtype=np.uint32)
        for part, numbering in self.numbering.items():
            in_part = parts == part
            out[in_part] = numbering.numbers[local[in_part]]
        return out
