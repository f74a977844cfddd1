"""Unfinished files: removed when a signal ends this process, or after it was killed.

A file that must appear complete or not at all is written in a hidden folder beside its
final place. The writing process holds a lock in the folder, so that a later process can
tell whether it is still alive. On file systems without locks, the folders of killed
processes stay.
"""

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
LOCK = ".lock"  # a file in each
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


@contextmanager
def hidden_folder(parent: Path) -> Iterator[Path]:
    """Yield a new folder, which is removed at the end with its contents.

    Raises OSError if it cannot be created.
    """
    handle = None
    while handle is None:
        made = parent / f".partial-{secrets.token_hex(8)}"
        note(made)
        try:
            made.mkdir(mode=0o700)
            handle = _held(made)
        finally:
            if handle is None:
                forget(made)
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
    if not swept and folder.exists():
        return handle
    os.close(handle)
    return None


def sweep(parent: Path) -> None:
    """Remove the hidden folders of processes that were killed; ignore failures."""
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
