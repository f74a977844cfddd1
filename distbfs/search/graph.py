"""Graphs made from a program's data, and their queries; ``bfs`` searches them."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from distbfs.errors import UsageError, WrongTypeError
from distbfs.formats.attributes import Values
from distbfs.formats.ids import CountedIds
from distbfs.graph.device_graph import MAX_VERTICES
from distbfs.locks import SearchLock
from distbfs.options import SearchOptions, check_several, type_name
from distbfs.partition.part import Part
from distbfs.plan.memory import PAIR_BYTES
from distbfs.ranks.world import SoloWorld
from distbfs.search.choose import Request, kind_of
from distbfs.search.frames import (
    check_counted,
    column_pair,
    ends_in,
    html_table,
    kept_in,
    library,
    renumbered,
)
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
from distbfs.search.graph_rows import (
    edge_attributes,
    edge_listing,
    loop_counts,
    neighbours_of,
    sorted_rows,
)
from distbfs.search.graph_store import nodes_of, read_store, save
from distbfs.search.holding import Source
from distbfs.search.open import open_source
from distbfs.search.program_arrays import array_of
from distbfs.search.result import Result
from distbfs.search.session import Session
from distbfs.search.sources import read_once, read_targets
from distbfs.search.store_names import NodeNames, StoreNames, VertexNames
from distbfs.search.view import View
from distbfs.types import Array, DirectionChoice, EngineName, Ids


def check_graph(graph: Any) -> None:
    """Raise WrongTypeError unless it is a ``Graph``."""
    if not isinstance(graph, Graph):
        raise WrongTypeError(
            f"the graph is of type {type_name(graph)}; allowed: a distbfs.Graph, as "
            "Graph.from_networkx, from_scipy, from_edges and others make it"
        )


class Graph:
    """A graph in the memory of one process, to be searched any number of times.

    Make one with ``from_edges``, ``from_scipy``, ``from_networkx``, ``from_pandas``,
    ``from_polars``, ``from_arrow``, ``from_dlpack`` or ``from_file``.  Loops and
    repeated edges do not affect searches.

    ``len(graph)`` is the number of vertices, ``v in graph`` tells whether v is a
    vertex, and iteration gives the vertices.  Two graphs are equal if they have the
    same vertices, names and edges.

    Attributes
    ----------
    directed : bool
        Whether edges lead one way only.
    nodes : sequence or None
        Names of the vertices, None if they are 0 … n-1.  It is ``range(1, n + 1)``
        for a file that counts from 1.

    Notes
    -----
    Calls take and return vertices by the names that they have in the source.  Arrays
    with a value for each vertex are indexed from 0, also where names are numbers from
    1: entry k is of vertex ``nodes[k]``, and ``id_of`` gives the k of a vertex.

    Searches of one graph run one after the other, also from several threads.  Functions
    that a search calls, such as ``progress`` or those of a ``Problem``, cannot search
    its graph, and must not wait for another thread that does. Generators of sources,
    targets or pairs can, because they are read before the search begins.  The graph
    stays prepared after the first search.  A forked child process may search it unless
    its edges are in the memory of a device; a pickled copy can be searched as well.

    Examples
    --------
    >>> import distbfs
    >>> graph = distbfs.Graph.from_edges([0, 0, 1, 2], [1, 2, 3, 3])
    >>> graph
    <distbfs.Graph, undirected, 4 vertices, 4 edges>
    >>> len(graph), graph.degree(3), graph.neighbors(0)
    (4, 2, array([1, 2]))
    >>> 3 in graph, 4 in graph
    (True, False)
    """

    def __init__(
        self,
        part: Part | None,
        *,
        tuples: HeldTuples | None = None,
        directed: bool = False,
        nodes: Sequence[Any] | None = None,
        index: dict[Any, int] | None = None,
    ) -> None:
        """Take a part, or tuples from which a part is built when it is needed."""
        self._part, self._tuples = part, tuples
        self.directed, self.nodes = directed, nodes
        self._names: VertexNames
        if nodes is None or isinstance(nodes, range):
            self._names = StoreNames(CountedIds(self.num_vertices, self.first_id))
        else:
            names = np.fromiter(nodes, dtype=object, count=len(nodes))
            self._names = NodeNames(names, index)
        self._begin()

    def _begin(self) -> None:
        self._sessions: dict[SearchOptions, Session] = {}
        self._kept: dict[Hashable, Any] = {}
        self._view: View | None = None
        self._lock = SearchLock()
        self._process = os.getpid()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to be copied: everything but the memory of searches."""
        held = ("_sessions", "_kept", "_view", "_lock", "_process")
        return {k: v for k, v in vars(self).items() if k not in held}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._begin()

    def __repr__(self) -> str:
        kind = "directed" if self.directed else "undirected"
        size = f"{self.num_vertices} vertices, {self.num_edges} edges"
        return f"<distbfs.Graph, {kind}, {size}>"

    def _repr_html_(self) -> str:
        kind = "directed" if self.directed else "undirected"
        facts = [("vertices", self.num_vertices), ("edges", self.num_edges)]
        return html_table(f"{kind} graph", facts)

    def __len__(self) -> int:
        return self.n

    def __iter__(self) -> Iterator[Any]:
        return iter(range(self.n) if self.nodes is None else self.nodes)

    def __contains__(self, vertex: object) -> bool:
        return vertex in self._names

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, Graph):
            return self is other
        mine, theirs = self._host_part, other._host_part
        facts = [(g.n, g.directed, g.nodes, g._stored_edges) for g in (self, other)]
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
        cls,
        src: Any,
        dst: Any = None,
        n: int | None = None,
        *,
        relabel: bool = False,
        directed: bool = False,
    ) -> Graph:
        """Return the graph of edges (src[k], dst[k]), or of pairs.

        Parameters
        ----------
        src, dst : array_like of int, shape (edges,)
            Both ends of each edge; int64 arrays are read without a copy.  Without
            ``dst``, ``src`` holds pairs: shape (edges, 2), or a list or set of tuples.
            With ``relabel`` they may be text.
        n : int, optional
            Number of vertices, by default one more than the largest id.
        relabel : bool, default False
            Allow ids that are sparse, or text.  Those that occur, in ascending order,
            become the vertices and name them.
        directed : bool, default False
            Whether edges lead from ``src`` to ``dst`` only.

        Returns
        -------
        Graph
            The graph, with its vertices sorted by degree inside.

        Raises
        ------
        WrongTypeError
            Ids are neither integers nor, with ``relabel``, text; or ``n`` is no
            integer.
        InputError
            An array has another shape, an id is masked, null or outside 0 … n-1, or the
            largest id is far beyond the number of edges, without ``relabel`` or ``n``.
        UsageError
            ``n`` is given together with ``relabel``.
        OutOfMemory
            The graph does not fit the memory of this machine.

        Notes
        -----
        A million edges and more go to a CUDA device where there is one with room for
        them. The graph is built there at its first search.

        Examples
        --------
        >>> import distbfs
        >>> distbfs.Graph.from_edges([0, 1, 1], [1, 2, 2], n=5)
        <distbfs.Graph, undirected, 5 vertices, 2 edges>
        >>> distbfs.Graph.from_edges([(0, 1), (1, 2)], directed=True)
        <distbfs.Graph, directed, 3 vertices, 2 edges>
        >>> distbfs.Graph.from_edges([3_000_000_000], [1], relabel=True).nodes
        [1, 3000000000]
        >>> distbfs.Graph.from_edges([("Rome", "Oslo")], relabel=True).nodes
        ['Oslo', 'Rome']
        """
        if not relabel:
            return cls._of_ends(*ends_of(src, dst), n, None, directed=directed)
        check_counted(n)
        u, v, nodes = renumbered(*ends_of(src, dst, text=True))
        return cls._of_ends(u, v, len(nodes), nodes, directed=directed)

    @classmethod
    def _of_ends(
        cls,
        src: Array,
        dst: Array,
        n: Any,
        nodes: Sequence[Any] | None,
        attributes: Mapping[str, Values] = MappingProxyType({}),
        *,
        directed: bool,
    ) -> Graph:
        """Return the graph of edges (src[k], dst[k]); many edges go to a device.

        src, dst: integers [edges]
        attributes: by name, one value per edge; a graph with attributes is made on the
        host
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
        """Return the graph of the edges in two columns of a table.

        ``from_polars`` and ``from_arrow`` are this method, too.

        Parameters
        ----------
        frame : pandas.DataFrame, polars.DataFrame or pyarrow.Table
            A row for each edge; columns that are not named here are ignored.
        src, dst : column names, optional
            The columns with the ends of edges.  By default ``src`` and ``dst``,
            ``source`` and ``target``, ``from`` and ``to``, or ``u`` and ``v``, else the
            only two columns.
        n : int, optional
            Number of vertices, by default one more than the largest id.
        relabel : bool, default False
            Allow ids that are sparse or text.  The ids that occur, in ascending order,
            become the vertices and name them.
        directed : bool, default False
            Whether edges lead from ``src`` to ``dst`` only.
        keep : sequence of str, optional
            Columns of numbers or text to keep as attributes of the edges, for ``where``
            of ``bfs``.  Repeated edges keep their smallest value, over both directions
            of an undirected edge.

        Returns
        -------
        Graph
            The graph.

        Raises
        ------
        InputError
            There are no such columns, an id or a kept value is missing, or an id is
            outside 0 … n-1.
        WrongTypeError
            ``frame`` is no such table, its ids are not integers without ``relabel`` or
            of several types with it, or a kept column has neither numbers nor text.
        UsageError
            One of ``src`` and ``dst`` is given alone, ``n`` together with ``relabel``,
            or a kept column has a name that ``where`` could not use.

        Examples
        --------
        >>> import distbfs
        >>> import pandas
        >>> frame = pandas.DataFrame(
        ...     {"u": ["a", "b", "c"], "v": ["b", "c", "d"], "weight": [1, 5, 1]}
        ... )
        >>> graph = distbfs.Graph.from_pandas(frame, relabel=True, keep=["weight"])
        >>> graph.nodes
        ['a', 'b', 'c', 'd']
        >>> distbfs.bfs(graph, "a", "openmp", where="weight < 3").to_dict()
        {'a': 0, 'b': 1}
        """
        if relabel:
            check_counted(n)
        u, v, nodes = ends_in(frame, src, dst, relabel=relabel)
        kept = kept_in(frame, list(check_several("keep", keep)))
        n = n if nodes is None else len(nodes)
        return cls._of_ends(u, v, n, nodes, kept, directed=directed)

    from_polars = from_arrow = from_pandas

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        src: Any = None,
        dst: Any = None,
        *,
        format: str = "",  # noqa: A002 - as the command calls it
        directed: bool = False,
        relabel: bool = False,
        keep: Sequence[str] = (),
        **options: Any,
    ) -> Graph:
        r"""Return the graph of a file in any format that ``distbfs convert`` reads.

        Parameters
        ----------
        path : path_like
            The file; it may be compressed, or in an archive (.zip, .tar, .tar.gz); or a
            folder of edge lists or tables, which are parts of the graph.
        src, dst : column names, optional
            See ``from_pandas``; an edge list without names has its ids in the first two
            columns.
        format : str, optional
            Name of the format; by default it is detected from content, then from the
            name.
        directed : bool, default False
            Whether edges lead from the first id to the second only.
        relabel : bool, default False
            Allow ids that are sparse or text; they name the vertices.  Those of an
            edge list are numbers if all are written as such, without leading zeros,
            else text.
        keep : sequence of str, optional
            Columns to keep as attributes of the edges, as ``convert --keep`` takes
            them.
        **options
            ``n`` (number of vertices), ``one_based`` (ids begin at 1), ``header`` (the
            first line of an edge list is not an edge), ``bipartite`` (rows and columns
            of a matrix are two sets of vertices), ``first_id`` (0 or 1: the id of the
            first vertex, whatever the file says).

        Returns
        -------
        Graph
            The graph.

        Raises
        ------
        FileError
            The file cannot be opened or read.
        InputError
            The file is broken.
        UsageError
            The format does not take one of the options.

        Warns
        -----
        UserWarning
            About the file, for example the separator that was found, or weights that
            are ignored.

        Examples
        --------
        >>> import distbfs
        >>> with open("edges.csv", "w") as file:
        ...     _ = file.write("source,target\n0,1\n1,2\n")
        >>> distbfs.Graph.from_file("edges.csv")
        <distbfs.Graph, undirected, 3 vertices, 2 edges>
        """
        u, v, n, ids, kept = read_ends(
            Path(path),
            format,
            keep=list(check_several("keep", keep)),
            directed=directed,
            relabel=relabel,
            columns=column_pair(src, dst),
            **options,
        )
        return cls._of_ends(u, v, n, nodes_of(ids, n), kept, directed=directed)

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], *, first_id: int | None = None
    ) -> Graph:
        """Return the graph of a store, read into the memory of this process.

        ``distbfs.open`` searches a store without a ``Graph``, also on several devices
        or ranks.

        Parameters
        ----------
        path : path_like
            The folder that ``save`` or ``distbfs convert`` has written, of any number
            of parts.
        first_id : {0, 1}, optional
            See ``distbfs.open``.

        Returns
        -------
        Graph
            The graph, with the names of its vertices and the attributes of its edges.

        Raises
        ------
        StoreError
            The folder is not a store, or the store is damaged.
        OutOfMemory
            The graph does not fit the memory of this machine.

        Examples
        --------
        >>> import distbfs
        >>> graph = distbfs.Graph.from_edges([("a", "b"), ("b", "c")], relabel=True)
        >>> graph.save("letters")
        >>> distbfs.Graph.open("letters").nodes
        ['a', 'b', 'c']
        """
        part, nodes = read_store(Path(path), first_id)
        return cls(part, directed=part.directed, nodes=nodes)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the graph as a store, which ``open`` and all commands read.

        Names of vertices and attributes of edges are kept; named vertices are numbered
        by ascending names.  Loops and repeated edges are not kept: ``nedge`` of a store
        that is saved counts each edge once.

        Parameters
        ----------
        path : path_like
            The folder to make.
        overwrite : bool, default False
            Whether to replace an existing store.

        Raises
        ------
        StoreError
            The folder exists, without ``overwrite``, or cannot be written.
        WrongTypeError, UsageError
            Vertices have names that a store cannot have: allowed are integers of 0 or
            more, or text that is not empty.
        DiskFull
            The disk is full.

        Examples
        --------
        >>> import distbfs
        >>> distbfs.Graph.from_edges([0, 1], [1, 2]).save("path")
        >>> distbfs.open("path").search(0).reached
        3
        """
        save(self._host_part, self.nodes, Path(path), overwrite=overwrite)

    @classmethod
    def from_scipy(
        cls, matrix: Any, *, directed: bool = False, bipartite: bool = False
    ) -> Graph:
        """Return the graph of a SciPy sparse matrix or array.

        Every stored entry (i, j) is an edge, whatever its value; an edge that is stored
        twice counts once, and loops do not count.

        Parameters
        ----------
        matrix : sparse matrix or array, shape (n, n)
            Any SciPy format; of any shape (r, c) with ``bipartite``.
        directed : bool, default False
            Whether entry (i, j) leads from i to j only.
        bipartite : bool, default False
            Whether rows and columns are two sets of vertices: entry (i, j) is an edge
            of vertices i and r + j.

        Returns
        -------
        Graph
            The graph.

        Raises
        ------
        WrongTypeError
            ``matrix`` is not a SciPy sparse matrix.
        UsageError
            ``matrix`` is not square, and ``bipartite`` is false.
        InputError
            The arrays of ``matrix`` are inconsistent: an index lies outside the shape,
            or offsets decrease.
        OutOfMemory
            So many vertices do not fit the memory of this machine.

        Notes
        -----
        A CSR matrix must not change afterwards.  It is used without a copy if its
        indices have 32 bits and increase in each row, without repeats and loops, and if
        ``directed`` is true or its pattern is symmetric.  A million entries and more go
        to a CUDA device where there is one with room for them.

        Examples
        --------
        >>> import distbfs
        >>> import scipy.sparse as sp
        >>> matrix = sp.csr_array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
        >>> graph = distbfs.Graph.from_scipy(matrix, directed=True)
        >>> distbfs.bfs(graph, 1).level
        array([-1,  0,  1], dtype=int32)
        >>> distbfs.Graph.from_scipy(sp.csr_array([[1, 0, 1]]), bipartite=True).edges()
        array([[0, 1],
               [0, 3]])
        """
        rows = csr_of(matrix, bipartite=bipartite)
        count, fits = len(rows.indices), rows.shape[0] <= MAX_VERTICES
        if fits and on_device(count, PAIR_BYTES * count):
            return cls(None, tuples=MatrixTuples(rows), directed=directed)
        return cls(matrix_part(rows, directed=directed), directed=directed)

    @classmethod
    def from_networkx(cls, graph: Any) -> Graph:
        """Return a NetworkX graph; nodes keep their names and neighbours their order.

        Parameters
        ----------
        graph : networkx.Graph
            Digraphs are directed; parallel edges of multigraphs count once.

        Returns
        -------
        Graph
            The graph.  Method "ordered" of engine "openmp" finds its vertices in the
            order of NetworkX.

        Raises
        ------
        WrongTypeError
            ``graph`` is not a NetworkX graph.
        InputError
            The filter of an undirected view keeps an edge in one direction only.

        Examples
        --------
        >>> import distbfs
        >>> import networkx as nx
        >>> graph = distbfs.Graph.from_networkx(nx.path_graph(["a", "b", "c"]))
        >>> distbfs.bfs(graph, "a").path_to("c")
        ['a', 'b', 'c']
        """
        part, nodes, index = named_part(graph)
        return cls(part, directed=part.directed, nodes=nodes, index=index)

    @classmethod
    def from_dlpack(
        cls, src: Any, dst: Any, n: int | None = None, *, directed: bool = False
    ) -> Graph:
        """Return the graph of edges in arrays that support DLPack, without a copy.

        ``from_cupy`` is this method, too.

        Parameters
        ----------
        src, dst : arrays of int, shape (edges,)
            Arrays of NumPy, CuPy, PyTorch and others.  Those in device memory must not
            change: engines on devices read them there.
        n : int, optional
            Number of vertices, by default one more than the largest id.
        directed : bool, default False
            Whether edges lead from ``src`` to ``dst`` only.

        Returns
        -------
        Graph
            The graph.

        Raises
        ------
        WrongTypeError
            An array does not support DLPack, or its values are not integers.
        InputError
            An array has another shape, or an id is masked, null or outside 0 … n-1.

        Examples
        --------
        >>> import distbfs
        >>> import numpy as np
        >>> distbfs.Graph.from_dlpack(np.array([0, 1]), np.array([1, 2]))
        <distbfs.Graph, undirected, 3 vertices, 2 edges>
        """
        source = check_ends(shared(src, "src"), shared(dst, "dst"), n)
        if source.lent:
            return cls(None, tuples=source, directed=directed)
        return cls(source.part(directed=directed), directed=directed)

    from_cupy = from_dlpack

    @property
    def num_vertices(self) -> int:
        """Number of vertices."""
        held = self._tuples
        return held.n if held is not None else self._host_part.layout.n

    n = num_vertices

    @property
    def num_edges(self) -> int:
        """Number of edges; an undirected edge and a loop count once each."""
        stored = self._stored_edges
        if self.directed:
            return stored
        if self._part is None:  # built without loops
            return stored // 2
        loops = self._keep("loops", lambda part: int(loop_counts(part.nn).sum()))
        return (stored + loops) // 2

    @property
    def first_id(self) -> int:
        """The name of the first vertex where names are consecutive numbers: 0 or 1."""
        return self.nodes.start if isinstance(self.nodes, range) else 0

    @property
    def _stored_edges(self) -> int:
        """Number of stored edges; an undirected one is stored in both directions."""
        if self._part is None:
            with self._lock:
                return self._session(SearchOptions(engine="auto")).edges
        return self._part.nn.edges

    @property
    def _host_part(self) -> Part:
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

    def _keep(self, key: Hashable, make: Callable[[Part], Any]) -> Any:
        """Return the result of ``make`` for the part, and keep it under a key.

        ``make`` is called once for each key.
        """
        self._forget_torn()
        if key not in self._kept:
            self._kept[key] = make(self._host_part)
        return self._kept[key]

    def _forget_torn(self) -> None:
        """Drop the memory of searches that a fork interrupted; it is made again."""
        if self._lock.torn:
            self._sessions.clear()
            self._kept.clear()
            self._lock.mend()

    def reversed(self) -> Graph:
        """Return the graph with all edges reversed; arrays are shared.

        Returns
        -------
        Graph
            The graph itself if it is undirected.

        Examples
        --------
        >>> import distbfs
        >>> graph = distbfs.Graph.from_edges([(0, 1), (0, 2)], directed=True)
        >>> graph.reversed().neighbors(2)
        array([0])
        """
        if not self.directed:
            return self
        part = self._host_part.reversed()
        index = getattr(self._names, "index", None)
        return Graph(part, directed=True, nodes=self.nodes, index=index)

    def named(self, ids: Array) -> Array:
        """Return the names of vertices.

        Parameters
        ----------
        ids : ndarray of int64, shape (k,)
            Vertex ids.

        Returns
        -------
        ndarray, shape (k,)
            Names as objects, or ``ids`` where vertices have none.

        Examples
        --------
        >>> import distbfs
        >>> import networkx as nx
        >>> import numpy as np
        >>> distbfs.Graph.from_networkx(nx.path_graph("abc")).named(np.array([2, 0]))
        array(['c', 'a'], dtype=object)
        """
        return self._names.named(ids)

    def by_name(self, values: Any) -> dict[Any, Any]:
        """Return the values of vertices as a dictionary.

        Parameters
        ----------
        values : array_like, shape (n,)
            Values by vertex id.

        Returns
        -------
        dict
            The value of each vertex, by its id or name.

        Examples
        --------
        >>> import distbfs
        >>> path = distbfs.Graph.from_edges([(0, 1), (1, 2)])
        >>> path.by_name(path.degrees)
        {0: 1, 1: 2, 2: 1}
        """
        return dict(zip(self, array_of(values, "values").tolist(), strict=True))

    def neighbors(self, vertex: Any) -> Array:
        """Return the vertices that edges lead to from a vertex.

        Parameters
        ----------
        vertex : vertex
            An id, or the name of a node.

        Returns
        -------
        ndarray, shape (k,)
            In ascending order of id; a graph from NetworkX keeps the order it had
            there.

        Raises
        ------
        UsageError
            ``vertex`` is not a vertex.

        Examples
        --------
        >>> import distbfs
        >>> distbfs.Graph.from_edges([(0, 3), (0, 1), (2, 3)]).neighbors(3)
        array([0, 2])
        """
        return self.named(neighbours_of(self._host_part, self.id_of(vertex)))

    @property
    def degrees(self) -> Ids:
        """Number of edges that leave each vertex, int64, shape (n,), by id."""
        part = self._host_part
        degrees = np.empty(part.local_count, dtype=np.int64)
        degrees[part.vertices] = part.nn.degrees()
        return degrees

    def degree(self, vertex: Any) -> int:
        """Return the number of edges that leave a vertex.

        Parameters
        ----------
        vertex : vertex
            An id, or the name of a node.

        Returns
        -------
        int
            The degree; in a directed graph, the out-degree.

        Raises
        ------
        UsageError
            ``vertex`` is not a vertex.

        Examples
        --------
        >>> import distbfs
        >>> distbfs.Graph.from_edges([(0, 1), (0, 2)]).degree(0)
        2
        """
        return len(neighbours_of(self._host_part, self.id_of(vertex)))

    def edges(self) -> Array:
        """Return the edges; an undirected edge occurs once.

        Returns
        -------
        ndarray, shape (edges, 2)
            Ids, or names as objects.  The flags ``edges`` of ``bfs`` have the same
            order.

        Examples
        --------
        >>> import distbfs
        >>> distbfs.Graph.from_edges([1, 1, 2], [0, 2, 1]).edges()
        array([[0, 1],
               [1, 2]])
        """
        return self.named(edge_listing(self._host_part)[0])

    def view(
        self, vertices: Any = None, edges: Any = None, where: str | None = None
    ) -> View:
        """Return the vertices and edges that searches see, for ``bfs(…, view=…)``.

        The last view is kept and is returned again for the same arguments.

        Parameters
        ----------
        vertices : array_like of bool, shape (n,), optional
            Flags by vertex id; by default all are seen.
        edges : array_like of bool, shape (edges,), optional
            Flags in the order of ``edges()``.  An undirected edge occurs there once,
            with one flag for both directions.
        where : str, optional
            A predicate over attributes that the graph keeps: comparisons with numbers
            and texts, ``in``, ``not in``, ``and``, ``or``, ``not``.

        Returns
        -------
        View
            The view.  Edges and attributes are checked by its first search.

        Raises
        ------
        WrongTypeError
            Flags are not bool, or ``where`` is not text.
        InputError
            ``vertices`` has another shape than (n,).
        UsageError
            ``where`` does not parse.

        Examples
        --------
        >>> import distbfs
        >>> graph = distbfs.Graph.from_edges([0, 1, 2, 0], [1, 2, 3, 3])
        >>> view = graph.view(edges=[True, False, True, True])
        >>> view
        <distbfs.View of 3 of 4 edges>
        >>> distbfs.bfs(graph, 0, "openmp", view=view).level
        array([0, 1, 2, 3], dtype=int32)
        """
        view, last = View(self.n, vertices, edges, where), self._view
        if last is not None and view.facts() == last.facts():
            return last
        self._view = view  # another thread may set one of its own
        return view

    @property
    def attributes(self) -> dict[str, str]:
        """Kinds of the edge attributes that the graph keeps, by name.

        A kind is "int64", "float64", "float32", "float16" or "text".

        Examples
        --------
        >>> import distbfs
        >>> import pandas
        >>> frame = pandas.DataFrame({"u": [0, 1], "v": [1, 2], "weight": [1.5, 2.0]})
        >>> distbfs.Graph.from_pandas(frame, keep=["weight"]).attributes
        {'weight': 'float64'}
        """
        return {name: x.kind for name, x in self._host_part.attributes.items()}

    def to_scipy(self, dtype: Any = np.int64) -> Any:
        """Return the adjacency matrix, by vertex id.

        Parameters
        ----------
        dtype : dtype, default int64
            Type of the values.

        Returns
        -------
        scipy.sparse.csr_array, shape (n, n)
            Ones; column indices rise in each row.

        Raises
        ------
        LibraryMissing
            SciPy is not installed.

        Examples
        --------
        >>> import distbfs
        >>> distbfs.Graph.from_edges([0, 1], [1, 2]).to_scipy().toarray()
        array([[0, 1, 0],
               [1, 0, 1],
               [0, 1, 0]])
        """
        sparse, rows = library("scipy.sparse"), sorted_rows(self._host_part)
        most = max(rows.rows, rows.edges)
        kind = np.int32 if most < 1 << 31 else np.int64
        arrays = (x.astype(kind) for x in (rows.columns, rows.offsets))
        ones = np.ones(rows.edges, dtype=dtype)
        return sparse.csr_array((ones, *arrays), shape=(self.n, self.n))

    def to_networkx(self) -> Any:
        """Return the graph as a NetworkX graph.

        Returns
        -------
        networkx.Graph or networkx.DiGraph
            Its nodes are the names of the vertices; its edges have the attributes that
            the graph keeps.

        Raises
        ------
        LibraryMissing
            NetworkX is not installed.

        Examples
        --------
        >>> import distbfs
        >>> list(distbfs.Graph.from_edges([0, 1], [1, 2]).to_networkx().edges)
        [(0, 1), (1, 2)]
        """
        networkx = library("networkx")
        made = networkx.DiGraph() if self.directed else networkx.Graph()
        made.add_nodes_from(self)
        pairs, places = edge_listing(self._host_part)
        ends = self.named(pairs).T.tolist()
        made.add_edges_from(zip(*ends, strict=True))
        for name, values in edge_attributes(self._host_part, places).items():
            made.add_weighted_edges_from(zip(*ends, values, strict=True), name)
        return made

    def to_igraph(self) -> Any:
        """Return the graph as an igraph graph.

        Returns
        -------
        igraph.Graph
            Its vertices have the ids of the graph, and their names, if any, as
            attribute ``name``; its edges have the attributes that the graph keeps.

        Raises
        ------
        LibraryMissing
            igraph is not installed.
        """
        pairs, places = edge_listing(self._host_part)
        return library("igraph").Graph(
            n=self.n,
            edges=pairs,
            directed=self.directed,
            vertex_attrs={} if self.nodes is None else {"name": list(self.nodes)},
            edge_attrs=edge_attributes(self._host_part, places),
        )

    def bfs(
        graph: Graph,  # noqa: N805 - distbfs.bfs is this function
        source: Any,
        engine: EngineName = "auto",
        *,
        depth_limit: int | None = None,
        targets: Iterable[Any] | None = None,
        levels: bool = True,
        parents: bool = True,
        method: str = "",
        direction: DirectionChoice = "auto",
        threads: int = 0,
        vertices: Any = None,
        edges: Any = None,
        where: str | None = None,
        view: View | None = None,
    ) -> Result:
        """Search a graph breadth-first from a vertex, or from all of a set at once.

        Parameters
        ----------
        graph : Graph
            The graph; it stays prepared for the next search.
        source : vertex or iterable of vertices
            A vertex id, or the name of a node.  A list, set, range, array or tuple is
            a set: levels count from the nearest of its vertices, and each of them is
            its own parent.  Repeats are allowed.  A text is always a name, and so is a
            tuple if a node has that name.  Sets are for engines "auto", "openmp",
            "reference" and "xbfs".
        engine : str, default "auto"
            "auto" takes a CUDA device where there is one, else the CPU.  On CPUs:
            "openmp", "reference".  On a device: "xbfs", "xbfs-paper", "bfs4k", "layer",
            "frontier", "harish", "edge-parallel", "virtual-warp".
        depth_limit : int, optional
            The last level that is searched, 0 or more; unlimited by default.
        targets : iterable of vertices, optional
            The search ends with the level that finds the last of them.
        levels, parents : bool, default True
            Whether the result has levels, and parents; at least one must be true.
        method : str, optional
            Variant of the engine, "" for its default.
        direction : {"auto", "push", "pull"}
            Direction of the search; "auto" changes it from level to level.
        threads : int, default 0
            Threads of engine "openmp"; 0 takes all cores.
        vertices : array_like of bool, shape (n,), optional
            The vertices that the search sees, by id.
        edges : array_like of bool, shape (edges,), optional
            The edges that the search sees, in the order of ``graph.edges()``.
        where : str, optional
            A predicate over attributes that the graph keeps, such as ``"weight < 3"``.
        view : View, optional
            The same three restrictions in one object, made by ``Graph.view``, for use
            in many searches.

        Returns
        -------
        Result
            Levels and parents in the memory where the engine found them: NumPy arrays,
            or CuPy arrays on a device.  It stays valid when the graph is searched
            again.

        Raises
        ------
        UsageError
            ``source`` or a target is not a vertex, a source is not seen, an option is
            outside its allowed set, or the engine cannot do such a search.
        WrongTypeError
            ``graph`` is not a Graph, or another argument is of a wrong type.
        InputError
            ``vertices`` or ``edges`` has another length than the graph, or an array has
            masked or null values.
        ResourceError
            Memory runs out, or the named engine finds no device or compiler.

        See Also
        --------
        open : Search a store, or a graph on several devices or ranks.
        search_many : Make many searches at once.

        Notes
        -----
        A search sees an edge if ``vertices``, ``edges`` and ``where`` all allow it.
        Engines "openmp", "reference" and "xbfs" can do this.  Shortest paths of such a
        search are not counted or listed.  ``nedge`` and GTEPS follow Graph500; see
        ``Result.nedge``.

        Examples
        --------
        >>> import distbfs
        >>> graph = distbfs.Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4])
        >>> result = distbfs.bfs(graph, 0)
        >>> result.level
        array([0, 1, 2, 3, 4], dtype=int32)
        >>> result.path_to(3)
        [0, 1, 2, 3]
        >>> distbfs.bfs(graph, 0, depth_limit=2).level
        array([ 0,  1,  2, -1, -1], dtype=int32)
        >>> distbfs.bfs(graph, 2, targets=[1]).reached
        3
        >>> distbfs.bfs(graph, 0, levels=False).parent
        array([0, 0, 1, 2, 3], dtype=int32)
        >>> distbfs.bfs(graph, [0, 4]).level
        array([0, 1, 2, 1, 0], dtype=int32)
        >>> seen = [True, True, True, False, True]
        >>> graph.bfs(0, "openmp", vertices=seen).level
        array([ 0,  1,  2, -1, -1], dtype=int32)
        """
        check_graph(graph)
        if view is not None and not isinstance(view, View):
            raise WrongTypeError(
                f"the view is of type {type_name(view)}; allowed: what graph.view "
                "returns"
            )
        if vertices is not None or edges is not None or where is not None:
            if view is not None:
                raise UsageError(
                    "a view takes the place of vertices, edges and where; give one or "
                    "the other"
                )
            view = graph.view(vertices, edges, where)
        wished = read_targets(targets)
        with graph._searching(
            source,
            view,
            engine=engine,
            method=method,
            threads=threads,
            levels=levels,
            parents=parents,
            direction=direction,
        ) as (session, start):
            result = session.search(start, depth_limit=depth_limit, targets=wished)
            return result.keep()

    @contextmanager
    def _searching(
        self, source: Any, view: View | None = None, **asked: Any
    ) -> Iterator[tuple[Session, Any]]:
        """Yield a session, which no other thread uses, and the sources, read.

        asked: fields of ``SearchOptions``
        """
        options = SearchOptions(**asked)
        source = read_once(source, None if self.nodes is None else self)
        with self._lock:
            masked = view is not None and not view.whole
            session = self._session(options, masked=masked)
            session.see(view)
            yield session, source

    def id_of(self, vertex: Any) -> int:
        """Return the id of a vertex.

        Parameters
        ----------
        vertex : vertex
            An id, or the name of a node.

        Returns
        -------
        int
            From 0 to n-1: the place of the node in ``nodes``.

        Raises
        ------
        UsageError
            ``vertex`` is not a vertex.

        Examples
        --------
        >>> import distbfs
        >>> import networkx as nx
        >>> distbfs.Graph.from_networkx(nx.path_graph("abc")).id_of("b")
        1
        """
        return self._names.id_of(vertex)

    def _session(self, options: SearchOptions, *, masked: bool = False) -> Session:
        """Return the session that searches the graph with some options; it is kept.

        Hold the lock while the session is used.

        masked: whether it will search a view at first

        Raises UsageError if the engine searches parts only, ResourceError if memory, a
        device or a compiler is missing.
        """
        self._forget_torn()
        if options not in self._sessions or self._sessions[options].closed:
            if options.engine != "auto" and not kind_of(options.engine).whole_graphs:
                raise UsageError(
                    f"engine {options.engine} searches parts; open a store or tuples"
                )
            source = Source(self.n, 1, self.directed, graph=self)
            names = None if self.nodes is None else self
            request = Request(masked=masked)
            session = open_source(SoloWorld(), source, options, request, names=names)
            session.lock = self._lock
            self._sessions[options] = session
        return self._sessions[options]
