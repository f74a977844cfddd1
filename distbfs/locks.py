"""Locks that are free in a forked child process, of searches, and of files."""

from __future__ import annotations

import fcntl
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache, cached_property
from threading import RLock, get_ident
from typing import Any
from weakref import WeakSet

from distbfs.errors import UsageError

IMPORTING = 10  # seconds that a fork waits for imports of other threads


class ForkLock:
    """A lock that a thread may take again while it holds it.

    In a forked child process, it is free unless the thread that forked holds it,
    because the child has no other thread that could release it.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        follow_forks()
        LOCKS.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def renew(self) -> None:
        """Make the lock free in a new child process."""
        self._lock = renewed(self._lock)


def renewed(lock: Any) -> Any:
    """Return the RLock, or a new one if its holder is a thread that the child lacks."""
    if not lock.acquire(blocking=False):
        return RLock()
    lock.release()
    return lock


LOCKS: WeakSet[ForkLock] = WeakSet()


@cache
def follow_forks() -> None:
    """Make sure that forked child processes find locks free and imports complete."""
    os.register_at_fork(before=await_imports, after_in_child=renew_all)


def renew_all() -> None:
    """Renew all locks, including those of cached properties before Python 3.12."""
    for lock in list(LOCKS):
        lock.renew()
    if sys.version_info < (3, 12):
        for cached in cached_properties():
            cached.lock = renewed(cached.lock)


def cached_properties() -> Iterator[Any]:
    """Yield the cached properties of the package's classes."""
    for name, module in list(sys.modules.items()):
        for kind in list(vars(module).values()) if of_package(name) else ():
            if isinstance(kind, type) and kind.__module__ == name:
                for value in vars(kind).values():
                    if isinstance(value, cached_property):
                        yield value


def of_package(name: str) -> bool:
    """Return whether a module is of this package."""
    return name.partition(".")[0] == __name__.partition(".")[0]


def await_imports() -> None:
    """Wait for imports in other threads, which a child could not finish."""
    last = time.monotonic() + IMPORTING
    while importing() and time.monotonic() < last:
        time.sleep(0.001)


def importing() -> bool:
    """Return whether another thread imports a module of the package."""
    machinery = sys.modules.get("_frozen_importlib")
    locks = getattr(machinery, "_module_locks", {})  # name -> reference to a lock
    owners = {
        getattr(lock(), "owner", None)
        for name, lock in list(locks.items())
        if of_package(name)
    }
    return bool(owners - {None, get_ident()})


class SearchLock(ForkLock):
    """A lock that threads hold while they search one graph.

    A thread that holds it may search, but not within a search: a function that a search
    calls gets a UsageError if it would otherwise wait for its own search.
    """

    def __init__(self) -> None:
        super().__init__()
        self._searching = 0  # id of the process whose search runs

    @property
    def torn(self) -> bool:
        """Whether the process was forked during a search, which left memory unfinished.

        Hold the lock while you read it.
        """
        return self._searching not in (0, os.getpid())

    def mend(self) -> None:
        """Note that nothing uses the memory of the interrupted search any more."""
        self._searching = 0

    @contextmanager
    def search(self) -> Iterator[None]:
        """Hold the lock for one search, which raises UsageError within another."""
        with self:
            if self.torn:
                raise UsageError(
                    "this process was forked while a thread of its parent searched "
                    "with this session; open the graph again"
                )
            if self._searching:
                raise UsageError(
                    "this thread is searching the graph: a function that a search "
                    "calls, such as stop or progress, cannot search its graph"
                )
            self._searching = os.getpid()
            try:
                yield
            finally:
                self._searching = 0


@contextmanager
def file_lock(handle: int) -> Iterator[None]:
    """Hold the lock of an open file or folder, if it has locks; close it at the end."""
    try:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        with suppress(OSError):  # also of a child that was forked meanwhile
            fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)
