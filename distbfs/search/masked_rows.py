"""Masks of visible edges for the rows on a rank's devices; see ``sight``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from distbfs.build.cuda.domain import positions_of
from distbfs.build.cuda.seen import (
    NamedRows,
    SeenEdges,
    SeenMaker,
    SeenPart,
    rows_of_graph,
    rows_of_member,
    rows_of_part,
)
from distbfs.device import cuda
from distbfs.ranks.world import SoloWorld

if TYPE_CHECKING:
    from distbfs.build.cuda.domain import MemberRows
    from distbfs.build.cuda.inner_part import InnerPart, Outer
    from distbfs.graph.device_graph import DeviceGraph
    from distbfs.types import DeviceArray, World


class MaskedRows(Protocol):
    """Makes masks of visible edges: one bit per edge, on each device of this rank.

    world: the ranks that have the rows; whole: whether one device has all of them
    """

    world: World
    whole: bool

    def made(self, make: Callable[[SeenMaker], SeenEdges]) -> list[Any]:
        """Return the visible edges of each device; make returns the bits of rows."""

    def ends(self, seen: Sequence[Any]) -> list[DeviceArray]:
        """Count the ends of visible edges at each local id, by device (collective)."""


class DomainRows:
    """Rows of the devices of one domain.

    rows: of each device of this rank, a graph, its rows, and the number of local ids
    """

    def __init__(
        self, world: World, rows: Sequence[tuple[DeviceGraph, NamedRows, int]]
    ) -> None:
        self.world, self._rows = world, rows
        self.whole = len(rows) == world.size == 1 and rows[0][1].devices == 1
        self._makers: list[SeenMaker] = []
        for graph, some, _ in rows:
            with graph.vertices.device:
                self._makers.append(SeenMaker(some))

    @classmethod
    def of_graphs(cls, graphs: Sequence[DeviceGraph]) -> DomainRows:
        """Return the rows of whole graphs on one device each."""
        return cls(SoloWorld(), [(x, rows_of_graph(x), x.n) for x in graphs])

    @classmethod
    def of_members(cls, world: World, parts: Sequence[MemberRows]) -> DomainRows:
        """Return the rows of this rank's devices of a domain."""
        rows = [(part.graph, rows_of_member(part), part.local_count) for part in parts]
        return cls(world, rows)

    def made(self, make: Callable[[SeenMaker], SeenEdges]) -> list[SeenEdges]:
        """Return the visible edges of each device; make returns the bits of rows."""
        seen = []
        for (graph, *_), maker in zip(self._rows, self._makers, strict=True):
            with graph.vertices.device:
                seen.append(make(maker))
        return seen

    def ends(self, seen: Sequence[SeenEdges]) -> list[DeviceArray]:
        """Count the ends of visible edges at each local id, uint32, by device."""
        every = []
        for (graph, _, count), some in zip(self._rows, seen, strict=True):
            with graph.vertices.device:
                ends = cuda.cupy().zeros(count, np.uint32)
                each = np.uint32(1 + graph.directed)  # both where an edge leaves
                # mutant: some.ends * each -> some.ends
                #   : test_masked_sessions::test_one_device
                ends[graph.vertices] = some.ends * each
                every.append(ends)
        return every


class InnerRows:
    """Inner and outer rows of the devices of several domains (collective)."""

    whole = False

    def __init__(self, world: World, parts: Sequence[InnerPart]) -> None:
        self.world, self._parts = world, parts
        self._makers: list[tuple[SeenMaker, SeenMaker]] = []
        for part in parts:
            with part.ids.device, cuda.memory_of("the ids of other domains"):
                targets = [target_ids(part, outer) for outer in part.outer_sides]
                inner, outer = rows_of_part(part, targets)
                self._makers.append((SeenMaker(inner), SeenMaker(outer)))

    def made(self, make: Callable[[SeenMaker], SeenEdges]) -> list[SeenPart]:
        """Return the visible edges of each device; make returns the bits of rows."""
        seen = []
        for part, (inner, outer) in zip(self._parts, self._makers, strict=True):
            with part.ids.device:
                seen.append(SeenPart(make(inner), make(outer)))
        return seen

    def ends(self, seen: Sequence[SeenPart]) -> list[DeviceArray]:
        """Count the ends of visible edges at each local id, by device (collective).

        The ends at a delegate are summed over all domains. In a directed graph, both
        ends of an edge count where it leaves.
        """
        of_delegates = np.zeros(self._parts[0].delegate_count, np.int64)
        for part, some in zip(self._parts, seen, strict=True):
            numbers = part.numbers_at(np.arange(part.delegate_count))
            here, rows = numbers >= 0, some.inner.ends[: part.normals].get()
            # mutant: += -> = : test_between_domains_of_one_device
            of_delegates[here] += rows[numbers[here]]
        of_delegates = self.world.allreduce(of_delegates)
        every = []
        for part, some in zip(self._parts, seen, strict=True):
            owned, devices = part.owned, part.domain.devices
            places = positions_of(owned, part.device, devices)
            with part.ids.device:
                cp, vertices = cuda.cupy(), part.graph.vertices
                ends = cp.zeros(part.local_count, np.uint32)
                normals = some.inner.ends[part.normals :] + some.outer.ends
                ends[vertices[part.normals :]] = normals
                of_owned = cp.asarray(of_delegates[places].astype(np.uint32))
                ends[vertices[cp.asarray(owned)]] = of_owned
                ends *= np.uint32(1 + part.graph.directed)
                every.append(ends)
        return every


def target_ids(part: InnerPart, outer: Outer) -> DeviceArray:
    """Return the ids of ``outer.targets``; the device of the part must be current."""
    cp, parts = cuda.cupy(), part.layout.parts
    counts = np.diff(outer.starts).tolist()
    shares = cp.repeat(cp.arange(parts, dtype=part.ids.dtype), counts)
    return outer.targets.astype(part.ids.dtype) * part.ids.dtype.type(parts) + shares
