"""Unfinished files: removed when a signal ends this process, or after it was killed.

A file or folder that must appear complete or not at all is written in a hidden folder
beside its final place. The writing processes hold a lock in the folder, so that a later
process can tell whether one is still alive. What is to be replaced is moved to ``OLD``
in the hidden folder, and put back by a later process if its replacement still waits
beside it. On file systems without locks, the folders of killed processes stay.
"""

import errno
import fcntl
import os
import re
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from distbfs.locks import ForkLock

HIDDEN = re.compile(r"\.partial-[0-9a-f]{16}")  # names of the folders
LOCK, OLD = ".lock", ".old"  # a file in each, and a folder in some
TAKEN = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR)
DASH = Path("-")  # stdout, as an output

_paths: set[Path] = set()
_lock = ForkLock()


def note(*paths: Path) -> None:
    """Register files or folders for removal when a signal ends the process."""
    with _lock:
        _paths.update(paths)


def forget(*paths: Path) -> None:
    """Unregister files or folders that are complete or removed."""
    with _lock:
        _paths.difference_update(paths)


def remove_all() -> None:
    """Remove the registered files and folders; ignore failures.

    The process ends next, so calls of ``note`` and ``forget`` from other threads block.
    """
    _lock.__enter__()
    for path in list(_paths):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        with suppress(OSError):
            path.unlink()


def held_folder(parent: Path, token: str = "") -> tuple[Path, int]:
    """Create a hidden folder; return it with the descriptor of its lock.

    token: 16 hex digits, for a folder that several processes write; "" for a new one.
    Raises OSError if it cannot be created.
    """
    handle = None
    while handle is None:
        made = parent / f".partial-{token or secrets.token_hex(8)}"
        note(made)
        try:
            made.mkdir(mode=0o700, exist_ok=bool(token))
            handle = _held(made)
        except FileExistsError:  # another process has made it, and a sweep removed it
            # mutant: not made.is_dir() -> True : test_a_folder_that_is_swept_meanwhile
            if made.exists() and not made.is_dir():
                raise
        finally:
            if handle is None:
                forget(made)
    return made, handle


@contextmanager
def hidden_folder(parent: Path) -> Iterator[Path]:
    """Yield a new folder, which is removed at the end with its contents.

    Raises OSError if it cannot be created.
    """
    made, handle = held_folder(parent)
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
        os.close(handle)
        forget(made)


def _opened(folder: Path) -> int:
    """Return the descriptor of the file that is locked in a folder."""
    kind = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(folder / LOCK, kind, 0o600)


def _held(folder: Path) -> int | None:
    """Lock a new folder; return its descriptor, None if a sweep is removing it."""
    try:
        handle = _opened(folder)
    except FileNotFoundError:
        return None
    swept = False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        swept = True
    except OSError:
        pass  # there are no locks here, and so no sweeps
    if not swept and os.fstat(handle).st_nlink and folder.exists():
        return handle
    os.close(handle)
    return None


def renamed(path: Path, target: Path) -> bool:
    """Rename a folder atomically; False if a full folder or a file exists there."""
    try:
        path.rename(target)
    except OSError as error:
        if error.errno in TAKEN:
            return False
        raise
    return True


def waiting(parent: Path) -> list[Path]:
    """Return what was moved to hidden folders and whose replacements wait there."""
    moved = parent.glob(f".partial-*/{OLD}/*")
    return [path for path in moved if (path.parents[1] / path.name).exists()]


def sync(path: Path) -> None:
    """Flush a file or folder to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sweep(parent: Path) -> None:
    """Remove the hidden folders of processes that were killed; ignore failures.

    What they were about to replace is put back first.
    """
    names: list[str] = []
    with suppress(OSError):
        names = [name for name in os.listdir(parent) if HIDDEN.fullmatch(name)]
    for name in names:
        with suppress(OSError):
            if (parent / name).is_symlink():
                continue
            handle = _opened(parent / name)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                for old in waiting(parent):
                    if old.parents[1].name == name and renamed(old, parent / old.name):
                        sync(parent)
                shutil.rmtree(parent / name, ignore_errors=True)
            finally:
                os.close(handle)


@contextmanager
def copied_to_stdout() -> Iterator[Path]:
    """Yield the path of a file in a temporary folder; copy it to stdout at the end."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "stdout")
        yield path
        with path.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
    sys.stdout.flush()
