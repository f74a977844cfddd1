"""What one device of a domain holds of a graph, and the positions of its numbers.

The numbers of the devices of a domain are interleaved in granules of 1,024; see
domain.py and inner_part.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.device import cuda
from distbfs.generate.cuda import id_type
from distbfs.graph.device_graph import ISOLATED, DeviceGraph, Trees
from distbfs.partition.delegates import DelegateNumbers
from distbfs.partition.layout import Domains, Layout
from distbfs.types import Array, Ids, Root

if TYPE_CHECKING:
    from typing_extensions import Self

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
    outer: edges to other domains; None without delegates
    whole: whether it is a whole graph, which has places for all ids
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
        return self.outer

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

    def reversed(self) -> Self:
        """Return the rows with all edges of a directed graph reversed."""
        return replace(self, graph=self.graph.turned())

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
