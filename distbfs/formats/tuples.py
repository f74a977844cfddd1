"""Edge tuples of a file: parsed once into a spool, then mapped by every rank."""

from __future__ import annotations

import os
import tempfile
import weakref
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.errors import DistbfsError, InputError, ResourceError, UsageError
from distbfs.formats.base import ReaderOptions, make_reader
from distbfs.formats.relabel import Distinct, relabel_numbers, relabel_words

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from typing_extensions import Self

    from distbfs.formats.base import EdgeFile, Reader
    from distbfs.formats.ids import IdMap
    from distbfs.types import Ids, World

CHUNK = 1 << 20
PAIR_BYTES = 16
FEW_VERTICES = 1 << 20
VERTICES_PER_TUPLE = 256
FAULTS: dict[str, type[DistbfsError]] = {
    kind.__name__: kind for kind in (InputError, ResourceError, UsageError)
}


class FileTuples:
    """The edge tuples of a file (a TupleSource), read from a spool.

    The spool holds int64 pairs in the order of the file, in this machine's byte order.
    ``ids`` is what the file calls the vertices, on rank 0, where they were relabelled;
    ``notes`` are to be said aloud.
    """

    def __init__(
        self,
        path: Path,
        spool: Path,
        n: int,
        tuples: int,
        *,
        facts: dict[str, Any] | None = None,
        owner: bool = False,
    ) -> None:
        """Map a spool; its owner deletes it at ``close`` or when the process ends.

        ``facts`` are added to what ``describe`` says: format and digest.
        Raises InputError where the spool is missing or has another size.
        """
        self.path = path
        self.spool = spool
        self.n = n
        self.tuples = tuples
        self.facts = facts or {}
        self.ids: IdMap | None = None
        self.notes: list[str] = []
        self._delete = weakref.finalize(self, _remove, spool) if owner else None
        if _size(spool) != tuples * PAIR_BYTES:
            raise InputError(
                f"{spool}: the spool of {path} cannot be seen here; choose a folder "
                "that all ranks share"
            )
        self._pairs: Ids = np.zeros((0, 2), dtype=np.int64)
        if tuples:
            self._pairs = np.memmap(spool, np.int64, mode="r", shape=(tuples, 2))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def chunks(self, start: int, stop: int) -> Iterator[tuple[Ids, Ids]]:
        """Yield (u, v) int64 arrays that cover the tuples start … stop-1 in order."""
        for begin in range(start, stop, CHUNK):
            pairs = self._pairs[begin : min(begin + CHUNK, stop)]
            yield np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])

    def describe(self) -> dict[str, Any]:
        """Return the file's name, format, sizes and digest (JSON values)."""
        return {
            "family": "file",
            "name": self.path.name,
            "n": self.n,
            "tuples": self.tuples,
            **self.facts,
        }

    def close(self) -> None:
        """Delete the spool if this is its owner; maps that are open stay valid."""
        if self._delete is not None:
            self._delete()


def open_tuples(
    world: World,
    path: Path,
    *,
    name: str = "",
    options: ReaderOptions | None = None,
    folder: Path | None = None,
) -> FileTuples:
    """Parse a file on rank 0 and return its tuples on every rank; collective.

    name: the format, empty to find it out; folder: where the spool goes, seen by all
    ranks (the system's folder for temporary files if None)

    Raises on all ranks alike: InputError for a file that cannot be used, UsageError for
    an unknown format or options that it has no use for, ResourceError where the spool
    cannot be written.
    """
    given = options or ReaderOptions()
    told, ids = None, None
    if world.rank == 0:
        told, ids = _spool(path, name, given, folder)
    told = world.broadcast(told)
    if "fault" in told:
        raise FAULTS[told["fault"]](told["message"])
    spool = Path(told["spool"])
    owner = world.rank == 0
    source: FileTuples | None = None
    message = ""
    try:
        facts = told["facts"]
        source = FileTuples(
            path, spool, told["n"], told["tuples"], facts=facts, owner=owner
        )
        source.ids, source.notes = ids, told["notes"]
    except InputError as error:
        message = str(error)
    seen = world.allreduce(np.array([source is not None], dtype=np.int64), "min")
    if source is None or not seen[0]:
        if source is not None:
            source.close()
        raise InputError(
            message or f"{spool}: a rank cannot see this spool; choose a shared folder"
        )
    return source


