"""NumPy files: ``.npy`` pairs, ``.npz`` with ``src`` and ``dst`` or a SciPy matrix.

A ``.npy`` file holds integers [k, 2] or [2, k] ([2, 2] is read by rows). In a matrix
(csr, csc or coo, as ``scipy.sparse.save_npz`` writes them) a stored entry (i, j) is an
edge; values are ignored. Source: NumPy manual, numpy.lib.format.
"""

from __future__ import annotations

import io
import re
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, Any, Literal

import numpy as np

from distbfs.errors import DistbfsError, InputError
from distbfs.formats.base import EdgeFile, Reader, Sides, Take
from distbfs.formats.gap_sg import csr_rows
from distbfs.formats.line_rules import LARGEST_ID
from distbfs.formats.lines import SHOWN
from distbfs.formats.packed import CHUNK, BinaryFile, id_fault

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from distbfs.types import Array, Ids

MAGIC = b"\x93NUMPY"
ZIP_MAGIC = b"PK\x03\x04"
ZIP_NAME = 30
LONGEST_HEADER = 10_000
LONGEST_WORD = 64
LENGTHS = {1: "<H", 2: "<I"}
SPARSE = ("csr", "csc", "coo")

# errors of zipfile, zlib and numpy.lib.format for corrupt data
BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    tokenize.TokenError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    SyntaxError,
    SystemError,  # of the tokenizer of Python 3.13.0
    TypeError,
    ValueError,
)


@contextmanager
def sound(where: str) -> Iterator[None]:
    """Convert libraries' errors about a broken file to InputError."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except DistbfsError:
        raise
    except BROKEN as error:
        what = (str(error).splitlines() or [""])[0] or type(error).__name__
        what = re.sub("(malformed .* on line [0-9]+):.*", r"\1", what)  # no objects
        raise InputError(f"{where}: not a sound NumPy file: {what}") from error


@dataclass(frozen=True)
class ArrayHeader:
    """The header of an array; ``size`` is its own length in bytes."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    size: int


def read_layout(stream: IO[bytes], where: str) -> ArrayHeader:
    """Read the header of a ``.npy`` array; InputError if it is none."""
    with sound(where):
        head = stream.read(8)
        if len(head) < 8 or not head.startswith(MAGIC):
            raise ValueError("no NumPy array begins there")
        if head[6] not in LENGTHS:
            raise ValueError(f"version {head[6]} of the format; allowed: 1, 2")
        form = LENGTHS[head[6]]
        size = stream.read(struct.calcsize(form))
        (length,) = struct.unpack(form, size)
        if length > LONGEST_HEADER:
            raise ValueError(f"a header of {length} bytes; allowed: {LONGEST_HEADER}")
        rest = io.BytesIO(size + stream.read(length))
        if head[6] == 1:
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(rest)
        else:
            shape, fortran, dtype = np.lib.format.read_array_header_2_0(rest)
        if min(shape, default=0) < 0:
            raise ValueError(f"shape {shape}")
    return ArrayHeader(shape, fortran, dtype, 8 + len(size) + length)


def integers(layout: ArrayHeader, where: str) -> None:
    """Raise InputError unless an array holds integers."""
    if layout.dtype.kind not in "iu":
        raise InputError(f"{where}: {layout.dtype} values, where integers are expected")


def checked(ids: Array, most: int, base: int, where: str, begin: int, row: int) -> Ids:
    """Return zero-based int64 ids; InputError ``where[index]`` for a bad one.

    begin: index of the first row of ``ids``; row: ids in a row.
    """
    fault = id_fault(ids, most, base)
    if fault:
        raise InputError(f"{where}[{begin + fault[0] // row}]: {fault[1]}")
    zero_based: Ids = ids.astype(np.int64, copy=False)
    return zero_based - base if base else zero_based


