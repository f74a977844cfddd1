"""Data from clients, read by the searching thread whenever it does not search.

That thread waits for all sockets and for other threads at once, so that a lone request
passes from the socket to the search without waking another thread. While it searches,
another thread (the *front*) reads instead: it watches one descriptor, which reports
arrivals only during a search. While the searching thread begins a search that goes on
by itself, or sends the answers of a batch, nobody reads: with two threads in Python,
each step would wait for the other thread to release the interpreter.

A client that sends one request after the other does so again some tens of microseconds
after its answer, which is less than a processor takes to sleep and wake. The thread
therefore polls for SPIN seconds before it sleeps, but only if its last wait was as
short, and if it has more than one processor: slow clients cause no polling. Source: the
haltpoll governor of Linux, guest-halt-polling.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Sized
from threading import RLock

SPIN = 200e-6  # seconds, the default of haltpoll


class Arrivals:
    """The clients' sockets in one ``epoll``, and a bell to wake the searching thread.

    The searching thread calls ``wait``, ``leave`` and ``stay``, the front calls
    ``read``; any thread may call the other methods.

    turn: lock that a thread holds while it reads from clients, or changes or answers
    one
    """

    def __init__(self) -> None:
        self._sockets, self._shown = select.epoll(), select.epoll()
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        # one ring is one event, and needs no reset
        self._sockets.register(self._bell, select.EPOLLIN | select.EPOLLET)
        self._shown.register(self._sockets, 0)
        self._readers: dict[int, tuple[int, Callable[[], object]]] = {}
        self.turn = RLock()
        self._asleep = self._away = False
        self._alone = len(os.sched_getaffinity(0)) == 1
        self._soon = False  # whether the last wait ended within SPIN

    def __del__(self) -> None:
        os.close(self._bell)

    def fileno(self) -> int:
        """Return the descriptor the front watches: readable when ``read`` is due."""
        return self._shown.fileno()

    def add(
        self, handle: int, read: Callable[[], object], events: int = select.EPOLLIN
    ) -> None:
        """Call a function, on either thread, whenever a descriptor is ready.

        The call is repeated as long as the descriptor is ready. End of file and errors
        count as ready.
        events: mask of the epoll events to wait for; 0 stops the calls
        """
        before, _ = self._readers.get(handle, (0, None))
        if not events:
            self.remove(handle)
            return
        if not before:
            self._sockets.register(handle, events)
        elif events != before:
            self._sockets.modify(handle, events)
        self._readers[handle] = events, read

    def remove(self, handle: int) -> None:
        """Stop watching a descriptor; call this before closing it."""
        if self._readers.pop(handle, None) is not None:
            self._sockets.unregister(handle)

    def wait(self, timeout: float, ready: Sized) -> None:
        """Wait for data and read it; return on ``ring`` or after ``timeout`` seconds.

        ready: collection that other threads fill before they ring; ``wait`` returns at
        once if it is not empty
        """
        self.stay()
        self._asleep = True
        try:
            now = ready or not timeout
            events = self._sockets.poll(0) if now else self._next(timeout)
        finally:
            self._asleep = False
        self._dispatch(events)

    def _next(self, timeout: float) -> list[tuple[int, int]]:
        """Poll or sleep up to ``timeout`` seconds; return the events that occurred."""
        began = time.perf_counter()
        events: list[tuple[int, int]] = []
        while self._soon and not events and time.perf_counter() - began < SPIN:
            events = self._sockets.poll(0)
        events = events or self._sockets.poll(timeout)
        short = bool(events) and time.perf_counter() - began < SPIN
        self._soon = short and not self._alone
        return events

    def ring(self) -> None:
        """Wake the searching thread if it is in ``wait``."""
        if self._asleep:
            os.eventfd_write(self._bell, 1)

    def leave(self) -> None:
        """Allow the front to read from now on."""
        if not self._away:
            self._away = True
            self._shown.modify(self._sockets, select.EPOLLIN)

    def stay(self) -> None:
        """Stop the front from reading: the searching thread is about to ``wait``."""
        if self._away:
            self._away = False
            self._shown.modify(self._sockets, 0)

    def read(self, timeout: float = 0) -> None:
        """Read arrivals on the front, once it is allowed to and data has come."""
        if self._shown.poll(timeout):
            self._dispatch(self._sockets.poll(0))

    def _dispatch(self, events: list[tuple[int, int]]) -> None:
        with self.turn:
            for handle, _ in events:
                _, read = self._readers.get(handle, (0, None))
                if read is not None:
                    read()
