"""Graphs from what a program holds, and what they answer; ``bfs`` searches them.

>>> from distbfs import Graph, bfs
>>> graph = Graph.from_edges([0, 0, 1, 2], [1, 2, 3, 3])
>>> len(graph), graph.degree(3), graph.neighbors(0)
(4, 2, array([1, 2]))
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import Any

import numpy as np

from distbfs.build.cuda.room import PAIR_BYTES
from distbfs.errors import UsageError
from distbfs.exchange.world import SoloWorld
from distbfs.formats.attributes import Values
from distbfs.graph.device_graph import MAX_VERTICES
from distbfs.options import SearchOptions, check_several
from distbfs.partition.part import Part
from distbfs.search.choose import Request, kind_of
from distbfs.search.frames import ends_in, html_table, kept_in, library
from distbfs.search.graph_input import (
    HeldTuples,
    MatrixTuples,
    check_ends,
    csr_of,
    ends_of,
    matrix_part,
    named_part,
    on_device,
    read_ends,
    sent,
    shared,
)
from distbfs.search.graph_rows import edge_pairs, neighbours_of, sorted_rows
from distbfs.search.holding import Source
from distbfs.search.open import open_source
from distbfs.search.session import Session
from distbfs.search.view import View
from distbfs.types import Array, Ids


class Graph:
    """A graph in the memory of one process, to be searched any number of times.

    n: vertices; m: stored edges, both directions of an undirected one
    directed: whether edges lead one way only
    nodes: names of the vertices, None where they are 0 … n-1

    Made by ``from_edges``, ``from_pandas``, ``from_file`` and others like them; loops
    and repeats change no search.  Searches of one graph run one after the other.

    ``len(graph)`` is n, ``v in graph`` tells vertices, and iteration gives them; graphs
    are equal that have the same vertices, names and edges.
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
            if index is None:
                self._index = {name: k for k, name in enumerate(nodes)}
            self._names = np.fromiter(nodes, dtype=object, count=len(nodes))
        self._begin()

    def _begin(self) -> None:
        self._sessions: dict[tuple[SearchOptions, bool], Session] = {}
        self._kept: dict[Hashable, Any] = {}
        self._view: View | None = None
        self._lock = Lock()
        self._process = os.getpid()

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy needs: all but what searches hold."""
        held = ("_sessions", "_kept", "_view", "_lock", "_process")
        return {k: v for k, v in vars(self).items() if k not in held}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._begin()

    def __repr__(self) -> str:
        kind = "directed" if self.directed else "undirected"
        return f"<distbfs.Graph, {kind}, n = {self.n}, m = {self.m}>"

    def _repr_html_(self) -> str:
        kind = "directed" if self.directed else "undirected"
        return html_table(f"{kind} graph", [("vertices", self.n), ("edges", self.m)])

    def __len__(self) -> int:
        return self.n

    def __iter__(self) -> Iterator[Any]:
        return iter(range(self.n) if self.nodes is None else self.nodes)

    def __contains__(self, vertex: object) -> bool:
        if self._index is None:
            return vertex in range(self.n)
        try:
            return vertex in self._index
        except TypeError:  # it, or what is in it, cannot be a name
            return False

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, Graph):
            return self is other
        mine, theirs = self.part, other.part
        facts = [(g.n, g.directed, g.nodes, g.m) for g in (self, other)]
        if facts[0] != facts[1]:
            return False
        pairs = zip(
            *(vars(sorted_rows(x)).values() for x in (mine, theirs)), strict=True
        )
        return all(np.array_equal(a, b) for a, b in pairs)

    def __hash__(self) -> int:
        return hash((self.n, self.directed))

    @classmethod
    def from_edges(
        cls, src: Any, dst: Any = None, n: int | None = None, *, directed: bool = False
    ) -> Graph:
        """Return the graph of edges (src[k], dst[k]), or of pairs.

        src, dst: integers [edges], anything that NumPy takes; int64 arrays are read
        without a copy; or src alone: integers [edges, 2], a list or set of tuples
        n: vertices, else one more than the largest id

        Vertices are sorted by degree, which makes long series of searches faster.  Many
        edges go to a CUDA device where there is one, and are made a graph with the
        first search.

        Raises WrongTypeError for what is no integer, InputError for arrays of other
        shapes and for ids outside 0 … n-1.

        >>> Graph.from_edges([0, 1, 1], [1, 2, 2], n=5)
        <distbfs.Graph, undirected, n = 5, m = 4>
        >>> Graph.from_edges([(0, 1), (1, 2)], directed=True)
        <distbfs.Graph, directed, n = 3, m = 2>
        """
        return cls._of_ends(*ends_of(src, dst), n, None, directed=directed)

    @classmethod
    def _of_ends(
        cls,
        src: Array,
        dst: Array,
        n: Any,
        nodes: list[Any] | None,
        attributes: Mapping[str, Values] = MappingProxyType({}),
        *,
        directed: bool,
    ) -> Graph:
        """Return the graph of ends, integers [edges] each; many go to a device.

        attributes: one value an edge; such a graph is made on the host
        """
        if attributes:
            source = check_ends(src, dst, n)
            source.attributes = attributes
            part = source.part(directed=directed)
            return cls(part, directed=directed, nodes=nodes)
        source = check_ends(*sent(src, dst), n)
        if source.lent and source.n <= MAX_VERTICES:
            return cls(None, tuples=source.narrowed(), directed=directed, nodes=nodes)
        if source.lent:
            source = check_ends(src, dst, n)
        return cls(source.part(directed=directed), directed=directed, nodes=nodes)

    @classmethod
    def _of_table(
        cls,
        kind: str,
        table: Any,
        columns: tuple[Any, Any],
        n: Any,
        keep: Sequence[str],
        **ways: bool,
    ) -> Graph:
        if ways["relabel"] and n is not None:
            raise UsageError("vertices that are relabelled are counted; leave out n")
        src, dst, nodes = ends_in(table, kind, *columns, relabel=ways["relabel"])
        if nodes is not None:
            n = len(nodes)
        kept = kept_in(table, kind, list(check_several("keep", keep)))
        return cls._of_ends(src, dst, n, nodes, kept, directed=ways["directed"])

    @classmethod
    def from_pandas(
        cls,
        frame: Any,
        src: Any = None,
        dst: Any = None,
        n: int | None = None,
        *,
        relabel: bool = False,
        directed: bool = False,
        keep: Sequence[str] = (),
    ) -> Graph:
        """Return the graph of the edges in two columns of a pandas DataFrame.

        src, dst: the columns by name, else src and dst, source and target, from and to,
        or u and v, or the only two; other columns are not looked at
        n: vertices, else one more than the largest id
        relabel: ids may be sparse or text; those that occur become the vertices, rising
        keep: columns that are kept as attributes of the edges, for ``where`` of
        ``bfs``; of repeated edges, in either direction of an undirected one, the
        smallest value

        Integers are read as ``from_edges`` reads arrays.  Raises InputError where there
        are no such columns or something is missing in one, WrongTypeError for other
        ids, LibraryMissing where pandas is.

        >>> import pandas  # doctest: +SKIP
        >>> Graph.from_pandas(
        ...     pandas.DataFrame({"u": ["a", "b"], "v": ["b", "c"]}), relabel=True
        ... ).nodes  # doctest: +SKIP
        ['a', 'b', 'c']
        """
        ways = {"relabel": relabel, "directed": directed}
        return cls._of_table("pandas", frame, (src, dst), n, keep, **ways)

    @classmethod
    def from_polars(
        cls,
        frame: Any,
        src: Any = None,
        dst: Any = None,
        n: int | None = None,
        *,
        relabel: bool = False,
        directed: bool = False,
        keep: Sequence[str] = (),
    ) -> Graph:
        """Return the graph of a polars DataFrame; see ``from_pandas``."""
        ways = {"relabel": relabel, "directed": directed}
        return cls._of_table("polars", frame, (src, dst), n, keep, **ways)

    @classmethod
    def from_arrow(
        cls,
        table: Any,
        src: Any = None,
        dst: Any = None,
        n: int | None = None,
        *,
        relabel: bool = False,
        directed: bool = False,
        keep: Sequence[str] = (),
    ) -> Graph:
        """Return the graph of an Arrow table; see ``from_pandas``."""
        ways = {"relabel": relabel, "directed": directed}
        return cls._of_table("pyarrow", table, (src, dst), n, keep, **ways)

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        *,
        format: str = "",  # noqa: A002 - as the command calls it
        directed: bool = False,
        relabel: bool = False,
        keep: Sequence[str] = (),
        **options: Any,
    ) -> Graph:
        """Return the graph of a file in any format that ``distbfs convert`` reads.

        format: its name there, "" to find it out by content, then by name
        directed: keep edges one way; relabel: ids may be sparse or text, and name the
        vertices
        keep: columns that are kept as attributes, as ``convert --keep`` takes them
        options: of ``ReaderOptions``: n, columns (two names), one_based, bipartite

        What is said of the file, as weights that are not looked at, comes as a warning.
        Raises FileError where it cannot be read, InputError where it is broken, and
        UsageError for options that its format has no use for.
        """
        ways = {"directed": directed, "relabel": relabel}
        src, dst, n, ids, kept = read_ends(
            Path(path),
            format,
            keep=list(check_several("keep", keep)),
            **ways,
            **options,
        )
        return cls._of_ends(src, dst, n, ids, kept, directed=directed)

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

        >>> import distbfs
        >>> import scipy.sparse as sp
        >>> matrix = sp.csr_array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
        >>> distbfs.bfs(Graph.from_scipy(matrix, directed=True), 1).level
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

        >>> import distbfs
        >>> import networkx as nx
        >>> graph = Graph.from_networkx(nx.path_graph(["a", "b", "c"]))
        >>> distbfs.bfs(graph, "a").path_to("c")
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

    def by_name(self, values: Any) -> dict[Any, Any]:
        """Return a value for each vertex, [n], as a dictionary by vertex.

        >>> path = Graph.from_edges([(0, 1), (1, 2)])
        >>> path.by_name(path.degrees)
        {0: 1, 1: 2, 2: 1}
        """
        return dict(zip(self, np.asarray(values).tolist(), strict=True))

    def neighbors(self, vertex: Any) -> Array:
        """Return the vertices that edges lead to from a vertex, [k].

        They rise by id; those of a graph from NetworkX are in its order.

        >>> Graph.from_edges([(0, 3), (0, 1), (2, 3)]).neighbors(3)
        array([0, 2])
        """
        return self.named(neighbours_of(self.part, self.id_of(vertex)))

    @property
    def degrees(self) -> Ids:
        """How many edges leave each vertex, int64 [n] by id."""
        part = self.part
        degrees = np.empty(part.local_count, dtype=np.int64)
        degrees[part.vertices] = part.nn.degrees()
        return degrees

    def degree(self, vertex: Any) -> int:
        """Return how many edges leave a vertex."""
        return len(neighbours_of(self.part, self.id_of(vertex)))

    def edges(self) -> Array:
        """Return the edges, [edges, 2]; of an undirected graph each once.

        >>> Graph.from_edges([1, 1, 2], [0, 2, 1]).edges()
        array([[0, 1],
               [1, 2]])
        """
        return self.named(edge_pairs(self.part))

    def view(
        self, vertices: Any = None, edges: Any = None, where: str | None = None
    ) -> View:
        """Return what many searches see of the graph, for ``bfs(…, view=…)``.

        vertices: bool [n] by id; edges: bool [edges], in the order of ``edges()``,
        where an undirected edge stands once and its flag is for both directions; where:
        a predicate over attributes that the graph keeps.  None: all.

        The last view is kept and returned again where the same is asked for.  Errors
        are those of ``View``; edges and attributes are checked by the first search.
        """
        view = View(self.n, vertices, edges, where)
        if self._view is None or not view.same(self._view):
            self._view = view
        return self._view

    @property
    def attributes(self) -> dict[str, str]:
        """Attributes of the edges that the graph keeps: name -> kind.

        Kinds are "int64", "float64" and "text".
        """
        return {name: x.kind for name, x in self.part.attributes.items()}

    def to_scipy(self, dtype: Any = np.int64) -> Any:
        """Return the adjacency matrix, a SciPy CSR array [n, n] of ones, by id.

        Column indices rise in each row.  Raises LibraryMissing where SciPy is.
        """
        sparse, rows = library("scipy.sparse"), sorted_rows(self.part)
        most = max(rows.rows, rows.edges)
        kind = np.int32 if most < 1 << 31 else np.int64
        arrays = (x.astype(kind) for x in (rows.columns, rows.offsets))
        ones = np.ones(rows.edges, dtype=dtype)
        return sparse.csr_array((ones, *arrays), shape=(self.n, self.n))

    def id_of(self, vertex: Any) -> int:
        """Return the id of a vertex; UsageError where there is none."""
        if self._index is not None:
            if vertex not in self:
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

    def _views_apart(self, options: SearchOptions) -> bool:
        """Return whether "auto" may take another engine for views than without."""
        if options.engine != "auto":
            return False
        kept = self._sessions.get((options, False))
        if kept is not None:
            return not kind_of(kept.options.engine).masks
        return self.directed or options.direction == "push"

    def session(self, options: SearchOptions, *, masked: bool = False) -> Session:
        """Return the session that searches the graph with some options, kept here.

        masked: whether it is to see views, for which "auto" may take another engine
        """
        key = options, masked and self._views_apart(options)
        if key not in self._sessions:
            if options.engine != "auto" and not kind_of(options.engine).alone:
                raise UsageError(
                    f"engine {options.engine} searches parts; open a store or tuples"
                )
            source = Source(self.n, 1, self.directed, graph=self)
            names = None if self._names is None else self
            request = Request(masked=masked)
            self._sessions[key] = open_source(
                SoloWorld(), source, options, request, names=names
            )
        return self._sessions[key]
