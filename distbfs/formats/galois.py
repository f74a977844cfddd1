"""Galois graphs: binary ``.gr`` of version 1 or 2, each stored edge a tuple.

Encoding, little-endian: uint64 version, uint64 bytes of data per edge, uint64 nodes,
uint64 edges; uint64 [nodes], the end of each node's edges; uint32 [edges] (uint64 in
version 2) destinations, padded by one if their number is odd, so that the data of
edges, which is ignored, begins at a multiple of 8 bytes. Source: Galois 6.0, libgalois,
FileGraph.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from distbfs.formats.base import EdgeFile, Reader
from distbfs.formats.gap_sg import OFFSET_BYTES, StoredRows, stored_lists
from distbfs.formats.ids import LARGEST_ID
from distbfs.formats.packed import BinaryFile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distbfs.types import Ids

HEADER = struct.Struct("<QQQQ")
ID_BYTES = {1: 4, 2: 8}
MOST_DATA = 255  # in a GAP graph of one vertex without edges these bytes read 256
FIELDS = ("version", "bytes of data", "nodes", "edges")


class GaloisReader(Reader):
    """Reads Galois graphs."""

    name = "galois"
    suffixes = (".gr", ".sgr", ".vgr")
    sized = ("a Galois graph", 0)
    opens = BinaryFile

    @staticmethod
    def recognises(head: bytes) -> bool:
        """Return whether the header has a known version and a usual data size."""
        if len(head) < HEADER.size:
            return False
        version, data, _, _ = HEADER.unpack_from(head)
        return version in ID_BYTES and data <= MOST_DATA

    def pairs(self, file: BinaryFile, edges: EdgeFile) -> Iterator[Ids]:
        """Yield the edges; InputError if sizes, offsets or destinations disagree."""
        width, data, edges.n, entries = _header(file)
        edges.unread = "data of edges" if data and entries else ""
        entry = np.dtype([("id", f"<u{width}")])
        rows = StoredRows(edges.n, entries, entry, implied=True)
        yield from stored_lists(file, rows, lambda u, v: np.stack((u, v), axis=1))
        file.pass_over(file.size - file.position)


def _header(file: BinaryFile) -> tuple[int, int, int, int]:
    """Check the header; return bytes per id, bytes of data per edge, nodes, edges."""
    version, data, nodes, edges = HEADER.unpack(file.header(HEADER.size))
    if version not in ID_BYTES:
        raise file.refuse(f"version {version}; allowed: 1, 2", 0)
    width = ID_BYTES[version]
    limits = (2, LARGEST_ID, min(1 << 8 * width, LARGEST_ID), LARGEST_ID)
    for place, value in enumerate((version, data, nodes, edges)):
        if value > limits[place]:
            what = f"{value} {FIELDS[place]}; allowed: up to {limits[place]}"
            raise file.refuse(what, 8 * place)
    if not nodes:
        raise file.refuse("no nodes", 16)
    whole = HEADER.size + OFFSET_BYTES * nodes + (width + data) * edges
    sizes = {whole, whole + edges % 2 * width}
    if data and width == ID_BYTES[1]:
        sizes = {max(sizes)}
    file.check_size(sizes, f"{nodes} nodes and {edges} edges")
    return width, data, nodes, edges
