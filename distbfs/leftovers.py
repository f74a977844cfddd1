"""Files and folders to remove when a signal ends this process."""

import shutil
from contextlib import suppress
from pathlib import Path

from distbfs.locks import ForkLock

_paths: set[Path] = set()
_lock = ForkLock()


def note(*paths: Path) -> None:
    """Register files or folders for removal when a signal ends the process."""
    with _lock:
        _paths.update(paths)


def forget(*paths: Path) -> None:
    """Unregister them: they are complete, or removed."""
    with _lock:
        _paths.difference_update(paths)


def remove_all() -> None:
    """Remove the registered files and folders; ignore failures.

    The process ends next, so concurrent calls of ``note`` and ``forget`` block.
    """
    _lock.__enter__()
    for path in list(_paths):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        with suppress(OSError):
            path.unlink()
