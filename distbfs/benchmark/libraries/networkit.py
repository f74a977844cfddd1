"""NetworKit: ``distance.BFS`` without stored paths, in C++."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from distbfs.benchmark.libraries.base import LibraryRows
from distbfs.types import Levels

FARTHEST = 1e300  # unreached vertices have the largest double


class NetworkitLibrary:
    """Distances as float64."""

    module: ClassVar[str] = "networkit"
    called: ClassVar[str] = "distance.BFS, NetworKit"

    def __init__(self, rows: LibraryRows) -> None:
        import networkit as nk  # noqa: PLC0415

        self._nk = nk
        self._graph = nk.Graph(rows.n, directed=rows.directed)
        for u, v in zip(*(x.tolist() for x in rows.pairs()), strict=True):
            self._graph.addEdge(u, v)

    def search(self, root: int) -> Any:
        """Run the search; return the BFS object."""
        search = self._nk.distance.BFS(self._graph, root, storePaths=False)
        return search.run()

    def levels(self, answer: Any, root: int) -> Levels:  # noqa: ARG002
        """Convert distances to levels, int32 [n]."""
        far = np.asarray(answer.getDistances())
        return np.where(far > FARTHEST, -1, far).astype(np.int32)
