"""The Python interface: graphs from what a program holds, and searches of them.

>>> import distbfs
>>> graph = distbfs.Graph.from_edges([0, 0, 1, 2], [1, 2, 3, 3])
>>> result = distbfs.bfs(graph, 0)
>>> result.level
array([0, 1, 1, 2], dtype=int32)
>>> result.path_to(3) in ([0, 1, 3], [0, 2, 3])
True
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from threading import Lock
from typing import Any

import numpy as np

from distbfs.build.cuda.ranges import PAIR_BYTES
from distbfs.errors import UsageError
from distbfs.exchange.world import SoloWorld
from distbfs.graph.device_graph import MAX_VERTICES
from distbfs.options import SearchOptions
from distbfs.partition.part import Part
from distbfs.search.choose import kind_of
from distbfs.search.graph_input import (
    HeldTuples,
    MatrixTuples,
    check_ends,
    csr_of,
    integers,
    matrix_part,
    named_part,
    on_device,
    sent,
    shared,
)
from distbfs.search.holding import Source
from distbfs.search.open import open_source
from distbfs.search.result import Result
from distbfs.search.session import Session
from distbfs.types import Array


class Graph:
    """A graph in the memory of one process, to be searched any number of times.

    n: vertices; m: stored edges, both directions of an undirected one
    directed: whether edges lead one way only
    nodes: names of the vertices, None where they are 0 … n-1

    Made by ``from_edges``, ``from_scipy``, ``from_networkx`` or ``from_dlpack``; loops
    and repeats change no search.  Searches of one graph run one after the other.
    """

    def __init__(
        self,
        part: Part | None,
        *,
        tuples: HeldTuples | None = None,
        directed: bool = False,
        nodes: list[Any] | None = None,
        index: dict[Any, int] | None = None,
    ) -> None:
        """Take a part, or tuples that a part is built of when it is needed."""
        self._part, self._tuples = part, tuples
        self.directed, self.nodes = directed, nodes
        self._index = index
        self._names: Array | None = None
        if nodes is not None:
            self._names = np.fromiter(nodes, dtype=object, count=len(nodes))
        self._begin()

    def _begin(self) -> None:
        self._sessions: dict[SearchOptions, Session] = {}
        self._kept: dict[Hashable, Any] = {}
        self._lock = Lock()
        self._process = os.getpid()

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy needs: all but what searches hold."""
        held = ("_sessions", "_kept", "_lock", "_process")
        return {k: v for k, v in vars(self).items() if k not in held}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._begin()

    def __repr__(self) -> str:
        kind = "directed" if self.directed else "undirected"
        return f"<distbfs.Graph, {kind}, n = {self.n}, m = {self.m}>"

    @classmethod
    def from_edges(
        cls, src: Any, dst: Any, n: int | None = None, *, directed: bool = False
    ) -> Graph:
        """Return the graph of edges (src[k], dst[k]).

        src, dst: integers [edges], anything that NumPy takes; int64 arrays are read
        without a copy.  n: vertices, else one more than the largest id.  Vertices are
        sorted by degree, which makes long series of searches faster.  Many edges go to
        a CUDA device where there is one, and are made a graph with the first search.

        Raises InputError for what is no integer and for ids outside 0 … n-1.

        >>> Graph.from_edges([0, 1, 1], [1, 2, 2], n=5)
        <distbfs.Graph, undirected, n = 5, m = 4>
        """
        src, dst = integers(src, "src"), integers(dst, "dst")
        source = check_ends(*sent(src, dst), n)
        if source.lent and source.n <= MAX_VERTICES:
            return cls(None, tuples=source.narrowed(), directed=directed)
        if source.lent:
            source = check_ends(src, dst, n)
        return cls(source.part(directed=directed), directed=directed)

    @classmethod
    def from_scipy(cls, matrix: Any, *, directed: bool = False) -> Graph:
        """Return the graph of a square SciPy sparse matrix or array.

        Every stored entry (i, j) is an edge, whatever its value; each edge counts once,
        and loops do not count.  A CSR matrix must not change afterwards: with 32-bit
        indices that rise in each row, without repeats and loops, it is used as it is,
        without a copy, if ``directed`` or if its pattern is symmetric.  Many entries go
        to a CUDA device where there is one, as edges do.

        Raises InputError for what is no such matrix, and for one whose arrays do not
        fit together: indices outside the shape, offsets that fall.

        >>> import scipy.sparse as sp
        >>> matrix = sp.csr_array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
        >>> bfs(Graph.from_scipy(matrix, directed=True), 1).level
        array([-1,  0,  1], dtype=int32)
        """
        rows = csr_of(matrix)
        count, fits = len(rows.indices), rows.shape[0] <= MAX_VERTICES
        if fits and on_device(count, PAIR_BYTES * count):
            return cls(None, tuples=MatrixTuples(rows), directed=directed)
        return cls(matrix_part(rows, directed=directed), directed=directed)

    @classmethod
    def from_networkx(cls, graph: Any) -> Graph:
        """Return a NetworkX graph; nodes keep their names and neighbours their order.

        Digraphs are directed; edges of multigraphs count once.  Method "ordered" then
        finds vertices in the order of NetworkX.

        >>> import networkx as nx
        >>> graph = Graph.from_networkx(nx.path_graph(["a", "b", "c"]))
        >>> bfs(graph, "a").path_to("c")
        ['a', 'b', 'c']
        """
        part, nodes, index = named_part(graph)
        return cls(part, directed=part.directed, nodes=nodes, index=index)

    @classmethod
    def from_dlpack(
        cls, src: Any, dst: Any, n: int | None = None, *, directed: bool = False
    ) -> Graph:
        """Return the graph of edges in arrays that speak DLPack, without a copy.

        Arrays may be NumPy's, CuPy's, PyTorch's and others.  Those in device memory
        must not change: engines on devices take them from there, others copy them.

        >>> import numpy as np
        >>> Graph.from_dlpack(np.array([0, 1]), np.array([1, 2])).m
        4
        """
        source = check_ends(shared(src, "src"), shared(dst, "dst"), n)
        if source.lent:
            return cls(None, tuples=source, directed=directed)
        return cls(source.part(directed=directed), directed=directed)

    @classmethod
    def from_cupy(
        cls, src: Any, dst: Any, n: int | None = None, *, directed: bool = False
    ) -> Graph:
        """Return the graph of edges in CuPy arrays; see ``from_dlpack``."""
        return cls.from_dlpack(src, dst, n, directed=directed)

    @property
    def n(self) -> int:
        """Number of vertices."""
        return self._tuples.n if self._tuples is not None else self.part.layout.n

    @property
    def m(self) -> int:
        """Number of stored edges."""
        if self._part is None:
            return self.session(SearchOptions(engine="auto")).edges
        return self._part.nn.edges

    @property
    def part(self) -> Part:
        """The graph as one part in host memory."""
        if self._part is None:
            if self._tuples is None:
                raise UsageError("a graph is made of a part or of tuples")
            if self._tuples.on_device_alone and os.getpid() != self._process:
                raise UsageError(
                    "the edges of this graph are in the memory of a device, which no "
                    "forked process can use; search it by threads before the fork, or "
                    "send it to the process"
                )
            self._part = self._tuples.part(directed=self.directed)
        return self._part

    @property
    def lock(self) -> Lock:
        """What holds off other searches of the graph."""
        return self._lock

    def kept(self, key: Hashable, make: Callable[[Part], Any]) -> Any:
        """Return what ``make`` makes of the part, kept with the graph under a key."""
        if key not in self._kept:
            self._kept[key] = make(self.part)
        return self._kept[key]

    def reversed(self) -> Graph:
        """Return the graph with every edge turned round; arrays are shared."""
        if not self.directed:
            return self
        part = replace(self.part, nn=self.part.pulled, incoming=self.part.nn)
        return Graph(part, directed=True, nodes=self.nodes, index=self._index)

    def named(self, ids: Array) -> Array:
        """Return what vertices int64 [k] are called: ids, or an array of names [k]."""
        return ids if self._names is None else self._names[ids]

    def has(self, vertex: Any) -> bool:
        """Return whether there is such a vertex."""
        if self._index is not None:
            return vertex in self._index
        return vertex in range(self.n)

    def id_of(self, vertex: Any) -> int:
        """Return the id of a vertex; UsageError where there is none."""
        if self._index is not None:
            if vertex not in self._index:
                raise UsageError(f"{vertex!r:.60} is no node of the graph")
            return self._index[vertex]
        whole = isinstance(vertex, (int, np.integer)) and not isinstance(vertex, bool)
        if not whole or not 0 <= vertex < self.n:
            allowed = f"allowed: 0 to {self.n - 1}" if self.n else "the graph has none"
            raise UsageError(f"{vertex!r:.60} is not a vertex; {allowed}")
        return int(vertex)

    @property
    def lent_tuples(self) -> HeldTuples | None:
        """Edge tuples in device memory that the graph is made of."""
        return self._tuples

    def session(self, options: SearchOptions) -> Session:
        """Return the session that searches the graph with some options, kept here."""
        if options not in self._sessions:
            if options.engine != "auto" and not kind_of(options.engine).alone:
                raise UsageError(
                    f"engine {options.engine} searches parts; open a store or tuples"
                )
            source = Source(self.n, 1, self.directed, graph=self)
            names = None if self._names is None else self
            self._sessions[options] = open_source(
                SoloWorld(), source, options, names=names
            )
        return self._sessions[options]


