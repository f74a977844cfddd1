"""Pairs of ids from two columns of a table, as Parquet and Arrow files hold them.

The columns are named, or are one of the usual pairs of names, or the only two.  A table
says how many vertices there are by the key ``distbfs.vertices`` of its metadata.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.errors import InputError, ResourceError
from distbfs.formats.base import EdgeFile, ReaderOptions, Take
from distbfs.formats.lines import LineFault
from distbfs.formats.numpy_pairs import checked
from distbfs.formats.rules import LARGEST_ID
from distbfs.formats.words import Words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from distbfs.formats.packed import BinaryFile
    from distbfs.types import Ids

USUAL = (("src", "dst"), ("source", "target"), ("from", "to"), ("u", "v"))
VERTICES = b"distbfs.vertices"
ROWS = 1 << 18
NAMES_SHOWN = 8
BROKEN = (OSError, ValueError, LookupError, TypeError, RuntimeError, MemoryError)


def load(module: str) -> Any:
    """Return a module of pyarrow; ResourceError where there is none."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ResourceError(
            "pyarrow is missing, which reads and writes Parquet and Arrow; "
            "pip install 'distbfs[arrow]'"
        ) from error


@contextmanager
def sound(where: str) -> Iterator[None]:
    """Turn the errors of pyarrow about a broken file into InputError."""
    broken = (*BROKEN, load("pyarrow").ArrowException)
    try:
        yield
    except InputError:
        raise
    except broken as error:
        what = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{where}: not a sound file: {what:.200}") from error


@contextmanager
def hashed_aside(file: BinaryFile) -> Iterator[None]:
    """Hash a whole file while its content is read by pyarrow."""
    with ThreadPoolExecutor(1) as pool:
        rest = 0 if file.packing else file.size - file.position
        done = pool.submit(file.pass_over, rest)
        yield
        done.result()


def opened(file: BinaryFile) -> Any:
    """Return the content of a file as pyarrow reads it, without the interpreter."""
    return load("pyarrow").OSFile(f"/proc/self/fd/{file.content.fileno()}")


def choose(
    names: Sequence[str], wanted: tuple[str, str] | None, where: str
) -> tuple[int, int]:
    """Return which columns hold the ends of edges; InputError where none is clear."""
    for pair in (wanted,) if wanted else USUAL:
        if all(names.count(name) == 1 for name in pair):
            return names.index(pair[0]), names.index(pair[1])
    if wanted is None and len(names) == 2:
        return 0, 1
    shown = ", ".join(f"{name:.40}" for name in names[:NAMES_SHOWN])
    more = ", …" if len(names) > NAMES_SHOWN else ""
    what = f"columns {' '.join(f'{shown}{more}'.split()) or 'none'}"
    lacking = "neither src and dst nor other usual names"
    if wanted:
        lacking = f"not one each of {wanted[0]:.40} and {wanted[1]:.40}"
    raise InputError(f"{where}: {what}; {lacking}")


class Table:
    """Hands over the pairs of a table that comes batch by batch.

    schema: of all columns, of pyarrow
    """

    def __init__(self, path: Any, schema: Any, options: ReaderOptions) -> None:
        """Choose the columns; InputError where that cannot be done."""
        self.where = str(path)
        with sound(self.where):
            names = [str(name) for name in schema.names]
            stated = (schema.metadata or {}).get(VERTICES)
        self.chosen = choose(names, options.columns, self.where)
        self.names = [names[k] for k in self.chosen]
        self.others = len(names) - len(set(self.chosen))
        self.options = options
        self.words = Words() if options.relabel == "text" else None
        self.n = options.n
        if self.n is None and stated is not None and not options.relabel:
            self.n = self._stated(stated)

    def _stated(self, value: bytes) -> int:
        if not value.isdigit() or len(value) > 19 or not 0 < int(value) <= LARGEST_ID:
            shown = value[:40].decode("ascii", "backslashreplace")
            raise InputError(f"{self.where}: {shown!a} vertices by its metadata")
        return int(value)

    def ordered(self, batch: Any) -> tuple[Any, Any]:
        """Return both columns of a batch, which has them in any order."""
        first, second = (batch.column(name) for name in self.names)
        return first, second

    def hand_over(
        self, batches: Iterator[tuple[Any, Any]], take: Take, name: str
    ) -> EdgeFile:
        """Pass the pairs on; what is returned lacks the digest."""
        tuples, largest = 0, 0
        while True:
            with sound(self.where):
                columns = next(batches, None)
            if columns is None:
                break
            if not len(columns[0]):
                continue
            pairs = np.empty((len(columns[0]), 2), dtype=np.int64)
            for side, (array, column) in enumerate(
                zip(columns, self.names, strict=True)
            ):
                pairs[:, side] = self._ids(array, column, tuples)
            take(pairs)
            tuples += len(pairs)
            largest = max(largest, int(pairs.max()) + 1)
        if not tuples and self.n is None:
            raise InputError(f"{self.where}: no edges")
        words = None if self.words is None else tuple(self.words.index)
        unread = "columns beside the two ids" if self.others else ""
        n = largest if self.n is None else self.n
        return EdgeFile(name, n, tuples, "", words, unread)

    def _ids(self, array: Any, column: str, begin: int) -> Ids:
        """Return the ids of a piece of a column; begin: its first row."""
        where = f"{self.where}: {column:.40}"
        types = load("pyarrow.types")
        with sound(where):
            array.validate(full=True)
            if array.null_count:
                at = begin + int(np.argmax(array.is_null().to_numpy(False)))
                raise InputError(f"{where}[{at}]: a null, where an id is expected")
            kind = array.type
            if types.is_dictionary(kind):
                kind = kind.value_type
        if types.is_integer(kind):
            with sound(where):
                if types.is_dictionary(array.type):
                    array = array.dictionary_decode()
                values = array.to_numpy(False)
            if self.words is not None:
                return self._text(values.astype(str).tolist(), where, begin)
            n, base = self.n, self.options.base
            most = LARGEST_ID if n is None else n - 1 + base
            return checked(values, most, base, where, begin, 1)
        text = types.is_string(kind) or types.is_large_string(kind)
        if not text:
            raise InputError(f"{where}: {kind} values, where integers are expected")
        if self.words is None:
            more = "" if self.options.relabel else "; --relabel takes them"
            raise InputError(f"{where}: ids are text{more}")
        with sound(where):
            if not types.is_dictionary(array.type):
                array = array.dictionary_encode()
            words = array.dictionary.to_pylist()
            codes = array.indices.to_numpy(False).astype(np.int64)
        used = np.unique(codes)
        numbers = np.full(len(words), -1, dtype=np.int64)
        numbers[used] = self._text([words[k] for k in used.tolist()], where, begin)
        return numbers[codes]

    def _text(self, words: Sequence[str | None], where: str, begin: int) -> Ids:
        """Return the numbers of words."""
        if self.words is None:
            raise ValueError("ids are no text here")
        number = self.words.number
        try:
            numbers = [number((word or "").encode()) for word in words]
        except LineFault as fault:
            raise InputError(f"{where}, rows from {begin}: {fault}") from fault
        return np.array(numbers, dtype=np.int64)
