"""Ending all ranks at once."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import NoReturn

FORWARD_SECONDS = 0.2  # hydra can lose what is printed just before MPI_Abort
STUCK_SECONDS = 3.0


def say(text: str) -> None:
    """Write to stderr in one piece, after what was printed before."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(text)
        sys.stderr.flush()


def abort_ranks(comm: Any, code: int) -> NoReturn:
    """End all ranks of an MPI communicator with a code (0 counts as 1)."""
    code = min(max(code, 1), 255)
    say("")
    time.sleep(FORWARD_SECONDS)
    with Path(os.devnull).open("w") as nowhere:
        # should MPI_Abort hang, this thread without Python ends the process
        faulthandler.dump_traceback_later(STUCK_SECONDS, exit=True, file=nowhere)
        os.dup2(nowhere.fileno(), 2)  # our line is out, MPI need not add its own
        comm.Abort(code)
    os._exit(code)
