"""What one device of a domain holds of a graph, and the positions of its numbers.

The numbers of the devices of a domain are interleaved in granules of 1,024; see
domain.py and inner_part.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from distbfs.device import cuda
from distbfs.device.take import take
from distbfs.generate.cuda import id_type
from distbfs.graph.device_graph import ISOLATED, DeviceGraph, Trees
from distbfs.partition.delegates import DelegateNumbers
from distbfs.partition.layout import Domains, Layout
from distbfs.types import Array, Ids, Root

WIDE = 1 << 32
GRANULE = 1024  # consecutive numbers of one owner among the positions


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

    active, at_least: as in DeviceGraph
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


@dataclass(kw_only=True)
class ShareRows:
    """What one device of a domain holds of a graph, in its memory.

    layout: which vertices each share owns; index: index of this share
    domain: the domain to which the device belongs; graph: rows by number, whose columns
    are positions; its ids are local ids
    ids: uint32 or uint64 [slots or more], position -> vertex id, all ones for none; if
    ids are wide, uint32 stands for local ids
    delegates: NumPy int64, ids of delegates by position, -1 in gaps; normals: first
    number of a normal vertex; owned: int64, numbers of the delegates that the share
    owns, in order of their ids
    outer: edges to other domains, in a directed graph those out; None in one domain
    incoming: the outer edges in of a directed graph; None if edges lead both ways
    whole: whether it is a whole graph, which has places for all ids

    Between domains, the ``active`` of the graph counts all numbers; its ``vertices`` is
    ISOLATED for delegates of other parts and in the gap, and ``ids`` has room, from
    ``slots`` on, for an id of another domain for each vertex with edges of this share,
    and for one more. ``delegates`` are equal on all devices.
    """

    layout: Layout
    index: int
    domain: Domain
    graph: DeviceGraph
    ids: Any
    slots: int
    delegates: Ids = field(default_factory=lambda: np.zeros(0, np.int64))
    normals: int = 0
    owned: Ids = field(default_factory=lambda: np.zeros(0, np.int64))
    outer: Any = None
    incoming: Any = None
    whole: bool = False

    @classmethod
    def of_graph(cls, graph: DeviceGraph) -> ShareRows:
        """Return the only share of a whole graph."""
        granules = max(-(-graph.active // GRANULE), 1)
        return cls(
            layout=Layout(graph.n, 1),
            index=0,
            domain=Domain(Domains((1,)), 0, granules, graph.active, graph.m),
            graph=graph,
            ids=graph.vertices,
            slots=graph.active,
            whole=True,
        )

    @property
    def device(self) -> int:
        """Index of the device in its domain."""
        return self.domain.of.device_of(self.index)

    @property
    def cuda_device(self) -> int:
        """The CUDA device."""
        return int(self.graph.numbers.device)

    @property
    def local_count(self) -> int:
        """Number of vertices that the share owns."""
        return self.graph.n

    @property
    def wide(self) -> bool:
        """Whether ids have 64 bits."""
        return self.ids.dtype.itemsize == 8 or id_type(self.layout.n) is np.uint64

    @property
    def has_local_ids(self) -> bool:
        """Whether ``ids`` has local ids."""
        return self.wide and self.ids.dtype.itemsize == 4

    @property
    def asked(self) -> Any:
        """The outer edges along which vertices ask."""
        return self.outer if self.incoming is None else self.incoming

    @property
    def outer_sides(self) -> list[Outer]:
        """The outer edges: those out and, in a directed graph, those in."""
        return [x for x in (self.outer, self.incoming) if x is not None]

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

    @cached_property
    def _delegate_numbers(self) -> DelegateNumbers:
        return DelegateNumbers(self.delegates)

    def numbers_of_ids(self, ids: Ids) -> Array:
        """Return the numbers that vertex ids have here, uint32, ISOLATED for none."""
        numbers = np.full(len(ids), ISOLATED, dtype=np.uint32)
        own = self.layout.part_of(ids) == self.index
        numbers[own] = self.graph.numbers_at(self.layout.local_of(ids[own]))
        if len(self.delegates):
            position = self._delegate_numbers.of(ids)
            device, number = numbers_of(position, self.domain.devices)
            here = (position >= 0) & (device == self.device)
            numbers[here] = number[here]
        return numbers

    def reversed(self) -> ShareRows:
        """Return the rows with all edges of a directed graph reversed."""
        graph = self.graph.turned()
        return replace(self, graph=graph, outer=self.asked, incoming=self.outer)

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
        cp, graph, layout = cuda.cupy(), self.graph, self.layout
        roots = np.atleast_1d(np.asarray(root))
        roots = roots[layout.part_of(roots) == self.index]
        at, own = cp.asarray(layout.local_of(roots)), cp.asarray(roots)

        def spread(values: Any, of_roots: Any) -> Any:
            out = cp.full(graph.n, -1, values.dtype)
            out[graph.vertices] = values
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
