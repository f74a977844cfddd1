"""Edge tuples of a file, which is parsed once into a spool that every rank maps."""

from __future__ import annotations

import os
import secrets
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs import leftovers
from distbfs.errors import DiskFull, DistbfsError, InputError
from distbfs.formats.attributes import Values
from distbfs.formats.base import ReaderOptions, make_reader, read_files
from distbfs.formats.ids import CountedIds
from distbfs.formats.inputs import data_files
from distbfs.formats.kept import read_kept
from distbfs.formats.new_ids import Numbers, number_anew
from distbfs.ranks.agreement import errors_of_all

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from typing_extensions import Self

    from distbfs.formats.base import EdgeFile, Reader
    from distbfs.formats.ids import IdMap
    from distbfs.types import Ids, World

CHUNK = 1 << 20
NO_ID = "is not an id"  # ends what a reader of numbers says of text
PAIR_BYTES = 16
FEW_VERTICES = 1 << 20
VERTICES_PER_TUPLE = 256


class FileTuples:
    """The edge tuples of a file (a TupleSource), read from a spool.

    The spool holds int64 pairs in the order of the file, in this machine's byte order.

    pairs: the mapped spool, int64 [tuples, 2]
    ids: the vertices' ids in the file, on rank 0; None if they are 0 to n - 1
    notes: remarks for the user
    attributes: the kept columns by name, one value per tuple
    """

    def __init__(
        self,
        path: Path,
        spool: Path,
        n: int,
        tuples: int,
        *,
        facts: dict[str, Any] | None = None,
    ) -> None:
        """Map a spool, which is opened only here.

        facts: format and digest, which are added to ``describe``

        Raises InputError if the spool is missing or has another size.
        """
        self.path = path
        self.n = n
        self.tuples = tuples
        self.facts = facts or {}
        self.ids: IdMap | None = None
        self.notes: list[str] = []
        self.attributes: dict[str, Values] = {}
        size = os.path.getsize(spool) if os.path.exists(spool) else -1
        if size != tuples * PAIR_BYTES:
            raise InputError(
                f"{spool}: the spool of {path} cannot be seen here; choose a folder "
                "that all ranks share"
            )
        self.pairs: Ids = np.zeros((0, 2), dtype=np.int64)
        if tuples:
            self.pairs = np.memmap(spool, np.int64, mode="r", shape=(tuples, 2))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def chunks(self, start: int, stop: int) -> Iterator[tuple[Ids, Ids]]:
        """Yield the tuples start … stop-1 in order, as int64 arrays (u, v)."""
        for begin in range(start, stop, CHUNK):
            pairs = self.pairs[begin : min(begin + CHUNK, stop)]
            yield np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])

    def describe(self) -> dict[str, Any]:
        """Return the file's name, format, sizes and digest (JSON values)."""
        return {
            "family": "file",
            # mutant: "backslashreplace" -> "surrogateescape"
            #   : test_a_name_of_bytes_that_are_no_text
            "name": os.fsencode(self.path.name).decode(errors="backslashreplace"),
            "n": self.n,
            "tuples": self.tuples,
            **self.facts,
        }

    def close(self) -> None:
        """Unmap the spool on this rank; the maps of other ranks stay valid."""
        self.pairs = np.zeros((0, 2), dtype=np.int64)


class Spool:
    """Storage of pairs: a file without a name, if the file system supports it.

    Its memory is freed when the processes that map it have ended, however they end.
    path: its path in this process
    """

    def __init__(self) -> None:
        """Create an empty spool in the folder for temporary files; raise OSError."""
        self._folder = Path(tempfile.gettempdir())
        self._name: Path | None = None
        try:
            self._handle = os.open(self._folder, os.O_TMPFILE | os.O_RDWR, 0o600)
        except OSError:
            self._handle, name = tempfile.mkstemp(".tuples", "distbfs-", self._folder)
            self._name = Path(name)
            leftovers.note(self._name)
        self.path = Path(f"/proc/self/fd/{self._handle}")

    def name(self) -> Path:
        """Return a path by which other processes can open the spool."""
        if self._name is None:
            name = self._folder / f"distbfs-{secrets.token_hex(8)}.tuples"
            leftovers.note(name)
            # relative to a folder's handle, which is unused, the link is followed
            os.link(self.path, name, src_dir_fd=self._handle)
            self._name = name
        return self._name

    def close(self) -> None:
        """Remove the name; processes that map it keep the data."""
        if self._name is not None:
            self._name.unlink(missing_ok=True)
            leftovers.forget(self._name)
        os.close(self._handle)


def open_tuples(
    world: World,
    path: Path,
    *,
    name: str = "",
    options: ReaderOptions | None = None,
    keep: Sequence[str] = (),
) -> FileTuples:
    """Parse a file on rank 0 and return its tuples on every rank; collective.

    name: name of the format, "" to detect it
    keep: columns to keep as attributes, NAME or NAME=PLACE; see ``read_kept``

    Raises an error of one rank on all of them: InputError for an invalid file or a
    spool that a rank cannot see, UsageError for an unknown format or options that do
    not apply to it, DiskFull if the spool cannot be written.
    """
    wanted = path, name, options or ReaderOptions()
    with ExitStack() as stack:
        summary, ids, spool = None, None, None
        kept: dict[str, Values] = {}
        with errors_of_all(world):
            if world.rank == 0:
                summary, ids, spool, kept = _spool(world, wanted, keep, stack)
        summary = world.broadcast(summary)
        where = spool.path if spool is not None else Path(summary["spool"])
        sizes = summary["n"], summary["tuples"]
        with errors_of_all(world):
            source = FileTuples(path, where, *sizes, facts=summary["facts"])
        source.ids, source.notes = ids, summary["notes"]
        source.attributes = _shared(world, kept, summary["attributes"])
        return source


