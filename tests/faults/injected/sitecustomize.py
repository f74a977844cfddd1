"""Faults put into commands from outside; Python imports this file when it starts.

With this folder first on PYTHONPATH, environment variables say what happens:

- ``INJECT_LOG=NAME``: each search appends a line with the time to NAME.RANK
- ``INJECT_SLEEP=SECONDS``: each search takes that much longer, but not in a job that
  Slurm has queued again
- ``INJECT_FAULT=WHAT:RANK:LEVEL``: ``error``, ``exit-3``, ``exit-0``, ``stop`` (by
  SIGSTOP) or ``sleep-SECONDS`` on a rank when it is in the middle of its LEVEL-th
  level, counted over all searches
- ``INJECT_FULL=RANK``: the disk is full for a rank, and others go on when it has
  removed what they write
- ``INJECT_STUCK=MODULE:NAME``: a function does not come back from C; its rank
  makes the file INJECT_LOG.RANK when it is there
- ``INJECT_LATE=RANK``: a rank removes its unfinished files 0.2 s later than others
- ``INJECT_KILL_SYNC=K``: SIGKILL in place of the K-th fsync
"""

import ctypes
import errno
import os
import signal
import sys
import time
from pathlib import Path

from distbfs.ranks.launcher import find_launch

launch = find_launch(os.environ)
rank = launch.rank if launch else 0


def log(text):
    with Path(f"{os.environ['INJECT_LOG']}.{rank}").open("a") as file:
        file.write(f"{text} {time.time()}\n")


def slow_searches(seconds):
    from distbfs.search.session import Session  # noqa: PLC0415

    search = Session.search

    def slow(self, root, **options):
        log("search")
        time.sleep(seconds)
        return search(self, root, **options)

    Session.search = slow


def fail(what):
    log("fault")
    if what == "error":
        raise RuntimeError("injected")
    if what == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif what.startswith("sleep-"):
        time.sleep(float(what.removeprefix("sleep-")))
    else:
        sys.exit(int(what.removeprefix("exit-")))


def failing_level(what, where, wanted):
    from distbfs.exchange.host import HostExchange  # noqa: PLC0415
    from distbfs.multisearch.part_bits import PartBitSearches  # noqa: PLC0415

    levels = 0

    def failing(method):
        def counted(self, *arguments):
            nonlocal levels
            levels += 1
            if rank == where and levels == wanted:
                fail(what)
            return method(self, *arguments)

        return counted

    HostExchange.start_masks = failing(HostExchange.start_masks)
    PartBitSearches._push = failing(PartBitSearches._push)


def killing_sync(wanted):
    fsync = os.fsync
    calls = 0

    def killing(handle):
        nonlocal calls
        calls += 1
        if calls == wanted:
            os.kill(os.getpid(), signal.SIGKILL)
        fsync(handle)

    os.fsync = killing


def full_disk(where):
    def full(*_):
        raise OSError(errno.ENOSPC, "injected")

    def late(handle):
        end = time.monotonic() + 20
        while time.monotonic() < end and os.fstat(handle).st_nlink:
            time.sleep(0.001)

    if rank == where:
        os.pwrite = full
    else:
        os.fsync = late


def stuck_in_c(name):
    from importlib import import_module  # noqa: PLC0415

    module, _, names = name.partition(":")
    *owners, function = names.split(".")
    owner = import_module(module)
    for one in owners:
        owner = getattr(owner, one)

    def stuck(*_, **__):
        log("stuck")
        lock, mutex = ctypes.CDLL(None).pthread_mutex_lock, bytes(64)
        lock(mutex)
        lock(mutex)  # signals do not end this

    setattr(owner, function, stuck)


def late_removal():
    from distbfs import leftovers  # noqa: PLC0415

    remove_all = leftovers.remove_all

    def late():
        time.sleep(0.2)
        remove_all()

    leftovers.remove_all = late


if "INJECT_LOG" in os.environ:
    again = "SLURM_RESTART_COUNT" in os.environ
    slow_searches(0.0 if again else float(os.environ.get("INJECT_SLEEP", "0")))
if "INJECT_FAULT" in os.environ:
    name, place, count = os.environ["INJECT_FAULT"].split(":")
    failing_level(name, int(place), int(count))
if "INJECT_STUCK" in os.environ:
    stuck_in_c(os.environ["INJECT_STUCK"])
if os.environ.get("INJECT_LATE") == str(rank):
    late_removal()
if "INJECT_FULL" in os.environ:
    full_disk(int(os.environ["INJECT_FULL"]))
if "INJECT_KILL_SYNC" in os.environ:
    killing_sync(int(os.environ["INJECT_KILL_SYNC"]))
