"""The contract of a reader of edge files, and the choice of one for a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from distbfs.errors import InputError, UsageError
from distbfs.formats.compressed import plain_name
from distbfs.formats.line_rules import LARGEST_ID
from distbfs.formats.text import BOM, HashedFile, Progress
from distbfs.options import check_choice, check_range
from distbfs.registry import READERS, lookup
from distbfs.types import Ids

if TYPE_CHECKING:
    from pathlib import Path

Take: TypeAlias = Callable[[Ids], None]

HEAD_BYTES = 64 << 10


@dataclass(frozen=True)
class ReaderOptions:
    """What a file does not say itself.

    one_based: ids in the file start at 1, not at 0; None: as the format has it
    n: number of vertices, None for one more than the largest id
    directed: edges are to lead one way, from the first id to the second
    columns: names of the two columns of a table that hold ids
    bipartite: rows and columns of a matrix are two sets of vertices
    relabel: number the vertices anew; ids are any "numbers", or any "text"
    compiled: parse with the C kernel where there is a compiler
    progress: called with the bytes of the file that were read so far
    """

    one_based: bool | None = None
    n: int | None = None
    relabel: str = ""
    directed: bool = False
    columns: tuple[str, str] | None = None
    bipartite: bool = False
    compiled: bool = True
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if self.n is not None:
            check_range("n", self.n, 1)
        check_choice("relabel", self.relabel, ("", "numbers", "text"))
        if self.relabel and (self.one_based is not None or self.n is not None):
            raise UsageError("relabelled ids have neither a base nor a size; give none")

    @property
    def base(self) -> int:
        """The lowest id as written, where the format does not say."""
        return int(bool(self.one_based))

    @property
    def most(self) -> int:
        """The largest id as written, where the format does not say."""
        return LARGEST_ID if self.n is None else self.n - 1 + self.base

    def check_unneeded(self, what: str, first: int) -> None:
        """Raise UsageError for options that ``what`` has no use for.

        Such files state their size; ``first`` is their lowest id.
        """
        states = f"{what} states its size, and its ids start at {first}"
        if self.one_based is not None or self.n is not None:
            raise UsageError(f"{states}; give neither")
        if self.relabel:
            raise UsageError(f"{states}; they are not relabelled")

    def check_one_set(self, path: Path, what: str) -> None:
        """Raise UsageError where ids that name one set of vertices are to name two."""
        if self.bipartite:
            raise UsageError(
                f"{path}: ids of {what} name one set of vertices; leave out --bipartite"
            )

    def sides(self, rows: int, columns: int, where: str) -> Sides:
        """Return the vertices of a matrix; InputError unless it is square or bipartite.

        ``where``: the file, and the line if there is one.
        """
        if rows != columns and not self.bipartite:
            raise InputError(
                f"{where}: a matrix of {rows} rows and {columns} columns; --bipartite "
                "reads them as two sets of vertices"
            )
        sides = Sides(rows, columns, self.bipartite)
        if sides.n > LARGEST_ID:
            raise InputError(f"{where}: {rows} rows and {columns} columns are too many")
        return sides

    def check_undirected(self, path: Path, what: str) -> None:
        """Raise UsageError where a file that gives each edge once is to be directed."""
        if self.directed:
            raise UsageError(
                f"{path}: edges of {what} lead both ways; leave out --directed"
            )


@dataclass(frozen=True)
class Sides:
    """The vertices of a matrix: rows are those from 0 on, columns too.

    apart: columns are the vertices that follow the rows
    """

    rows: int
    columns: int
    apart: bool

    @property
    def n(self) -> int:
        """How many vertices there are."""
        return self.rows + self.columns if self.apart else max(self.rows, self.columns)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of the numbers of vertices."""
        rows = f"{self.rows} rows are vertices from 0 on"
        columns = f"{self.columns} columns from {self.rows} on"
        return (f"{rows}, {columns}",) if self.apart else ()

    def place(self, pairs: Ids) -> Ids:
        """Return pairs of row and column, int64 [k, 2], as vertices; changes them."""
        if self.apart:
            pairs[:, 1] += self.rows
        return pairs


@dataclass(frozen=True)
class EdgeFile:
    """What a file held: vertices, edge tuples, and the XXH3 (128 bits) of its bytes.

    words: where ids are text, the distinct ones by the numbers that were handed over
    unread: what edges have that is not looked at, as "weights"
    directed: the file says that its edges lead one way
    one_based: ids in the file start at 1, whether it was asked for or found out
    notes: what is to be said of how the file was read
    """

    format: str
    n: int
    tuples: int
    digest: str
    words: tuple[bytes, ...] | None = None
    unread: str = ""
    directed: bool = False
    one_based: bool = False
    notes: tuple[str, ...] = ()


class Reader(Protocol):
    """Reads files of one format; one instance may read any number of files.

    ``suffixes`` are the endings of names that its files have, in lower case.  Where
    ids may be text, a class says so by ``text_ids = True``, where columns have names by
    ``named_columns = True``, where files may hold matrices by ``bipartite = True``; a
    method ``resembles(head)`` finds out files without any mark.
    """

    name: str
    suffixes: tuple[str, ...]

    def __init__(self, options: ReaderOptions) -> None:
        """Raise UsageError for options that the format has no use for."""

    @staticmethod
    def recognises(head: bytes) -> bool:
        """Return whether a file that begins with ``head`` is surely of this format."""

    def read(self, path: Path, take: Take) -> EdgeFile:
        """Read a file from begin to end and hand its edges over.

        ``take`` is given zero-based int64 [k, 2] arrays in the order of the file, or
        ids as they are where vertices are relabelled; they are valid until it returns.
        Memory is bounded whatever the size of the file.
        Raises InputError ``FILE:LINE: what is wrong``.
        """


def sniff(path: Path) -> str:
    """Return the name of the format of a file, by its mark, then name, then content.

    Raises InputError for a file that cannot be read or is of no known format.
    """
    with HashedFile(path) as file:
        head = file.take(HEAD_BYTES).removeprefix(BOM)
    readers: dict[str, type[Reader]] = {
        name: lookup(READERS, "format", name) for name in READERS
    }
    for name, reader in readers.items():
        if reader.recognises(head):
            return name
    for name, reader in readers.items():
        if plain_name(path).endswith(reader.suffixes):
            return name
    for name, reader in readers.items():
        resembles = getattr(reader, "resembles", None)
        if resembles is not None and resembles(head):
            return name
    endings = ", ".join(x for reader in readers.values() for x in reader.suffixes)
    raise InputError(
        f"{path}: the format is not known from content or name ({endings}); "
        f"name one of {', '.join(readers)}"
    )


def make_reader(path: Path, name: str, options: ReaderOptions) -> Reader:
    """Return a reader for a file, of the format ``name`` or, if empty, as sniffed."""
    kind: type[Reader] = lookup(READERS, "format", name or sniff(path))
    if options.columns and not getattr(kind, "named_columns", False):
        raise UsageError(f"format {kind.name} has no named columns; leave out columns")
    if options.bipartite and not getattr(kind, "bipartite", False):
        raise UsageError(f"format {kind.name} has no matrices; leave out --bipartite")
    return kind(options)