def _shared(
    world: World, kept: dict[str, Values], described: dict[str, Any]
) -> dict[str, Values]:
    """Broadcast the attributes that rank 0 has read (collective)."""
    shared = {}
    for label, (kind, words) in described.items():
        own = kept[label].array if label in kept else np.zeros(0, dtype=kind)
        array = own if world.size == 1 else world.allgather(own)[0]
        shared[label] = Values(array, None if words is None else tuple(words))
    return shared


def _spool(
    world: World,
    wanted: tuple[Path, str, ReaderOptions],
    keep: Sequence[str],
    stack: ExitStack,
) -> tuple[dict[str, Any], IdMap | None, Spool, dict[str, Values]]:
    """Parse a file into a new spool, and read the columns to keep.

    Returns a summary for the ranks, the ids, the spool and the columns.
    wanted: file, format and options; stack: closes the spool at its end
    """
    path, name, options = wanted
    notes: list[str] = []
    kept: dict[str, Values] = {}
    try:
        paths = data_files(path)
        reader, spool, edges, ids = _as_wanted(paths, name, options, notes)
        stack.callback(spool.close)
        place = str(spool.name()) if world.size > 1 else ""
        if keep:
            kept = read_kept(paths, reader, keep, edges.tuples)
    except DistbfsError:
        raise
    except OSError as error:
        where = f"{tempfile.gettempdir()}: cannot write the spool"
        why = error.strerror or error
        raise DiskFull(f"{where} of {path}: {why}") from error
    notes += [f"{path}: {note}" for note in edges.notes]
    if edges.unread and not keep:
        notes.append(f"{path}: {edges.unread} are ignored")
    if edges.directed and not options.directed:
        notes.append(
            f"{path}: directed edges are read as undirected without --directed"
        )
    facts: dict[str, Any] = {"format": edges.format, "xxh3_128": edges.digest}
    first = int(options.one_based or edges.one_based)
    if first:
        facts["one_based"] = True
    if options.first_id is not None:
        first = options.first_id
    if ids is None and first:
        ids = CountedIds(edges.n, first)
    summary = {
        "spool": place,
        "n": edges.n if ids is None else ids.count,
        "tuples": edges.tuples,
        "facts": facts,
        "notes": notes,
        "attributes": {
            label: [x.array.dtype.str, None if x.words is None else list(x.words)]
            for label, x in kept.items()
        },
    }
    return summary, ids, spool, kept


def _as_wanted(
    paths: Sequence[Path],
    name: str,
    options: ReaderOptions,
    notes: list[str],
) -> tuple[Reader, Spool, EdgeFile, IdMap | None]:
    """Parse a file; to relabel it, try to read ids as numbers first, then as text."""
    reader = make_reader(paths[0], name, options)
    try:
        return reader, *_parse(reader, paths, options)
    except InputError as error:
        if not getattr(reader, "text_ids", False):
            raise
        if not options.relabel:
            if not str(error).endswith(NO_ID):
                raise
            raise InputError(f"{error}; --relabel takes ids of any text") from error
        options = replace(options, relabel="text")
        reader = make_reader(paths[0], name, options)
        out = _parse(reader, paths, options)
        said = str(error).replace(NO_ID, "is not a number")
        notes.append(f"ids are taken as text ({said})")
        return reader, *out


def _parse(
    reader: Reader, paths: Sequence[Path], options: ReaderOptions
) -> tuple[Spool, EdgeFile, IdMap | None]:
    """Parse a file into a new spool, which is removed on failure."""
    spool = Spool()
    numbers = Numbers() if options.relabel == "numbers" else None

    def take(pairs: Ids) -> None:
        (pairs if numbers is None else numbers.numbers(pairs)).tofile(out)

    try:
        with spool.path.open("wb") as out:
            edges = read_files(reader, paths, take)
        if known := numbers or reader.words:
            return spool, edges, number_anew(spool.path, known)
        if options.n is None:
            ways = "formats that do not state their size take --relabel or --vertices"
            check_dense(edges.n, edges.tuples, f"{paths[0]}: ", ways)
        return spool, edges, None
    except BaseException:
        spool.close()
        raise


def check_dense(n: int, tuples: int, where: str, ways: str) -> None:
    """Raise InputError if nearly all vertices would have no edges.

    The memory of a graph grows with its vertices. A few edges with large ids must not
    cause a large allocation unless the number n was given.

    ways: what allows so many vertices, for the message
    """
    most = max(FEW_VERTICES, VERTICES_PER_TUPLE * tuples)
    if n > most:
        raise InputError(
            f"{where}{n} vertices for {tuples} edges; allowed: {most}; {ways}"
        )
