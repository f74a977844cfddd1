"""SciPy: ``csgraph.breadth_first_order`` on a CSR matrix."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from distbfs.benchmark.libraries.base import LibraryRows
from distbfs.types import Levels


class ScipyLibrary:
    """Visiting order and predecessors, by compiled code on one thread."""

    module: ClassVar[str] = "scipy"
    called: ClassVar[str] = "breadth_first_order, SciPy"

    def __init__(self, rows: LibraryRows) -> None:
        from scipy.sparse import csr_matrix  # noqa: PLC0415
        from scipy.sparse.csgraph import breadth_first_order  # noqa: PLC0415

        self._call = breadth_first_order
        ones = np.ones(rows.m)  # csgraph would convert other dtypes at each call
        small = rows.m < 1 << 31
        offsets = rows.offsets.astype(np.int32) if small else rows.offsets
        self._matrix = csr_matrix((ones, rows.columns, offsets), (rows.n, rows.n))

    def search(self, root: int) -> Any:
        """Return (order, predecessors)."""
        return self._call(self._matrix, root, directed=True)

    def levels(self, answer: Any, root: int) -> Levels:
        """Convert to levels, int32 [n]: children of one parent follow each other."""
        order, predecessors = answer
        level = np.full(len(predecessors), -1, np.int32)
        place = np.zeros(len(predecessors), np.int64)
        place[order] = np.arange(len(order))
        parent = place[predecessors[order[1:]]]  # ascending
        level[root] = 0
        start, stop, depth = 0, 1, 0
        while stop < len(order):
            depth += 1
            start, stop = stop, 1 + int(np.searchsorted(parent, stop))
            level[order[start:stop]] = depth
        return level
