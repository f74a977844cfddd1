"""A folder that appears complete or not at all.

Files are written into a folder that ``leftovers`` hides beside the target, and which is
renamed to the target at the end. The rename fails if a store exists there, so that only
one of several writers succeeds. A store that is to be replaced is moved to the hidden
folder just before.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from contextlib import suppress
from pathlib import Path

from distbfs import leftovers
from distbfs.errors import StoreError, UsageError
from distbfs.store import schema

TOKEN = re.compile(r"[0-9a-f]{16}")


def new_token() -> str:
    """Return a token that no other write uses; under MPI, rank 0 sends it to all."""
    return secrets.token_hex(8)


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
    token: 16 hex digits, the same on all ranks that write this folder

    Raises StoreError if the target exists and is not to be replaced.
    """

    def __init__(self, folder: str | Path, overwrite: bool, token: str) -> None:
        if not TOKEN.fullmatch(token):
            raise UsageError(f"token is '{token}'; allowed: 16 hex digits")
        self.target = checked_target(folder, overwrite=True)
        self.overwrite = overwrite
        parent, name = self.target.parent, self.target.name
        leftovers.sweep(parent)  # which may bring back a store
        self._check_target()
        self._hidden, handle = leftovers.held_folder(parent, token)
        self._handle: int | None = handle
        self.path, self._old = self._hidden / name, self._hidden / leftovers.OLD / name
        try:
            self.path.mkdir(exist_ok=True)
        except OSError:
            self.discard()
            raise

    def _check_target(self) -> None:
        checked_target(self.target, overwrite=self.overwrite)

    def place(self) -> None:
        """Rename the folder to the target and remove the store that it replaces.

        Call it once, when every file is written and synced. Raises StoreError if a
        store has appeared there that is not to be replaced.
        """
        self._check_target()
        leftovers.sync(self.path)
        leftovers.forget(self._hidden)  # a sweep will handle it
        try:
            while not leftovers.renamed(self.path, self.target):
                self._check_target()
                # another write may have finished first and replaced it
                shutil.rmtree(self._old.parent, ignore_errors=True)
                self._old.parent.mkdir(exist_ok=True)
                with suppress(FileNotFoundError):
                    self.target.rename(self._old)
        except BaseException:
            if self._old.exists() and not leftovers.renamed(self._old, self.target):
                shutil.rmtree(self._old, ignore_errors=True)
            raise
        leftovers.sync(self.target.parent)
        shutil.rmtree(self._old.parent, ignore_errors=True)
        self.discard()

    def discard(self) -> None:
        """Remove what is left of the hidden folder; does nothing after that.

        If an old store could not be put back, the next write takes it from there.
        """
        if not self._old.exists():
            shutil.rmtree(self._hidden, ignore_errors=True)
        self.release()

    def release(self) -> None:
        """Release the lock, because another rank finishes the folder."""
        leftovers.forget(self._hidden)
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
