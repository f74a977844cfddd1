"""The interface of writers of edge files, and atomic replacement of files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from distbfs import leftovers
from distbfs.errors import UsageError, naming
from distbfs.formats.compressed import load_zstd, packing_of, plain_name
from distbfs.formats.ids import first_of
from distbfs.registry import WRITERS, lookup

if TYPE_CHECKING:
    from distbfs.formats.ids import IdMap
    from distbfs.types import Ids

MODULES = {"": "io", "gzip": "gzip", "bzip2": "bz2", "xz": "lzma"}


@dataclass(frozen=True)
class Edges:
    """A graph to be written.

    n: number of vertices; m: number of edges, each counted once
    chunks: function that yields the edges as int64 [k, 2], with u < v unless directed;
    it may be called any number of times
    ids: the vertices' own ids, None if these are their numbers
    directed: whether edges lead from u to v only
    """

    n: int
    m: int
    chunks: Callable[[], Iterator[Ids]]
    ids: IdMap | None = None
    directed: bool = False

    @property
    def one_based(self) -> bool:
        """Whether the ids are the numbers from 1 on."""
        return first_of(self.ids) == 1

    def with_lone(self) -> Iterator[Ids]:
        """Yield the edges, int64 [k, 2], then a loop at each vertex without edges."""
        lone = np.ones(self.n, dtype=np.bool_)
        for pairs in self.chunks():
            lone[pairs.ravel()] = False
            yield pairs
        vertices = np.flatnonzero(lone)
        if len(vertices):
            yield np.stack((vertices, vertices), axis=1)


class Writer:
    """Writes files of one format; ``suffixes`` are the endings of their names.

    ``keeps_ids``: whether the files can hold the vertices' own ids; ``packs``: whether
    they may be compressed; ``first``: the first vertex's id in files that hold numbers.
    """

    name: str
    suffixes: tuple[str, ...]
    keeps_ids = packs = False
    first = 0

    def write(self, path: Path, graph: Edges) -> None:
        """Write a graph to a new file.

        It needs memory for a few numbers per vertex.  Raises InputError for a graph
        that the format cannot hold, OSError if writing fails.
        """
        raise NotImplementedError


def writer_for(path: Path, name: str = "") -> Writer:
    """Return the writer for the format ``name`` or, if empty, for the file's ending.

    Raises UsageError if there is none.
    """
    kinds: dict[str, type[Writer]] = {
        known: lookup(WRITERS, "format", known) for known in WRITERS
    }
    if not name:
        fits = [x for x in kinds if plain_name(path).endswith(kinds[x].suffixes)]
        if not fits:
            endings = ", ".join(x for kind in kinds.values() for x in kind.suffixes)
            raise UsageError(
                f"{path}: the ending names no format ({endings}); "
                f"name one of {', '.join(kinds)}"
            )
        name = fits[0]
    writer = lookup(WRITERS, "format", name)()
    if packing_of(path) and not writer.packs:
        raise UsageError(f"{path}: files of format {name} are not compressed")
    return writer


def check_place(path: Path, *, force: bool = True) -> None:
    """Raise UsageError if no file can be written; ``force``: replacing is allowed.

    Stdout, ``leftovers.DASH``, can always be written.
    """
    if path == leftovers.DASH:
        return
    # from Python 3.14 on, is_dir is silent of names that are too long or not to be read
    with suppress(FileNotFoundError, NotADirectoryError):
        path.lstat()
    if path.is_dir():
        raise UsageError(f"{path} is a folder; give the name of a file")
    if os.path.lexists(path) and not force:
        raise UsageError(f"{path} exists; give --force to replace it")
    if not path.parent.is_dir():
        raise UsageError(f"{path}: there is no folder {path.parent}")


@contextmanager
def placed(path: Path, *, force: bool) -> Iterator[Path]:
    """Yield a temporary path to write to; at the end, rename it to ``path``.

    A device or pipe is written directly; for ``leftovers.DASH``, the file is copied to
    stdout at the end. Raises UsageError if the file may not be written, now or at the
    end, ResourceError if the disk is full. After an error, nothing is left behind.
    """
    check_place(path, force=force)
    with naming(path):
        if path == leftovers.DASH:
            with leftovers.copied_to_stdout() as partial:
                yield partial
        elif path.exists() and not path.is_file():
            yield path
        else:
            leftovers.sweep(path.parent)
            with leftovers.hidden_folder(path.parent) as folder:
                partial = folder / path.name
                yield partial
                with partial.open("rb") as done:
                    os.fsync(done.fileno())
                give_name(partial, path, force=force)


def give_name(complete: Path, path: Path, *, force: bool) -> None:
    """Rename a complete file atomically; replace an existing file only by ``force``.

    Raises UsageError if a file of that name exists, OSError if renaming fails.
    """
    try:
        if not force:
            _reserve(complete, path)
        complete.rename(path)  # does nothing if both names are of one file
    except FileExistsError as error:
        raise UsageError(f"{path} exists; give --force to replace it") from error
    complete.unlink(missing_ok=True)


def _reserve(complete: Path, path: Path) -> None:
    """Claim the name by a hard link to the file.

    On file systems without hard links, claim it by an empty file.
    """
    try:
        path.hardlink_to(complete)
    except FileExistsError:
        raise
    except OSError:
        path.open("xb").close()


def allocate(path: Path, size: int) -> None:
    """Give a file its size, with room on the disk for all of it.

    Later writes to the file, also through a map, cannot fill the disk.  Raises OSError
    if the disk or a quota is full, or files may not be as large.
    """
    with path.open("rb+") as file:
        if size:
            os.posix_fallocate(file.fileno(), 0, size)
        os.fsync(file.fileno())


def text_file(path: Path) -> IO[bytes]:
    """Create a text file, compressed according to its name."""
    packing = packing_of(path)
    module = load_zstd() if packing == "zstd" else import_module(MODULES[packing])
    level = {"compresslevel": 6} if packing == "gzip" else {}
    file: IO[bytes] = module.open(path, "xb", **level)
    return file


def lines_of(pairs: Ids) -> bytes:
    """Format pairs, int64 [k, 2], as lines ``U V``."""
    return b"%d %d\n" * len(pairs) % tuple(pairs.ravel().tolist())
