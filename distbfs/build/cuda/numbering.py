"""Numbers of vertices on a CUDA device, by falling degree class."""

from __future__ import annotations

from typing import Any

import numpy as np

from distbfs.build.cuda.kernels import BLOCK, Kernels
from distbfs.device import cuda
from distbfs.graph.device_graph import AT_LEAST, degree_class
from distbfs.types import DeviceArray

CLASSES = 128
CLASS_TILES = 1 << 14  # most tiles of ids in the counting sort


class Numbering:
    """Numbers by falling degree class, then rising id; see device_graph.py.

    degrees: uint32 [n], edges at each vertex, repeats counted, loops not
    active, vertices, numbers, at_least: as in DeviceGraph
    sorted: uint32 [active], degrees by number
    """

    def __init__(self, kernels: Kernels, degrees: DeviceArray) -> None:
        cupy = cuda.cupy()
        n = len(degrees)
        tile = max(-(-n // CLASS_TILES) + 31 & ~31, BLOCK)
        tiles = -(-n // tile)
        form = [np.uint64(n), np.uint64(tile), np.uint64(tiles), degrees]
        warps = BLOCK // 32
        counts = cupy.empty(CLASSES * tiles, np.uint32)
        kernels.launch("count_classes", tiles, warps, *form, counts)
        starts = kernels.scan(counts)
        isolated = (CLASSES - 1) * tiles  # class 0, the last
        self.active = int(starts[isolated : isolated + 1].get()[0])
        self.vertices = cupy.empty(self.active, np.uint32)
        self.sorted = cupy.empty(self.active, np.uint32)
        self.numbers = cupy.empty(n, np.uint32)
        class_starts = cupy.zeros(CLASSES + 1, np.uint64)
        out = (class_starts, self.vertices, self.numbers, self.sorted)
        kernels.launch("assign_numbers", tiles, warps, *form, starts, *out)
        classes = degree_class(np.arange(AT_LEAST))
        self._starts = class_starts.get().astype(np.int64)
        self.at_least = self._starts[CLASSES - classes]
        self.at_least[0] = self.active

    def at_least_of(self, degree: int) -> int:
        """Return a number above those of all vertices of at least this degree."""
        return int(self._starts[CLASSES - degree_class(np.array([degree]))[0]])

    def arrays(self) -> dict[str, Any]:
        """Return the numbering's fields of a DeviceGraph."""
        names = ("active", "at_least", "vertices", "numbers")
        return {name: getattr(self, name) for name in names}
