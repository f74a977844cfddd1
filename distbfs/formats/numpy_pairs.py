"""NumPy files: ``.npy`` pairs, ``.npz`` with ``src`` and ``dst`` or a SciPy matrix.

A ``.npy`` file holds integers [k, 2] or [2, k] ([2, 2] is read by rows). In a matrix
(csr, csc or coo, as ``scipy.sparse.save_npz`` writes them) a stored entry (i, j) is an
edge; values are ignored. Source: NumPy manual, numpy.lib.format.
"""

from __future__ import annotations

import warnings
import zipfile
from collections import Counter
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from distbfs.errors import InputError
from distbfs.formats.base import EdgeFile, Reader, Sides
from distbfs.formats.gap_sg import csr_sources
from distbfs.formats.ids import LARGEST_ID
from distbfs.formats.inputs import ZIP_MAGICS, is_array_archive, unpacked
from distbfs.formats.lines import SHOWN
from distbfs.formats.packed import CHUNK, BinaryFile, id_fault
from distbfs.formats.text import sound, unnamed_copy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distbfs.types import Array, Ids

MAGIC = b"\x93NUMPY"
LONGEST_WORD = 64
SPARSE = ("csr", "csc", "coo")


def mapped(file: IO[bytes], where: str) -> Array:
    """Map the array of a ``.npy`` file; InputError if the file is not one."""
    with sound(where), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        array: Any = np.lib.format.open_memmap(f"/proc/self/fd/{file.fileno()}", "r")
        if file.seek(0, 2) > array.offset + array.nbytes:
            raise ValueError("bytes after the last value")
    return array


def integers(array: Array, where: str) -> None:
    """Raise InputError unless an array holds integers."""
    if array.dtype.kind not in "iu":
        raise InputError(f"{where}: {array.dtype} values, where integers are expected")


def checked(ids: Array, most: int, base: int, where: str, begin: int, row: int) -> Ids:
    """Return zero-based int64 ids; InputError ``where[index]`` for a bad id.

    begin: index of the first row of ``ids``; row: number of ids in a row
    """
    fault = id_fault(ids, most, base)
    if fault:
        raise InputError(f"{where}[{begin + fault[0] // row}]: {fault[1]}")
    zero_based: Ids = ids.astype(np.int64, copy=False)
    return zero_based - base if base else zero_based


@dataclass(frozen=True)
class Vector:
    """Integers [k] of an archive, mapped from a copy; where: their name in messages."""

    values: Array
    where: str

    def __len__(self) -> int:
        return len(self.values)

    def pieces(self) -> Iterator[Array]:
        """Yield the values in pieces of at most CHUNK, of the array's dtype."""
        for begin in range(0, len(self.values), CHUNK):
            yield self.values[begin : begin + CHUNK]

    def ids(self, begin: int, count: int, most: int, base: int = 0) -> Ids:
        """Return zero-based int64 ids [count] from ``begin`` on; see ``checked``."""
        ids = self.values[begin : begin + count]
        return checked(ids, most, base, self.where, begin, 1)


class Archive:
    """The arrays of a ``.npz`` archive, by name."""

    def __init__(self, file: BinaryFile) -> None:
        self.path = file.path
        with sound(str(self.path)):
            self._archive = zipfile.ZipFile(file.content)
        names = [name.removesuffix(".npy") for name in self._archive.namelist()]
        self.names = Counter(names)
        for name, count in self.names.items():
            if count > 1:
                raise InputError(f"{self.path}: {count} arrays {name[:SHOWN]!a}")

    def array(self, name: str) -> Array:
        """Return an array, mapped from a copy on the disk."""
        where = f"{self.path}: {name}"
        with sound(where):
            if name not in self.names:
                raise InputError(f"{self.path}: no array '{name}'")
            info = self._archive.getinfo(name + ".npy")
            with unpacked(self._archive, info) as packed:
                copy = unnamed_copy(self.path, packed.read, "unpack")
        with copy:
            return mapped(copy, where)

    def vector(self, name: str) -> Vector:
        """Return an array; InputError unless it is a vector of integers."""
        array, where = self.array(name), f"{self.path}: {name}"
        integers(array, where)
        if array.ndim != 1:
            shape = list(array.shape)
            raise InputError(f"{where}: shape {shape}, where [k] is expected")
        return Vector(array, where)

    def word(self, name: str) -> str:
        """Return the text of a one-word array."""
        array = self.array(name)
        single = array.size == 1 and array.dtype.kind in "SU"
        if not single or not 0 < array.dtype.itemsize <= LONGEST_WORD:
            raise InputError(f"{self.path}: {name}: not a word")
        value = array.item()
        return value.decode("ascii", "replace") if isinstance(value, bytes) else value


