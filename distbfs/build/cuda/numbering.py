"""Numbers of vertices on a CUDA device, by falling degree class, trees last."""

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
    ranks: of the vertices of trees, see ``rank_trees``; None: none is set apart
    active, vertices, numbers, at_least, trees, chain: as in DeviceGraph
    sorted: uint32 [active], degrees by number
    """

    def __init__(
        self, kernels: Kernels, degrees: DeviceArray, ranks: DeviceArray | None = None
    ) -> None:
        cupy = cuda.cupy()
        n = len(degrees)
        self.trees = self.chain = 0
        if ranks is not None:
            given = degrees
            degrees = cupy.where(ranks > 0, np.uint32(1), degrees)
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
        if ranks is not None:
            self._order_trees(ranks, given)
        self.at_least = self._starts[CLASSES - classes]
        self.at_least[0] = self.active

    def _order_trees(self, ranks: DeviceArray, degrees: DeviceArray) -> None:
        """Put the vertices of trees in the order of falling ranks, then rising id.

        So each comes after the one that it hangs on, and leaves come last.
        """
        cupy = cuda.cupy()
        core = int(self._starts[CLASSES - 2])
        tree = self.vertices[core:]
        self.trees = self.active - core
        own = ranks[tree]
        self.chain = int(own.max()) if self.trees else 0
        inner = tree[own > 1]
        if len(inner):
            order = cupy.argsort(np.uint8(255) - ranks[inner], kind="stable")
            self.vertices[core:] = cupy.concatenate([inner[order], tree[own == 1]])
            after = cupy.arange(core, self.active, dtype=np.uint32)
            self.numbers[self.vertices[core:]] = after
            highest = int(degree_class(np.array([int(degrees[inner].max())]))[0])
            inside = slice(CLASSES - highest, CLASSES - 1)  # degree 2 is class 2
            self._starts[inside] = core + len(inner)
        self.sorted = degrees[self.vertices]

    def at_least_of(self, degree: int) -> int:
        """Return a number above those of all vertices of at least this degree."""
        return int(self._starts[CLASSES - degree_class(np.array([degree]))[0]])

    def arrays(self) -> dict[str, Any]:
        """Return the numbering's fields of a DeviceGraph."""
        names = ("active", "at_least", "vertices", "numbers", "trees", "chain")
        return {name: getattr(self, name) for name in names}
