"""A NetworkX graph in the form that engines search."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from distbfs.graph.csr import CSR
from distbfs.search.breadth_first import bfs
from distbfs.search.graph import Graph
from distbfs.search.result import Result
from distbfs.types import Array, Ids, Marks


class BackendGraph:
    """Nodes and neighbours of a NetworkX graph, in its order and without attributes.

    graph: the graph that is searched; multigraph: whether the original is a multigraph
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
            return self.own(node) in self.graph
        except (KeyError, TypeError):  # unhashable objects are not nodes
            return False

    def is_directed(self) -> bool:
        """Return whether edges lead one way only."""
        return self.graph.directed

    def is_multigraph(self) -> bool:
        """Return whether the original graph is a multigraph."""
        return self._multigraph

    def reverse(self, copy: bool = True) -> BackendGraph:  # noqa: ARG002
        """Return the graph with all edges reversed."""
        return self.turned

    @cached_property
    def nodes(self) -> list[Any]:
        """The nodes in the order of the original graph."""
        return list(self.graph)

    @cached_property
    def _adj(self) -> dict[Any, None]:
        """The nodes, by the name that ``networkx.Graph.nbunch_iter`` reads."""
        return dict.fromkeys(self.nodes)

    @cached_property
    def turned(self) -> BackendGraph:
        """The graph with all edges reversed."""
        return BackendGraph(self.graph.reversed(), multigraph=self._multigraph)

    @cached_property
    def _labels(self) -> Array:
        """The nodes as an array of objects, [n]."""
        return np.fromiter(self.nodes, dtype=object, count=self.graph.n)

    @cached_property
    def _numbers(self) -> dict[int, int]:
        """The ids of the nodes of a graph whose nodes are numbers, by equal int."""
        return {k: k for k in range(self.graph.n)}

    def own(self, node: Any) -> Any:
        """Return the graph's own node object; KeyError for an unknown number.

        As in a dictionary, 1.0, True and NumPy's 1 are the node 1.
        """
        if self.graph.nodes is None and type(node) is not int:
            return self._numbers[node]
        return node

    def id_of(self, node: Any) -> int:
        """Return the id of a node."""
        return self.graph.id_of(self.own(node))

    def names(self, ids: Array) -> list[Any]:
        """Return the nodes with ids int64 [k]."""
        nodes: list[Any] = self._labels[ids].tolist()
        return nodes

    def all_reach_all(self) -> bool:
        """Return whether every node reaches all others; the graph must not be empty."""
        first = self.nodes[0]
        ways = (self, self.turned) if self.is_directed() else (self,)
        return all((way.levels(first) >= 0).all() for way in ways)

    def by_node(self, values: Array) -> dict[Any, Any]:
        """Return values [n], one per node, as a dictionary in the order of nodes."""
        return dict(zip(self.nodes, values.tolist(), strict=True))

    def path_between(self, source: Any, target: Any) -> list[Any] | None:
        """Return the shortest path that NetworkX's search from both ends finds.

        The smaller frontier advances first; None if there is no path.
        """
        ends = self.id_of(source), self.id_of(target)
        if ends[0] == ends[1]:
            return [source]
        sides = self.graph._host_part.nn, self.graph._host_part.pulled
        before = [np.full(len(self), -1, dtype=np.int64) for _ in sides]
        frontiers = [np.array([end]) for end in ends]
        for side, end in enumerate(ends):
            before[side][end] = end
        while all(map(len, frontiers)):
            side = int(len(frontiers[0]) > len(frontiers[1]))
            index, columns = sides[side].edges_of(frontiers[side])
            met = np.flatnonzero(before[1 - side][columns] >= 0)[:1]
            looked = slice(int(met[0]) + 1 if len(met) else None)
            index, columns = index[looked], columns[looked].astype(np.int64)
            place = first_places(columns, before[side][columns] < 0)
            before[side][columns[place]] = frontiers[side][index[place]]
            if len(met):
                return self._joined_at(int(columns[-1]), before, (source, target))
            frontiers[side] = columns[place]
        return None

    def _joined_at(
        self, middle: int, before: list[Array], ends: tuple[Any, Any]
    ) -> list[Any]:
        """Join the paths of two searches at a vertex; return the whole path."""
        halves: list[list[Any]] = []
        for parent, end in zip(before, ends, strict=True):
            half = [middle]
            while (step := int(parent[half[-1]])) != half[-1]:
                half.append(step)
            names = self.names(np.array(half))
            if len(half) > 1:
                names[-1] = end  # the caller's own object
            halves.append(names)
        return [*reversed(halves[0]), *halves[1][1:]]

    def levels(self, source: Any) -> Array:
        """Return the level of each node, int32 [n], -1 if unreached."""
        return bfs(self.graph, self.own(source), parents=False).to_numpy()[0]

    def ordered(
        self, source: Any, limit: float | None = None, *, parents: bool = True
    ) -> Result:
        """Run a search that finds nodes and parents in the same order as NetworkX."""
        return bfs(
            self.graph,
            self.own(source),
            method="ordered",
            depth_limit=whole_limit(limit),
            parents=parents,
        )

    def distances(self, source: Any, limit: float | None = None) -> dict[Any, int]:
        """Return the level of each reached node, in the order of NetworkX."""
        result = self.ordered(source, limit, parents=False)
        order: Any = result.order
        nodes = [source, *self.names(order[1:])]
        return dict(zip(nodes, result.level[order].tolist(), strict=True))

    def tree_edges(
        self, source: Any, limit: float | None = None
    ) -> Iterator[tuple[Any, Any]]:
        """Return the edges (parent, child) of a search, in the order of NetworkX."""
        result = self.ordered(source, limit)
        parents, children = (ends.tolist() for ends in result.tree().T)
        first = np.count_nonzero(result.level == 1)
        parents[:first] = [source] * first
        return zip(parents, children, strict=True)

    def layers(self, sources: list[Any]) -> Iterator[list[Any]]:
        """Yield the nodes of each level of a search; the first level is the sources."""
        if not sources:
            return
        yield list(sources)
        if len(sources) == 1:
            result = self.ordered(sources[0], parents=False)
            order: Any = result.order
            cuts = np.cumsum(np.bincount(result.level[order]))
            yield from map(self.names, np.split(order, cuts[:-1])[1:])
            return
        for _, layer in self.spread(sources):
            yield self.names(layer)

    def spread(self, sources: list[Any]) -> Iterator[tuple[Ids, Ids]]:
        """Yield (parents, vertices), int64 [k], of each level but the first.

        The search is from several distinct sources; vertices are in queue order.
        """
        rows: CSR = self.graph._host_part.nn
        seen = np.zeros(self.graph.n, dtype=np.bool_)
        layer = np.array([self.id_of(node) for node in sources], dtype=np.int64)
        seen[layer] = True
        while True:
            index, column = rows.edges_of(layer)
            place = first_places(column, ~seen[column])
            if not len(place):
                return
            layer, parent = column[place].astype(np.int64), layer[index[place]]
            seen[layer] = True
            yield parent, layer


def first_places(columns: Array, new: Marks) -> Ids:
    """Return the places of the first occurrence of each new column, ascending."""
    fresh = np.flatnonzero(new)
    _, place = np.unique(columns[fresh], return_index=True)
    return fresh[np.sort(place)]


def whole_limit(limit: float | None) -> int | None:
    """Return the last level that NetworkX visits for a limit, None for no limit."""
    if limit is None or limit == math.inf:
        return None
    return math.ceil(limit) if limit > 0 else 0
