"""The rows of the devices of a rank, whose edges are seen or not; see ``sight``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from distbfs.build.cuda.domain import positions_of
from distbfs.build.cuda.seen import (
    SeenEdges,
    SeenMaker,
    SeenPart,
    rows_of_member,
    rows_of_part,
)
from distbfs.device import cuda

if TYPE_CHECKING:
    from distbfs.build.cuda.domain import MemberRows
    from distbfs.build.cuda.inner_part import InnerPart
    from distbfs.types import DeviceArray, Ids, Words, World

HALF = np.uint64(32)
PLACE = np.uint64((1 << 32) - 1)


class MaskedRows(Protocol):
    """Edges that a mask leaves, as bits on each device of this rank."""

    def made(self, make: Callable[[SeenMaker], SeenEdges]) -> list[Any]:
        """Return the visible edges of each device; make returns the bits of rows."""

    def ends(self, seen: Sequence[Any]) -> list[DeviceArray]:
        """Return the ends of seen edges by local id, of each device (collective)."""


class DomainRows:
    """Rows of the devices of one domain."""

    def __init__(self, parts: Sequence[MemberRows]) -> None:
        self._parts = parts
        self._makers: list[SeenMaker] = []
        for part in parts:
            with part.names.device:
                self._makers.append(SeenMaker(rows_of_member(part)))

    def made(self, make: Callable[[SeenMaker], SeenEdges]) -> list[SeenEdges]:
        """Return the visible edges of each device; make returns the bits of rows."""
        seen = []
        for part, maker in zip(self._parts, self._makers, strict=True):
            with part.names.device:
                seen.append(make(maker))
        return seen

    def ends(self, seen: Sequence[SeenEdges]) -> list[DeviceArray]:
        """Return the ends of seen edges by local id, uint32 [local], of each device."""
        every = []
        for part, some in zip(self._parts, seen, strict=True):
            with part.names.device:
                ends = cuda.cupy().zeros(part.local_count, np.uint32)
                ends[part.graph.vertices] = some.ends
                every.append(ends)
        return every


class InnerRows:
    """Inner and outer rows of the devices of several domains (collective)."""

    def __init__(self, world: World, parts: Sequence[InnerPart]) -> None:
        self._world, self._parts = world, parts
        self._makers: list[tuple[SeenMaker, SeenMaker]] = []
        for part, ids in zip(parts, target_ids(world, parts), strict=True):
            with part.ids.device, cuda.memory_of("the ids of other domains"):
                targets = cuda.cupy().asarray(ids.astype(part.ids.dtype))
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
        """Return the ends of seen edges by local id, of each device (collective).

        Those of a delegate are added up over all domains.
        """
        of_delegates = np.zeros(self._parts[0].delegate_count, np.int64)
        for part, some in zip(self._parts, seen, strict=True):
            numbers = part.numbers_at(np.arange(part.delegate_count))
            here, rows = numbers >= 0, some.inner.ends[: part.normals].get()
            of_delegates[here] += rows[numbers[here]]
        of_delegates = self._world.allreduce(of_delegates)
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
                every.append(ends)
        return every


def target_ids(world: World, parts: Sequence[InnerPart]) -> list[Ids]:
    """Return the ids of ``outer.targets``, int64 [targets], by part (collective)."""
    rank = np.zeros(parts[0].domain.of.shares, np.int64)
    indices = np.array([part.index for part in parts])
    for of_rank, held in enumerate(world.allgather(indices)):
        rank[held] = of_rank
    every = [part.outer.words() for part in parts]
    targets: Words = np.concatenate(every)
    owner = rank[(targets >> HALF).astype(np.int64)]
    order = np.argsort(owner, kind="stable")
    cuts = np.searchsorted(owner[order], np.arange(1, world.size))
    asked = world.alltoall(np.split(targets[order], cuts))
    answers = world.alltoall([ids_of(parts, some) for some in asked])
    ids = np.empty(len(targets), np.int64)
    ids[order] = np.concatenate(answers)
    return np.split(ids, np.cumsum([len(x) for x in every])[:-1])


def ids_of(parts: Sequence[InnerPart], targets: Words) -> Ids:
    """Return the ids of targets that lie on these parts, int64 [k]."""
    ids = np.empty(len(targets), np.int64)
    share, place = targets >> HALF, (targets & PLACE).astype(np.uint32)
    for part in parts:
        own = np.flatnonzero(share == part.index)
        with part.ids.device:
            numbers = part.place[cuda.cupy().asarray(place[own])]
            local = part.graph.vertices[numbers].get()
        ids[own] = part.layout.global_of(part.index, local.astype(np.int64))
    return ids
