"""Functions that end all ranks at once, and what they print before."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import NoReturn

FORWARD_SECONDS = 0.2  # hydra can lose what is printed just before MPI_Abort
STUCK_SECONDS = 3.0
_as_json = False


def json_line(message: str, level: str, at: float | None = None, **more: str) -> str:
    """Return a log message as JSON; at: seconds since 1970, None for now."""
    at = time.time() if at is None else at
    when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at))
    when += f".{int(at % 1 * 1000):03d}Z"
    return json.dumps({"time": when, "level": level, "message": message, **more})


def log_as_json(wanted: bool) -> None:
    """Choose whether ``last_words`` returns JSON or text."""
    global _as_json  # noqa: PLW0603 - errors end a run from anywhere, as excepthooks do
    _as_json = wanted


def last_words(message: str, place: str = "") -> str:
    """Return the line on stderr for an error that ends the run.

    message: one line, or a traceback that ends with a line break
    place: prefix of a traceback: "rank N: ", or "" if there is one process
    """
    if _as_json:
        return json_line(place + message.rstrip("\n"), "error") + "\n"
    if not message.endswith("\n"):
        return f"distbfs: {message}\n"
    return f"distbfs: {place.rstrip()}\n{message}" if place else message


def say(text: str) -> None:
    """Write to stderr in one piece, after flushing earlier output."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(text)
        sys.stderr.flush()


def end_after(seconds: float) -> None:
    """Have the kernel end this process after some seconds; 0 cancels that.

    No thread is started, since a process without memory could not start one.
    """
    with contextlib.suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)


def abort_ranks(comm: Any, code: int) -> NoReturn:
    """End all ranks of an MPI communicator with an exit code (0 counts as 1)."""
    code = min(max(code, 1), 255)
    say("")
    time.sleep(FORWARD_SECONDS)
    end_after(STUCK_SECONDS)  # in case MPI_Abort hangs
    try:
        with contextlib.suppress(OSError):
            # the error is printed already; suppress MPI's own message
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        comm.Abort(code)
    finally:
        os._exit(code)
