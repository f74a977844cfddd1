"""igraph: ``Graph.bfs``, in C."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from distbfs.benchmark.libraries.base import LibraryRows
from distbfs.types import Levels


class IgraphLibrary:
    """Visiting order, start of each layer, and parents."""

    module: ClassVar[str] = "igraph"
    called: ClassVar[str] = "Graph.bfs, igraph"

    def __init__(self, rows: LibraryRows) -> None:
        import igraph  # noqa: PLC0415

        pairs = np.stack(rows.pairs(), axis=1)
        self._graph = igraph.Graph(
            n=rows.n, edges=pairs.tolist(), directed=rows.directed
        )
        self._n = rows.n

    def search(self, root: int) -> Any:
        """Return (visiting order, start of each layer in it, parents)."""
        return self._graph.bfs(root)

    def levels(self, answer: Any, root: int) -> Levels:  # noqa: ARG002
        """Convert layers to levels, int32 [n]."""
        order, starts, _ = answer
        level = np.full(self._n, -1, np.int32)
        sizes = np.diff(starts)
        level[order[: int(sizes.sum())]] = np.repeat(np.arange(len(sizes)), sizes)
        return level
