"""The cache of compiled kernels.

Files there are executed, so nobody else may be able to write them: the folder and each
file must belong to the user or to root, only their owner may write to them, and no
other user may be able to replace a folder on their path. If no such folder exists,
kernels are compiled into a temporary folder of this process.

Environment: ``DISTBFS_CACHE`` names the folder.
"""

from __future__ import annotations

import contextlib
import logging
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from distbfs.errors import CompilerMissing
from distbfs.locks import file_lock
from distbfs.timing import COMPILING

LOG = logging.getLogger("distbfs.device")


def cache_folder() -> Path:
    """Return a private folder for compiled kernels; create it if it is missing.

    These are tried in turn: the user's folder, one in the folder for temporary files,
    and a new one that is removed when this process ends.  A folder that others could
    change is skipped, with a line in the log.
    """
    named = os.environ.get("DISTBFS_CACHE")
    base = os.environ.get("XDG_CACHE_HOME")
    home = Path(base) if base else Path.home() / ".cache"
    temporary = Path(tempfile.gettempdir()) / f"distbfs-{os.getuid()}"
    first_exposed = None
    for folder in (Path(named) if named else home / "distbfs", temporary):
        with contextlib.suppress(OSError):
            path = folder.absolute()
            exposed = weak_point(path)
            if exposed is None:
                for step in (*reversed(path.parents), path):
                    if not step.is_dir():
                        step.mkdir(mode=0o700, exist_ok=True)
                exposed = weak_point(path)
            if exposed is None and os.access(path, os.W_OK | os.X_OK):
                _note(first_exposed, path)
                return path.resolve()
            first_exposed = first_exposed or exposed
    try:
        private = Path(_folder_of_process().name)
    except OSError as error:
        raise CompilerMissing(
            f"no folder for compiled kernels: {error}; set DISTBFS_CACHE"
        ) from error
    _note(first_exposed, private)
    return private


@cache
def _note(weak: Path | None, folder: Path) -> None:
    """Log once that a folder is not used, because of ``weak``, a part of its path."""
    if weak is not None:
        LOG.warning(
            "distbfs: other users can change %s; compiled kernels go to %s "
            "(DISTBFS_CACHE names another folder)",
            weak,
            folder,
        )


@cache
def _folder_of_process() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="distbfs-", ignore_cleanup_errors=True)


def weak_point(folder: Path) -> Path | None:
    """Return a link or folder on an absolute path that another user could replace.

    A user who may write to a folder can replace its contents, unless it is sticky; to
    the last folder, no other user may write at all.  The owner of ``/`` counts as root,
    whatever its number in a container.  Folders that do not exist yet are skipped.
    """
    owners = {0, os.getuid(), Path("/").stat().st_uid}
    for path in (folder, *folder.parents):
        if path.is_symlink() and path.lstat().st_uid not in owners:
            return path
    real = folder.resolve()
    for path in (real, *real.parents):
        try:
            status = path.stat()
        except FileNotFoundError:
            continue
        held = path != real and status.st_mode & stat.S_ISVTX
        if status.st_uid not in owners or (_others_write(status) and not held):
            return path
    return None


def _others_write(status: os.stat_result) -> bool:
    return bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def is_sound(path: Path) -> bool:
    """Return whether a file exists that only the user or root can have written.

    Anything else of that name is removed.
    """
    try:
        status = path.lstat()
    except FileNotFoundError:
        return False
    own = status.st_uid in (0, os.getuid()) and not _others_write(status)
    if own and stat.S_ISREG(status.st_mode):
        return True
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise CompilerMissing(f"{path} is in the way: {error.strerror}") from error
    return False


@contextlib.contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold a file lock, if the file system has locks."""
    is_sound(path)
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with file_lock(os.open(path, flags, 0o600)):
        yield


def cached(target: Path, make: Callable[[Path], None], *, aside: bool = True) -> None:
    """Make a file of the cache unless it is there, complete or not at all.

    Processes that need it together make it once.
    make: writes the file under another name; aside: whether its time is that of
    compiling, which no phase includes
    """
    if is_sound(target):
        return
    phase = COMPILING() if aside else contextlib.nullcontext()
    with phase, exclusive(target.with_suffix(".lock")):
        if is_sound(target):
            return
        handle, name = tempfile.mkstemp(suffix=target.suffix, dir=target.parent)
        os.close(handle)
        try:
            make(Path(name))
            Path(name).chmod(0o700)
            Path(name).replace(target)
        finally:
            Path(name).unlink(missing_ok=True)
