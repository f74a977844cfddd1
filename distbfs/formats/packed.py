"""Graph500 edge lists: binary pairs without a header, packed to 12 bytes or as int64.

packed: uint32, the low half of v0; uint32, the low half of v1; uint32, whose bits 0-15
are the upper bits of v0 and bits 16-31 those of v1. An id is a signed number of 48
bits. int64: v0, v1. Both are little-endian. Source: the Graph500 reference code,
generator (packed_edge), and Graph500 Benchmark 1 specification, section 3.
"""

from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING

import numpy as np

from distbfs.errors import InputError, UsageError, naming
from distbfs.formats.base import EdgeFile, Reader, ReaderOptions
from distbfs.formats.ids import LARGEST_ID, out_of_range
from distbfs.formats.text import HashedFile, Progress, unnamed_copy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from distbfs.types import Array, Ids

CHUNK = 1 << 18
PASS_BYTES = 1 << 20  # fits a cache


class BinaryFile(HashedFile):
    """A binary file that is read once from start to end, with its digest.

    ``size`` is the length of its content in bytes, ``position`` the number of bytes
    read so far.
    The content of a compressed file is first written to a temporary file.
    """

    def __init__(self, path: Path, *, progress: Progress | None = None) -> None:
        """Open the file; InputError if there is nothing to read."""
        super().__init__(path, progress=progress)
        self.position = 0
        self.content: IO[bytes] = self._raw
        try:
            with naming(path):
                if self.packing:
                    self.content = unnamed_copy(path, self.take, "unpack")
                self.size = os.fstat(self.content.fileno()).st_size
                if not self.size:
                    raise self.refuse("the file is empty")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file, and delete its decompressed copy."""
        if self.content is not self._raw:
            self.content.close()
        super().close()

    def refuse(self, what: str, at: int | None = None) -> InputError:
        """Return the error ``FILE: byte N: what``; N is the position by default."""
        at = self.position if at is None else at
        return InputError(f"{self.path}: byte {at}: {what}")

    def header(self, size: int) -> bytearray:
        """Return the first bytes; InputError if there are fewer."""
        if self.size < size:
            what = f"the file ends, where a header takes {size} bytes"
            raise self.refuse(what, self.size)
        return self.read(size)

    def check_size(self, sizes: Iterable[int], what: str) -> None:
        """Raise InputError unless the file has one of ``sizes``.

        what: the things that take so many bytes, for the message
        """
        if self.size not in sizes:
            takes = " or ".join(str(size) for size in sorted(sizes))
            raise self.refuse(
                f"the file ends, where {what} take {takes} bytes", self.size
            )

    def read(self, count: int) -> bytearray:
        """Return exactly ``count`` bytes and hash them."""
        data = self.peek(count, self.position)
        self.passed(memoryview(data))
        return data

    def peek(self, count: int, position: int) -> bytearray:
        """Return exactly ``count`` bytes at a position; keep the file's position."""
        data, done = bytearray(count), 0
        room = memoryview(data)
        while done < count:
            with naming(self.path):
                read = os.preadv(self.content.fileno(), [room[done:]], position + done)
            if not read:
                raise self.refuse("the file is truncated", position + done)
            done += read
        return data

    def passed(self, data: memoryview) -> None:
        """Hash the next bytes of the file, which another reader has read."""
        if not self.packing:
            self._seen(data)
        self.position += len(data)

    def pass_over(self, count: int) -> None:
        """Read and hash ``count`` bytes that another reader parses."""
        for done in range(0, count, PASS_BYTES):
            self.read(min(PASS_BYTES, count - done))


def id_fault(ids: Array, most: int, base: int = 0) -> tuple[int, str] | None:
    """Return the flat index of the first id outside base … most, and its fault.

    ids: integers of any dtype and shape, scanned in C order.
    """
    if not ids.size or (int(ids.min()) >= base and int(ids.max()) <= most):
        return None
    flat = ids.reshape(-1)
    low = flat < base
    # if most exceeds the dtype, no id is too large
    if most < np.iinfo(flat.dtype).max:
        low |= flat > most
    at = int(np.argmax(low))
    value = int(flat[at])
    if value < 0:
        return at, f"a negative id {value}"
    if value > LARGEST_ID:
        return at, f"id {value} is above 2^63-1"
    return at, out_of_range(value, base, most)


def unpack(data: bytearray) -> Ids:
    """Return the int64 [k, 2] pairs of k packed edges of 12 bytes."""
    words = np.frombuffer(data, dtype="<u4").reshape(-1, 3)
    upper = words[:, 2:].astype("<u4").view("<i2").astype(np.int64)
    return (upper << 32) | words[:, :2]


class PackedReader(Reader):
    """Reads Graph500 packed edges, 12 bytes each."""

    name = "graph500-packed"
    width = 12
    opens = BinaryFile

    def __init__(self, options: ReaderOptions | None = None) -> None:
        super().__init__(options)
        if self.options.one_based:
            raise UsageError("ids of Graph500 edges start at 0; leave out one-based")

    @staticmethod
    def decode(data: bytearray) -> Ids:
        """Return the int64 [k, 2] pairs of the bytes of whole edges."""
        return unpack(data)

    def pairs(self, file: BinaryFile, edges: EdgeFile) -> Iterator[Ids]:  # noqa: ARG002
        """Yield the edges; InputError if one is invalid."""
        rest = file.size % self.width
        if rest:
            what = f"{rest} bytes, where an edge takes {self.width}"
            raise file.refuse(what, file.size - rest)
        while left := file.size - file.position:
            begin = file.position
            pairs = self.decode(file.read(min(CHUNK * self.width, left)))
            fault = id_fault(pairs, self.options.most)
            if fault:
                raise file.refuse(fault[1], begin + fault[0] // 2 * self.width)
            yield pairs


class Int64Reader(PackedReader):
    """Reads Graph500 edges of two int64."""

    name = "graph500-int64"
    width = 16

    @staticmethod
    def decode(data: bytearray) -> Ids:
        """Return the int64 [k, 2] pairs of the bytes of whole edges."""
        pairs = np.frombuffer(data, dtype="<i8").reshape(-1, 2)
        return pairs.astype(np.int64, copy=False)
