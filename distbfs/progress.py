"""Progress of long work: display, and sums over threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from typing_extensions import Self


class Tell(Protocol):
    """Receives the amount that is done, and ``total`` if the total has grown."""

    def __call__(self, done: int, total: int | None = None, /) -> None:
        """Show the amount done; callable from any thread."""


Progress: TypeAlias = Callable[[str, int], AbstractContextManager[Tell]]


def untold(done: int, total: int | None = None, /) -> None:
    """Show nothing."""


def unsaid(text: str) -> None:
    """Discard a message."""


@contextmanager
def no_progress(label: str = "", total: int = 0) -> Iterator[Tell]:  # noqa: ARG001
    """Show nothing."""
    yield untold


@contextmanager
def progress_bar(label: str, total: int) -> Iterator[Tell]:
    """Show a bar on stderr while it is not all done, or in a notebook."""
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=total)

        def tell(done: int, total: int | None = None, /) -> None:
            bar.update(task, completed=done, total=total)

        yield tell


class Stages:
    """Shows one stage of long work at a time, as one progress bar in a terminal.

    A context manager, which hides the stage when it ends.

    progress: shows a stage
    """

    def __init__(self, progress: Progress) -> None:
        self._progress, self._open = progress, ExitStack()
        self._label = ""
        self._tell: Tell = untold

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def stage(self, label: str, total: int = 0) -> Tell:
        """Return the callback of a stage; its first call shows the stage."""

        def tell(done: int, more: int | None = None, /) -> None:
            if self._label != label:
                self._open.close()
                self._tell = self._open.enter_context(self._progress(label, total))
                self._label = label
            self._tell(done, more)

        return tell


class Sum:
    """Sums the amounts that any thread has done, and passes on the sum.

    total: the amount to do, as far as it is known
    """

    def __init__(self, tell: Tell = untold, total: int = 0) -> None:
        self._tell, self._lock = tell, Lock()
        self._done, self._total = 0, total

    def __call__(self, count: int) -> None:
        """Add an amount that has been done."""
        with self._lock:
            self._done += count
            self._tell(self._done)

    def more(self, count: int) -> None:
        """Add ``count``, which may be negative, to the amount to do."""
        if count:
            with self._lock:
                self._total += count
                self._tell(self._done, self._total)


def progress_slices(total: int, size: int, tell: Tell) -> Iterator[tuple[int, int]]:
    """Yield (start, stop) of the slices of ``total``, and report progress."""
    for start in range(0, total, size):
        stop = min(start + size, total)
        yield start, stop
        tell(stop, total)
