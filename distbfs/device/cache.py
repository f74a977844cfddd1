"""Where compiled kernels are kept, and what they were compiled from.

Environment: ``DISTBFS_CACHE`` names the folder.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from distbfs.errors import CompilerMissing

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def cache_folder() -> Path:
    """Return a private folder for compiled kernels, made if need be."""
    given = os.environ.get("DISTBFS_CACHE")
    base = os.environ.get("XDG_CACHE_HOME")
    home = Path(base) if base else Path.home() / ".cache"
    candidates = [Path(given)] if given else [home / "distbfs"]
    candidates.append(Path(tempfile.gettempdir()) / f"distbfs-{os.getuid()}")
    for folder in candidates:
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            usable = os.access(folder, os.W_OK | os.X_OK)
            if usable and folder.stat().st_uid == os.getuid():
                return folder
    raise CompilerMissing("no folder for compiled kernels; set DISTBFS_CACHE")


def source_closure(source: Path) -> list[Path]:
    """Return a source and the headers that it includes by ``"name"``, in order."""
    found: list[Path] = []
    waiting = [source]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.append(path)
        names = INCLUDE.findall(path.read_text(encoding="utf-8"))
        headers = [(path.parent / name).resolve() for name in names]
        waiting += [header for header in headers if header.is_file()]
    return found


@contextlib.contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold a file lock where the file system has locks."""
    with path.open("w") as handle:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
