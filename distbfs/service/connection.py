"""A client of the service: its requests, answers and limits, in any encoding."""

from __future__ import annotations

import logging
import select
import socket
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any

from distbfs.errors import DistbfsError, ServiceError
from distbfs.service.encoding import Buffer
from distbfs.service.operations import Answer, Request
from distbfs.service.service import Service

LOG = logging.getLogger("distbfs.service")
CHUNK = 1 << 14


class Encoding(ABC):
    """Splits the data of one client into parts, each of which gets an answer.

    most: number of unanswered requests beyond which no more are read
    ends: mask of ``poll`` events, besides a hang-up, that mean the client has left
    kept: seconds that a client may be idle between two requests
    within: whether a part has begun but not ended
    interim: bytes that the client waits for before it continues a part
    refused: the answer to all of its requests if there is no room for it, else None
    """

    most = 1
    ends = 0
    kept = float("inf")
    within = False
    interim = b""
    refused: ServiceError | None = None

    @abstractmethod
    def feed(self, data: bytes) -> list[Any]:
        """Return the parts that end in ``data``; b"" marks the end of all data."""

    def begin(self, part: Any, name: str) -> bool:  # noqa: ARG002
        """Begin to answer a part; return whether it is the last one answered.

        name: name of the request in the log
        """
        return self.refused is not None

    @abstractmethod
    def request_of(self, part: Any) -> Request | Answer | Any:
        """Return the request in a part, or its answer; ServiceError if invalid."""

    def op_of(self, part: Any) -> str:  # noqa: ARG002
        """Return the operation of a part that is not a valid request."""
        return ""

    @abstractmethod
    def encode(self, answer: Any) -> list[Buffer]:
        """Return an answer, or a ServiceError, as bytes."""


class Connection:
    """One client: limits its open requests, and drops it if it hangs.

    The thread that reads (``Arrivals``) also handles requests. The thread that has an
    answer sends as much as the client accepts at once; the rest is sent when the client
    is ready for more. All of this happens with ``Arrivals.turn`` held.

    left: called when the client is disconnected
    lasting: whether the client may send nothing, or half a request, for any time
    since: time when the client last became idle, accepted data or began a request
    gone: whether the client is disconnected
    """

    def __init__(
        self,
        service: Service,
        connected: socket.socket,
        encoding: Encoding,
        left: Callable[[Connection], object],
        *,
        lasting: bool = False,
    ) -> None:
        self._service, self._socket, self._left = service, connected, left
        self._encoding, self._lasting = encoding, lasting
        self._handle = connected.fileno()
        self._arrivals = service.tickets.arrivals
        self.gone = self._said_all = False
        self.since = time.monotonic()
        self._parts: deque[Any] = deque()  # read and not handled yet
        self._begun = False  # whether it has sent a request
        self._open = 0  # requests whose answers it has not read
        self._unsent: list[Buffer] = []
        self._owed = 0  # answers that end there
        connected.setblocking(False)
        self._watch()

    @property
    def idle(self) -> bool:
        """Whether no request is being answered."""
        return not self._parts and not self._open

    def _watch(self) -> None:
        """Register for the client's next event; disconnect the client if it is done."""
        if self._said_all and self.idle:
            self.close()
        if self.gone:
            return
        events = 0
        if not self._parts and not self._said_all:
            events = select.EPOLLIN
        # a client that is ready to read has its turn again after all others
        if self._unsent or (self._parts and self._open < self._encoding.most):
            events |= select.EPOLLOUT
        self._arrivals.add(self._handle, self.go_on, events)

    def go_on(self) -> None:
        """Send what the client accepts; read and handle what it has sent.

        At most as many requests as may be open are read; then other clients get their
        turn.
        """
        try:
            self._send()
            if not self._parts and not self._said_all:
                self._read()
            for _ in range(most := self._encoding.most):
                if not self._parts or self._open >= most:
                    break
                self._begun, self._open = True, self._open + 1
                self._take(self._parts.popleft())
            self._watch()
        except Exception as error:  # must not harm other clients
            self.close()
            if isinstance(error, DistbfsError) or not isinstance(error, OSError):
                LOG.error("a client's connection", exc_info=error)

    def _read(self) -> None:
        encoding, before = self._encoding, self._encoding.within
        try:
            data = self._socket.recv(CHUNK)
        except BlockingIOError:
            return
        self._parts.extend(encoding.feed(data))
        self._said_all = not data
        if encoding.within and not before:
            self.since = time.monotonic()
        if encoding.interim and self.idle:
            self._unsent.append(encoding.interim)
            self._send()

    def _take(self, part: Any) -> None:
        """Answer a part, or put its request into the queue."""
        service, encoding, request = self._service, self._encoding, None
        answer: Any
        name = service.name()
        try:
            if encoding.begin(part, name):
                self._parts.clear()
                self._said_all = True
            if encoding.refused is not None:
                raise encoding.refused
            answer = encoding.request_of(part)
            if isinstance(answer, Request):
                request = answer
                service.submit(request, self, name)
                return
        except ServiceError as error:
            if request is not None:
                error.id = request.id
            op = request.op if request else encoding.op_of(part)
            service.refused(error, op, name)
            answer = error
        self.answer(answer)

    def answer(self, result: Any) -> None:
        """Send as much of an answer as the client accepts; callable from any thread."""
        buffers = self._encoding.encode(result)
        with self._arrivals.turn:
            if self.gone:
                return
            behind = bool(self._unsent)
            self._unsent += buffers
            self._owed += 1
            if not behind:
                self._send()
            self._watch()

    def _send(self) -> None:
        """Send what the client accepts at once; count the answers sent completely."""
        while self._unsent:
            buffer = self._unsent[0]
            try:
                sent = self._socket.send(buffer)
            except BlockingIOError:
                return
            except OSError:
                self.close()
                return
            self.since = time.monotonic()
            if sent < len(buffer):
                self._unsent[0] = memoryview(buffer)[sent:]
                return
            del self._unsent[0]
        self._open -= self._owed
        self._owed = 0

    def look(self) -> None:
        """Drop a client that left or keeps the service waiting; called periodically.

        No more searches run for its requests.
        """
        said = self._begun and not self._encoding.within
        waits = bool(self._unsent) or (bool(self._parts) and not self._open)
        waits = waits or (self.idle and not said and not self._lasting)
        spent = time.monotonic() - self.since
        if waits and spent >= self._service.limits.patience:
            self.close()
        elif self._open:
            self.drop_if_left()
        elif said and spent > self._encoding.kept:
            self.close()

    def drop_if_left(self) -> None:
        """Drop the client if it has closed its end."""
        poll = select.poll()
        poll.register(self._handle, self._encoding.ends)
        if poll.poll(0):
            self.close()

    def close(self) -> None:
        """Disconnect the client."""
        if self.gone:
            return
        self.gone = True
        self._parts.clear()
        self._unsent.clear()
        self._arrivals.remove(self._handle)
        self._socket.close()
        self._left(self)
