"""Numbers of vertices on a CUDA device, by descending degree class, trees last."""

from __future__ import annotations

from typing import Any

import numpy as np

from distbfs.build.cuda.kernels import BLOCK, Kernels
from distbfs.build.cuda.trees import TreeRanks
from distbfs.device import cuda
from distbfs.graph.device_graph import (
    AT_LEAST,
    FEW_OUT,
    SEARCHED_UNIT,
    Trees,
    degree_class,
)
from distbfs.types import DeviceArray, Ids, KernelArgument

CLASSES = 128
LOOSE = 16  # class of leaves that come first of trees, in graph.cu
CLASS_TILES = 1 << 14  # most tiles of ids in the counting sort


def lower_degrees(kernels: Kernels, out: DeviceArray, degrees: DeviceArray) -> None:
    """Lower the degrees by which vertices of a directed graph are numbered.

    Those with at most FEW_OUT edges, none of them incoming, come last: pulls pass over
    them. out, degrees: uint32 [n], numbers of outgoing and of all edges
    """
    kernels.over("lower_degrees", len(degrees), out, np.uint32(FEW_OUT), degrees)


class Numbering:
    """Numbers by descending degree class, then ascending id; see device_graph.py.

    degrees: uint32 [n], number of edges of each vertex, with repeats but without loops
    trees: the vertices in trees; None if they are not set apart
    active, vertices, numbers, at_least, trees: as in Share
    """

    def __init__(
        self, kernels: Kernels, degrees: DeviceArray, trees: TreeRanks | None = None
    ) -> None:
        self._kernels = kernels
        self.trees: Trees | None = None
        classed = degrees if trees is None else trees.classed
        self._starts, self.vertices, self.numbers = self._by_class(classed)
        self.active = len(self.vertices)
        if trees is not None:
            self._order_trees(trees, degrees)
        self.at_least = self._at_least()

    def _by_class(self, degrees: DeviceArray) -> tuple[Ids, DeviceArray, DeviceArray]:
        """Sort items stably by descending class of their degrees; omit degree 0.

        Returns where each class starts, int64 [CLASSES + 1]; and, as uint32, the items
        in order, and the places of all items [n].
        """
        cupy, n = cuda.cupy(), len(degrees)
        tile = max(-(-n // CLASS_TILES) + 31 & ~31, BLOCK)
        tiles = -(-n // tile)
        form: list[KernelArgument] = [*map(np.uint64, (n, tile, tiles)), degrees]
        warps = BLOCK // 32
        counts = cupy.empty(CLASSES * tiles, np.uint32)
        self._kernels.launch("count_classes", tiles, warps, *form, counts)
        starts = self._kernels.scan(counts)
        isolated = (CLASSES - 1) * tiles  # class 0, the last
        active = int(starts[isolated : isolated + 1].get()[0])
        items, places = cupy.empty(active, np.uint32), cupy.empty(n, np.uint32)
        class_starts = cupy.zeros(CLASSES + 1, np.uint64)
        self._kernels.launch(
            "assign_numbers",
            tiles,
            warps,
            *form,
            starts,
            class_starts,
            items,
            places,
        )
        return class_starts.get().astype(np.int64), items, places

    def _order_trees(self, trees: TreeRanks, degrees: DeviceArray) -> None:
        """Order the vertices of trees: each comes after the one on which it hangs.

        Some leaves that hang on no tree fill up the last unit of searched vertices.
        Then come the vertices on which others hang, by falling ranks, and then the
        other leaves; each group by ascending id. degrees: uint32 [n], those that were
        passed in
        """
        cupy, kernels = cuda.cupy(), self._kernels
        core = int(self._starts[CLASSES - 2])
        fill = -core % SEARCHED_UNIT
        tree = self.vertices[core:]
        count = len(tree)
        classes, most = cupy.empty(count, np.uint32), cupy.zeros(1, np.uint32)
        ranks = tree, trees.ranks, trees.links, degrees

        def in_order(below: int) -> tuple[Ids, DeviceArray]:
            form = *ranks, np.uint32(below), classes, most
            kernels.over("tree_classes", count, *form)
            return self._by_class(classes)[:2]

        starts, items = in_order(len(trees.ranks) if fill else 0)
        if starts[CLASSES - LOOSE] > fill:
            last = int(items[fill - 1 : fill].get()[0])
            starts, items = in_order(int(tree[last : last + 1].get()[0]) + 1)
        listed = kernels.gather(tree, items)
        form = np.uint32(core), listed, self.vertices, self.numbers
        kernels.over("renumber", count, *form)
        inner, highest = int(starts[CLASSES - 2]) - fill, int(most.get()[0])
        present = np.flatnonzero(np.diff(starts)[CLASSES - LOOSE :])
        others = self._at_least()
        others[1] = others[0] = core + fill
        self.trees = Trees(count - fill, LOOSE - 1 - int(present[0]), others)
        if inner:
            least = int(degree_class(np.array([highest]))[0])
            inside = slice(CLASSES - least, CLASSES - 1)  # from degree 2 on
            self._starts[inside] = core + fill + inner

    def _at_least(self) -> Ids:
        """Return ``at_least`` as in Share."""
        at_least: Ids = self._starts[CLASSES - degree_class(np.arange(AT_LEAST))]
        at_least[0] = self.active
        return at_least

    def at_least_of(self, degree: int) -> int:
        """Return a number above those of all vertices of at least this degree."""
        return int(self._starts[CLASSES - degree_class(np.array([degree]))[0]])

    def arrays(self) -> dict[str, Any]:
        """Return the numbering's fields of a Share."""
        names = ("active", "at_least", "vertices", "numbers", "trees")
        return {name: getattr(self, name) for name in names}
