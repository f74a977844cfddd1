"""A NetworkX graph as the engines take it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from distbfs.graph.csr import CSR
from distbfs.search.library import Graph, bfs
from distbfs.search.result import Result
from distbfs.types import Array, Ids


class BackendGraph:
    """Nodes and neighbours of a NetworkX graph in its order, without attributes.

    graph: what is searched; multigraph: whether the original is one
    """

    __networkx_backend__ = "distbfs"

    def __init__(self, graph: Graph, *, multigraph: bool = False) -> None:
        self.graph, self._multigraph = graph, multigraph
        self.__networkx_cache__: dict[str, Any] = {}

    def __len__(self) -> int:
        return self.graph.n

    def __iter__(self) -> Iterator[Any]:
        return iter(self.nodes)

    def __contains__(self, node: object) -> bool:
        try:
            return self.graph.has(node)
        except TypeError:  # what has no hash is no node
            return False

    def is_directed(self) -> bool:
        """Return whether edges lead one way only."""
        return self.graph.directed

    def is_multigraph(self) -> bool:
        """Return whether the original graph is a multigraph."""
        return self._multigraph

    @cached_property
    def nodes(self) -> list[Any]:
        """The nodes in the order of the original graph."""
        named = self.graph.nodes
        return list(range(self.graph.n)) if named is None else named

    @cached_property
    def turned(self) -> Graph:
        """The graph with its edges turned round."""
        return self.graph.reversed()

    def names(self, ids: Array) -> list[Any]:
        """Return the nodes with these ids."""
        return self.graph.named(ids).tolist()

    def levels(
        self,
        source: Any,
        *,
        limit: float | None = None,
        targets: Iterable[Any] | None = None,
        reverse: bool = False,
    ) -> Array:
        """Return the level of each node, int32 [n], -1 = unreached or beyond."""
        graph = self.turned if reverse else self.graph
        return bfs(
            graph,
            source,
            depth_limit=whole_limit(limit),
            targets=targets,
            parents=False,
        ).level

    def ordered(
        self, source: Any, limit: float | None = None, *, reverse: bool = False
    ) -> Result:
        """Return a search that finds nodes and parents in the order of NetworkX."""
        graph = self.turned if reverse else self.graph
        return bfs(graph, source, method="ordered", depth_limit=whole_limit(limit))

    def tree_edges(
        self, source: Any, limit: float | None = None, *, reverse: bool = False
    ) -> Iterator[tuple[Any, Any]]:
        """Return the edges (parent, child) of a search in the order of NetworkX."""
        found = self.ordered(source, limit, reverse=reverse)
        pairs: Array = found.tree()
        return zip(pairs[:, 0].tolist(), pairs[:, 1].tolist(), strict=True)

    def layers(self, sources: Ids) -> Iterator[Ids]:
        """Yield the ids of each level of a search from several sources at once."""
        rows: CSR = self.graph.part.nn
        seen = np.zeros(self.graph.n, dtype=np.bool_)
        seen[sources] = True
        layer = sources
        while len(layer):
            yield layer
            _, column = rows.edges_of(layer)
            fresh = column[~seen[column]]
            _, place = np.unique(fresh, return_index=True)
            place.sort()
            layer = fresh[place].astype(np.int64)
            seen[layer] = True


def whole_limit(limit: float | None) -> int | None:
    """Return the last level that NetworkX reaches with a limit, None for all."""
    if limit is None or limit == math.inf:
        return None
    return max(math.ceil(limit), 0)
