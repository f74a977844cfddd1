"""Masks of visible edges for the rows on a rank's devices; see ``sight``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from distbfs.build.cuda.seen import (
    SeenEdges,
    SeenMaker,
    SeenPart,
    rows_of_part,
    rows_of_share,
)
from distbfs.build.cuda.share_rows import positions_of
from distbfs.device import cuda

if TYPE_CHECKING:
    from distbfs.build.cuda.inner_part import InnerPart, Outer
    from distbfs.build.cuda.share_rows import ShareRows
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
    """Rows of the devices of one domain; shares: those of this rank."""

    def __init__(self, world: World, shares: Sequence[ShareRows]) -> None:
        self.world, self._shares = world, shares
        some = len(shares) == world.size == 1
        self.whole = some and shares[0].domain.devices == 1
        self._makers: list[SeenMaker] = []
        for share in shares:
            with share.ids.device:
                self._makers.append(SeenMaker(rows_of_share(share)))

    def made(self, make: Callable[[SeenMaker], SeenEdges]) -> list[SeenEdges]:
        """Return the visible edges of each device; make returns the bits of rows."""
        seen = []
        for share, maker in zip(self._shares, self._makers, strict=True):
            with share.ids.device:
                seen.append(make(maker))
        return seen

    def ends(self, seen: Sequence[SeenEdges]) -> list[DeviceArray]:
        """Count the ends of visible edges at each local id, uint32, by device."""
        every = []
        for share, some in zip(self._shares, seen, strict=True):
            graph = share.graph
            with share.ids.device:
                ends = cuda.cupy().zeros(graph.n, np.uint32)
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
