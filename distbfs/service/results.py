"""The folder of results: files with safe names, complete or absent.

A file is written in a hidden folder of its own (``leftovers``) and linked to its name
when it is complete; nothing is ever replaced. HDF5 files look like those of ``distbfs
bfs -o``; ``.npy`` files hold one array each: ``NAME.level.npy``, ``NAME.parent.npy``
and, where vertices have other ids in their file, ``NAME.ids.npy``: vertex v is ids[v]
there.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import numpy as np

from distbfs import leftovers
from distbfs.errors import FULL, DiskFull, InputError, ResourceError, ServiceError
from distbfs.formats.ids import IdMap
from distbfs.formats.writing import allocate
from distbfs.search.result_file import ResultFile
from distbfs.types import Array, Root

KEPT = ".ids.npy"
ENDINGS = {"hdf5": (".h5",), "npy": (".level.npy", ".parent.npy")}


class ArrayFiles:
    """Rows in ``.npy`` files: level int32, parent int64, [n] or [k, n]."""

    def __init__(self, folder: Path, rows: int, n: int, *, parents: bool) -> None:
        shape = (n,) if rows == 1 else (rows, n)
        need = rows * n * (12 if parents else 4)
        if shutil.disk_usage(folder).free < need:
            raise DiskFull(f"{need} bytes are needed on the disk of the results")
        level, parent = ENDINGS["npy"]
        self._level = self._new(folder / level, np.int32, shape)
        self._parent = self._new(folder / parent, np.int64, shape) if parents else None

    @staticmethod
    def _new(path: Path, kind: type, shape: tuple[int, ...]) -> Array:
        made: Array = np.lib.format.open_memmap(path, "w+", np.dtype(kind), shape)
        allocate(path, path.stat().st_size)
        return made

    def write(self, row: int, level: Array, parent: Array | None) -> None:
        """Store the levels and parents of one search."""
        for array, values in ((self._level, level), (self._parent, parent)):
            if array is not None:
                array.reshape(-1, array.shape[-1])[row] = values


class ResultFolder:
    """A folder, resolved once, including links on the way to it.

    What killed services left unfinished in it is removed.

    limit: most files in it; ids: the vertices' ids of their file, if they differ.
    Raises InputError unless it is a folder.
    """

    def __init__(
        self, path: Path, limit: int, identity: str, ids: IdMap | None = None
    ) -> None:
        try:
            path.mkdir(mode=0o700, exist_ok=True)
            self.path = path.resolve(strict=True)
            self._folder = self.path.stat()
            leftovers.sweep(self.path)
            with leftovers.hidden_folder(self.path):
                pass
        except OSError as error:
            reason = error.strerror or "it cannot be used"
            raise InputError(f"{path}: no folder for results: {reason}") from error
        self._limit = limit
        self._identity = identity
        self._ids = ids
        self._numbers = count(1)

    def _endings(self, form: str, *, parents: bool) -> tuple[str, ...]:
        endings = ENDINGS[form] if parents else ENDINGS[form][:1]
        kept = self._ids is not None and form == "npy"
        return (*endings, KEPT) if kept else endings

    def check_name(self, form: str, name: str | None, *, parents: bool) -> None:
        """Raise ServiceError if new files of that name are not possible."""
        if form == "npy" and self._ids is not None and self._ids.kind == "text":
            text = "format npy holds no ids that are text; use hdf5"
            raise ServiceError("bad_request", text)
        if name is not None:
            endings = self._endings(form, parents=parents)
            self._check([name + end for end in endings])

    def _check(self, names: Sequence[str]) -> None:
        now = self.path.lstat()
        if (now.st_dev, now.st_ino) != (self._folder.st_dev, self._folder.st_ino):
            raise ServiceError("no_room", "the folder of results was replaced")
        there = [x for x in os.listdir(self.path) if not leftovers.HIDDEN.fullmatch(x)]
        if len(there) + len(names) > self._limit:
            text = f"the folder of results holds {len(there)} of {self._limit} files"
            raise ServiceError("no_room", f"{text}; {len(names)} more are needed")
        for name in names:
            if name in there:
                raise ServiceError("exists", f"there is a result {name} already")

    def _free_name(self, stem: str, endings: Sequence[str]) -> str:
        names = (f"{stem}-{number}" for number in self._numbers)
        taken = {*os.listdir(self.path)}
        return next(x for x in names if not taken & {x + end for end in endings})

    @contextmanager
    def new(
        self,
        form: str,
        sources: Sequence[Root],
        n: int,
        *,
        name: str | None,
        stem: str,
        parents: bool,
    ) -> Iterator[tuple[ResultFile | ArrayFiles, list[str]]]:
        """Yield the writer of new files, and their paths.

        form: "hdf5" or "npy"; name: without its ending, None for one made from
        ``stem``. The files appear at the end of the block, all or none. Raises
        ServiceError.
        """
        endings = self._endings(form, parents=parents)
        name = name or self._free_name(stem, endings)
        names = [name + end for end in endings]
        self._check(names)
        paths = [str(self.path / item) for item in names]
        try:
            with leftovers.hidden_folder(self.path) as work:
                if form == "hdf5":
                    hdf5 = work / endings[0]
                    with ResultFile(
                        hdf5,
                        sources,
                        n,
                        self._identity,
                        parents=parents,
                        ids=self._ids,
                    ) as file:
                        file.open(force=False)
                        yield file, paths
                        file.finish()
                else:
                    if self._ids is not None:
                        np.save(work / KEPT, self._ids.arrays()["ids"])
                    yield ArrayFiles(work, len(sources), n, parents=parents), paths
                self._publish(work, endings, names)
        except (OSError, ResourceError, InputError) as error:
            raise _refusal(error) from error

    def _publish(
        self, work: Path, endings: Sequence[str], names: Sequence[str]
    ) -> None:
        """Give complete files their names; never replaces another file."""
        done: list[Path] = []
        try:
            for ending, name in zip(endings, names, strict=True):
                with (work / ending).open("rb+") as handle:
                    os.fsync(handle.fileno())
                (self.path / name).hardlink_to(work / ending)
                done.append(self.path / name)
        except OSError:
            for path in done:
                path.unlink()
            raise


def _refusal(error: Exception) -> ServiceError:
    if isinstance(error, FileExistsError):
        return ServiceError("exists", "there is a result of that name already")
    if isinstance(error, OSError) and error.errno in FULL:
        return ServiceError("no_room", "the disk of the results is full")
    reason = getattr(error, "strerror", None) or error
    return ServiceError("no_room", f"no result can be written: {reason}")
