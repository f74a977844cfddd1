"""The files of an input: a file, a pipe, a file in an archive, or a folder of parts."""

from __future__ import annotations

import os
import re
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

from distbfs.errors import DiskFull, InputError
from distbfs.formats.lines import SHOWN
from distbfs.formats.packed import BinaryFile
from distbfs.formats.text import CopiedPath, HashedFile, open_raw, sound, unnamed_copy

ZIP_MAGICS = (b"PK\x03\x04", b"PK\x05\x06")  # the other: without files
ZIP_NAME = 30
TAR_MAGIC, TAR_MAGIC_AT = b"ustar", 257
PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
MOST_MEMBERS = 10_000  # of an archive
NAMED = 5  # files in a message
HIDDEN = (".", "_")
NO_DATA = re.compile(
    r"(^|/)(__MACOSX/|[._][^/]*$|(readme|licen[cs]e|meta)\b)|\.(html?|md|pdf)$", re.I
)


def is_array_archive(head: bytes) -> bool:
    """Return whether a file begins like a ``.npz`` archive, which holds one graph."""
    length = int.from_bytes(head[26:28], "little")
    name = head[ZIP_NAME : ZIP_NAME + length]
    return head.startswith(ZIP_MAGICS[0]) and name.endswith(b".npy")


def is_parts(path: Path) -> bool:
    """Return whether a path is a folder of files and not a graph store."""
    if not path.is_dir():
        return False
    names = [x.name for x in path.iterdir() if not x.name.startswith(HIDDEN)]
    return bool(names) and not any(name.endswith(".h5") for name in names)


def data_files(path: Path) -> list[Path]:
    """Return the files of an input; each can be opened several times.

    The files of a folder are ordered by name; names that begin with ``.`` or ``_`` are
    skipped. An archive must have one file, besides hidden and descriptive ones. The
    content of pipes and archives is copied. Raises InputError for other folders and
    archives.
    """
    if is_parts(path):
        return _parts(path)
    if os.path.exists(path) and not os.path.isfile(path):
        with open_raw(path) as file:
            path = CopiedPath.of(path, unnamed_copy(path, file.read, "copy"))
    with HashedFile(path) as file:
        head = file.take(TAR_MAGIC_AT + len(TAR_MAGIC))
    if head.endswith(TAR_MAGIC) and len(head) > TAR_MAGIC_AT:
        return [_only_member(path, _of_tar)]
    if head.startswith(ZIP_MAGICS) and not is_array_archive(head):
        return [_only_member(path, _of_zip)]
    return [path]


def _parts(path: Path) -> list[Path]:
    parts = [x for x in sorted(path.iterdir()) if not x.name.startswith(HIDDEN)]
    for part in parts:
        if part.is_dir():
            raise InputError(f"{path}: a folder of parts holds the folder {part.name}")
    parts = [part for part in parts if not part.is_file() or part.stat().st_size]
    if not parts:
        raise InputError(f"{path}: all files in the folder are empty")
    return parts


def _only_member(path: Path, members: Callable[[Path], Iterator[Any]]) -> Path:
    """Copy the only data file of an archive; return the path of the copy."""
    names: list[str] = []
    content: IO[bytes] | None = None
    with sound(f"{path}"):
        for name, size, open_member in islice(members(path), MOST_MEMBERS + 1):
            names.append(name)
            if len(names) > 1:
                continue
            if size > shutil.disk_usage(tempfile.gettempdir()).free:
                raise DiskFull(f"{tempfile.gettempdir()}: no room for {size} bytes")
            with open_member() as member:
                content = unnamed_copy(path, member.read, "unpack")
    if content is None or len(names) != 1:
        shown = ", ".join(ascii(name[-SHOWN:]) for name in names[:NAMED])
        more = ", …" if len(names) > NAMED else ""
        holds = f"files {shown}{more}" if names else "no data file"
        raise InputError(f"{path}: the archive holds {holds}; allowed: one")
    name = re.sub(r"[^\w.+-]", "_", Path(names[0]).name)[-SHOWN:]
    return CopiedPath.of(path / name, content)


def unpacked(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> IO[bytes]:
    """Open a member of a zip archive; ValueError for a method that is not supported."""
    if info.compress_type not in PACKED:
        raise ValueError(f"compressed by method {info.compress_type}")
    return archive.open(info)


def _of_tar(path: Path) -> Iterator[tuple[str, int, Callable[[], Any]]]:
    """Yield name, size and opening function of each data file of a tar archive."""
    with HashedFile(path) as file:
        stream: Any = SimpleNamespace(read=file.take)
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            for count, info in enumerate(archive):
                if count == MOST_MEMBERS:
                    raise ValueError(f"more than {MOST_MEMBERS} members")
                if info.isreg() and not info.issparse() and is_data(info.name):
                    yield info.name, info.size, partial(archive.extractfile, info)
        while file.take(1 << 20):  # checks what follows
            pass


def _of_zip(path: Path) -> Iterator[tuple[str, int, Callable[[], Any]]]:
    """Yield name, size and opening function of each data file of a zip archive."""
    with BinaryFile(path) as file:
        archive = zipfile.ZipFile(file.content)
        for info in archive.infolist():
            if not info.is_dir() and is_data(info.filename):
                yield info.filename, info.file_size, partial(unpacked, archive, info)


def is_data(name: str) -> bool:
    """Return whether a member of an archive is neither a description nor hidden."""
    return not NO_DATA.search(name)
