"""Numbers of vertices on a CUDA device, by descending degree class, trees last."""

from __future__ import annotations

from typing import Any

import numpy as np

from distbfs.build.cuda.kernels import BLOCK, Kernels
from distbfs.build.cuda.trees import TreeRanks
from distbfs.device import cuda
from distbfs.graph.device_graph import (
    AT_LEAST,
    SEARCHED_UNIT,
    Trees,
    degree_class,
)
from distbfs.types import DeviceArray, Ids, KernelArgument

CLASSES = 128
CLASS_TILES = 1 << 14  # most tiles of ids in the counting sort


class Numbering:
    """Numbers by descending degree class, then ascending id; see device_graph.py.

    degrees: uint32 [n], edges at each vertex, repeats counted, loops not
    trees: the vertices in trees; None: they are not set apart
    active, vertices, numbers, at_least, trees: as in DeviceGraph
    sorted: uint32 [active], degrees by number
    """

    def __init__(
        self, kernels: Kernels, degrees: DeviceArray, trees: TreeRanks | None = None
    ) -> None:
        cupy = cuda.cupy()
        n = len(degrees)
        self.trees: Trees | None = None
        repeated = degrees
        if trees is not None:
            degrees = cupy.where(trees.ranks > 0, np.uint32(1), degrees)
        tile = max(-(-n // CLASS_TILES) + 31 & ~31, BLOCK)
        tiles = -(-n // tile)
        form: list[KernelArgument] = [*map(np.uint64, (n, tile, tiles)), degrees]
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
        kernels.launch(
            "assign_numbers",
            tiles,
            warps,
            *form,
            starts,
            class_starts,
            self.vertices,
            self.numbers,
            self.sorted,
        )
        self._starts = class_starts.get().astype(np.int64)
        if trees is not None:
            self._order_trees(trees, repeated)
        self.at_least = self._at_least()

    def _order_trees(self, trees: TreeRanks, degrees: DeviceArray) -> None:
        """Order the vertices of trees, so that each comes after the one it hangs on.

        Leaves that hang on no tree fill up a unit of what is searched; then those come
        on which others hang, by falling ranks, and other leaves; each by ascending id.
        degrees: uint32 [n], as given
        """
        cupy = cuda.cupy()
        core = int(self._starts[CLASSES - 2])
        fill = -core % SEARCHED_UNIT
        tree = self.vertices[core:]
        ranks: Any = trees.ranks[tree]
        leaf: Any = ranks == 1
        loose = cupy.flatnonzero(leaf & (trees.ranks[trees.links[tree]] == 0))[:fill]
        leaf[loose] = False
        inner = tree[ranks > 1]
        order = cupy.argsort(np.uint8(255) - ranks[ranks > 1], kind="stable")
        parts = [tree[loose], inner[order], tree[leaf]]
        self.vertices[core:] = cupy.concatenate(parts)
        after = cupy.arange(core, self.active, dtype=np.uint32)
        self.numbers[self.vertices[core:]] = after
        self.sorted = degrees[self.vertices]
        others = self._at_least()
        others[1] = others[0] = core + fill
        self.trees = Trees(len(tree) - fill, int(ranks.max()), others)
        if len(inner):
            highest = int(degree_class(np.array([int(degrees[inner].max())]))[0])
            inside = slice(CLASSES - highest, CLASSES - 1)  # from degree 2 on
            self._starts[inside] = core + fill + len(inner)

    def _at_least(self) -> Ids:
        """Return ``at_least`` as in DeviceGraph."""
        at_least: Ids = self._starts[CLASSES - degree_class(np.arange(AT_LEAST))]
        at_least[0] = self.active
        return at_least

    def at_least_of(self, degree: int) -> int:
        """Return a number above those of all vertices of at least this degree."""
        return int(self._starts[CLASSES - degree_class(np.array([degree]))[0]])

    def arrays(self) -> dict[str, Any]:
        """Return the numbering's fields of a DeviceGraph."""
        names = ("active", "at_least", "vertices", "numbers", "trees")
        return {name: getattr(self, name) for name in names}
