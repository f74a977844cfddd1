"""A client of the service: its requests, answers and limits, in any encoding."""

from __future__ import annotations

import asyncio
import select
import socket
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Any, Protocol

from distbfs.errors import DistbfsError, ServiceError
from distbfs.service.encoding import Buffer
from distbfs.service.operations import Answer, Request
from distbfs.service.service import Service

CHUNK = 1 << 14
WATCH = 0.1  # seconds until a disconnected client is noticed


class Parts(Protocol):
    """Splits the data of a client into parts, each of which gets an answer."""

    @property
    def within(self) -> bool:
        """Whether a part has begun and not ended."""

    def feed(self, data: bytes) -> list[Any]:
        """Return the parts that end in some data, b"" after the last one."""

    def late(self) -> Any:
        """Return a part that did not end in time, to be answered; None: drop it."""


class Connection(ABC):
    """One client: limits its open requests, and drops it if it hangs.

    The thread in ``Arrivals`` that reads also handles requests; the thread that has an
    answer sends it, as long as the client accepts it at once; the rest waits for the
    loop. Created, and closed, on the loop.

    A subclass is an encoding: it decodes a part of the client's data as a request, and
    encodes answers.

    left: called on the loop when the client has disconnected
    refused: answer to its requests where there is no room for it, else None
    lasting: whether it may send nothing, or half a request, for any time
    since: when it last became idle
    """

    most = 1  # unanswered requests beyond which no more are read
    ENDS = 0  # of ``poll``, besides an end both ways: the client has left
    KEPT = float("inf")  # seconds that a client may wait between two requests

    def __init__(
        self,
        service: Service,
        connected: socket.socket,
        parts: Parts,
        left: Callable[[Connection], object],
        refused: ServiceError | None = None,
        *,
        lasting: bool = False,
    ) -> None:
        self._service, self._socket, self._left = service, connected, left
        self._splitter, self._refused = parts, refused
        self._handle = connected.fileno()
        self._arrivals = service.tickets.arrivals
        self._loop = asyncio.get_running_loop()
        self._gone = False
        self._lasting, self.since = lasting, time.monotonic()
        self._waited = 0.0  # seconds for which the client kept the service waiting
        self._seen = 0  # requests at the last look
        self._reading = Lock()  # guards what follows; acquired before the other
        self._parts: deque[Any] = deque()  # read and not handled yet
        self._begun = 0  # requests
        self._sending = Lock()  # guards what follows
        self._unsent: list[Buffer] = []  # left for the loop to send
        self._owed = 0  # answers that end there
        self._taking = False  # whether the client read some of it
        self._ended = 0  # requests whose answers the client has read
        self._full = False  # whether reading pauses until there are fewer
        self._said_all = False
        connected.setblocking(False)

    def start(self) -> None:
        """Begin to read."""
        self._arrivals.add(self._handle, self.read)

    # an encoding

    def ends(self, part: Any) -> bool:  # noqa: ARG002
        """Return whether a part is the last one that is read and answered."""
        return self._refused is not None

    @abstractmethod
    def request_of(self, part: Any) -> Request | Answer | Any:
        """Return the request in a part, or its answer; raise ServiceError."""

    def op_of(self, part: Any) -> str:  # noqa: ARG002
        """Return the operation of a part that is not a valid request."""
        return ""

    @abstractmethod
    def encode(self, answer: Any) -> list[Buffer]:
        """Return an answer, or a ServiceError, as bytes."""

    # reading

    @property
    def idle(self) -> bool:
        """Whether no request is being answered."""
        return not self._parts and not self._open  # in this order: a taken one is open

    @property
    def _open(self) -> int:
        """The number of requests whose answers the client has not read."""
        return self._begun - self._ended

    def read(self) -> None:
        """Read arrivals; on any thread."""
        try:
            with self._reading:
                if self._gone:
                    return
                data = self._socket.recv(CHUNK)
                self._parts.extend(self._splitter.feed(data))
                if not data:
                    self.stop_reading()
                    if self.ENDS and self._open:
                        self._loop.call_soon_threadsafe(self.close)
                        return
                self._go_on()
        except BlockingIOError:
            pass  # the other thread has read it
        except Exception as error:  # noqa: BLE001 - must not harm other clients
            self._arrivals.remove(self._handle)
            self._loop.call_soon_threadsafe(self._fail, error)

    def stop_reading(self) -> None:
        """Disconnect when all that was read is answered (``_reading`` held)."""
        self._arrivals.remove(self._handle)
        self._said_all = True

    def _go_on(self) -> None:
        """Handle parts up to the limit of open requests, with ``_reading`` held.

        At most that many at once, then other clients get their turn.
        """
        for _ in range(min(len(self._parts), self.most)):
            if self._open >= self.most and self._pauses():
                return
            self._begun += 1
            self._take(self._parts.popleft())
        if self._parts:
            self._arrivals.remove(self._handle)
            self._loop.call_soon_threadsafe(self._resume)
        elif self._said_all:
            with self._sending:
                self._end_if_over()

    def _pauses(self) -> bool:
        """Stop reading if too many requests are open; return whether it stops."""
        with self._sending:
            self._full = self._open >= self.most
            if self._full:
                self._arrivals.remove(self._handle)
            return self._full

    def _resume(self) -> None:
        """Continue, on the loop: fewer requests are open, or others had their turn."""
        with self._reading:
            if self._gone:
                return
            self._go_on()
            if not self._parts and not self._said_all:
                self._arrivals.add(self._handle, self.read)

    def _take(self, part: Any) -> None:
        """Answer a part, or put its request into the queue."""
        service, name, request = self._service, self._service.name(), None
        answer: Any
        self._name = name
        try:
            if self.ends(part):
                self._parts.clear()
                self.stop_reading()
            if self._refused is not None:
                raise self._refused
            answer = self.request_of(part)
            if isinstance(answer, Request):
                request = answer
                service.answers.check(request)
                answer = service.now(request, name)
                if answer is None:
                    service.submit(request, name, self._done, self._is_gone)
                    return
        except ServiceError as error:
            if request is not None:
                error.id = request.id
            service.refused(error, request.op if request else self.op_of(part), name)
            answer = error
        self._done(answer)

    def _is_gone(self) -> bool:
        return self._gone

    # sending

    def _done(self, answer: Any) -> None:
        """Send an answer, as far as possible, from the thread that has it."""
        buffers = self.encode(answer)
        with self._sending:
            behind = bool(self._unsent)
            if not behind:
                buffers = self._send_some(buffers)
                if not buffers:
                    self._answered(1)
                    return
            self._unsent += buffers
            self._owed += 1
        if not behind:
            self._loop.call_soon_threadsafe(self._write_on)

    def _send_some(self, buffers: list[Buffer]) -> list[Buffer]:
        """Send what the client accepts at once, and return what is left."""
        for number, buffer in enumerate(buffers):
            sent = self.send(buffer)
            if sent < len(buffer):
                return [memoryview(buffer)[sent:], *buffers[number + 1 :]]
        return []

    def send(self, data: Buffer) -> int:
        """Return the bytes that the client accepts at once; all if disconnected."""
        if self._gone:
            return len(data)
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            self._loop.call_soon_threadsafe(self.close)
            return len(data)

    def _write_on(self) -> None:
        if not self._gone:
            self._loop.add_writer(self._handle, self._flush)

    def _flush(self) -> None:
        """Send buffered data; count answers when the client has read them (loop)."""
        with self._sending:
            before = sum(map(len, self._unsent))
            self._unsent = self._send_some(self._unsent)
            self._taking = self._taking or sum(map(len, self._unsent)) < before
            if not self._unsent:
                self._loop.remove_writer(self._handle)
                owed, self._owed = self._owed, 0
                self._answered(owed)

    def _answered(self, count: int) -> None:
        """Count answers that the client has read, with ``_sending`` held."""
        self._ended += count
        self.since = time.monotonic()
        if self._full:
            self._full = False
            self._loop.call_soon_threadsafe(self._resume)
        elif self._said_all:
            self._end_if_over()

    def _end_if_over(self) -> None:
        """Disconnect a client that is done and has its answers (``_sending`` held)."""
        if self.idle:
            self._loop.call_soon_threadsafe(self.close)

    # watching, on the loop

    def look(self) -> None:
        """Drop a client that left, or keeps the service waiting; every WATCH seconds.

        Its requests are not searched any more.
        """
        said = self._begun and not self._splitter.within
        silent = self.idle and not said and self._begun == self._seen
        waits = bool(self._unsent) and not self._taking
        waits = waits or (silent and not self._lasting)
        self._seen, self._taking = self._begun, False
        self._waited = self._waited + WATCH if waits else 0.0
        if self._waited >= self._service.limits.patience:
            self._waited = 0.0
            self._give_up()
        elif self._open:
            self.drop_if_left()
        elif said and time.monotonic() - self.since > self.KEPT:
            self.close(if_idle=True)

    def _give_up(self) -> None:
        """Drop a client that keeps the service waiting, after its last answer."""
        with self._reading:
            late = None if self._open or self._gone else self._splitter.late()
            if late is not None:
                self.stop_reading()
                self._parts.append(late)
                self._go_on()
        if late is None:
            self.close()

    def drop_if_left(self) -> None:
        """Drop a client that closed its end."""
        poll = select.poll()
        poll.register(self._handle, self.ENDS)
        if poll.poll(0):
            self.close()

    def _fail(self, error: Exception) -> None:
        """Drop the client, and report errors that are not its own."""
        self.close()
        if isinstance(error, DistbfsError) or not isinstance(error, OSError):
            context = {"message": "a client's connection", "exception": error}
            self._loop.call_exception_handler(context)

    def close(self, *, if_idle: bool = False) -> None:
        """Disconnect the client (on the loop)."""
        with self._reading, self._sending:
            if self._gone or (if_idle and not self.idle):
                return
            self._gone = True
            self._arrivals.remove(self._handle)
            self._loop.remove_writer(self._handle)
            self._socket.close()
        self._left(self)
