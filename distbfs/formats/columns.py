"""Pairs of ids from two columns of a table, as Parquet and Arrow files hold them.

The user names the columns, or they have one of the usual pairs of names, or the table
has only these two.  The metadata of a table may say how many vertices there are
(``distbfs.vertices``) and whether edges lead one way (``distbfs.directed``: 0 or 1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from distbfs.errors import InputError
from distbfs.formats.base import EdgeFile, Reader
from distbfs.formats.ids import LARGEST_ID
from distbfs.formats.lines import LineFault
from distbfs.formats.new_ids import Words
from distbfs.formats.numpy_pairs import checked
from distbfs.formats.packed import BinaryFile
from distbfs.formats.text import sound
from distbfs.registry import optional

if TYPE_CHECKING:
    from collections.abc import Sequence

    from distbfs.types import Bytes, Ids

USUAL = (("src", "dst"), ("source", "target"), ("from", "to"), ("u", "v"))
VERTICES, DIRECTED = b"distbfs.vertices", b"distbfs.directed"
ONE_BASED = b"distbfs.one_based"
ROWS = 1 << 18
NAMES_SHOWN = 8


def load(module: str) -> Any:
    """Return a module of pyarrow; LibraryMissing if it is not installed."""
    what = "pyarrow is missing, which reads and writes Parquet and Arrow"
    return optional(module, f"{what}; pip install '.[arrow]'")


@contextmanager
def hashed_aside(file: BinaryFile) -> Iterator[None]:
    """Hash a whole file in a thread while pyarrow reads its content."""
    with ThreadPoolExecutor(1) as pool:
        rest = 0 if file.packing else file.size - file.position
        done = pool.submit(file.pass_over, rest)
        yield
        done.result()


def opened(file: BinaryFile) -> Any:
    """Open a file's content for pyarrow, which reads it without calling Python."""
    return load("pyarrow").OSFile(f"/proc/self/fd/{file.content.fileno()}")


def usual(names: Sequence[str]) -> tuple[int, int] | None:
    """Return the indices of a usual pair of column names, ignoring case, or None."""
    lower = [name.lower() for name in names]
    for pair in USUAL:
        if all(lower.count(name) == 1 for name in pair):
            return lower.index(pair[0]), lower.index(pair[1])
    return None


def choose(
    names: Sequence[str], wanted: tuple[str, str] | None, where: str
) -> tuple[int, int]:
    """Return the indices of the two id columns; InputError if the choice is unclear."""
    if wanted and all(names.count(name) == 1 for name in wanted):
        return names.index(wanted[0]), names.index(wanted[1])
    chosen = usual(names) or ((0, 1) if len(names) == 2 else None)
    if wanted is None and chosen:
        return chosen
    shown = ", ".join(f"{name:.40}" for name in names[:NAMES_SHOWN])
    more = ", …" if len(names) > NAMES_SHOWN else ""
    what = f"columns {' '.join(f'{shown}{more}'.split()) or 'none'}"
    lacking = "neither src and dst nor other usual names"
    if wanted:
        lacking = f"not one each of {wanted[0]:.40} and {wanted[1]:.40}"
    raise InputError(f"{where}: {what}; {lacking}")


class TableFile(NamedTuple):
    """An open table.

    schema: the pyarrow schema of all columns
    batches: function that yields the batches of a ``Table``'s columns
    read: function of names that returns these columns whole
    """

    schema: Any
    batches: Callable[[Table], Iterator[Any]]
    read: Callable[[list[str]], Any]


class TableReader(Reader):
    """Reads tables of one kind, batch by batch."""

    text_ids = named_columns = True
    opens = BinaryFile

    def pairs(self, file: BinaryFile, edges: EdgeFile) -> Iterator[Ids]:
        """Yield the pairs; InputError if a file is broken or lacks id columns."""
        where = str(file.path)
        with hashed_aside(file):
            with sound(where):
                stored = self.table(file)
            table = Table(file, stored.schema, self, edges)
            with sound(where):
                batches = stored.batches(table)
            yield from table.pieces(batches)

    @staticmethod
    def table(file: BinaryFile) -> TableFile:
        """Open the table in a file."""
        raise NotImplementedError