class NumpyReader(Reader):
    """Reads ``.npy`` and ``.npz`` files."""

    name = "numpy"
    bipartite = True
    suffixes = (".npy", ".npz")
    opens = BinaryFile

    @staticmethod
    def recognises(head: bytes) -> bool:
        """Return whether the file is an array, or an archive that begins with one."""
        return head.startswith(MAGIC) or is_array_archive(head)

    def pairs(self, file: BinaryFile, edges: EdgeFile) -> Iterator[Ids]:
        """Yield the edges; InputError if the file has no known layout.

        Raises UsageError if a base or a size is given for a matrix, which has its own.
        """
        head = file.read(min(file.size, len(MAGIC)))
        file.pass_over(file.size - len(head))
        file.content.seek(0)
        if head.startswith(MAGIC):
            self.options.check_one_set(file.path, "NumPy pairs")
            return self._array(file)
        if not head.startswith(ZIP_MAGICS):
            raise file.refuse("neither a .npy array nor a .npz archive", 0)
        archive = Archive(file)
        pairs, sides = self._archive(archive)
        if sides is None:
            return pairs
        edges.n, edges.notes = sides.n, sides.notes
        edges.unread = "values" if "data" in archive.names else ""
        return map(sides.place, pairs)

    def _array(self, file: BinaryFile) -> Iterator[Ids]:
        """Yield the pairs of an array that is mapped from the file."""
        base, most, where = self.options.base, self.options.most, str(file.path)
        array = mapped(file.content, where)
        integers(array, where)
        if array.ndim != 2 or 2 not in array.shape:
            what = f"shape {list(array.shape)}, where [k, 2] or [2, k] is expected"
            raise InputError(f"{where}: {what}")
        pairs = array if array.shape[1] == 2 else array.T
        for begin in range(0, len(pairs), CHUNK):
            piece = np.ascontiguousarray(pairs[begin : begin + CHUNK])
            yield checked(piece, most, base, f"{where}: ", begin, 2)

    def _archive(self, archive: Archive) -> tuple[Iterator[Ids], Sides | None]:
        """Return the pairs of an archive, and the sides of a matrix or None."""
        path = archive.path
        if {"src", "dst"} <= archive.names.keys():
            self.options.check_one_set(path, "NumPy pairs")
            base, most = self.options.base, self.options.most
            columns = archive.vector("src"), archive.vector("dst")
            return _columns(columns, (most, most), base), None
        if not {"format", "shape"} <= archive.names.keys():
            what = "neither arrays src and dst nor a SciPy sparse matrix"
            raise InputError(f"{path}: {what}")
        self.options.check_unneeded("a SciPy matrix", 0)
        kind = archive.word("format")
        if kind not in SPARSE:
            allowed = ", ".join(SPARSE)
            raise InputError(f"{path}: sparse format {kind!a}; allowed: {allowed}")
        sizes = archive.vector("shape")
        if len(sizes) != 2:
            raise InputError(f"{sizes.where}: {len(sizes)} sizes, not 2")
        rows, width = sizes.ids(0, 2, LARGEST_ID).tolist()
        if not max(rows, width):
            raise InputError(f"{path}: no vertices")
        sides = self.options.sides(rows, width, str(path))
        if kind == "coo":
            pair = archive.vector("row"), archive.vector("col")
            return _columns(pair, (rows - 1, width - 1)), sides
        if kind == "csc":
            rows, width = width, rows
        starts, near = archive.vector("indptr"), archive.vector("indices")
        return _compressed(starts, near, rows, width, turned=kind == "csc"), sides


def _columns(
    columns: tuple[Vector, Vector], most: tuple[int, int], base: int = 0
) -> Iterator[Ids]:
    """Yield the pairs of two arrays, which must have the same length."""
    first, second = columns
    _check_length(second, len(first))
    for begin in range(0, len(first), CHUNK):
        sides = zip(columns, most, strict=True)
        pair = [x.ids(begin, CHUNK, largest, base) for x, largest in sides]
        yield np.stack(pair, axis=1)


def _check_length(vector: Vector, length: int) -> None:
    if len(vector) != length:
        what = f"{len(vector)} values, where {length} are expected"
        raise InputError(f"{vector.where}: {what}")


def _compressed(
    starts: Vector, near: Vector, rows: int, columns: int, *, turned: bool
) -> Iterator[Ids]:
    """Yield the pairs of a matrix stored by rows, or by columns if ``turned``."""

    def refuse(index: int, what: str) -> InputError:
        return InputError(f"{starts.where}[{index}]: {what}")

    _check_length(starts, rows + 1)
    done = 0
    for u in csr_sources(starts.pieces(), len(near), refuse):
        v = near.ids(done, len(u), columns - 1)
        done += len(u)
        yield np.stack((v, u) if turned else (u, v), axis=1)
