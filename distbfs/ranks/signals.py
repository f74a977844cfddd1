"""Stops on request: SIGTERM and SIGUSR1 end a run between two levels of a search.

SIGTERM ends phases that have no result yet (loading, generation, construction), and
long phases after a result (validation), at once or after a few seconds: see
``StopFlag.within``.  SIGUSR1 is sent some time before the end of a job, and waits for a
result.  Ctrl-C (SIGINT) raises KeyboardInterrupt, and ends the process if that is not
handled: see ``Interrupts``.

Launchers (tried with MPICH 5.0 and Open MPI 5.0): ``mpiexec`` of MPICH forwards
SIGTERM, SIGUSR1 and SIGINT to every rank, and kills with SIGKILL when a rank fails.
Slurm's ``--signal=USR1@60`` reaches every task of a step. So one request can reach a
rank twice, directly and through the launcher: signals within ``SAME_REQUEST`` seconds
count as one.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
import time
from typing import TYPE_CHECKING

from distbfs import leftovers
from distbfs.ranks.abort import last_words
from distbfs.ranks.launcher import find_launch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType
    from typing import NoReturn

    from typing_extensions import Self

    from distbfs.types import World

    Handler = Callable[[int, FrameType | None], object] | int | None

STOP_SIGNALS = (signal.SIGTERM, signal.SIGUSR1)
SAME_REQUEST = 1.0
INTERRUPT_SECONDS = 0.5  # that the main thread may take to hear of Ctrl-C
WAITING_SECONDS = 10.0  # that it may take where Ctrl-C waits
PATIENCE_CHANGED = b"\0"  # no signal has number 0
REMOVAL_SECONDS = 1.0  # that other ranks have to remove their files, too


class StopFlag:
    """Records a request to stop; a context manager for the main thread.

    Use it as ``with StopFlag() as stop:`` and, between two searches,
    ``if stop.agreed(world)``.  The first signal only sets ``requested``.  A second
    signal ends the process at once with code 128 + signal, and with it all ranks, even
    during a kernel or an MPI call.  Outside the main thread, handlers are left alone.

    patience: seconds after which a first signal other than SIGUSR1 acts like a second
    one; None if the program checks the flag
    requested: whether this rank was asked to stop
    urgent: whether it was asked to stop without finishing the present search: SIGTERM
    asks for that; SIGUSR1 leaves time for the search to end
    """

    def __init__(
        self,
        signals: Sequence[signal.Signals] = STOP_SIGNALS,
        patience: float | None = None,
    ) -> None:
        self._signals = tuple(signals)
        self._patience = patience
        self._since = 0.0
        self.requested = self.urgent = False
        self._first: float | None = None
        self._number = 0
        self._previous: dict[int, Handler] = {}
        self._wakeup = -1
        self._ends: tuple[int, int] | None = None
        self._watcher: threading.Thread | None = None

    def agreed(self, world: World) -> bool:
        """Return whether any rank was asked to stop; collective, equal on all ranks."""
        import numpy as np  # noqa: PLC0415 - signals are awaited before it is there

        flag = np.array([self.requested], dtype=np.int64)
        return bool(world.allreduce(flag, "max")[0])

    def request(self) -> None:
        """Request a stop, as the first signal does."""
        self.requested = True

    @contextlib.contextmanager
    def within(self, patience: float) -> Iterator[None]:
        """End the process if a ``with`` block does not finish in time after SIGTERM.

        patience: seconds from the request, or from the start of the block if that is
        later

        The patience for what follows the block is counted from the end of the block.
        The main thread may be busy in any call.
        """
        before = self._patience
        self._since = time.monotonic()
        self._be_patient(patience)
        try:
            yield
        finally:
            self._since = time.monotonic()
            self._be_patient(before)

    def _be_patient(self, patience: float | None) -> None:
        self._patience = patience
        if self._ends is not None:
            with contextlib.suppress(BlockingIOError):  # full: it wakes anyway
                os.write(self._ends[1], PATIENCE_CHANGED)

    def __enter__(self) -> Self:
        if threading.current_thread() is not threading.main_thread():
            return self
        # Python runs a handler only between byte codes of the main thread; the byte
        # that C writes for each signal lets a thread see a second one at any time
        read, write = os.pipe()
        os.set_blocking(write, False)
        self._ends = (read, write)
        self._wakeup = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        self._watcher = threading.Thread(
            target=self._watch, args=(read, self._wakeup), daemon=True
        )
        self._watcher.start()
        for number in self._signals:
            self._previous[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._ends is None or self._watcher is None:
            return
        for number, handler in self._previous.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        self._previous.clear()
        signal.set_wakeup_fd(self._wakeup)
        read, write = self._ends
        os.close(write)
        self._watcher.join()
        os.close(read)
        self._ends = self._watcher = None

    def _note(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self._take(number)

    def _take(self, number: int) -> None:
        self.requested = True
        self.urgent = self.urgent or number == signal.SIGTERM

    def _watch(self, read: int, forward: int) -> None:
        waiting = select.poll()
        waiting.register(read, select.POLLIN)
        while True:
            if not waiting.poll(self._left()):
                self._end(self._number, "ended by")
            data = os.read(read, 1)
            if not data:
                return
            if data == PATIENCE_CHANGED:
                continue
            if forward >= 0:
                with contextlib.suppress(OSError):
                    os.write(forward, data)
            number = data[0]
            if number not in self._signals:
                continue
            self._take(number)
            now = time.monotonic()
            if self._first is None:
                self._first, self._number = now, number
            elif now - self._first > SAME_REQUEST:
                self._end(number, "ended at once by a second")

    def _left(self) -> float | None:
        """Return the milliseconds of patience that are left, None without a limit."""
        patience = self._patience
        if self._first is None or patience is None or self._number == signal.SIGUSR1:
            return None
        end = max(self._first, self._since) + patience
        return max(end - time.monotonic(), 0) * 1000

    def _end(self, number: int, why: str) -> NoReturn:
        """End the process, and so all ranks, whatever the main thread is doing."""
        launch = find_launch(os.environ)
        if launch is None or launch.rank == 0:
            text = f"{why} {signal.Signals(number).name}"
            if number == signal.SIGINT:
                text = "interrupted"
            os.write(2, last_words(text).encode())
        leftovers.remove_all()
        if launch is not None and launch.ranks > 1:
            time.sleep(REMOVAL_SECONDS)  # launchers kill all when the first one ends
        os._exit(128 + number)


class Interrupts(StopFlag):
    """Turns the first Ctrl-C into KeyboardInterrupt; a main-thread context manager.

    If the thread does not handle it, for example during a long call, the process ends
    with code 130, as it does after a later Ctrl-C. Once the first has been handled,
    others are ignored: a launcher may send again what the terminal has sent.
    """

    def __init__(self) -> None:
        super().__init__((signal.SIGINT,), INTERRUPT_SECONDS)

    def _note(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        if self._patience is not None:
            self._be_patient(None)
            self._previous[signal.SIGINT] = signal.SIG_IGN
            raise KeyboardInterrupt


@contextlib.contextmanager
def interrupts_wait() -> Iterator[None]:
    """Delay Ctrl-C to the end of a ``with`` block that must not be left half done.

    This works with or without ``Interrupts``; in other threads it delays nothing.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(
        handler
    ):
        yield
        return
    owner = getattr(handler, "__self__", None)
    waiting: list[tuple[int, FrameType | None]] = []
    with contextlib.ExitStack() as stack:
        if isinstance(owner, Interrupts):
            stack.enter_context(owner.within(WAITING_SECONDS))
        signal.signal(signal.SIGINT, lambda *heard: waiting.append(heard))
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, handler)
    for heard in waiting[:1]:
        handler(*heard)
