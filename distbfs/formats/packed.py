"""Graph500 edge lists: binary pairs without a header, packed to 12 bytes or as int64.

packed: uint32 low half of v0, uint32 low half of v1, uint32 of which bits 0-15 are the
upper ones of v0 and bits 16-31 those of v1; an id is a signed number of 48 bits.
int64: v0, v1.  Both little-endian.  Source: the Graph500 reference code, generator
(packed_edge) and Graph500 Benchmark 1 specification, section 3.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from distbfs.errors import InputError, UsageError
from distbfs.formats.base import EdgeFile, ReaderOptions, Take
from distbfs.formats.rules import LARGEST_ID
from distbfs.formats.text import HashedFile, unreadable

if TYPE_CHECKING:
    from pathlib import Path

    from distbfs.types import Array, Ids

CHUNK = 1 << 18


class BinaryFile(HashedFile):
    """A binary file that is read once from begin to end, with its digest.

    ``size`` is its length in bytes, ``position`` how many were read.
    """

    def __init__(self, path: Path, position: int = 0) -> None:
        """Open the file at a position; InputError where there is nothing to read."""
        super().__init__(path)
        self.position = position
        try:
            self._handle.seek(position)
            self.size = os.fstat(self._handle.fileno()).st_size
        except OSError as error:
            raise unreadable(path, error) from error

    def refuse(self, what: str, at: int | None = None) -> InputError:
        """Return the error ``FILE: byte N: what``, by default for the position."""
        at = self.position if at is None else at
        return InputError(f"{self.path}: byte {at}: {what}")

    def read(self, count: int) -> bytes:
        """Return exactly ``count`` bytes and hash them."""
        try:
            data = self._handle.read(count)
        except OSError as error:
            raise unreadable(self.path, error) from error
        self._hash.update(data)
        if len(data) < count:
            raise self.refuse("the file is truncated", self.position + len(data))
        self.position += count
        return data

    def pass_over(self, count: int) -> None:
        """Read and hash ``count`` bytes that are looked at elsewhere."""
        for done in range(0, count, CHUNK):
            self.read(min(CHUNK, count - done))


def id_fault(ids: Array, most: int, base: int = 0) -> tuple[int, str] | None:
    """Return the flat index of the first id that is not base … most, and the fault.

    ids: integers of any dtype and shape, looked at in C order.
    """
    if not ids.size or (int(ids.min()) >= base and int(ids.max()) <= most):
        return None
    flat = ids.reshape(-1)
    low = flat < base
    # most may be above what the dtype holds, then nothing is too large
    if most < np.iinfo(flat.dtype).max:
        low |= flat > most
    at = int(np.argmax(low))
    value = int(flat[at])
    if value < 0:
        return at, f"a negative id {value}"
    if value > LARGEST_ID:
        return at, f"id {value} is above 2^63-1"
    upper = f"to {most}" if most < LARGEST_ID else "or more"
    return at, f"id {value} is out of range; allowed: {base} {upper}"


def unpack(data: bytes) -> Ids:
    """Return the int64 [k, 2] pairs of k packed edges of 12 bytes."""
    words = np.frombuffer(data, dtype="<u4").reshape(-1, 3)
    upper = words[:, 2:].astype("<u4").view("<i2").astype(np.int64)
    return (upper << 32) | words[:, :2]


class PackedReader:
    """Reads Graph500 packed edges, 12 bytes each."""

    name = "graph500-packed"
    suffixes: tuple[str, ...] = ()
    width = 12

    def __init__(self, options: ReaderOptions | None = None) -> None:
        self.options = options or ReaderOptions()
        if self.options.one_based:
            raise UsageError("ids of Graph500 edges start at 0; leave out one-based")

    @staticmethod
    def recognises(head: bytes) -> bool:  # noqa: ARG004
        """Return False: such files bear no mark."""
        return False

    @staticmethod
    def decode(data: bytes) -> Ids:
        """Return the int64 [k, 2] pairs of the bytes of whole edges."""
        return unpack(data)

    def read(self, path: Path, take: Take) -> EdgeFile:
        """Read a file; InputError for what cannot be such edges."""
        given = self.options.n
        most = LARGEST_ID if given is None else given - 1
        n = given or 0
        with BinaryFile(path) as file:
            rest = file.size % self.width
            if rest:
                what = f"{rest} bytes, where an edge takes {self.width}"
                raise file.refuse(what, file.size - rest)
            tuples = file.size // self.width
            if not tuples:
                raise file.refuse("the file is empty")
            for done in range(0, tuples, CHUNK):
                begin = file.position
                data = file.read(min(CHUNK, tuples - done) * self.width)
                pairs = self.decode(data)
                fault = id_fault(pairs, most)
                if fault:
                    raise file.refuse(fault[1], begin + fault[0] // 2 * self.width)
                take(pairs)
                if given is None:
                    n = max(n, int(pairs.max()) + 1)
            return EdgeFile(self.name, n, tuples, file.digest)


class Int64Reader(PackedReader):
    """Reads Graph500 edges of two int64."""

    name = "graph500-int64"
    width = 16

    @staticmethod
    def decode(data: bytes) -> Ids:
        """Return the int64 [k, 2] pairs of the bytes of whole edges."""
        pairs = np.frombuffer(data, dtype="<i8").reshape(-1, 2)
        return pairs.astype(np.int64, copy=False)
