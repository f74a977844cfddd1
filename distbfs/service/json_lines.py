"""JSON Lines: one request a line, one answer a line, in order of completion."""

from __future__ import annotations

import asyncio
import contextlib
import select
import socket
import time
from collections import deque
from collections.abc import Callable
from threading import Lock

from distbfs.errors import DistbfsError, ServiceError
from distbfs.service.checker import too_long
from distbfs.service.encoding import Buffer, encode
from distbfs.service.limits import Patience, longest_idle
from distbfs.service.operations import Answer, Request
from distbfs.service.quota import Quota
from distbfs.service.service import Service

CHUNK = 1 << 14
WATCH = 0.1  # seconds until a disconnected client is noticed
AGAIN = 1.0  # seconds until clients are accepted again after an error


class Splitter:
    """Splits bytes into lines of at most ``limit`` bytes; buffers no more than that."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rest = bytearray()
        self._skipping = False

    @property
    def within(self) -> bool:
        """Whether a line has begun and not ended."""
        return self._skipping or bool(self._rest)

    def feed(self, data: bytes) -> list[bytes | None]:
        """Return complete lines without their ends, None for one that was too long."""
        *ends, rest = data.split(b"\n")
        lines: list[bytes | None] = []
        if ends and self._skipping:
            self._skipping = False
            del ends[0]
        elif ends and self._rest:
            ends[0] = bytes(self._rest) + ends[0]
            self._rest.clear()
        for line in ends:
            if len(line) > self._limit:
                lines.append(None)
            elif line and not line.isspace():
                lines.append(line)
        if rest and not self._skipping:
            self._rest += rest
            if len(self._rest) > self._limit:
                self._rest.clear()
                self._skipping = True
                lines.append(None)
        return lines

    def end(self) -> list[bytes | None]:
        """Return the unterminated last line, if there is one."""
        return self.feed(b"\n")


def hung_up(handle: int) -> bool:
    """Return whether the other end of a Unix socket is closed both ways."""
    poll = select.poll()
    poll.register(handle, 0)
    return bool(poll.poll(0))


def _size(buffers: list[Buffer]) -> int:
    return sum(map(len, buffers))


class Connection:
    """One client: limits its open requests, and drops it if it hangs.

    The thread in ``Arrivals`` that reads also handles requests; the thread that has an
    answer sends it, as long as the client accepts it at once; the rest waits for the
    loop. Created, and closed, on the loop.

    left: called on the loop when the client has disconnected
    lasting: whether it may say nothing, or half a line, for any time
    since: when it last became idle
    """

    def __init__(
        self,
        service: Service,
        connected: socket.socket,
        left: Callable[[Connection], object],
        *,
        lasting: bool = False,
    ) -> None:
        self._service, self._socket, self._left = service, connected, left
        self._handle = connected.fileno()
        self._arrivals = service.tickets.arrivals
        self._loop = asyncio.get_running_loop()
        self._gone = False
        self._lasting, self.since = lasting, time.monotonic()
        self._patience = Patience(service.limits.patience)
        self._seen = 0  # requests at the last look
        self._reading = Lock()  # guards what follows; acquired before the other
        self._quota = Quota(service.limits, time.monotonic)
        self._splitter = Splitter(service.limits.line)
        self._lines: deque[bytes | None] = deque()  # read and not handled yet
        self._begun = 0  # requests
        self._sending = Lock()  # guards what follows
        self._unsent: list[Buffer] = []  # left for the loop to send
        self._owed = 0  # answers that end there
        self._taking = False  # whether the client read some of it
        self._ended = 0  # requests whose answers the client has read
        self._full = False  # whether reading pauses until there are fewer
        self._said_all = False
        connected.setblocking(False)
        self._arrivals.add(self._handle, self.read)

    @property
    def idle(self) -> bool:
        """Whether no request is being answered."""
        return not self._lines and not self._open  # in this order: a taken one is open

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
                if data:
                    self._lines.extend(self._splitter.feed(data))
                else:
                    self._arrivals.remove(self._handle)
                    self._lines.extend(self._splitter.end())
                    self._said_all = True
                self._go_on()
        except BlockingIOError:
            pass  # the other thread has read it
        except Exception as error:  # noqa: BLE001 - must not harm other clients
            self._arrivals.remove(self._handle)
            self._loop.call_soon_threadsafe(self._fail, error)

    def _go_on(self) -> None:
        """Handle lines up to the limit of open requests, with ``_reading`` held.

        At most that many at once, then other clients get their turn.
        """
        most = self._service.limits.pipeline
        for _ in range(min(len(self._lines), most)):
            if self._open >= most and self._pauses(most):
                return
            self._begun += 1
            self._take(self._lines.popleft())
        if self._lines:
            self._arrivals.remove(self._handle)
            self._loop.call_soon_threadsafe(self._resume)
        elif self._said_all:
            with self._sending:
                self._end_if_over()

    def _pauses(self, most: int) -> bool:
        """Stop reading if so many requests are open; return whether it stops."""
        with self._sending:
            self._full = self._open >= most
            if self._full:
                self._arrivals.remove(self._handle)
            return self._full

    def _resume(self) -> None:
        """Continue, on the loop: fewer requests are open, or others had their turn."""
        with self._reading:
            if self._gone:
                return
            self._go_on()
            if not self._lines and not self._said_all:
                self._arrivals.add(self._handle, self.read)

    def _take(self, line: bytes | None) -> None:
        service, name, request = self._service, self._service.name(), None
        began = False  # whether the quota counts it
        try:
            if line is None:
                raise too_long(service.limits)
            request = service.checker.check(line)
            self._quota.begin()
            began = True
            service.answers.check(request)
            answer = service.now(request, name)
            if answer is None:
                service.submit(request, name, self._finish, self._is_gone)
                return
        except ServiceError as error:
            answer = self._refusal(error, request, name)
        if began:
            self._quota.end()
        self._done(answer)

    def _finish(self, answer: Answer) -> None:
        """Send the answer to a request that was in the queue."""
        self._quota.end()
        self._done(answer)

    def _is_gone(self) -> bool:
        return self._gone

    def _refusal(
        self, error: ServiceError, request: Request | None, name: str
    ) -> Answer:
        if request is not None:
            error.id = request.id
        return self._service.refused(error, request.op if request else "", name)

    def _done(self, answer: Answer) -> None:
        """Send an answer, as far as possible, from the thread that has it."""
        buffers = encode(answer)
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
            sent = self._send(buffer)
            if sent < len(buffer):
                return [memoryview(buffer)[sent:], *buffers[number + 1 :]]
        return []

    def _send(self, data: Buffer) -> int:
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
            before, self._unsent = self._unsent, self._send_some(self._unsent)
            self._taking = self._taking or _size(self._unsent) < _size(before)
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

    def look(self) -> None:
        """Drop a client that left, or keeps the service waiting; every WATCH seconds.

        Its requests are not searched any more.
        """
        said = self._begun and not self._splitter.within
        silent = self.idle and not said and self._begun == self._seen
        waits = bool(self._unsent) and not self._taking
        waits = waits or (silent and not self._lasting)
        self._seen, self._taking = self._begun, False
        if self._patience.over(WATCH, waits=waits):
            self.close()
        elif self._open:
            self.drop_if_left()

    def drop_if_left(self) -> None:
        """Drop a client that closed its end."""
        if hung_up(self._handle):
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


class Clients:
    """The clients of a door, checked periodically."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._all: set[Connection] = set()

    def room_for(self, most: int) -> bool:
        """Return whether fewer than ``most`` are connected.

        Those that left do not count, and the one that is idle longest gives way.
        """
        if len(self._all) >= most:
            for connection in list(self._all):
                connection.drop_if_left()
        if len(self._all) >= most and (idle := longest_idle(self._all)):
            idle.close(if_idle=True)
        return len(self._all) < most

    def add(
        self,
        connected: socket.socket,
        left: Callable[[], object] = lambda: None,
        *,
        lasting: bool = False,
    ) -> None:
        """Accept a client; see ``Connection``."""

        def gone(connection: Connection) -> None:
            self._all.discard(connection)
            left()

        made = Connection(self._service, connected, gone, lasting=lasting)
        self._all.add(made)

    async def watch(self) -> None:
        """Check all clients until cancelled; then disconnect them."""
        try:
            while True:
                await asyncio.sleep(WATCH)
                for connection in list(self._all):
                    connection.look()
        finally:
            for connection in list(self._all):
                connection.close()


