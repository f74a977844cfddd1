"""What a CUDA device holds of a graph, and the positions of its numbers.

The numbers of the devices of a domain are interleaved in granules of 1,024; see
build/cuda/domain.py and inner_part.py. One device with a whole graph is a domain.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from distbfs.device import cuda
from distbfs.device.take import take
from distbfs.generate.cuda import id_type
from distbfs.graph.csr import CSR
from distbfs.graph.device_graph import (
    COLUMN_PAD,
    ISOLATED,
    SET_BITS,
    WIDE,
    Tails,
    Trees,
    reversed_at_least,
)
from distbfs.partition.delegates import DelegateNumbers
from distbfs.partition.layout import Domains, Layout
from distbfs.types import Array, DeviceArray, Ids, Root

GRANULE = 1024  # consecutive numbers of one owner among the positions
IDS_AT_ONCE = 1 << 16  # ids looked up together in a set


def positions_of(numbers: Any, device: Any, devices: int) -> Any:
    """Return the positions of numbers; device: one for all numbers, or one for each."""
    return (numbers // GRANULE * devices + device) * GRANULE + numbers % GRANULE


def numbers_of(positions: Any, devices: int) -> tuple[Any, Any]:
    """Return (device, number on that device) of positions."""
    granules = positions // GRANULE
    numbers = granules // devices * GRANULE + positions % GRANULE
    return granules % devices, numbers


def leaves_after(searched: int, active: int, at_least: Ids) -> Trees:
    """Return leaves that searches leave out, whose numbers begin at ``searched``.

    active, at_least: as in ``Share``
    """
    others = at_least.copy()
    others[:2] = searched
    return Trees(active - searched, 1, others)


@dataclass(frozen=True)
class Domain:
    """The devices that have the shares of one domain.

    of: all domains; index: index of this one; granules: number of granules of a device,
    equal for all
    active: how many vertex numbers all devices have; edges: number of edges inside
    """

    of: Domains
    index: int
    granules: int
    active: int
    edges: int

    @property
    def several(self) -> bool:
        """Whether there are other domains."""
        return len(self.of) > 1

    @property
    def devices(self) -> int:
        """Number of devices."""
        return self.of.sizes[self.index]

    @property
    def lanes(self) -> int:
        """Number of delegate lanes on a device; its granules are in them by turns."""
        return self.of.lanes // self.devices


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


@dataclass(frozen=True)
class Rows(CSR):
    """The edges of a device's vertices by number: those out, or those in; CuPy arrays.

    offsets: uint32 (uint64 from 2^32 edges on) [active + 1], by number
    columns: uint32 [edges + COLUMN_PAD], positions, ascending in each row
    tails: the other columns of a graph larger than the device, where ``columns`` has
    only the first ones of each row, and offsets are uint64; else None
    outer: edges to other domains, or from them; None in one domain
    """

    tails: Tails | None = None
    outer: Any = None

    @property
    def held_back(self) -> int:
        """Number of columns in host memory."""
        return 0 if self.tails is None else len(self.tails.columns)

    @property
    def edges(self) -> int:
        """Number of columns, with those in host memory."""
        return len(self.columns) - COLUMN_PAD + self.held_back

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays in device memory, without outer edges."""
        tails = 0 if self.tails is None else int(self.tails.offsets.nbytes)
        return int(self.offsets.nbytes) + int(self.columns.nbytes) + tails

    def lengths(self, low: int, high: int) -> Ids:
        """Return the lengths of rows low … high-1 with their tails, int64."""
        lengths: Ids = np.diff(self.offsets[low : high + 1].get()).astype(np.int64)
        tails = self.tails
        if tails is not None and low < tails.tailed:
            upto = min(high, tails.tailed)
            beyond = np.diff(tails.offsets[low : upto + 1].get())
            lengths[: upto - low] += beyond.astype(np.int64)
        return lengths