class Table:
    """Passes on the pairs of a table that arrives in batches.

    schema: the pyarrow schema of all columns
    edges: facts about the file, to which the table adds its own
    """

    def __init__(
        self, file: BinaryFile, schema: Any, reader: Reader, edges: EdgeFile
    ) -> None:
        """Choose the id columns; InputError if the choice is unclear."""
        self.where, options, self.words = str(file.path), reader.options, reader.words
        with sound(self.where):
            names = [str(name) for name in schema.names]
            stated = schema.metadata or {}
        self.chosen = choose(names, options.columns, self.where)
        self.names = [names[k] for k in self.chosen]
        if options.one_based is None and not options.relabel:
            options = replace(options, one_based=stated.get(ONE_BASED) == b"1")
        if options.n is None and VERTICES in stated and not options.relabel:
            options = replace(options, n=self._stated(stated[VERTICES]))
        self.options = options
        if stated.get(DIRECTED) == b"0":
            options.check_undirected(file.path, "an undirected table")
        edges.n, edges.directed = options.n or 0, stated.get(DIRECTED) == b"1"
        others = len(names) > len(set(self.chosen))
        edges.unread = "columns beside the two ids" if others else ""
        edges.one_based = bool(options.one_based)

    def _stated(self, value: bytes) -> int:
        if not value.isdigit() or len(value) > 19 or not 0 < int(value) <= LARGEST_ID:
            shown = value[:40].decode("ascii", "backslashreplace")
            raise InputError(f"{self.where}: {shown!a} vertices by its metadata")
        return int(value)

    def pieces(self, batches: Iterator[Any]) -> Iterator[Ids]:
        """Yield the pairs of batches."""
        begin = 0
        while True:
            with sound(self.where):
                batch = next(batches, None)
                if batch is None:
                    return
                columns = [batch.column(name) for name in self.names]
            if not batch.num_rows:
                continue
            pairs = np.empty((batch.num_rows, 2), dtype=np.int64)
            for side, name in enumerate(self.names):
                pairs[:, side] = self._ids(columns[side], name, begin)
            yield pairs
            begin += len(pairs)

    def _ids(self, array: Any, column: str, begin: int) -> Ids:
        """Return the ids in a piece of a column that begins at row ``begin``."""
        where = f"{self.where}: {column:.40}"
        types = load("pyarrow.types")
        with sound(where):
            array.validate(full=True)
            if array.null_count:
                at = begin + int(np.argmax(array.is_null().to_numpy(False)))
                raise InputError(f"{where}[{at}]: a null, where an id is expected")
            if types.is_dictionary(array.type):
                array = array.dictionary_decode()
            kind = array.type
            text = types.is_string(kind) or types.is_large_string(kind)
            if not text and not types.is_integer(kind):
                raise InputError(f"{where}: {kind} values, where integers are expected")
            if self.words is not None:
                return self._numbers(array, self.words, where, begin)
            if text:
                more = "" if self.options.relabel else "; --relabel allows them"
                raise InputError(f"{where}: ids are text{more}")
            values, ids = array.to_numpy(False), self.options
            return checked(values, ids.most, ids.base, where, begin, 1)

    @staticmethod
    def _numbers(array: Any, words: Words, where: str, begin: int) -> Ids:
        """Return the numbers of the ids in an Arrow array of text, int64."""
        try:
            text, offsets = text_in(array)
            return words.numbers(text, offsets[:-1], np.diff(offsets))
        except LineFault as fault:
            raise InputError(f"{where}, rows from {begin}: {fault}") from fault


def text_in(array: Any) -> tuple[Bytes, Ids]:
    """Return the text of an Arrow array, and where each word begins, int64 [k + 1]."""
    array = array.cast("large_string")
    _, ends, data = array.buffers()
    last = array.offset + len(array) + 1
    offsets = np.frombuffer(ends, dtype=np.int64)[array.offset : last]
    return np.frombuffer(data or b"", dtype=np.uint8), offsets
