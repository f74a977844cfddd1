"""Files and folders that go with this process where a signal ends it."""

import shutil
from contextlib import suppress
from pathlib import Path
from threading import Lock

_paths: set[Path] = set()
_lock = Lock()


def note(*paths: Path) -> None:
    """Let files or folders be removed where the process is ended from outside."""
    with _lock:
        _paths.update(paths)


def forget(*paths: Path) -> None:
    """Let them stay: they are complete, or gone."""
    with _lock:
        _paths.difference_update(paths)


def remove_all() -> None:
    """Remove what is noted; what cannot be removed stays, in silence.

    The process ends next: who notes or forgets something waits for that.
    """
    _lock.acquire()
    for path in list(_paths):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        with suppress(OSError):
            path.unlink()
