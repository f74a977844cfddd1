"""The end of a run: an error on one rank is printed once, and ends all with its code.

A rank can fail in five ways, each handled in a different place:

- an exception in the main thread: ``run_guarded``, else ``sys.excepthook``;
- an exception in another thread: ``threading.excepthook``;
- it leaves by ``sys.exit`` or at the end of the script while other ranks still work: at
  exit every rank waits for the others, at most ``grace`` seconds, then ends them all;
- it fails before MPI is initialised: launchers may not notice, and the others would
  wait in MPI_Init for ever, so the rank joins them first;
- it is killed, or calls ``os._exit``: no handler runs, and the launcher ends the
  others. (hydra of MPICH 5.0 then returns the code of ``os._exit``, even if it is 0.)

Ranks above 0 wait a little before they print. So only rank 0 prints an error that all
ranks see, and it ends the others while they wait. If a rank fails because another one
has failed (``PeerFailed``), the first error is printed.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
import traceback
from typing import TYPE_CHECKING, Any

from distbfs.errors import (
    CompilerMissing,
    DeviceMissing,
    DistbfsError,
    InputError,
    LaunchError,
    PeerFailed,
    ResourceError,
    legible,
)
from distbfs.interrupts import INTERRUPTED
from distbfs.ranks.abort import abort_ranks, end_after, last_words, say
from distbfs.ranks.launcher import RankLaunch, find_launch
from distbfs.ranks.signals import INTERRUPT_SECONDS, REMOVAL_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from distbfs.ranks.mpi import MpiWorld
    from distbfs.types import World

GRACE = 5.0
LONGEST = 4000  # characters of the line of an error


def exit_code(error: BaseException) -> int:
    """Return the exit code of an error, 1 … 255 except for SystemExit."""
    if isinstance(error, SystemExit):
        code = error.code
        if code is None or code == 0:
            return 0
        return code & 0xFF or 1 if isinstance(code, int) else 1
    if isinstance(error, DistbfsError):
        return error.exit_code
    if isinstance(error, MemoryError):
        return ResourceError.exit_code
    return INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1


def describe_error(error: BaseException, rank: int | None = None) -> str:
    """Format an error: one line for known errors, a traceback for others.

    rank: the rank that the text names, None to name none
    """
    place = "" if rank is None else f"rank {rank}: "
    if isinstance(error, KeyboardInterrupt):
        more = str(error) and f" {error}".replace(" ;", ";")
        return last_words(f"{place}interrupted{more}")
    if isinstance(error, (DistbfsError, MemoryError)):
        text = " ".join(str(error).split()) or "there is not enough memory"
        # mutant: text.removeprefix(place) -> text : test_a_rank_is_named_once
        return last_words(place + legible(text.removeprefix(place), LONGEST))
    lines = traceback.format_exception(type(error), error, error.__traceback__)
    return last_words("".join(lines), place)


def wait_turn(rank: int, error: BaseException | None = None) -> None:
    """Wait while lower ranks print: 0.3 s for rank 1, at most 2 s.

    Wrong use, bad input and missing compilers or devices are mostly seen by all ranks,
    but on busy hosts at different times, so ranks above 0 wait 2 s. They also do for
    Ctrl-C, which rank 0 may receive later than others if it waits for them. A rank
    whose error follows from another rank's error waits longest.
    """
    if isinstance(error, PeerFailed):
        time.sleep(GRACE)
    elif rank and isinstance(error, KeyboardInterrupt):
        time.sleep(INTERRUPT_SECONDS + REMOVAL_SECONDS + 0.2)
    elif rank:
        missing = isinstance(error, (CompilerMissing, DeviceMissing))
        wrong = error is not None and exit_code(error) == InputError.exit_code
        time.sleep(2.0 if wrong or missing else min(0.1 + 0.2 * rank, 2.0))


class AbortHook:
    """Ends all ranks when this rank fails or leaves early; each process has one."""

    def __init__(self, comm: Any, grace: float = GRACE) -> None:
        self.comm = comm
        self.rank: int = comm.Get_rank()
        self.grace = grace
        self.world: MpiWorld | None = None
        self._failing = threading.Lock()
        self._error_before = sys.excepthook
        self._thread_before = threading.excepthook

    @staticmethod
    def installed() -> AbortHook | None:
        """Return the hook of this process, or None."""
        for hook in (sys.excepthook, threading.excepthook):
            owner = getattr(hook, "__self__", None)
            if isinstance(owner, AbortHook):
                return owner
        return None

    def install(self) -> None:
        """Handle uncaught errors and the end of the program."""
        sys.excepthook = self._on_error
        threading.excepthook = self._on_thread_error
        atexit.register(self.leave)

    def remove(self) -> None:
        """Undo ``install``."""
        atexit.unregister(self.leave)
        sys.excepthook = self._error_before
        threading.excepthook = self._thread_before

    def fail(self, error: BaseException) -> None:
        """Print an error and end all ranks with its code."""
        if self._failing.acquire(blocking=False):
            wait_turn(self.rank, error)
            say(describe_error(error, self.rank))
            abort_ranks(self.comm, exit_code(error))

    def leave(self, grace: float | None = None, code: int = 1) -> None:
        """Wait until the other ranks leave; end them after ``grace`` seconds."""
        world = self.world
        if world is None or world.wait_end(self.grace if grace is None else grace):
            return
        say(
            last_words(
                f"rank {self.rank} ended while other ranks still worked; ranks may end "
                "at different times after a world.finish() on all of them"
            )
        )
        abort_ranks(self.comm, code)

    def _on_error(
        self,
        kind: type[BaseException],
        error: BaseException,
        trace: TracebackType | None,
    ) -> None:
        self.fail(error.with_traceback(trace))
        self._error_before(kind, error, trace)

    def _on_thread_error(self, args: threading.ExceptHookArgs) -> None:
        if args.exc_value is None or issubclass(args.exc_type, SystemExit):
            self._thread_before(args)  # ends this thread only
            return
        self.fail(args.exc_value.with_traceback(args.exc_traceback))


def explain_launch_error(launch: RankLaunch | None) -> None:
    """Print an uncaught LaunchError as one line, with exit code 2.

    Without MPI no rank can end the others; every rank fails in the same way.
    """
    before = sys.excepthook

    def hook(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        if not isinstance(error, LaunchError):
            before(kind, error, trace)
            return
        wait_turn(launch.rank if launch else 0, error)
        say(describe_error(error))
        raise SystemExit(error.exit_code)

    sys.excepthook = hook


def _join_others(launch: RankLaunch | None) -> Any:
    """Initialise MPI with the other ranks; return COMM_WORLD, None if alone."""
    if launch is None or launch.single:
        return None
    from distbfs.ranks.mpi import load_mpi  # noqa: PLC0415

    # the others may have ended already, so never join
    end_after(GRACE)
    try:
        comm = load_mpi(launch).COMM_WORLD
    except LaunchError:
        return None
    finally:
        end_after(0)
    return comm if comm.Get_size() > 1 else None


def _end_failed(world: World | None, error: BaseException) -> int:
    """Print an error once and end all ranks; if there is one rank, return the code."""
    launch = find_launch(os.environ)
    hook = AbortHook.installed()
    comm = hook.comm if hook else getattr(world, "comm", None)
    # a launcher passes Ctrl-C on to all ranks, of which others may have ended by it
    ends_all = isinstance(error, (LaunchError, KeyboardInterrupt))
    if comm is None and world is None and not ends_all:
        comm = _join_others(launch)
    alone = comm is None or comm.Get_size() == 1
    rank = None if comm is None or alone else comm.Get_rank()
    wait_turn(rank or (launch.rank if launch else 0), None if alone else error)
    ctrl_c = isinstance(error, KeyboardInterrupt)
    if isinstance(error, SystemExit):
        text = f"{error.code}\n" if isinstance(error.code, str) else ""
    elif ctrl_c and comm is None and launch and launch.rank:
        # all ranks heard of it before they knew each other: the first says it
        text = ""
    else:
        text = describe_error(error, rank)
    say(text)
    if not alone:
        abort_ranks(comm, exit_code(error))
    return exit_code(error)


def run_guarded(world: World | None, function: Callable[[], int | None]) -> int:
    """Call a function and return its exit code; collective when it returns normally.

    world: the ranks, or None if ``function`` starts them when it needs them
    When the function returns, its rank has reached the common end, and waits for the
    others without limit.  An error is printed on stderr: one line for a DistbfsError,
    else a traceback.  A single rank returns the error's code; several ranks all end
    with it.  Exit codes: DistbfsError.exit_code, 3 no memory, 130 interrupted, 1 any
    other error.  After ``SystemExit`` with code 0, the rank waits for the others only
    for the grace time.
    """
    try:
        code = function() or 0
    except BaseException as error:  # noqa: BLE001
        if isinstance(error, SystemExit) and exit_code(error) == 0:
            hook = AbortHook.installed()
            if hook:
                hook.leave()
            return 0
        return _end_failed(world, error)
    hook = AbortHook.installed()
    ranks = world or (hook.world if hook else None)
    if ranks is not None:
        ranks.finish()
    return code