def bfs(
    graph: Graph,
    source: Any,
    engine: str = "auto",
    *,
    depth_limit: int | None = None,
    targets: Iterable[Any] | None = None,
    parents: bool = True,
    method: str = "",
    direction: str = "auto",
    threads: int = 0,
) -> Result:
    """Search a graph breadth-first from a vertex.

    source: a vertex id, or the name of a node
    engine: "auto" (a CUDA device where there is one, else the CPU), "openmp",
        "reference", or on a device "xbfs", "xbfs-paper", "bfs4k", "layer", "frontier",
        "harish", "edge-parallel", "virtual-warp"; method: its variant
    depth_limit: the last level that is searched, an integer of 0 or more
    targets: vertices; the search ends with the level that finds the last of them
    parents: whether parents are found too; direction: "auto", "push" or "pull"
    threads: threads of engine openmp, 0 for all cores

    Results of devices stay there, in CuPy arrays; ``to_numpy()`` brings them to the
    host.  Raises UsageError for what is no vertex or no option, DeviceMissing and
    CompilerMissing (both ResourceError) where the engine that is named cannot run.

    >>> graph = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4])
    >>> bfs(graph, 0, depth_limit=2).level
    array([ 0,  1,  2, -1, -1], dtype=int32)
    >>> bfs(graph, 2, targets=[1]).reached
    3
    """
    options = SearchOptions(
        engine=engine,
        method=method,
        threads=threads,
        parents=parents,
        direction=direction,
    )
    with graph.lock:
        result = graph.session(options).search(
            source, depth_limit=depth_limit, targets=targets
        )
        return result.keep()