class NpzArray:
    """A one-dimensional integer array in an archive, read in pieces."""

    def __init__(self, archive: zipfile.ZipFile, path: Path, name: str) -> None:
        self.where = f"{path}: {name}"
        with sound(self.where):
            if name + ".npy" not in archive.namelist():
                raise InputError(f"{path}: no array '{name}'")
            info = archive.getinfo(name + ".npy")
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ValueError(f"compressed by method {info.compress_type}")
            self.stream = archive.open(info)
        self.layout = read_layout(self.stream, self.where)
        self.done = 0

    def vector(self) -> int:
        """Return the length; InputError unless it is a vector of integers."""
        integers(self.layout, self.where)
        if len(self.layout.shape) != 1:
            shape = list(self.layout.shape)
            raise InputError(f"{self.where}: shape {shape}, where [k] is expected")
        return self.layout.shape[0]

    def read(self, count: int) -> Array:
        """Return the next ``count`` values, [count] of the array's dtype.

        Raises InputError where the file is truncated.
        """
        size = count * self.layout.dtype.itemsize
        with sound(self.where):
            data = self.stream.read(size)
            if len(data) < size:
                raise ValueError(f"it ends before value {self.done + count - 1}")
        self.done += count
        return np.frombuffer(data, dtype=self.layout.dtype)

    def pieces(self) -> Iterator[Array]:
        """Yield the values in pieces of at most CHUNK, of the array's dtype."""
        total = self.vector()
        while self.done < total:
            yield self.read(min(CHUNK, total - self.done))

    def ids(self, count: int, most: int, base: int = 0) -> Ids:
        """Return the next ids, zero-based, int64 [count]; InputError for a bad one."""
        begin = self.done
        return checked(self.read(count), most, base, self.where, begin, 1)

    def finish(self) -> None:
        """Raise InputError for bytes after the last value or a wrong checksum."""
        with sound(self.where):
            if self.stream.read(1):
                raise ValueError("bytes after the last value")

    def word(self) -> str:
        """Return the text of a one-word array."""
        dtype = self.layout.dtype
        single = self.layout.shape in ((), (1,)) and dtype.kind in "SU"
        if not single or not 0 < dtype.itemsize <= LONGEST_WORD:
            raise InputError(f"{self.where}: not a word")
        value = self.read(1)[0]
        return value.decode("ascii", "replace") if dtype.kind == "S" else str(value)