class SocketDoor:
    """Accepts clients on a listening Unix socket."""

    def __init__(self, service: Service, listening: socket.socket) -> None:
        self._service = service
        self._socket = listening
        self._clients = Clients(service)
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        """Start accepting clients."""
        self._socket.setblocking(False)
        loop = asyncio.get_running_loop()
        works = (self._meet(), self._clients.watch())
        self._tasks = [loop.create_task(work) for work in works]

    async def _meet(self) -> None:
        while True:
            await self._meet_next()

    async def _meet_next(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            connected, _ = await loop.sock_accept(self._socket)
            self._let_in(connected)
        except OSError as error:
            context = {"message": "a client that wants in", "exception": error}
            loop.call_exception_handler(context)
            await asyncio.sleep(AGAIN)

    def _let_in(self, connected: socket.socket) -> None:
        most = self._service.limits.clients
        if self._clients.room_for(most):
            self._clients.add(connected)
            return
        with connected:
            connected.setblocking(False)
            error = ServiceError("busy", f"{most} connections are at work already")
            answer = self._service.refused(error, "", self._service.name())
            with contextlib.suppress(OSError):  # it has disconnected already
                connected.send(encode(answer)[0])

    async def close(self) -> None:
        """Stop accepting clients and disconnect them."""
        await end(self._tasks)
        self._socket.close()


class StreamDoor:
    """Serves one client on a connected socket; the service ends with it."""

    def __init__(self, service: Service, connected: socket.socket) -> None:
        self._service = service
        self._socket = connected
        self._clients = Clients(service)
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        """Start reading."""
        loop = asyncio.get_running_loop()
        self._clients.add(self._socket, self._service.drain, lasting=True)
        self._tasks = [loop.create_task(self._clients.watch())]

    async def close(self) -> None:
        """Disconnect the client."""
        await end(self._tasks)


async def end(tasks: list[asyncio.Task[None]]) -> None:
    """Cancel tasks and wait for their end."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
