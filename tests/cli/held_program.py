"""A rank of ``held_ranks``: runs commands until no more come."""

import os
import sys
from pathlib import Path
from socket import AF_UNIX, SOCK_SEQPACKET, socket

from distbfs.cli import main
from distbfs.ranks.world import run_guarded

LONGEST = 1 << 20  # bytes of a command


def serve(folder):
    """Write to the files of a folder as all ranks do, and answer at its socket."""
    sys.stdout, sys.stderr = (
        (folder / name).open("a", buffering=1, encoding="utf-8", errors=errors)
        for name, errors in (("out", "surrogateescape"), ("err", "backslashreplace"))
    )
    with socket(AF_UNIX, SOCK_SEQPACKET) as asking:
        asking.connect(str(folder / "socket"))
        while text := asking.recv(LONGEST):
            place, *words = text.decode("utf-8", "surrogateescape").split("\0")
            os.chdir(place)
            sys.argv = ["distbfs", *words]
            code = run_guarded(None, lambda: main.run(words))  # noqa: B023 - at once
            os.chdir("/")
            sys.stdout.flush()
            asking.send(str(code).encode())


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