class NumpyReader(Reader):
    """Reads ``.npy`` and ``.npz`` files."""

    name = "numpy"
    bipartite = True
    suffixes = (".npy", ".npz")

    @staticmethod
    def recognises(head: bytes) -> bool:
        """Return whether the file is an array, or an archive that begins with one."""
        if not head.startswith(ZIP_MAGIC):
            return head.startswith(MAGIC)
        length = int.from_bytes(head[26:28], "little")
        return head[ZIP_NAME : ZIP_NAME + length].endswith(b".npy")

    def read(self, path: Path, take: Take) -> EdgeFile:
        """Read a file; InputError where it does not hold edges in a known layout.

        Raises UsageError for a base or a size where a matrix determines them.
        """
        with BinaryFile(path, progress=self.options.progress) as file:
            head = file.read(min(file.size, len(MAGIC)))
            file.pass_over(file.size - len(head))
            file.content.seek(0)
            if head.startswith(MAGIC):
                self.options.check_one_set(path, "NumPy pairs")
                pairs = self._array(file)
                return self._hand_over(path, pairs, None, take, file.digest)
            if not head.startswith(ZIP_MAGIC):
                raise file.refuse("neither a .npy array nor a .npz archive", 0)
            with sound(str(path)):
                archive = zipfile.ZipFile(file.content)
            with archive:
                pairs, sides = self._archive(archive, path)
                edges = self._hand_over(path, pairs, sides, take, file.digest)
                valued = sides is not None and "data.npy" in archive.namelist()
                return replace(edges, unread="values" if valued else "")

    def _hand_over(
        self,
        path: Path,
        chunks: Iterator[Ids],
        sides: Sides | None,
        take: Take,
        digest: str,
    ) -> EdgeFile:
        """Pass the pairs to ``take``; sides: of a matrix, None without stated sizes."""
        tuples, largest = 0, 0
        for pairs in chunks:
            take(pairs if sides is None else sides.place(pairs))
            tuples += len(pairs)
            largest = max(largest, int(pairs.max()) + 1)
        if sides is not None:
            return EdgeFile(self.name, sides.n, tuples, digest, notes=sides.notes)
        if not tuples:
            raise InputError(f"{path}: no edges")
        return EdgeFile(self.name, self.options.n or largest, tuples, digest)

    def _array(self, file: BinaryFile) -> Iterator[Ids]:
        """Yield the pairs of an array, mapped from the file."""
        base, most = self.options.base, self.options.most
        path, where = file.path, str(file.path)
        layout = read_layout(file.content, where)
        integers(layout, where)
        shape = layout.shape
        if len(shape) != 2 or 2 not in shape:
            what = f"shape {list(shape)}, where [k, 2] or [2, k] is expected"
            raise InputError(f"{path}: {what}")
        rows = shape[0] * shape[1] // 2
        end = layout.size + 2 * rows * layout.dtype.itemsize
        if file.size != end:
            what = f"the file ends, where its header says {end} bytes"
            raise file.refuse(what, file.size)
        if not rows:
            return
        order: Literal["F", "C"] = "F" if layout.fortran else "C"
        with sound(where):
            pairs: Array = np.memmap(
                file.content, layout.dtype, "r", layout.size, shape, order
            )
        pairs = pairs if shape[1] == 2 else pairs.T
        for begin in range(0, rows, CHUNK):
            piece = np.ascontiguousarray(pairs[begin : begin + CHUNK])
            yield checked(piece, most, base, f"{path}: ", begin, 2)

    def _archive(
        self, archive: zipfile.ZipFile, path: Path
    ) -> tuple[Iterator[Ids], Sides | None]:
        """Return the pairs of an archive, and the sides of a matrix or None."""
        names = Counter(name.removesuffix(".npy") for name in archive.namelist())
        for name, count in names.items():
            if count > 1:
                raise InputError(f"{path}: {count} arrays {name[:SHOWN]!a}")
        if {"src", "dst"} <= names.keys():
            self.options.check_one_set(path, "NumPy pairs")
            base, most = self.options.base, self.options.most
            columns = NpzArray(archive, path, "src"), NpzArray(archive, path, "dst")
            return _columns(columns, (most, most), base), None
        if not {"format", "shape"} <= names.keys():
            what = "neither arrays src and dst nor a SciPy sparse matrix"
            raise InputError(f"{path}: {what}")
        self.options.check_unneeded("a SciPy matrix", 0)
        kind = NpzArray(archive, path, "format").word()
        if kind not in SPARSE:
            allowed = ", ".join(SPARSE)
            raise InputError(f"{path}: sparse format {kind!a}; allowed: {allowed}")
        sizes = NpzArray(archive, path, "shape")
        if sizes.vector() != 2:
            raise InputError(f"{sizes.where}: {sizes.vector()} sizes, not 2")
        rows, width = sizes.ids(2, LARGEST_ID).tolist()
        if not max(rows, width):
            raise InputError(f"{path}: no vertices")
        sides = self.options.sides(rows, width, str(path))
        if kind == "coo":
            pair = NpzArray(archive, path, "row"), NpzArray(archive, path, "col")
            return _columns(pair, (rows - 1, width - 1)), sides
        if kind == "csc":
            rows, width = width, rows
        starts = NpzArray(archive, path, "indptr")
        near = NpzArray(archive, path, "indices")
        return _compressed(starts, near, rows, width, turned=kind == "csc"), sides


def _columns(
    members: tuple[NpzArray, NpzArray], most: tuple[int, int], base: int = 0
) -> Iterator[Ids]:
    """Yield the pairs of two arrays of one length."""
    first, second = members
    total, second_total = first.vector(), second.vector()
    if total != second_total:
        raise InputError(
            f"{second.where}: {second_total} values, where {total} are expected"
        )
    for begin in range(0, total, CHUNK):
        count = min(CHUNK, total - begin)
        u, v = (x.ids(count, y, base) for x, y in zip(members, most, strict=True))
        yield np.stack((u, v), axis=1)
    first.finish()
    second.finish()


def _compressed(
    starts: NpzArray, near: NpzArray, rows: int, columns: int, *, turned: bool
) -> Iterator[Ids]:
    """Yield the pairs of a matrix by rows, or by columns where ``turned``."""

    def refuse(index: int, what: str) -> InputError:
        return InputError(f"{starts.where}[{index}]: {what}")

    entries = near.vector()
    if starts.vector() != rows + 1:
        what = f"{starts.vector()} values, where {rows + 1} are expected"
        raise InputError(f"{starts.where}: {what}")
    for u in csr_rows(starts.pieces(), entries, refuse):
        v = near.ids(len(u), columns - 1)
        yield np.stack((v, u) if turned else (u, v), axis=1)
    starts.finish()
    near.finish()
