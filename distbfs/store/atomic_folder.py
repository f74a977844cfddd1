"""A folder that appears complete or not at all.

Files are written into ``.NAME.partial-TOKEN`` beside the target NAME, and that folder
is renamed to NAME at the end. The rename fails if a store exists there, so that only
one of several writers succeeds. A store that is to be replaced is first renamed to
``.NAME.old-TOKEN``; both folders of a token exist only while the new one takes its
place. Every writing process holds a shared lock on ``.NAME.lock-TOKEN``; the next write
removes what is left of a run whose lock is free, after it has restored an old store
whose replacement failed. On file systems without locks, the remains stay.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import shutil
from contextlib import suppress
from pathlib import Path

from distbfs import leftovers
from distbfs.errors import StoreError, UsageError
from distbfs.store import schema

TOKEN = re.compile(r"[0-9a-f]{8,32}")
REMAINS = re.compile(r"\.(?P<name>.+)\.(?P<kind>partial|old|lock)-(?P<token>[0-9a-f]+)")
TAKEN = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR)


def new_token() -> str:
    """Return a token that no other write uses; under MPI, rank 0 sends it to all."""
    return secrets.token_hex(8)


def sync(path: Path) -> None:
    """Flush a file or folder to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def lock(path: Path, kind: int) -> int | None:
    """Lock a file, created if needed; return its descriptor, None if another holds it.

    Raises OSError if the file system has no locks.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    except OSError:
        os.close(handle)
        raise
    return handle


def lock_shared(path: Path) -> int:
    """Lock a file that still has its name when it is locked; return the descriptor.

    A sweep may remove the file between its creation and its lock. Raises OSError if
    the file system has no locks.
    """
    while True:
        handle = lock(path, fcntl.LOCK_SH)
        if handle is not None:
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), path.stat()):
                    return handle
            os.close(handle)


def renamed(folder: Path, target: Path) -> bool:
    """Rename a folder atomically; False if a store or a file exists there."""
    try:
        folder.rename(target)
    except OSError as error:
        if error.errno in TAKEN:
            return False
        raise
    return True


def remove(folder: Path) -> None:
    """Remove the folder of a store, beginning with the manifest; ignore failures."""
    with suppress(OSError):
        (folder / schema.MANIFEST_NAME).unlink()
    shutil.rmtree(folder, ignore_errors=True)


def remains(target: Path) -> dict[str, dict[str, Path]]:
    """Return the remains of unfinished writes of a target: token -> kind -> path."""
    paths: dict[str, dict[str, Path]] = {}
    for entry in os.listdir(target.parent):
        match = REMAINS.fullmatch(entry)
        if match and match["name"] == target.name:
            kinds = paths.setdefault(match["token"], {})
            kinds[match["kind"]] = target.parent / entry
    return paths


def sweep(target: Path, own: str) -> None:
    """Remove the remains of dead runs beside the target, and restore an old store."""
    for token, kinds in remains(target).items():
        if token == own:
            continue
        lock_path = target.parent / f".{target.name}.lock-{token}"
        try:
            handle = lock(lock_path, fcntl.LOCK_EX)
        except OSError:
            continue
        if handle is None:
            continue
        try:
            if is_waiting(kinds) and renamed(kinds["old"], target):
                sync(target.parent)
            elif "old" in kinds:
                remove(kinds["old"])
            if "partial" in kinds:
                remove(kinds["partial"])
            lock_path.unlink(missing_ok=True)
        finally:
            os.close(handle)


def is_waiting(kinds: dict[str, Path]) -> bool:
    """Return whether the remains of a token hold an old store that was not replaced."""
    both = {"partial", "old"} <= kinds.keys()
    return both and (kinds["old"] / schema.MANIFEST_NAME).exists()


def check_replaceable(target: Path) -> None:
    """Raise StoreError unless the target holds a store and nothing else.

    Raises FileNotFoundError if the target does not exist.
    """
    try:
        names = sorted(os.listdir(target))
    except NotADirectoryError:
        names = []
    if schema.MANIFEST_NAME not in names:
        raise StoreError(
            f"{target} exists and is not a graph store; it is not replaced"
        )
    for name in names:
        known = name in (schema.MANIFEST_NAME, schema.IDS_NAME)
        if not known and not schema.PART_FILE.fullmatch(name):
            raise StoreError(
                f"{target} holds '{name}', which is not a part of a graph store; "
                "move it away first"
            )


def checked_target(folder: str | Path, *, overwrite: bool) -> Path:
    """Return the real path of a store to be written.

    Raises StoreError if something there is not to be replaced, or no folder has it.
    """
    if str(folder) == "-":
        raise UsageError("a store is a folder, and - is stdout; give a name")
    target = Path(os.path.realpath(folder))
    if not target.parent.is_dir():
        raise StoreError(f"{target}: the folder {target.parent} does not exist")
    if os.path.lexists(target):
        if not overwrite:
            raise StoreError(f"{target} exists; give --force to replace it")
        with suppress(FileNotFoundError):  # another write replaces it
            check_replaceable(target)
    return target


class PartialFolder:
    """A folder being written, from its creation to its final name.

    folder: the target; overwrite: whether a store there is replaced
    token: 8 to 32 hex digits, the same on all ranks that write this folder

    Raises StoreError if the target exists and is not to be replaced.
    """

    def __init__(self, folder: str | Path, overwrite: bool, token: str) -> None:
        if not TOKEN.fullmatch(token):
            raise UsageError(f"token is '{token}'; allowed: 8 to 32 hex digits")
        self.target = checked_target(folder, overwrite=True)
        self.overwrite = overwrite
        parent, name = self.target.parent, self.target.name
        self.path = parent / f".{name}.partial-{token}"
        self._old = parent / f".{name}.old-{token}"
        self._lock_path = parent / f".{name}.lock-{token}"
        self._handle: int | None = None
        self._done = False
        sweep(self.target, token)  # which may bring back a store
        self._check_target()
        with suppress(OSError):  # no locks here; missing permissions show in mkdir
            self._handle = lock_shared(self._lock_path)
        leftovers.note(self.path, self._lock_path)
        try:
            self.path.mkdir(exist_ok=True)
        except OSError:
            self._forget()
            raise

    def _check_target(self) -> None:
        checked_target(self.target, overwrite=self.overwrite)

    def place(self) -> None:
        """Rename the folder to the target and remove the store that it replaces.

        Call it once, when every file is written and synced. Raises StoreError if a
        store has appeared there that is not to be replaced.
        """
        self._check_target()
        sync(self.path)
        leftovers.forget(self.path, self._lock_path)  # a sweep will handle them
        try:
            while not renamed(self.path, self.target):
                self._check_target()
                remove(self._old)  # another write finished first and replaced it
                with suppress(FileNotFoundError):
                    self.target.rename(self._old)
        except BaseException:
            if self._old.exists() and not renamed(self._old, self.target):
                remove(self._old)
            raise
        sync(self.target.parent)
        remove(self._old)
        self._forget()

    def discard(self) -> None:
        """Remove the folder and its contents; does nothing after :meth:`place`.

        If an old store could not be restored, the next write restores it from this
        folder.
        """
        if self._done:
            return
        if not self._old.exists():
            remove(self.path)
        self._forget()

    def release(self) -> None:
        """Release the lock, because another rank finishes the folder."""
        leftovers.forget(self.path, self._lock_path)
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _forget(self) -> None:
        self._done = True
        with suppress(OSError):  # an empty file, which the next write removes
            self._lock_path.unlink()
        self.release()
