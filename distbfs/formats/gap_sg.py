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
from typing import IO, TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from distbfs.errors import InputError
from distbfs.formats.base import EdgeFile, Reader
from distbfs.formats.packed import CHUNK, BinaryFile, id_fault
from distbfs.formats.read_ahead import in_order
from distbfs.formats.symmetry import BACK, FORTH, ONCE, Lists, Mirror
from distbfs.formats.writing import Edges, Writer

if TYPE_CHECKING:
    from pathlib import Path

    from distbfs.types import Array, Ids

Piece: TypeAlias = "tuple[Array, Lists]"  # neighbours, and the pairs of their lists

HEADER_BYTES = 17
MOST_NODES = 1 << 31
NODE_BYTES, WEIGHTED_BYTES, OFFSET_BYTES = 4, 8, 8


def csr_counts(
    blocks: Iterable[Ids],
    entries: int,
    refuse: Callable[[int, str], InputError],
) -> Iterator[tuple[int, Ids]]:
    """Yield pieces of sparse rows: the first row, and the entries of each row, int64.

    blocks: the offsets, [rows + 1], in nonempty pieces
    entries: number of all entries
    refuse: function of an index and a text that returns the error for that offset

    A piece has 1 to CHUNK entries.
    """
    begin, last = 0, np.zeros(1, dtype=np.int64)
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
        if not index:
            offsets = offsets[1:]
        yield from _counts_between(offsets, begin)
        begin += len(offsets) - 1
        index += len(block)
        last = offsets[-1:]
    if last[0] != entries:
        raise refuse(index - 1, f"the last offset is {last[0]}, not {entries}")


def _counts_between(offsets: Ids, begin: int) -> Iterator[tuple[int, Ids]]:
    """Yield pieces of the entries offsets[0] … offsets[-1] - 1; begin: first row."""
    total = int(offsets[-1])
    for start in range(int(offsets[0]), total, CHUNK):
        stop = min(start + CHUNK, total)
        low = int(np.searchsorted(offsets, start, "right")) - 1
        high = int(np.searchsorted(offsets, stop, "left"))
        cuts = np.clip(offsets[low : high + 1], start, stop)
        yield begin + low, cuts[1:] - cuts[:-1]


class GapReader(Reader):
    """Reads GAP serialized graphs; the file size shows whether it has weights."""

    name = "gap-sg"
    suffixes = (".sg", ".wsg")
    sized = ("a GAP serialized graph", 0)
    opens = BinaryFile

    def pairs(self, file: BinaryFile, edges: EdgeFile) -> Iterator[Ids]:
        """Yield the edges; InputError if sizes, offsets or neighbours disagree."""
        mirror = Mirror()
        directed, entries, nodes, width = _header(file)
        if not directed:
            self.options.check_undirected(file.path, "an undirected GAP graph")
        edges.n, edges.directed = nodes, directed
        edges.unread = "weights" if entries and width == WEIGHTED_BYTES else ""
        for way in (FORTH, BACK) if directed else (ONCE,):
            rows = StoredRows(nodes, entries, "<i4", width // NODE_BYTES)
            yield from stored_lists(file, mirror, rows, way)
        if not mirror.even():
            fault = "undirected, but an edge is not listed from both ends"
            if directed:
                fault = "incoming and outgoing edges differ"
            raise InputError(f"{file.path}: {fault}")


def _header(file: BinaryFile) -> tuple[bool, int, int, int]:
    """Check the header; return directed, entries, nodes and bytes per entry."""
    data = file.header(HEADER_BYTES)
    entries, nodes = np.frombuffer(data, dtype="<i8", offset=1).tolist()
    if data[0] > 1:
        raise file.refuse(f"directed is {data[0]}; allowed: 0, 1", 0)
    if entries < 0:
        raise file.refuse(f"{entries} entries", 1)
    if not 1 <= nodes <= MOST_NODES:
        raise file.refuse(f"{nodes} nodes; allowed: 1 to {MOST_NODES}", 9)
    sizes = {}
    for width in (NODE_BYTES, WEIGHTED_BYTES):
        lists = OFFSET_BYTES * (nodes + 1) + width * entries
        sizes[HEADER_BYTES + lists * (1 + data[0])] = width
    file.check_size(sizes, f"{nodes} nodes and {entries} entries")
    return bool(data[0]), entries, nodes, sizes[file.size]


class StoredRows(NamedTuple):
    """Rows of a file: 64-bit offsets, then entries, each an id and further words.

    dtype: type of an id and of each word; words: number of words of an entry
    implied: whether the first offset, 0, is left out
    """

    nodes: int
    entries: int
    dtype: str
    words: int = 1
    implied: bool = False

    @property
    def width(self) -> int:
        """Number of bytes of an entry."""
        return np.dtype(self.dtype).itemsize * self.words


def stored_lists(
    file: BinaryFile, mirror: Mirror, rows: StoredRows, way: int
) -> Iterator[Ids]:
    """Yield the pairs of the rows from the file's position on; see ``Mirror.lists``."""
    start, count = file.position, rows.nodes + 1 - rows.implied
    zero = [np.zeros(1, np.int64)] * rows.implied

    def refuse(index: int, what: str) -> InputError:
        return file.refuse(what, start + (index - rows.implied) * OFFSET_BYTES)

    file.pass_over(count * OFFSET_BYTES)
    offsets = chain(zero, offsets_at(file, start, count))
    begin = file.position

    def pieces() -> Iterator[tuple[int, int, Ids]]:
        at = begin
        for first, counts in csr_counts(offsets, rows.entries, refuse):
            yield at, first, counts
            at += int(counts.sum()) * rows.width

    def work(piece: tuple[int, int, Ids], room: tuple[Array, Ids]) -> Piece:
        at, first, counts = piece
        data = room[0][: int(counts.sum()) * rows.words]
        file.fill(data.data.cast("B"), at)
        near = data[:: rows.words]
        return data, mirror.lists(first, counts, near, rows.nodes, way, room[1])

    most = min(CHUNK, rows.entries)

    def room() -> tuple[Array, Ids]:
        kept = 0 if way == BACK else most
        return np.empty(most * rows.words, rows.dtype), np.empty((kept, 2), np.int64)

    for data, lists in in_order(work, pieces(), room):
        if lists.bad >= 0:
            bad = data[lists.bad * rows.words :][:1]
            _, what = id_fault(bad, rows.nodes - 1) or (0, "")
            raise file.refuse(what, file.position + lists.bad * rows.width)
        file.passed(data.data.cast("B"))
        yield mirror.count(lists)


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
