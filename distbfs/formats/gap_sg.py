"""GAP serialized graphs: ``.sg``, and ``.wsg`` with weights, which are ignored.

Encoding, little-endian, unaligned: bool directed, int64 entries, int64 nodes, int64
[nodes + 1] offsets, int32 [entries] neighbours (int32 node, int32 weight in ``.wsg``);
if directed, offsets and neighbours again for incoming edges. An undirected edge is
listed at both ends, and read once. Source: Beamer, Asanović, Patterson, The GAP
Benchmark Suite (2015), reference code (writer.h).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import IO, TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from distbfs.errors import InputError
from distbfs.formats.base import EdgeFile, Reader
from distbfs.formats.packed import CHUNK, BinaryFile, id_fault
from distbfs.formats.read_ahead import in_order
from distbfs.formats.symmetry import MASK, back, forth, once
from distbfs.formats.writing import Edges, Writer

if TYPE_CHECKING:
    from pathlib import Path

    from distbfs.types import Ids

Value = TypeVar("Value")

HEADER_BYTES = 17
MOST_NODES = 1 << 31
OFFSET_BYTES = 8
NODE = np.dtype([("id", "<i4")])
WEIGHTED = np.dtype([("id", "<i4"), ("weight", "<i4")])


def csr_sources(
    blocks: Iterable[Ids],
    entries: int,
    refuse: Callable[[int, str], InputError],
) -> Iterator[Ids]:
    """Yield the row of each entry of sparse rows, int64, in pieces of 1 to CHUNK.

    blocks: the offsets, [rows + 1], in nonempty pieces
    entries: number of all entries
    refuse: function of an index and a text that returns the error for that offset
    """
    last = np.zeros(1, dtype=np.int64)
    index = 0
    for block in blocks:
        offsets = np.concatenate((last, block.astype(np.int64)))
        if not index and offsets[1]:
            raise refuse(0, f"the first offset is {offsets[1]}, not 0")
        bad = (offsets[1:] < offsets[:-1]) | (offsets[1:] > entries)
        if bad.any():
            at = int(np.argmax(bad))
            what = f"offset {offsets[at + 1]} after {offsets[at]}, of {entries} entries"
            raise refuse(index + at, what)
        total = int(offsets[-1])
        for start in range(int(last[0]), total, CHUNK):
            stop = min(start + CHUNK, total)
            low = int(np.searchsorted(offsets, start, "right")) - 1
            high = int(np.searchsorted(offsets, stop, "left"))
            cuts = np.clip(offsets[low : high + 1], start, stop)
            yield np.repeat(np.arange(low, high) + (index - 1), cuts[1:] - cuts[:-1])
        index += len(block)
        last = offsets[-1:]
    if last[0] != entries:
        raise refuse(index - 1, f"the last offset is {last[0]}, not {entries}")


class GapReader(Reader):
    """Reads GAP serialized graphs; the file size shows whether it has weights."""

    name = "gap-sg"
    suffixes = (".sg", ".wsg")
    sized = ("a GAP serialized graph", 0)
    opens = BinaryFile

    def pairs(self, file: BinaryFile, edges: EdgeFile) -> Iterator[Ids]:
        """Yield the edges; InputError if sizes, offsets or neighbours disagree."""
        directed, entries, nodes, entry = _header(file)
        if not directed:
            self.options.check_undirected(file.path, "an undirected GAP graph")
        edges.n, edges.directed = nodes, directed
        edges.unread = "weights" if entries and entry == WEIGHTED else ""
        excess = 0
        for look in (forth, back) if directed else (once,):
            rows = StoredRows(nodes, entries, entry)
            for pairs, more in stored_lists(file, rows, look):
                excess += more
                yield pairs
        if excess & MASK:
            fault = "undirected, but an edge is not listed from both ends"
            if directed:
                fault = "incoming and outgoing edges differ"
            raise InputError(f"{file.path}: {fault}")


def _header(file: BinaryFile) -> tuple[bool, int, int, np.dtype[np.void]]:
    """Check the header; return directed, entries, nodes and the type of an entry."""
    data = file.header(HEADER_BYTES)
    entries, nodes = np.frombuffer(data, dtype="<i8", offset=1).tolist()
    if data[0] > 1:
        raise file.refuse(f"directed is {data[0]}; allowed: 0, 1", 0)
    if entries < 0:
        raise file.refuse(f"{entries} entries", 1)
    if not 1 <= nodes <= MOST_NODES:
        raise file.refuse(f"{nodes} nodes; allowed: 1 to {MOST_NODES}", 9)
    sizes = {}
    for entry in (NODE, WEIGHTED):
        lists = OFFSET_BYTES * (nodes + 1) + entry.itemsize * entries
        sizes[HEADER_BYTES + lists * (1 + data[0])] = entry
    file.check_size(sizes, f"{nodes} nodes and {entries} entries")
    return bool(data[0]), entries, nodes, sizes[file.size]


class StoredRows(NamedTuple):
    """Rows of a file: 64-bit offsets, then entries, whose field ``id`` is a neighbour.

    implied: whether the first offset, 0, is left out
    """

    nodes: int
    entries: int
    entry: np.dtype[np.void]
    implied: bool = False


def stored_lists(
    file: BinaryFile, rows: StoredRows, look: Callable[[Ids, Ids], Value]
) -> Iterator[Value]:
    """Yield ``look(u, v)`` for pieces of the rows from the file's position on.

    look: function of rows and neighbours, int64 [k] each; threads call it
    """
    start, count = file.position, rows.nodes + 1 - rows.implied
    zero = [np.zeros(1, np.int64)] * rows.implied

    def refuse(index: int, what: str) -> InputError:
        return file.refuse(what, start + (index - rows.implied) * OFFSET_BYTES)

    file.pass_over(count * OFFSET_BYTES)
    offsets = chain(zero, offsets_at(file, start, count))
    begin = file.position

    def pieces() -> Iterator[tuple[int, Ids]]:
        at = begin
        for u in csr_sources(offsets, rows.entries, refuse):
            yield at, u
            at += len(u) * rows.entry.itemsize

    def work(piece: tuple[int, Ids]) -> tuple[bytearray, Value]:
        at, u = piece
        data = file.peek(len(u) * rows.entry.itemsize, at)
        near = np.frombuffer(data, rows.entry)["id"]
        if fault := id_fault(near, rows.nodes - 1):
            raise file.refuse(fault[1], at + fault[0] * rows.entry.itemsize)
        return data, look(u, near.astype(np.int64))

    for data, value in in_order(work, pieces()):
        file.passed(memoryview(data))
        yield value


def offsets_at(file: BinaryFile, position: int, count: int) -> Iterator[Ids]:
    """Yield ``count`` offsets of eight bytes from a position on, in pieces."""
    for done in range(0, count, CHUNK):
        size = min(CHUNK, count - done)
        data = file.peek(size * OFFSET_BYTES, position + done * OFFSET_BYTES)
        yield np.frombuffer(data, dtype="<i8")


class GapWriter(Writer):
    """Writes serialized graphs, each list of neighbours ascending."""

    name = "gap-sg"
    suffixes = (".sg",)

    def write(self, path: Path, graph: Edges) -> None:
        """Write a graph; InputError for too many vertices.

        Keys made of row and neighbour are sorted in a mapped file, 8 bytes per entry.
        """
        if graph.n > MOST_NODES:
            what = f"{graph.n} vertices; allowed in a GAP graph: {MOST_NODES}"
            raise InputError(what)
        entries = graph.m if graph.directed else 2 * graph.m
        with path.open("xb") as out:
            out.write(bytes([graph.directed]))
            out.write(np.array([entries, graph.n], "<i8").tobytes())
            for ways in ((1,), (-1,)) if graph.directed else ((1, -1),):
                with tempfile.TemporaryFile(dir=path.parent) as keys:
                    _write_lists(out, keys, graph, ways)


def _write_lists(
    out: IO[bytes], keys: IO[bytes], graph: Edges, ways: tuple[int, ...]
) -> None:
    """Write offsets and neighbours of the pairs (u, v), or of (v, u) if way is -1.

    keys: an empty file in which the keys are sorted
    """
    entries = 0
    for pairs in graph.chunks():
        for way in ways:
            u, v = pairs[:, ::way].T
            (u << 32 | v).tofile(keys)
            entries += len(u)
    rising: Ids = np.zeros(0, np.int64)
    if entries:
        rising = np.memmap(keys, np.int64, "r+", shape=(entries,))
        rising.sort()
    pieces = [slice(k, k + CHUNK) for k in range(0, entries, CHUNK)]
    offsets = np.zeros(graph.n + 1, dtype=np.int64)
    for piece in pieces:
        rows, counts = np.unique(rising[piece] >> 32, return_counts=True)
        offsets[rows + 1] += counts
    np.cumsum(offsets).astype("<i8").tofile(out)
    for piece in pieces:
        rising[piece].astype("<i4").tofile(out)
