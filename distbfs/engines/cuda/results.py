"""What a search on a device gives, and how it becomes arrays of the host."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from distbfs.engines.base import LevelRecord
from distbfs.graph.device_graph import DeviceGraph
from distbfs.types import Array

BYTE_UNREACHED = 255
NO_PARENT = (1 << 32) - 1


@dataclass
class DeviceResult:
    """One search; arrays stay in device memory, valid until the next search.

    level: CuPy uint8 (255 = unreached) or int32 (-1 = unreached)
    parent: CuPy uint32 (2^32 - 1 = unreached) or None
    Both by id [n]; by number [active] where internal ids were asked for.
    levels: the largest level and one
    seconds: device time between events; launches: kernels that it took
    """

    level: Any
    parent: Any
    levels: int
    seconds: float
    launches: int
    records: list[LevelRecord] = field(default_factory=list)


class DeviceSearch(Protocol):
    """Searches a graph that is on the device."""

    graph: DeviceGraph
    in_ids: bool

    def search(self, root: int, *, records: bool = False) -> DeviceResult:
        """Search from a vertex id."""


def host_levels(level: Any) -> Array:
    """Return levels as int32 on the host, -1 = unreached."""
    found: Array = level.get()
    if found.dtype != np.uint8:
        return found
    wide = found.astype(np.int32)
    wide[found == BYTE_UNREACHED] = -1
    return wide


def host_parents(parent: Any) -> Array:
    """Return parents as int64 on the host, -1 = unreached."""
    found: Array = parent.get()
    wide = found.astype(np.int64)
    wide[found == NO_PARENT] = -1
    return wide