def _spool(
    path: Path, name: str, options: ReaderOptions, folder: Path | None
) -> tuple[dict[str, Any], IdMap | None]:
    """Parse a file into a new spool; return what to tell the ranks, and its ids."""
    notes: list[str] = []
    try:
        spool, found, ids = _parse_as_wanted(path, name, options, folder, notes)
    except tuple(FAULTS.values()) as error:
        kind = next(name for name, fault in FAULTS.items() if isinstance(error, fault))
        return {"fault": kind, "message": str(error)}, None
    except OSError as error:
        where = folder or tempfile.gettempdir()
        message = (
            f"{where}: cannot write the spool of {path}: {error.strerror or error}"
        )
        return {"fault": ResourceError.__name__, "message": message}, None
    if found.unread:
        notes.append(f"{path}: {found.unread} are not looked at")
    facts: dict[str, Any] = {"format": found.format, "xxh3_128": found.digest}
    if options.one_based:
        facts["one_based"] = True
    told = {
        "spool": str(spool),
        "n": found.n if ids is None else ids.count,
        "tuples": found.tuples,
        "facts": facts,
        "notes": notes,
    }
    return told, ids


def _parse_as_wanted(
    path: Path,
    name: str,
    options: ReaderOptions,
    folder: Path | None,
    notes: list[str],
) -> tuple[Path, EdgeFile, IdMap | None]:
    """Parse a file, where it is relabelled by numbers if they are, else by text."""
    reader = make_reader(path, name, options)
    if not options.relabel:
        return _parse(reader, path, options, folder)
    try:
        return _parse(reader, path, options, folder)
    except InputError as error:
        if not getattr(reader, "text_ids", False):
            raise
        options = replace(options, relabel="text")
        out = _parse(make_reader(path, name, options), path, options, folder)
        notes.append(f"ids are taken as text ({error})")
        return out


def _parse(
    reader: Reader, path: Path, options: ReaderOptions, folder: Path | None
) -> tuple[Path, EdgeFile, IdMap | None]:
    """Parse a file into a new spool, which is gone again if that fails."""
    handle, made = tempfile.mkstemp(".tuples", "distbfs-", folder)
    spool, distinct = Path(made), Distinct()
    numbers = options.relabel == "numbers"

    def take(pairs: Ids) -> None:
        if numbers:
            distinct.add(pairs)
        pairs.tofile(out)

    try:
        with os.fdopen(handle, "wb") as out:
            found = reader.read(path, take)
        if numbers:
            return spool, found, relabel_numbers(spool, distinct.ids())
        if found.words is not None:
            return spool, found, relabel_words(spool, found.words)
        _check_dense(path, found, options)
        return spool, found, None
    except BaseException:
        _remove(spool)
        raise


def _check_dense(path: Path, found: EdgeFile, options: ReaderOptions) -> None:
    """Raise InputError where nearly all vertices would have no edges.

    Memory of a graph goes with its vertices; what is said of them in a small file must
    not take more than the file can be worth, unless their number was asked for.
    """
    most = max(FEW_VERTICES, VERTICES_PER_TUPLE * found.tuples)
    if options.n is None and found.n > most:
        raise InputError(
            f"{path}: {found.n} vertices for {found.tuples} edges; allowed: {most}; "
            "formats that do not state their size take --relabel or --vertices"
        )


def _remove(spool: Path) -> None:
    spool.unlink(missing_ok=True)


def _size(spool: Path) -> int:
    """Return the size of a file, -1 where there is none."""
    try:
        return spool.stat().st_size
    except OSError:
        return -1
