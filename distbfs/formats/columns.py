"""Pairs of ids from two columns of a table, as Parquet and Arrow files hold them.

The user names the columns, or they have one of the usual pairs of names, or the table
has only these two.  The metadata of a table may say how many vertices there are
(``distbfs.vertices``) and whether edges lead one way (``distbfs.directed``: 0 or 1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from distbfs.errors import InputError
from distbfs.formats.base import EdgeFile, Reader, ReaderOptions
from distbfs.formats.ids import LARGEST_ID
from distbfs.formats.lines import LineFault
from distbfs.formats.numpy_pairs import checked
from distbfs.formats.packed import BinaryFile
from distbfs.formats.text import sound
from distbfs.registry import optional

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

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
    batches: function of indices that yields batches of these columns
    read: function of names that returns these columns whole
    """

    schema: Any
    batches: Callable[[Sequence[int]], Iterator[Any]]
    read: Callable[[list[str]], Any]


class TableReader(Reader):
    """Reads tables of one kind, batch by batch."""

    text_ids = named_columns = True
    opens = BinaryFile

    def pairs(self, file: BinaryFile, edges: EdgeFile) -> Iterator[Ids]:
        """Yield the pairs; InputError if a file is broken or lacks id columns."""
        where, begin = str(file.path), 0
        with hashed_aside(file):
            with sound(where):
                stored = self.table(file)
                names = [str(name) for name in stored.schema.names]
                stated = stored.schema.metadata or {}
            chosen = choose(names, self.options.columns, where)
            options = self._as_stated(stated, file.path, edges)
            others = len(names) > len(set(chosen))
            edges.unread = "columns beside the two ids" if others else ""
            with sound(where):
                batches = stored.batches(chosen)
            while True:
                with sound(where):
                    batch = next(batches, None)
                    if batch is None:
                        return
                    columns = {names[k]: batch.column(names[k]) for k in chosen}
                if not batch.num_rows:
                    continue
                pairs = np.empty((batch.num_rows, 2), dtype=np.int64)
                for side, k in enumerate(chosen):
                    column, place = columns[names[k]], f"{where}: {names[k]:.40}"
                    pairs[:, side] = self._ids(column, place, begin, options)
                yield pairs
                begin += len(pairs)

    @staticmethod
    def table(file: BinaryFile) -> TableFile:
        """Open the table in a file."""
        raise NotImplementedError

    def _as_stated(
        self, stated: Mapping[bytes, bytes], path: Path, edges: EdgeFile
    ) -> ReaderOptions:
        """Return the options, completed by a table's metadata; fill in ``edges``."""
        options = self.options
        if options.one_based is None and not options.relabel:
            options = replace(options, one_based=stated.get(ONE_BASED) == b"1")
        if options.n is None and VERTICES in stated and not options.relabel:
            value = stated[VERTICES]
            digits = value.isdigit() and len(value) <= 19
            if not digits or not 0 < int(value) <= LARGEST_ID:
                shown = value[:40].decode("ascii", "backslashreplace")
                raise InputError(f"{path}: {shown!a} vertices by its metadata")
            options = replace(options, n=int(value))
        if stated.get(DIRECTED) == b"0":
            options.check_undirected(path, "an undirected table")
        edges.n, edges.directed = options.n or 0, stated.get(DIRECTED) == b"1"
        edges.one_based = bool(options.one_based)
        return options

    def _ids(self, array: Any, where: str, begin: int, options: ReaderOptions) -> Ids:
        """Return the ids in a piece of a column that begins at row ``begin``.

        where: the file and the column, for messages
        """
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
                words, offsets = text_in(array)
                try:
                    return self.words.numbers(words, offsets[:-1], np.diff(offsets))
                except LineFault as fault:
                    raise InputError(f"{where}, rows from {begin}: {fault}") from fault
            if text:
                more = "" if options.relabel else "; --relabel allows them"
                raise InputError(f"{where}: ids are text{more}")
            values = array.to_numpy(False)
            return checked(values, options.most, options.base, where, begin, 1)


def text_in(array: Any) -> tuple[Bytes, Ids]:
    """Return the text of an Arrow array, and where each word begins, int64 [k + 1]."""
    array = array.cast("large_string")
    _, ends, data = array.buffers()
    last = array.offset + len(array) + 1
    offsets = np.frombuffer(ends, dtype=np.int64)[array.offset : last]
    return np.frombuffer(data or b"", dtype=np.uint8), offsets
