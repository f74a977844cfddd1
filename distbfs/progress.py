"""How far long work is: what shows it, and what adds it up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Lock
from typing import Protocol, TypeAlias


class Tell(Protocol):
    """Takes how much is done; ``total`` where there is more to do than was thought."""

    def __call__(self, done: int, total: int | None = None, /) -> None:
        """Show it, in any thread."""


Progress: TypeAlias = Callable[[str, int], AbstractContextManager[Tell]]


def untold(done: int, total: int | None = None, /) -> None:
    """Show nothing."""


@contextmanager
def no_progress(label: str = "", total: int = 0) -> Iterator[Tell]:  # noqa: ARG001
    """Show nothing."""
    yield untold


class Sum:
    """Adds up what is done, in any thread, and tells the sum.

    total: what there is to do, as far as it is known
    """

    def __init__(self, tell: Tell = untold, total: int = 0) -> None:
        self._tell, self._lock = tell, Lock()
        self._done, self._total = 0, total

    def __call__(self, count: int) -> None:
        """Add what was done."""
        with self._lock:
            self._done += count
            self._tell(self._done)

    def more(self, count: int) -> None:
        """Add what is to be done besides."""
        if count:
            with self._lock:
                self._total += count
                self._tell(self._done, self._total)


def told_slices(total: int, size: int, tell: Tell) -> Iterator[tuple[int, int]]:
    """Yield (start, stop) of slices of ``total``; tell how far they are."""
    for start in range(0, total, size):
        stop = min(start + size, total)
        yield start, stop
        tell(stop, total)
