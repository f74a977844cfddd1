"""Files and standard streams whose write errors name them."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from io import BufferedWriter, FileIO, TextIOWrapper
from pathlib import Path
from typing import Any, NoReturn

from distbfs.ranks.endings import run_guarded

CLOSED_PIPE = 128 + signal.SIGPIPE  # as a program that the signal ends


class ClosedPipe(OSError):  # noqa: N818
    """The reader of a pipe has closed it; an errno would make click end the program."""


class NamedFile(FileIO):
    """A file whose write errors name it and are raised once.

    What is written after an error is dropped, so that closing raises no second one.
    """

    optional = False  # whether it does not matter that nothing can be written

    def write(self, data: Any, /) -> int:
        """Write bytes; ClosedPipe, or OSError with the name of the file."""
        try:
            return super().write(data)
        except OSError as error:
            with Path(os.devnull).open("wb") as nowhere:
                os.dup2(nowhere.fileno(), self.fileno())
            if self.optional:
                return len(data)
            if isinstance(error, BrokenPipeError):
                raise ClosedPipe(f"{self.name}: its reader has closed it") from error
            error.filename = self.name
            raise


def run_program(function: Callable[[], int | None]) -> NoReturn:
    """Run a function as a program that ends with its exit code, or its error's."""
    name_standard_streams()

    def piped() -> int | None:
        try:
            return function()
        except ClosedPipe as error:
            raise SystemExit(CLOSED_PIPE) from error

    sys.exit(run_guarded(None, piped))


def name_standard_streams() -> None:
    """Make errors of stdout name it; drop messages that stderr does not take."""
    sys.stdout = _named(sys.stdout, "standard output")
    sys.stderr = _named(sys.stderr, "standard error", optional=True)


def _named(stream: Any, name: str, *, optional: bool = False) -> Any:
    """Return a stream that writes to the same file as another; None for none."""
    if stream is None:  # its descriptor is closed
        return None
    raw = NamedFile(stream.fileno(), "w", closefd=False)
    raw.name, raw.optional = name, optional
    return TextIOWrapper(
        BufferedWriter(raw),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
    )
