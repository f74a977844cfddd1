"""NetworkX: ``single_source_shortest_path_length`` in Python."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from distbfs.benchmark.libraries.base import LibraryRows
from distbfs.types import Levels


class NetworkxLibrary:
    """Levels as a dictionary, without any NetworkX backend."""

    module: ClassVar[str] = "networkx"
    called: ClassVar[str] = "single_source_shortest_path_length, NetworkX"

    def __init__(self, rows: LibraryRows) -> None:
        import networkx as nx  # noqa: PLC0415

        self._n = rows.n
        self._graph = nx.DiGraph() if rows.directed else nx.Graph()
        self._graph.add_nodes_from(range(rows.n))
        u, v = rows.pairs()
        self._graph.add_edges_from(zip(u.tolist(), v.tolist(), strict=True))
        call = nx.single_source_shortest_path_length
        self._call = getattr(call, "orig_func", call)  # no dispatch to a backend

    def search(self, root: int) -> Any:
        """Return a dictionary vertex -> level."""
        return self._call(self._graph, root)

    def levels(self, answer: Any, root: int) -> Levels:  # noqa: ARG002
        """Convert to levels, int32 [n]."""
        level = np.full(self._n, -1, np.int32)
        level[list(answer)] = list(answer.values())
        return level
