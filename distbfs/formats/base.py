"""The interface of readers of edge files, and the choice of a reader for a file."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import xxhash

from distbfs.errors import InputError, UsageError
from distbfs.formats.compressed import plain_name
from distbfs.formats.ids import LARGEST_ID
from distbfs.formats.new_ids import Words
from distbfs.formats.text import BOM, HashedFile, Progress, TextFile
from distbfs.options import FileFacts, check_choice, check_declared, check_range
from distbfs.registry import READERS, lookup
from distbfs.types import Ids

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

Take: TypeAlias = Callable[[Ids], None]

HEAD_BYTES = 64 << 10


@dataclass(frozen=True, kw_only=True)
class ReaderOptions(FileFacts):
    """Options that say how a file is read.

    n: number of vertices, None for one more than the largest id
    relabel: the kind of ids if vertices get new numbers: any "numbers", or any "text"
    progress: called with the number of bytes read from the file so far
    """

    n: int | None = None
    relabel: str = ""
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if self.n is not None:
            check_range("n", self.n, 1)
        check_choice("relabel", self.relabel, ("", "numbers", "text"))
        check_declared(self)
        stated = {self.one_based, self.first_id, self.n} - {None}
        if self.relabel and stated:
            raise UsageError("relabelled ids have neither a base nor a size; give none")
        if self.columns and self.header is False:
            raise UsageError("columns are named by a header; leave out --no-header")

    @property
    def base(self) -> int:
        """The lowest id in the file, where the format does not define it."""
        return int(bool(self.one_based))

    @property
    def most(self) -> int:
        """The largest id in the file, where the format does not define it."""
        return LARGEST_ID if self.n is None else self.n - 1 + self.base

    def check_unneeded(self, what: str, first: int) -> None:
        """Raise UsageError for options that do not apply to ``what``.

        what: name, in messages, of files that state their size; first: their lowest id
        """
        states = f"{what} states its size, and its ids start at {first}"
        if self.one_based is not None or self.n is not None:
            other = "; first_id changes that" * (self.n is None)
            raise UsageError(f"{states}; give neither{other}")
        if self.relabel:
            raise UsageError(f"{states}; they are not relabelled")

    def check_one_set(self, path: Path, what: str) -> None:
        """Raise UsageError for ``bipartite`` if the ids name one set of vertices."""
        if self.bipartite:
            raise UsageError(
                f"{path}: ids of {what} name one set of vertices; leave out --bipartite"
            )

    def sides(self, rows: int, columns: int, where: str, base: int = 0) -> Sides:
        """Return the vertices of a matrix; InputError unless it is square or bipartite.

        where: the file, and the line if there is one, for messages
        base: the lowest id in the file
        """
        if rows != columns and not self.bipartite:
            raise InputError(
                f"{where}: a matrix of {rows} rows and {columns} columns; --bipartite "
                "reads them as two sets of vertices"
            )
        first = base if self.first_id is None else self.first_id
        sides = Sides(rows, columns, self.bipartite, first)
        if sides.n > LARGEST_ID:
            raise InputError(f"{where}: {rows} rows and {columns} columns are too many")
        return sides

    def check_undirected(self, path: Path, what: str) -> None:
        """Raise UsageError for ``directed`` if the file lists each edge once."""
        if self.directed:
            raise UsageError(
                f"{path}: edges of {what} lead both ways; leave out --directed"
            )


@dataclass(frozen=True)
class Sides:
    """The vertices of a matrix, whose rows and columns are each numbered from 0.

    apart: whether columns are vertices of their own, numbered after the rows
    first: the number that notes give to the first vertex
    """

    rows: int
    columns: int
    apart: bool
    first: int = 0

    @property
    def n(self) -> int:
        """Number of vertices."""
        return self.rows + self.columns if self.apart else max(self.rows, self.columns)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes that tell the user how rows and columns became vertices."""
        rows = f"{self.rows} rows are vertices from {self.first} on"
        columns = f"{self.columns} columns from {self.first + self.rows} on"
        return (f"{rows}, {columns}",) if self.apart else ()

    def place(self, pairs: Ids) -> Ids:
        """Convert pairs of row and column, int64 [k, 2], to vertices, in place."""
        if self.apart:
            pairs[:, 1] += self.rows
        return pairs


@dataclass
class EdgeFile:
    """Facts about a file: vertices, edge tuples and the 128-bit XXH3 of its bytes.

    n: number of vertices, 0 until it is known
    unread: name of the edge data that are ignored, such as "weights"
    directed: whether the file says that its edges lead one way
    one_based: whether ids start at 1, as requested, as detected or by the format
    notes: remarks for the user on how the file was read
    """

    format: str
    n: int = 0
    tuples: int = 0
    digest: str = ""
    unread: str = ""
    directed: bool = False
    one_based: bool = False
    notes: tuple[str, ...] = ()


