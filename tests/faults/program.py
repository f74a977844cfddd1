"""A user's program: starts the ranks, then one rank does what the arguments say.

``program.py WHAT RANK [GRACE]``: the others work on in collective calls for 30 s.
"""

import os
import resource
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np

from distbfs.errors import InputError
from distbfs.ranks import world as worlds

what, failing = sys.argv[1], int(sys.argv[2])


def fail() -> None:
    """Do what the arguments say."""
    if what == "raise":
        raise ValueError("a rank failed")
    if what == "input-error":
        raise InputError("file x: line 3\n is not a pair of ids")
    if what == "memory":
        raise MemoryError
    if what == "no-room":  # not for a thread either
        size = int(Path("/proc/self/statm").read_text().split()[0])
        limit = size * resource.getpagesize() + (4 << 20)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        np.zeros(1 << 30)
    if what == "interrupt":
        raise KeyboardInterrupt
    if what == "exit-3":
        sys.exit(3)
    if what == "exit-0":
        sys.exit(0)
    if what == "system-exit":
        raise SystemExit("no more")
    if what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "os-exit":
        os._exit(4)
    if what == "abort":
        world.abort(5)
    if what == "thread":
        threading.Thread(target=lambda: np.zeros(1)[2]).start()
        time.sleep(120)
    if what == "inside":
        world.allreduce(np.zeros(2), "or")


world = worlds.start(grace=float(sys.argv[3])) if sys.argv[3:] else worlds.start()
world.barrier()
if what == "all-raise-late" and world.rank == failing:
    time.sleep(1.2)
if what.startswith("all-raise"):
    raise InputError("seen by every rank")
if what == "all-exit-2":
    sys.exit(2)
if what == "end-exit-3":
    sys.exit(3 if world.rank == failing else 0)
if what == "end-late":
    world.finish()
    if world.rank == failing:
        time.sleep(2)
        print("wrote the results")
    sys.exit(0)
if what == "end":
    sys.exit(0)
if world.rank == failing:
    fail()
end = time.monotonic() + 120
while time.monotonic() < end:
    world.allreduce(np.ones(3))
