"""The rows of the devices of a rank, whose edges are seen or not; see ``sight``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from distbfs.build.cuda.seen import SeenEdges, SeenMaker, rows_of_member
from distbfs.device import cuda

if TYPE_CHECKING:
    from distbfs.build.cuda.domain import MemberRows
    from distbfs.types import DeviceArray


class DeviceRows(Protocol):
    """What makes the bits of edges on each device of this rank."""

    def made(self, make: Callable[[SeenMaker], SeenEdges]) -> list[Any]:
        """Return what searches on each device see; make: the bits of some rows."""

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
        """Return what searches on each device see; make: the bits of its rows."""
        seen = []
        for part, maker in zip(self._parts, self._makers, strict=True):
            with part.names.device:
                seen.append(make(maker))
        return seen

    def ends(self, seen: Sequence[SeenEdges]) -> list[DeviceArray]:
        """Return the ends of seen edges by local id, uint32 [local], of each device."""
        found = []
        for part, some in zip(self._parts, seen, strict=True):
            with part.names.device:
                ends = cuda.cupy().zeros(part.local_count, np.uint32)
                ends[part.graph.vertices] = some.ends
                found.append(ends)
        return found
