"""A part: the four degree-separated subgraphs that one device holds.

Source: Pan, Pearce, Owens 2018, Section III-C and Table I.

Numbers.  A part numbers the vertices that it serves so that normal vertices with edges
come first (see ``graph.relabel``); ``vertices`` maps a number back to the local id.
Delegates are numbered 0 … d-1 by descending degree, the same on every part.

=====  ==================  =============================================
name   rows                columns
=====  ==================  =============================================
nn     vertex numbers      ``part << 32 | number`` (uint64); on a single
                           part just ``number`` (uint32)
nd     vertex numbers      delegates (uint32)
dn     delegates           vertex numbers of this part (uint32)
dd     delegates           delegates (uint32)
=====  ==================  =============================================

A directed graph has these subgraphs twice: of edges out, whose rows are sources, and of
edges in, whose rows are targets and whose columns are sources. The edges in of a part
are the reverse of its edges out, but those of nn, which lie with the owner of the row,
and, if parts own rows, those of dd.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from distbfs.device.array_table import ArrayPlan
from distbfs.device.arrays import values_of
from distbfs.errors import InputError
from distbfs.formats.attributes import Attribute
from distbfs.graph.csr import CSR, index_dtype
from distbfs.graph.seen_rows import bits_of_flags, flags_of_bits
from distbfs.partition.layout import Layout
from distbfs.types import SUBGRAPHS, Array, Ids, Numbers, Words

PART_SHIFT = 32
NUMBER_MASK = (1 << PART_SHIFT) - 1
INTO = {"nn": "incoming", **{x: f"incoming_{x}" for x in SUBGRAPHS[1:]}}
"""The names of the subgraphs of edges in, in files and views."""
KIND = {**{name: name for name in SUBGRAPHS}, **{y: x for x, y in INTO.items()}}
"""The subgraph, nn, nd, dn or dd, of each name."""


def names_of(*, directed: bool, delegates: int) -> tuple[str, ...]:
    """Return the names of the subgraphs of a part, first those of edges out.

    Without delegates, the only edges in are those of nn.
    """
    into = [*INTO.values()][: len(INTO) if delegates else 1]
    return (*SUBGRAPHS, *(into if directed else ()))


def fields_of(rows: Mapping[str, CSR]) -> dict[str, Any]:
    """Return the fields of a ``Part`` for rows, named as in ``Part.subgraphs``."""
    into = {KIND[name]: x for name, x in rows.items() if name not in SUBGRAPHS}
    return {**{name: rows[name] for name in SUBGRAPHS}, "incoming": into}


def mask_words(bits: int) -> int:
    """Return the number of 64-bit words for ``bits`` bits."""
    return (bits + 63) // 64


def mask_of(members: Array, bits: int) -> Words:
    """Return a bitmask, uint64 [ceil(bits/64)], with the bits of ``members`` set."""
    flags = np.zeros(bits, dtype=np.uint8)
    flags[members] = 1
    return bits_of_flags(flags)


def bits_of(mask: Words, bits: int) -> Ids:
    """Return the positions of the set bits below ``bits``, int64 ascending."""
    return np.flatnonzero(flags_of_bits(mask, bits))


def ids_of_nn(columns: Words, ids_of: Callable[[int], Ids]) -> Ids:
    """Return the ids for nn columns that include parts, int64.

    ids_of: returns the ids of a part by number
    """
    owner = (columns >> np.uint64(PART_SHIFT)).astype(np.int64)
    number = (columns & np.uint64(NUMBER_MASK)).astype(np.int64)
    ids = np.empty(len(columns), dtype=np.int64)
    for part in np.flatnonzero(np.bincount(owner)).tolist():
        places = np.flatnonzero(owner == part)
        ids[places] = ids_of(part)[number[places]]
    return ids


def part_table(
    local: int,
    delegates: int,
    edges: Mapping[str, int],
    *,
    parts: int,
    nd_sources: int,
    directed: bool = False,
) -> dict[str, ArrayPlan]:
    """Return the arrays of a ``Part`` by their paths in it.

    local, delegates: local count and d; edges: number of edges, see ``edges_in``
    parts: number of parts of the graph; nd_sources: number of nd rows with edges
    directed: whether the graph is directed, with edges in
    """
    table: dict[str, ArrayPlan] = {}
    into: dict[str, ArrayPlan] = {}
    for name in names_of(directed=directed, delegates=delegates):
        kind, side = KIND[name], table if name in SUBGRAPHS else into
        rows = local if kind in ("nn", "nd") else delegates
        column = np.uint64 if kind == "nn" and parts > 1 else np.uint32
        count = edges_in(edges, name)
        side[f"{name}/offsets"] = ArrayPlan(index_dtype(count), rows + 1)
        side[f"{name}/columns"] = ArrayPlan(column, count)
    mask = ArrayPlan(np.uint64, mask_words(delegates))
    arrays = {
        "delegates": ArrayPlan(np.int64, delegates),
        "delegate_degrees": ArrayPlan(np.int64, delegates),
        "nd_sources": ArrayPlan(np.uint32, nd_sources),
        "dn_sources": mask,
        "dd_sources": mask,
        "vertices": ArrayPlan(np.uint32, local),
        "degrees": ArrayPlan(np.int64, local),
        "tuple_degrees": ArrayPlan(np.int64, local),
    }
    return table | arrays | into


def edges_in(edges: Mapping[str, int], name: str) -> int:
    """Return the number of edges of a subgraph.

    edges: by subgraph of edges out; besides, those of nn in if they are not as many
    """
    turned = {"incoming_nd": "dn", "incoming_dn": "nd"}
    return edges.get(name, edges[turned.get(name, KIND[name])])


@dataclass
class Part:
    """One part of a degree-separated graph, in host memory or on a CUDA device.

    Arrays are local unless stated otherwise; those of a device are CuPy's, except for
    ``delegates``, and its columns have COLUMN_PAD more behind them.

    layout, threshold (TH): as in the whole graph; index: index of the part
    delegates: int64 [d], global ids, the same on every part
    delegate_degrees: int64 [d], the same on every part; None on devices
    nn, nd, dn, dd: the subgraphs
    vertices: uint32 [local count], number -> local id
    degrees: int64 [local count], degree by number (without loops and repeats); None on
    devices
    tuple_degrees: int64 [local count], uint32 on devices, by number: ends of input
    tuples at the vertex; a loop counts twice
    active: rows 0 … active-1 are the normal vertices with at least one edge
    incoming: in a directed graph, the subgraphs of edges in, by nn, nd, dn, dd; those
    that are left out have no edges. Empty if edges lead both ways.
    entering: in a directed graph, tuple_degrees of the reversed graph; None if they
    were not counted, as in stores
    owns_rows: whether all vertices with edges are delegates, whose dd rows lie with
    their owners; equal on all parts
    attributes: attributes of all stored edges, by name; of several input tuples for an
    edge (in an undirected graph, in either direction), the smallest value is kept
    host_bytes: of a device, bytes of columns in pinned host memory, which kernels read
    in place
    kept: whether searches must not change the part; otherwise they may free subgraphs,
    which then have no rows

    In a directed graph, a degree counts edges out and edges in, and a tuple counts as
    two ends at its source.
    """

    layout: Layout
    index: int
    threshold: int
    delegates: Ids
    delegate_degrees: Any
    nn: CSR
    nd: CSR
    dn: CSR
    dd: CSR
    vertices: Any
    degrees: Any
    tuple_degrees: Any
    active: int
    incoming: Mapping[str, CSR] = field(default_factory=dict)
    entering: Ids | None = None
    owns_rows: bool = False
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    host_bytes: int = 0
    kept: bool = True

    def __post_init__(self) -> None:
        if self.incoming:
            self.incoming = {
                x: self.incoming[x] if x in self.incoming else CSR.empty(y.rows)
                for x, y in self.out.items()
            }

    @cached_property
    def nd_sources(self) -> Numbers:
        """The rows of nd with edges, uint32 ascending."""
        return self.nd.occupied().astype(np.uint32)

    @cached_property
    def dn_sources(self) -> Words:
        """Bitmask of the rows of dn with edges."""
        return mask_of(self.dn.occupied(), self.delegate_count)

    @cached_property
    def dd_sources(self) -> Words:
        """Bitmask of the rows of dd with edges."""
        return mask_of(self.dd.occupied(), self.delegate_count)

    @property
    def directed(self) -> bool:
        """Whether edges lead one way only."""
        return bool(self.incoming)

    @property
    def out(self) -> Mapping[str, CSR]:
        """The subgraphs, rows of edges out."""
        return {name: getattr(self, name) for name in SUBGRAPHS}

    @property
    def sides(self) -> list[Mapping[str, CSR]]:
        """The subgraphs: of edges out and, in a directed graph, of edges in."""
        return [self.out, self.incoming] if self.incoming else [self.out]

    @property
    def into(self) -> Mapping[str, CSR]:
        """The subgraphs of edges in, which are those out if edges lead both ways.

        A pull reads them: along nd edges rows of dn, along dn edges rows of nd.
        """
        return self.incoming or self.out

    @property
    def pulled(self) -> CSR:
        """The rows that a pull reads in a whole graph."""
        return self.into["nn"]

    @property
    def subgraphs(self) -> dict[str, CSR]:
        """The rows by name, see ``names_of``."""
        names = names_of(directed=self.directed, delegates=self.delegate_count)
        out, into = self.out, self.incoming
        return {x: out[x] if x in SUBGRAPHS else into[KIND[x]] for x in names}

    def reversed(self) -> Part:
        """Return the part with all edges reversed; arrays are shared.

        It is the same part if edges lead both ways.  If the tuples that enter a vertex
        were not counted, each edge stored in this part counts as one.
        """
        if not self.incoming:
            return self
        ends, into = self.entering, self.incoming
        if ends is None:
            owned, local = self.owned_delegates()
            ends = 2 * (into["nn"].degrees() + into["nd"].degrees())
            of_delegates = 2 * (into["dn"].degrees() + into["dd"].degrees())
            ends[self.numbers[local]] = of_delegates[owned]
        turned = {**INTO, **{y: x for x, y in INTO.items()}}
        changed: dict[str, Any] = {
            **into,
            "incoming": self.out,
            "tuple_degrees": ends,
            "entering": self.tuple_degrees,
            "attributes": {
                key: Attribute(
                    {
                        x: kept.values.get(turned[x], y[:0])
                        for x, y in kept.values.items()
                    },
                    kept.words,
                )
                for key, kept in self.attributes.items()
            },
        }
        return replace(self, **changed)

    def with_rows(self, rows: Mapping[str, CSR]) -> Part:
        """Return the part with new rows, named as in ``subgraphs``."""
        return replace(self, **fields_of(rows))

    @property
    def local_count(self) -> int:
        """Number of vertices of this part, including delegates and isolated ones."""
        return len(self.vertices)

    @property
    def delegate_count(self) -> int:
        """Number of delegates of the whole graph (d)."""
        return len(self.delegates)

    @property
    def edges(self) -> int:
        """Number of stored directed edges of this part."""
        return self.nn.edges + self.nd.edges + self.dn.edges + self.dd.edges

    @property
    def graph_bytes(self) -> int:
        """Bytes of the subgraphs as Table I counts them."""
        return sum(rows.nbytes for side in self.sides for rows in side.values())

    @cached_property
    def numbers(self) -> Numbers:
        """Local id -> number, uint32 [local count]: the inverse of ``vertices``.

        On a device, what makes the part sets it.
        """
        numbers = np.empty_like(self.vertices)
        numbers[self.vertices] = np.arange(len(self.vertices), dtype=np.uint32)
        return numbers

    def number_of(self, local: int) -> int:
        """Return the number of a local id."""
        return int(self.numbers[local])

    def numbers_of(self, places: Ids) -> Ids:
        """Return the numbers of local ids, int64 [k]."""
        return values_of(self.numbers, places).astype(np.int64)

    def owned_delegates(self) -> tuple[Ids, Ids]:
        """Return (delegate numbers, local ids) of the delegates of this part, int64."""
        owned = np.flatnonzero(self.layout.part_of(self.delegates) == self.index)
        return owned, self.layout.local_of(self.delegates[owned])

    def by_local(self, normals: Array, delegates: Array) -> Array:
        """Return values by vertex number as values by local id, [local count].

        normals: values by vertex number; delegates: values by delegate number, for the
        delegates that this part owns
        """
        values = np.empty_like(normals)
        values[self.vertices] = normals
        owned, local = self.owned_delegates()
        values[local] = delegates[owned]
        return values

    def ids(self) -> Ids:
        """Return the global id of each vertex number, int64 [local count]."""
        return self.layout.global_of(self.index, self.vertices)

    def check(self) -> None:
        """Raise InputError unless shapes agree and every column is in range."""
        n, d = self.local_count, self.delegate_count
        if n != self.layout.local_count(self.index):
            raise InputError("the part does not hold the vertices of its layout")
        expected = {"nn": n, "nd": n, "dn": d, "dd": d}
        below = {"nn": n, "nd": d, "dn": n, "dd": d}
        if self.layout.parts > 1:
            below["nn"] = self.layout.parts << PART_SHIFT
        edges = {name: graph.edges for name, graph in self.out.items()}
        for name, graph in self.subgraphs.items():
            rows = expected[KIND[name]]
            if graph.rows != rows:
                raise InputError(f"{name} has {graph.rows} rows instead of {rows}")
            graph.check(below[KIND[name]])
            alone = name == "incoming" and self.layout.parts > 1
            if graph.edges != edges_in(edges, name) and not (alone or self.owns_rows):
                raise InputError(f"{name} and edges out differ in number")
        if n and not np.array_equal(
            np.bincount(self.vertices, minlength=n), np.ones(n, dtype=np.int64)
        ):
            raise InputError("vertices is not a permutation of the local ids")
        if len(self.degrees) != n or len(self.tuple_degrees) != n:
            raise InputError("degrees do not fit the number of vertices")
        if not 0 <= self.active <= n:
            raise InputError(f"active is not between 0 and {n}")
        if d and (self.delegates.min() < 0 or self.delegates.max() >= self.layout.n):
            raise InputError("a delegate is not a vertex")
        if len(self.delegate_degrees) != d:
            raise InputError("delegate degrees do not fit the number of delegates")
