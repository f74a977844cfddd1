"""Vertices and edges of a program, checked, and copied only where needed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from distbfs.device import cuda
from distbfs.device.arrays import host_array, is_of_device
from distbfs.errors import (
    DeviceMissing,
    FileError,
    InputError,
    UsageError,
    WrongTypeError,
)
from distbfs.formats.attributes import Values
from distbfs.formats.base import ReaderOptions
from distbfs.formats.ids import IdMap
from distbfs.formats.inputs import is_parts
from distbfs.formats.tuples import check_dense, open_tuples
from distbfs.graph.csr import CSR, row_offsets
from distbfs.options import (
    check_integer,
    check_range,
    check_several,
    type_name,
)
from distbfs.partition.device_part import to_device
from distbfs.partition.part import Part
from distbfs.plan.host_memory import BuildMemory
from distbfs.ranks.world import SoloWorld
from distbfs.search.graph_rows import loopless, part_of_rows
from distbfs.search.program_arrays import array_of, check_whole, is_array
from distbfs.store.whole import whole_part
from distbfs.types import Array, Ids

CHUNK = 1 << 20
MANY = 1 << 20  # edges from which a device builds a graph sooner than the host
CONSTRUCTED: dict[
    str, Callable[[Any], Any]
] = {  # what SciPy checks when it makes a matrix, by format
    "coo": lambda matrix: (matrix.data, (matrix.row, matrix.col)),
    "dia": lambda matrix: (matrix.data, matrix.offsets),
}
HOST_DEVICES = (1, 3)  # DLPack's kDLCPU and kDLCUDAHost


class HeldTuples:
    """Edge tuples in arrays of integers (a TupleSource); the arrays are not copied.

    u, v: integers [tuples], NumPy's or CuPy's, every id from 0 to n - 1
    attributes: by name, one value per tuple; none where the arrays are on a device
    distinct: whether loops and repeated tuples are left out of the number of tuples
    """

    distinct = False

    def __init__(self, u: Any, v: Any, n: int) -> None:
        self.u, self.v, self.n = u, v, n
        self.tuples = len(u)
        self.attributes: Mapping[str, Values] = {}

    @property
    def lent(self) -> bool:
        """Whether both arrays are in device memory."""
        return is_of_device(self.u) and is_of_device(self.v)

    @property
    def on_device_alone(self) -> bool:
        """Whether the tuples lie in device memory only."""
        return self.lent

    def part(self, *, directed: bool) -> Part:
        """Return the graph in host memory: one part by degree, without delegates."""
        return whole_part(self, directed=directed)

    def chunks(self, start: int, stop: int) -> Iterator[tuple[Ids, Ids]]:
        """Yield (u, v) int64 arrays of the tuples start … stop-1."""
        for first in range(start, stop, CHUNK):
            piece = slice(first, min(first + CHUNK, stop))
            yield on_host(self.u[piece]), on_host(self.v[piece])

    def pieces(self, start: int, stop: int) -> Iterator[tuple[Any, Any]]:
        """Yield (u, v) of the tuples start … stop-1, in the arrays that hold them."""
        yield self.u[start:stop], self.v[start:stop]

    def narrowed(self) -> HeldTuples:
        """Return the tuples in arrays of 32 bits; requires n ≤ 2^32."""
        u, v = (x.astype(np.uint32) for x in (self.u, self.v))
        return HeldTuples(u, v, self.n)

    def describe(self) -> dict[str, Any]:
        """Describe the source: tuples in memory, which cannot be generated again."""
        return {"family": "memory"}


class MatrixTuples(HeldTuples):
    """The entries of a SciPy CSR matrix, in device memory.

    The matrix must not change: the graph in host memory is made from it later.
    """

    distinct = True
    on_device_alone = False

    def __init__(self, rows: Any) -> None:
        held = rows.tocoo(copy=False)
        u, v = (to_device(unsigned(x, np.uint32)) for x in (held.row, held.col))
        super().__init__(u, v, rows.shape[0])
        self._rows = rows

    def part(self, *, directed: bool) -> Part:
        """Return the graph in host memory: one part, vertices by id."""
        return matrix_part(self._rows, directed=directed)


def on_device(count: int, nbytes: int) -> bool:
    """Return whether a device builds a graph faster than the host and has room for it.

    count: number of edges; nbytes: size of both arrays of ends
    """
    if count < MANY:
        return False
    try:
        cuda.cupy()
    except DeviceMissing:
        return False
    # with narrow copies, and what builds a graph
    return 3 * nbytes <= cuda.free_bytes()


def sent(src: Array, dst: Array) -> tuple[Any, Any]:
    """Return large integer arrays in device memory if a device has room for them."""
    if len(src) != len(dst) or not on_device(len(src), src.nbytes + dst.nbytes):
        return src, dst
    return to_device(np.ascontiguousarray(src)), to_device(np.ascontiguousarray(dst))


def on_host(values: Any) -> Ids:
    """Return integers as int64 in host memory; such an array is not copied."""
    return np.ascontiguousarray(host_array(values), dtype=np.int64)


def ends_of(src: Any, dst: Any, *, text: bool = False) -> tuple[Array, Array]:
    """Return both ends of edges, integers [edges]; ``src`` alone holds pairs.

    text: whether ids may be text, which is returned as objects
    """
    if dst is None:
        listed = text and not is_array(src)
        pairs = list(check_several("edges", src)) if listed else src
        array = array_of(pairs, "edges array")
        if not array.size and array.ndim != 2:
            return integers(array[:0], "src"), integers(array[:0], "dst")
        words = text and array.size and array.dtype.kind not in "iu"
        if not words:
            check_integers(array, "edges array", 2)
        if array.ndim != 2 or array.shape[1] != 2:
            raise InputError(
                f"edges have shape {array.shape}; allowed: pairs, [edges, 2]"
            )
        if not words:
            return array[:, 0], array[:, 1]
        # NumPy makes text of numbers that stand beside text
        src, dst = zip(*pairs, strict=True) if listed else array.T
    return integers(src, "src", text=text), integers(dst, "dst", text=text)


def integers(values: Any, name: str, *, text: bool = False) -> Array:
    """Return a one-dimensional array of integers; an error for anything else.

    text: whether texts are allowed, too, which are returned as objects
    """
    if text and not is_array(values):
        values = list(check_several(name, values))
    array = array_of(values, name)
    if not array.size and (array.ndim == 1 or text):
        return np.zeros(0, dtype=np.int64)
    if not text or array.dtype.kind in "iu":
        return check_integers(array, name)
    items = array.tolist() if is_array(values) else values
    if array.ndim != 1 or not all(isinstance(item, str) for item in items):
        raise WrongTypeError(
            f"{name} has {array.ndim} dimensions of {array.dtype}; allowed: one "
            "dimension of integers, or of text"
        )
    return np.array(items, dtype=object)


def check_integers(array: Any, name: str, dimensions: int = 1) -> Any:
    """Return an array; raise an error unless it has the dimensions, and integers."""
    if array.ndim != dimensions or array.dtype.kind not in "iu":
        wrong = InputError if array.dtype.kind in "iu" else WrongTypeError
        raise wrong(
            f"{name} has {array.ndim} dimensions of {array.dtype}; "
            f"allowed: {'one dimension' if dimensions == 1 else 'pairs'} of integers"
        )
    return array


def shared(values: Any, name: str) -> Any:
    """Return a DLPack array without a copy: NumPy's, or CuPy's if on a device."""
    if not hasattr(values, "__dlpack__"):
        kind = type_name(values)
        raise WrongTypeError(f"{name} is of type {kind}, which has no DLPack")
    check_whole(values, name)
    if values.__dlpack_device__()[0] in HOST_DEVICES:
        return check_integers(np.from_dlpack(values), name)
    return check_integers(cuda.cupy().from_dlpack(values), name)


def check_ends(src: Any, dst: Any, n: int | None) -> HeldTuples:
    """Return edges as tuples; InputError unless all ends are vertices.

    n: number of vertices; None for one more than the largest id, which must not be far
    beyond the number of edges. Raises UsageError if it is not an integer.
    """
    if n is not None:
        n = check_integer("n", n)
        check_range("n", n, 0)
    if len(src) != len(dst):
        raise InputError(f"{len(src)} sources and {len(dst)} targets")
    low = high = 0
    if len(src):
        low = min(int(x.min()) for x in (src, dst))
        high = 1 + max(int(x.max()) for x in (src, dst))
    if n is None:
        n = high
        if low >= 0:
            ways = (
                "relabel=True numbers those that occur; or give n, if there are so many"
            )
            check_dense(n, len(src), "", ways)
    if low < 0 or high > n:
        raise InputError(
            f"an edge has the end {low if low < 0 else high - 1}; allowed: 0 to {n - 1}"
        )
    return HeldTuples(src, dst, n)


def csr_of(matrix: Any, *, bipartite: bool = False) -> Any:
    """Return a SciPy sparse matrix in CSR form; a CSR matrix itself is returned.

    The arrays of the matrix are checked first, because SciPy's conversions write out of
    bounds if the arrays are inconsistent.

    bipartite: whether rows and columns are two sets of vertices

    Raises WrongTypeError for other objects, UsageError if the matrix is not square and
    ``bipartite`` is false, InputError if its arrays are inconsistent.
    """
    if not hasattr(matrix, "tocsr"):
        raise WrongTypeError(
            f"the matrix is of type {type_name(matrix)}; allowed: a sparse SciPy "
            "matrix; scipy.sparse.csr_array makes one from an array"
        )
    square = len(matrix.shape) == 2 and matrix.shape[0] == matrix.shape[1]
    if len(matrix.shape) != 2 or not (square or bipartite):
        more = "; with bipartite=True any" if len(matrix.shape) == 2 else ""
        raise UsageError(f"the matrix has shape {matrix.shape}; allowed: square{more}")
    # rows take memory by vertex, which a matrix in coordinates does not
    tuples = HeldTuples(
        (), (), int(sum(matrix.shape) if bipartite else matrix.shape[0])
    )
    BuildMemory(tuples, kept=True).check(SoloWorld(), 1)
    try:
        if matrix.format in CONSTRUCTED:
            arrays = CONSTRUCTED[matrix.format](matrix)
            matrix = type(matrix)(arrays, shape=matrix.shape)
        elif hasattr(matrix, "check_format"):
            check_compressed(matrix)
        rows = matrix.tocsr()
        if rows is not matrix:
            check_compressed(rows)
    except (ValueError, TypeError, LookupError) as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"the arrays of the matrix are inconsistent: {reason}"
        ) from error
    return two_sets(rows) if bipartite else rows


def two_sets(rows: Any) -> Any:
    """Return a CSR matrix as a square one: its vertices are rows, then columns."""
    count, columns = rows.shape
    offsets = np.pad(rows.indptr, (0, columns), mode="edge")
    arrays = (rows.data, rows.indices.astype(np.int64) + count, offsets)
    return type(rows)(arrays, shape=(count + columns, count + columns))


def check_compressed(matrix: Any) -> None:
    """Raise ValueError if a SciPy CSR, CSC or BSR matrix has inconsistent arrays."""
    for name in ("indptr", "indices"):
        kind = getattr(matrix, name).dtype
        if kind.kind != "i":
            raise ValueError(f"{name} are {kind}; allowed: int32, int64")
    matrix.check_format(full_check=True)


def scipy_rows(matrix: Any) -> CSR:
    """Return the rows of a SciPy CSR matrix; 32-bit indices are not copied."""
    size = len(matrix.indices)
    wide = size >= 1 << 32
    offsets = unsigned(matrix.indptr, np.uint64 if wide else np.uint32)
    return CSR(offsets, unsigned(matrix.indices, np.uint32))


def matrix_part(rows: Any, *, directed: bool) -> Part:
    """Return a SciPy CSR matrix as a graph in one part.

    An edge counts once, however often it is stored, and loops do not count. 32-bit
    indices are not copied if they increase in each row, without repeats and loops, and
    if the graph is directed or the pattern is symmetric.
    """
    if not rows.has_canonical_format:
        rows = pattern(rows).copy()
        rows.sum_duplicates()
    turned = rows.T.tocsr()
    if directed:
        out, into = (loopless(scipy_rows(x)) for x in (rows, turned))
        return part_of_rows(out.offsets, out.columns, into)
    same = np.array_equal(rows.indptr, turned.indptr)
    if not same or not np.array_equal(rows.indices, turned.indices):
        rows = pattern(rows).maximum(pattern(turned))
    symmetric = loopless(scipy_rows(rows))
    return part_of_rows(symmetric.offsets, symmetric.columns, None)


def pattern(rows: Any) -> Any:
    """Return a SciPy CSR matrix with True for every entry; indices are shared."""
    ones = np.ones(len(rows.indices), dtype=bool)
    return type(rows)((ones, rows.indices, rows.indptr), shape=rows.shape)


def unsigned(values: Array, dtype: type[np.unsignedinteger]) -> Array:
    """Return nonnegative integers as a contiguous array of unsigned integers."""
    if values.dtype.itemsize == np.dtype(dtype).itemsize:
        return np.ascontiguousarray(values).view(dtype)
    return values.astype(dtype)


def networkx_rows(
    adjacency: Any, nodes: list[Any], index: dict[Any, int] | None
) -> CSR:
    """Return rows with the neighbours of each node in NetworkX's order.

    index: node -> id, None if nodes are the ids
    """
    neighbours: list[Any] = []
    lengths = np.zeros(len(nodes), dtype=np.int64)
    for k, node in enumerate(nodes):
        before = len(neighbours)
        neighbours.extend(adjacency[node])  # len() of a filtered view can be wrong
        lengths[k] = len(neighbours) - before
    ids: Iterable[Any] = neighbours
    if index is not None:
        ids = map(index.__getitem__, neighbours)
    return CSR(row_offsets(lengths), np.fromiter(ids, np.uint32, len(neighbours)))


def named_part(graph: Any) -> tuple[Part, list[Any] | None, dict[Any, int] | None]:
    """Return a NetworkX graph as (part, nodes, node -> id), in its own order.

    The nodes and their ids are None if the nodes are 0 … n-1. Raises WrongTypeError if
    the graph is not NetworkX's, InputError for a view of an undirected graph whose
    filter keeps an edge in one direction only.
    """
    if not hasattr(graph, "_adj"):
        kind = type_name(graph)
        raise WrongTypeError(f"the graph is of type {kind}; allowed: NetworkX's")
    nodes = list(graph)
    index: dict[Any, int] | None = None
    if any(type(node) is not int or node != k for k, node in enumerate(nodes)):
        index = {node: k for k, node in enumerate(nodes)}
    rows = networkx_rows(graph._adj, nodes, index)
    incoming = None
    if graph.is_directed():
        incoming = networkx_rows(graph._pred, nodes, index)
    elif hasattr(graph, "_graph") and not symmetric(rows):
        raise InputError(
            "a filter of an undirected NetworkX view leaves an edge in one direction "
            "only; allowed: filter_edge(u, v) equal to filter_edge(v, u)"
        )
    part = part_of_rows(rows.offsets, rows.columns, incoming)
    return part, None if index is None else nodes, index


def symmetric(rows: CSR) -> bool:
    """Return whether each edge is stored in both directions; rows have no repeats."""
    source, target = rows.sources().astype(np.int64), rows.columns.astype(np.int64)
    there, back = source * rows.rows + target, target * rows.rows + source
    return np.array_equal(np.sort(there), np.sort(back))


def read_ends(
    path: Path, name: str, *, relabel: bool, keep: Sequence[str], **options: Any
) -> tuple[Array, Array, int, IdMap | None, Mapping[str, Values]]:
    """Return (src, dst, n, ids or None, attributes) of the edges of a file.

    The ends src and dst are int64 [edges].

    name: name of the format, "" to detect it; keep: columns to keep as attributes
    options: fields of ``ReaderOptions``
    """
    known = {item.name for item in fields(ReaderOptions)} - {"progress"}
    if unknown := options.keys() - known:
        allowed = ", ".join(sorted(known - {"columns"} | {"src", "dst"}))
        raise UsageError(f"option '{min(unknown)}'; allowed: {allowed}")
    if path.is_dir() and not is_parts(path):
        raise FileError(f"{path}: a folder, not a file; Graph.open reads a store")
    reader = ReaderOptions(relabel="numbers" if relabel else "", **options)
    ranks = SoloWorld()
    with open_tuples(ranks, path, name=name, options=reader, keep=keep) as source:
        for note in source.notes:
            warnings.warn(note, stacklevel=3)
        u, v = source.pairs[:, 0], source.pairs[:, 1]
        return u, v, source.n, source.ids, source.attributes
