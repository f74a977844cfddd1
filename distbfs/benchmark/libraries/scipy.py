"""SciPy: ``csgraph.breadth_first_order`` on a CSR matrix."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from distbfs.benchmark.libraries.base import LibraryRows
from distbfs.ranks.world import SoloWorld
from distbfs.types import Levels
from distbfs.validation.derived import levels_of_block


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
        """Convert predecessors to levels, int32 [n]."""
        parent = answer[1].astype(np.int64)
        parent[root] = root
        return levels_of_block(SoloWorld(), len(parent), parent)