class Reader:
    """Reads files of one format; one instance reads the files of one input.

    Attributes
    ----------
    suffixes : tuple of str
        Endings of the files' names, in lower case.
    text_ids : bool
        Whether ids may be text.
    named_columns, header_line : bool
        Whether columns may have names, and whether a line may give the names.
    bipartite : bool
        Whether files may hold matrices.
    sized : tuple of (str, int), or None
        Name, in messages, of files that state their size, and the lowest id in them.
    mark : re.Pattern, or None
        First bytes by which files are recognised.
    opens : type
        Class that opens the files.
    words : Words or None
        The distinct ids of all files, where ids are text.
    """

    name: str
    suffixes: tuple[str, ...] = ()
    text_ids = named_columns = header_line = bipartite = False
    sized: tuple[str, int] | None = None
    mark: re.Pattern[bytes] | None = None
    opens: type[HashedFile] = TextFile

    def __init__(self, options: ReaderOptions | None = None) -> None:
        """Raise UsageError for options that do not apply to the format."""
        self.options = options or ReaderOptions()
        self.words = Words() if self.options.relabel == "text" else None
        if self.sized is not None:
            self.options.check_unneeded(*self.sized)

    @classmethod
    def recognises(cls, head: bytes) -> bool:
        """Return whether a file beginning with ``head`` is certainly of this format."""
        return cls.mark is not None and bool(cls.mark.match(head))

    @staticmethod
    def resembles(head: bytes) -> bool:  # noqa: ARG004
        """Return whether a file without a magic number looks like this format."""
        return False

    @staticmethod
    def doubt(head: bytes, options: ReaderOptions) -> str:  # noqa: ARG004
        """Return a reason why a file is not of the format its name suggests, or ""."""
        return ""

    def read(self, path: Path, take: Take) -> EdgeFile:
        """Read a file from start to end and pass its edges to ``take``.

        ``take`` receives int64 [k, 2] arrays in the order of the file, which are valid
        until it returns. They hold zero-based ids, or the file's ids if vertices are
        relabelled. Memory is bounded, whatever the size of the file. Raises InputError
        ``FILE:LINE: what is wrong``.
        """
        edges, largest = EdgeFile(self.name, self.options.n or 0), -1
        with self.opens(path, progress=self.options.progress) as file:
            for pairs in self.pairs(file, edges):
                if len(pairs):
                    take(pairs)
                edges.tuples += len(pairs)
                if not edges.n:
                    largest = max(largest, int(pairs.max(initial=-1)))
            edges.n = edges.n or largest + 1
            edges.digest = file.digest
            return edges

    def pairs(self, file: Any, edges: EdgeFile) -> Iterator[Ids]:
        """Yield the pairs of a file as ``read`` passes them on; fill in ``edges``.

        file: the file, opened by ``opens``

        The caller counts the vertices if ``edges.n`` is not set here.
        """
        raise NotImplementedError


def read_files(reader: Reader, paths: Sequence[Path], take: Take) -> EdgeFile:
    """Read the files of an input, one after the other, as ``Reader.read`` does.

    Raises InputError if there are no vertices, UsageError for several files that
    state their sizes.
    """
    if len(paths) > 1 and reader.sized:
        what = f"{reader.sized[0]} states its size, and {len(paths)} files are one"
        raise UsageError(f"{paths[0].parent}: {what}; give one file")
    whole, *others = [reader.read(path, take) for path in paths]
    for edges in others:
        whole.n, whole.tuples = max(whole.n, edges.n), whole.tuples + edges.tuples
        whole.unread = whole.unread or edges.unread
        whole.notes = tuple(dict.fromkeys((*whole.notes, *edges.notes)))
        whole.directed |= edges.directed
        whole.one_based |= edges.one_based
        both = f"{whole.digest}{edges.digest}".encode()
        whole.digest = xxhash.xxh3_128_hexdigest(both)
    if not whole.n:
        raise InputError(f"{paths[0].parent if others else paths[0]}: no edges")
    return whole


def sniff(path: Path) -> str:
    """Detect the format of a file by its magic number, else its name, else its content.

    Raises InputError for a file that cannot be read or has no known format.
    """
    head = _head(path)
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
        if reader.resembles(head):
            return name
    endings = ", ".join(x for reader in readers.values() for x in reader.suffixes)
    raise InputError(
        f"{path}: the format is not known from content or name ({endings}); "
        f"name one of {', '.join(readers)}"
    )


def _head(path: Path) -> bytes:
    """Return the first bytes of a file's content, decompressed."""
    with HashedFile(path) as file:
        return file.take(HEAD_BYTES).removeprefix(BOM)


def make_reader(path: Path, name: str, options: ReaderOptions) -> Reader:
    """Return a reader for a file, of format ``name`` or, if empty, the detected one."""
    kind: type[Reader] = lookup(READERS, "format", name or sniff(path))
    if options.columns and not kind.named_columns:
        raise UsageError(f"format {kind.name} has no named columns; leave out columns")
    if options.bipartite and not kind.bipartite:
        raise UsageError(f"format {kind.name} has no matrices; leave out --bipartite")
    if options.header is not None and not kind.header_line:
        what = f"format {kind.name} has no line that names columns"
        raise UsageError(f"{what}; leave out --header and --no-header")
    if not name and (why := kind.doubt(_head(path), options)):
        raise InputError(f"{path}: {why}")
    return kind(options)