@dataclass(kw_only=True)
class Share:
    """What a device holds of a graph: rows by number, without loops and repeated edges.

    n: number of vertices that the share owns; active: how many vertices have a number
    here
    tuples: number of input tuples; loops: how many of them were loops
    trees: the vertices of trees, which have the last numbers; None if trees are not set
    apart
    at_least: int64 [AT_LEAST]; every vertex of degree k or more has a number below
    at_least[k] (k = 1 … 17); of a directed graph, if k is at most FEW_OUT, every
    such vertex with an incoming edge
    out, into: rows of edges out, and of edges in, which pulls read: the same object if
    edges lead both ways. Both have tails, or none.
    vertices: uint32 [active], number -> local id
    numbers: uint32 [n], local id -> number, or ISOLATED; [active] with ``members``
    tuple_degrees: uint32 [n], by local id: number of ends of input tuples at the
    vertex; a loop has two
    ended: uint32, the local ids to which ``tuple_degrees`` belongs, those of
    ``vertices`` first; None if it is by local id
    source: description of the tuples
    seconds: time of each phase of the build
    members: uint32 [4 * blocks], set of the local ids that have a number (sets.cuh), by
    whose rank in it ``numbers`` is then indexed; else None

    layout: which vertices each share owns; index: index of this share
    domain: the domain to which the device belongs
    ids: uint32 or uint64 [slots or more], position -> vertex id, all ones for none; if
    ids are wide, uint32 stands for local ids
    delegates: NumPy int64, ids of delegates by position, -1 in gaps; normals: first
    number of a normal vertex; owned: int64, numbers of the delegates that the share
    owns, in order of their ids

    The arrays are CuPy's, but for those of delegates. In a directed graph, vertices are
    numbered by the sum of both degrees, rows may be empty, and both ends of a tuple
    count at its source vertex.

    Where a share has a whole graph, positions are numbers, and local ids are ids; see
    ``whole_share``. Between domains, ``active`` counts all numbers; ``vertices`` is
    ISOLATED for delegates of other parts and in the gap, and ``ids`` has room, from
    ``slots`` on, for an id of another domain for each vertex with edges of this share,
    and for one more. ``delegates`` are equal on all devices.
    """

    n: int
    active: int
    tuples: int
    loops: int
    at_least: Ids
    out: Rows
    into: Rows
    vertices: DeviceArray
    numbers: DeviceArray
    tuple_degrees: DeviceArray
    source: dict[str, Any]
    seconds: dict[str, float]
    layout: Layout
    index: int
    domain: Domain
    ids: Any
    slots: int
    members: DeviceArray | None = None
    trees: Trees | None = None
    ended: DeviceArray | None = None
    delegates: Ids = field(default_factory=lambda: np.zeros(0, np.int64))
    normals: int = 0
    owned: Ids = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def whole(self) -> bool:
        """Whether it has a whole graph, with places for all ids."""
        alone = self.layout.parts == 1 and self.out.outer is None
        return alone and self.members is None

    @property
    def device(self) -> int:
        """Index of the device in its domain."""
        return self.domain.of.device_of(self.index)

    @property
    def cuda_device(self) -> int:
        """The CUDA device."""
        return int(self.numbers.device)

    @property
    def directed(self) -> bool:
        """Whether the graph is directed."""
        return self.into is not self.out

    @property
    def sides(self) -> list[Rows]:
        """The rows: of edges out and, in a directed graph, of edges in."""
        return [self.out, self.into] if self.directed else [self.out]

    @property
    def m(self) -> int:
        """Number of stored directed edges in the rows out."""
        return self.out.edges

    @property
    def wide(self) -> bool:
        """Whether ids have 64 bits."""
        return self.ids.dtype.itemsize == 8 or id_type(self.layout.n) is np.uint64

    @property
    def has_local_ids(self) -> bool:
        """Whether ``ids`` has local ids."""
        return self.wide and self.ids.dtype.itemsize == 4

    @property
    def edges_to(self) -> Ids:
        """Number of outer edges to each share, or from it if those are more."""
        return np.maximum(self.out.outer.edges, self.into.outer.edges)

    @property
    def id_bits(self) -> int:
        """Bits of an id in a message."""
        return max((self.layout.n - 1).bit_length(), 32) if self.wide else 32

    @property
    def delegate_count(self) -> int:
        """Number of positions of delegates (d plus gaps; the same in all domains)."""
        return len(self.delegates)

    def reversed(self) -> Share:
        """Return a directed graph with all edges reversed; arrays are shared.

        Each stored edge counts as one tuple.
        """
        into = self.into.offsets
        ends = cuda.cupy().zeros_like(self.tuple_degrees)
        ends[self.vertices] = (into[1:] - into[:-1]) * 2
        return replace(self.turned(), tuple_degrees=ends)

    def turned(self) -> Share:
        """Return a directed graph with all edges reversed, but not ends of tuples."""
        at_least = reversed_at_least(self.active, self.at_least)
        return replace(self, at_least=at_least, out=self.into, into=self.out)

    def local_numbers(self, ids: Ids) -> Array:
        """Return the number or ISOLATED for local ids, int64 [k], as uint32."""
        if self.members is None:
            return take(self.numbers, ids)
        numbers = np.full(len(ids), ISOLATED, np.uint32)
        for low in range(0, len(ids), IDS_AT_ONCE):
            block, bit = np.divmod(ids[low : low + IDS_AT_ONCE], SET_BITS)
            words = take(self.members, (4 * block[:, None] + np.arange(4)).ravel())
            words = words.reshape(-1, 4)
            bits = np.unpackbits(words[:, 1:].view(np.uint8), 1, bitorder="little")
            inside = bits[np.arange(len(bit)), bit] > 0
            before = (bits * (np.arange(SET_BITS) < bit[:, None])).sum(
                1, dtype=np.int64
            )
            ranks = (words[:, 0].astype(np.int64) + before)[inside]
            some = numbers[low : low + IDS_AT_ONCE]
            if len(ranks):
                some[inside] = take(self.numbers, ranks)
        return numbers

    def device_numbers(self, ids: Ids) -> DeviceArray:
        """Return the number or ISOLATED for local ids, as uint32 on the device."""
        cp = cuda.cupy()
        if self.members is None:
            some: DeviceArray = self.numbers[cp.asarray(ids)]
            return some
        listed: DeviceArray = cp.asarray(self.local_numbers(ids))
        return listed

    def numbers_of(self, places: Ids) -> Ids:
        """Return the numbers of local ids, int64 [k] on the host.

        A vertex without edges has WIDE + local id.
        """
        numbers = self.local_numbers(places).astype(np.int64)
        return np.where(numbers == ISOLATED, WIDE + places, numbers)

    def numbers_at(self, positions: Ids) -> Ids:
        """Return the numbers of positions, int64 [k], -1 if on other devices."""
        device, numbers = numbers_of(positions, self.domain.devices)
        return np.where(device == self.device, numbers, -1)

    @cached_property
    def _delegate_numbers(self) -> DelegateNumbers:
        return DelegateNumbers(self.delegates)

    def numbers_of_ids(self, ids: Ids) -> Array:
        """Return the numbers that vertex ids have here, uint32, ISOLATED for none."""
        numbers = np.full(len(ids), ISOLATED, dtype=np.uint32)
        own = self.layout.part_of(ids) == self.index
        numbers[own] = self.local_numbers(self.layout.local_of(ids[own]))
        if len(self.delegates):
            position = self._delegate_numbers.of(ids)
            device, number = numbers_of(position, self.domain.devices)
            here = (position >= 0) & (device == self.device)
            numbers[here] = number[here]
        return numbers

    def ids_at(self, positions: Any) -> Any:
        """Return the ids of positions, CuPy int64 of the same shape."""
        names = self.ids[positions].astype(np.int64)
        if not self.has_local_ids:
            return names
        device, _ = numbers_of(positions, self.domain.devices)
        return names * self.layout.parts + device

    def by_id(self, root: Root, level: Any, parent: Any) -> tuple[Any, Any]:
        """Convert results of a search by number, CuPy [active], to results by local id.

        level: integers, or None; parent: 32-bit positions, or None; -1 = unreached
        """
        cp, layout = cuda.cupy(), self.layout
        roots = np.atleast_1d(np.asarray(root))
        roots = roots[layout.part_of(roots) == self.index]
        at, own = cp.asarray(layout.local_of(roots)), cp.asarray(roots)

        def spread(values: Any, of_roots: Any) -> Any:
            out = cp.full(self.n, -1, values.dtype)
            out[self.vertices] = values
            out[at] = of_roots
            return out

        if level is not None:
            level = spread(level, 0)
        if parent is not None:
            positions = parent.view(np.uint32)
            none = positions == ISOLATED
            ids = self.ids_at(cp.where(none, np.uint32(0), positions))
            ids[none] = -1
            kind = np.int64 if self.wide else np.int32
            parent = spread(ids.astype(kind, copy=False), own.astype(kind))
        return level, parent

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays in device memory."""
        arrays = [self.vertices, self.numbers, self.tuple_degrees]
        arrays += () if self.members is None else (self.members,)
        rows = sum(side.nbytes for side in self.sides)
        return rows + sum(int(x.nbytes) for x in arrays)

    @property
    def held_back(self) -> int:
        """Number of stored edges in host memory."""
        return sum(side.held_back for side in self.sides)


def whole_share(
    *, n: int, active: int, vertices: DeviceArray, out: Rows, **others: Any
) -> Share:
    """Return the only share of a whole graph; arguments: its fields but its place.

    Without ``into``, edges lead both ways.
    """
    granules = max(-(-active // GRANULE), 1)
    return Share(
        n=n,
        active=active,
        vertices=vertices,
        layout=Layout(n, 1),
        index=0,
        domain=Domain(Domains((1,)), 0, granules, active, out.edges),
        ids=vertices,
        slots=active,
        out=out,
        **{"into": out, **others},
    )


@dataclass(frozen=True)
class ShareCounts:
    """Counts that determine the memory of searches of a share; see ``Share``.

    active, m, at_least: as in ``Share``; whole: whether it has a whole graph, which one
    launch searches; directed: whether the graph is directed
    delegates: number of positions of delegates; targets: number of targets of outer
    edges; outer_edges: number of outer edges to each share, int64 [shares], as in
    ``Share.edges_to``, None in one domain; owned: number of delegates that each share
    owns, int64 [shares]
    """

    layout: Layout
    index: int
    domains: Domains
    active: int
    m: int
    at_least: Ids
    directed: bool = False
    whole: bool = False
    delegates: int = 0
    targets: int = 0
    outer_edges: Any = None
    owned: Any = None

    @property
    def local(self) -> int:
        """Number of vertices that the share owns."""
        return self.layout.local_count(self.index)

    @property
    def devices(self) -> int:
        """Number of devices of its domain."""
        return self.domains.sizes[self.domains.domain_of(self.index)]


def whole_counts(
    n: int, active: int, m: int, at_least: Ids, *, directed: bool = False
) -> ShareCounts:
    """Return the counts of a share that has a whole graph."""
    place = Layout(n, 1), 0, Domains((1,))
    return ShareCounts(*place, active, m, at_least, directed, whole=True)
