"""JSON Lines: one request a line, one answer a line, in the order that answers come."""

from __future__ import annotations

import asyncio
import contextlib
import json
import select
import socket
import threading
from collections.abc import Iterator

from distbfs.errors import ServiceError
from distbfs.service.operations import Request
from distbfs.service.service import Answer, Service

CHUNK = 1 << 16
WATCH = 0.1  # seconds until a client that left is noticed


class Splitter:
    """Cuts bytes into lines of at most ``limit`` bytes; holds no more than that."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rest = bytearray()
        self._skipping = False

    def feed(self, data: bytes) -> Iterator[bytes | None]:
        """Yield complete lines without their ends, None for one that was too long."""
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            yield from self._line(data[start:end])
            start = end + 1
        self._keep(data[start:])
        if len(self._rest) > self._limit:
            self._rest.clear()
            if not self._skipping:
                self._skipping = True
                yield None

    def end(self) -> Iterator[bytes | None]:
        """Yield the last line where its end is missing."""
        yield from self._line(b"")

    def _keep(self, data: bytes) -> None:
        if not self._skipping:
            self._rest += data

    def _line(self, data: bytes) -> Iterator[bytes | None]:
        if self._skipping:
            self._skipping = False
            return
        line = bytes(self._rest) + data
        self._rest.clear()
        if len(line) > self._limit:
            yield None
        elif line.strip():
            yield line


def hung_up(handle: int) -> bool:
    """Return whether the other end of a Unix socket is closed both ways."""
    poll = select.poll()
    poll.register(handle, 0)
    return bool(poll.poll(0))


def own_end(writer: asyncio.StreamWriter) -> socket.socket | None:
    """Return another handle of a connection, which stays its own when the loop closes.

    None where there is no room for one.
    """
    try:
        duplicate: socket.socket = writer.get_extra_info("socket").dup()
    except OSError:
        return None
    duplicate.setblocking(False)
    return duplicate


def encoded(answer: Answer) -> bytes:
    """Return an answer as a line."""
    return json.dumps(answer, separators=(",", ":")).encode() + b"\n"


class Connection:
    """One client: reads no more than it may have open, and is dropped if it hangs.

    Answers leave by the thread of the searches as long as the client takes them at
    once; what it does not take waits for the loop.
    """

    def __init__(
        self,
        service: Service,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._service = service
        self._reader = reader
        self._writer = writer
        self._loop = asyncio.get_running_loop()
        self._busy = asyncio.Event()
        self._fewer = asyncio.Event()  # set when the loop waits for fewer open requests
        self._gone = False
        self._drains: set[asyncio.Task[None]] = set()
        self._sending = threading.Lock()  # guards what follows
        self._out = own_end(writer)
        self._unsent = bytearray()  # what the loop has still to write
        self._free = True  # whether nothing waits in the loop's transport
        self._open = 0  # requests whose answers the client has not taken
        self._waits = False  # whether the loop waits for fewer

    async def serve(self) -> None:
        """Answer until the client has left or has said all and got all."""
        watch = self._loop.create_task(self._watch())
        splitter = Splitter(self._service.limits.line)
        try:
            while data := await self._reader.read(CHUNK):
                for line in splitter.feed(data):
                    await self._take(line)
            for line in splitter.end():
                await self._take(line)
            await self._have_fewer_than(1)
            if self._drains:
                await asyncio.wait(self._drains)
        except (ConnectionError, TimeoutError):
            pass
        finally:
            self._gone = True
            watch.cancel()
            with self._sending:
                if self._out is not None:
                    self._out.close()
                self._out = None
            self._writer.close()

    async def _watch(self) -> None:
        """Notice a client that closed its end while requests are open."""
        sock = self._writer.get_extra_info("socket")
        while True:
            await self._busy.wait()
            await asyncio.sleep(WATCH)
            if self._writer.is_closing() or hung_up(sock.fileno()):
                self._drop()
                return
            if not self._open:
                self._busy.clear()

    def _drop(self) -> None:
        """Give a client up: what it asked for is not searched any more."""
        self._gone = True
        self._writer.transport.abort()
        self._fewer.set()

    async def _have_fewer_than(self, requests: int) -> None:
        """Wait until fewer requests are open, or the client is given up."""
        while True:
            with self._sending:
                self._waits = self._open >= requests and not self._gone
                if not self._waits:
                    return
                self._fewer.clear()
            await self._fewer.wait()

    async def _take(self, line: bytes | None) -> None:
        await self._have_fewer_than(self._service.limits.pipeline)
        with self._sending:
            self._open += 1
        self._busy.set()
        service, name, request = self._service, self._service.name(), None
        try:
            if line is None:
                most = service.limits.line
                raise ServiceError("too_large", f"a request has up to {most} bytes")
            request = service.checker.line(line)
            service.check_result(request)
            answer = service.now(request, name)
            if answer is None:
                service.submit(request, name, self._done, lambda: self._gone)
                return
        except ServiceError as error:
            answer = self._refusal(error, request, name)
        with self._sending:
            self._unsent += encoded(answer)
        self._flush()

    def _refusal(
        self, error: ServiceError, request: Request | None, name: str
    ) -> Answer:
        if request is not None:
            error.id = request.id
        return self._service.refused(error, request.op if request else "", name)

    def _done(self, answer: Answer) -> None:
        """Send an answer, or what can be of it, from the thread of the searches."""
        line = encoded(answer)
        with self._sending:
            if self._out is not None and self._free and not self._unsent:
                with contextlib.suppress(OSError):  # full, or the loop will find out
                    line = line[self._out.send(line) :]
            if not line:
                self._answered()
                return
            self._unsent += line
        self._loop.call_soon_threadsafe(self._flush)

    def _flush(self) -> None:
        """Write what waits, and count one answer when the client has taken it."""
        transport = self._writer.transport
        with self._sending:
            if self._unsent and not self._writer.is_closing():
                self._writer.write(bytes(self._unsent))
            self._unsent.clear()
            self._free = not transport.get_write_buffer_size()
            if self._free or self._writer.is_closing():
                self._answered()
                return
        task = self._loop.create_task(self._drained())
        self._drains.add(task)
        task.add_done_callback(self._drains.discard)

    async def _drained(self) -> None:
        """Count an answer when the client has taken it; drop one that does not."""
        patience = self._service.limits.patience
        waited = 0.0
        transport = self._writer.transport
        left = transport.get_write_buffer_size()
        while left and not self._writer.is_closing():
            await asyncio.sleep(WATCH)
            before, left = left, transport.get_write_buffer_size()
            waited = 0.0 if left < before else waited + WATCH
            if waited > patience:
                self._drop()
        with self._sending:
            self._free = not transport.get_write_buffer_size()
            self._answered()

    def _answered(self) -> None:
        """Count an answer that the client has taken, with ``_sending`` held."""
        self._open -= 1
        if self._waits:
            self._loop.call_soon_threadsafe(self._fewer.set)


class SocketDoor:
    """Takes clients on a Unix socket that listens already."""

    def __init__(self, service: Service, listening: socket.socket) -> None:
        self._service = service
        self._socket = listening
        self._server: asyncio.AbstractServer | None = None
        self._clients: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Begin to take clients."""
        self._server = await asyncio.start_unix_server(self._meet, sock=self._socket)

    async def _meet(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        most = self._service.limits.clients
        if len(self._clients) >= most:
            error = ServiceError("busy", f"{most} clients are connected already")
            name = self._service.name()
            writer.write(encoded(self._service.refused(error, "", name)))
            writer.close()
            return
        task = asyncio.current_task()
        if task is None:
            return
        self._clients.add(task)
        try:
            await Connection(self._service, reader, writer).serve()
        except asyncio.CancelledError:
            pass  # by ``close``; asyncio would print where the client was waited for
        finally:
            self._clients.discard(task)

    async def close(self) -> None:
        """Take no more clients and let those go that are there."""
        if self._server is not None:
            self._server.close()
        await asyncio.sleep(0)
        for task in list(self._clients):
            task.cancel()
        if self._clients:
            await asyncio.wait(list(self._clients), timeout=1)


class StreamDoor:
    """Serves one client on a connected socket; the service ends when it has left."""

    def __init__(self, service: Service, connected: socket.socket) -> None:
        self._service = service
        self._socket = connected
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Begin to read."""
        reader, writer = await asyncio.open_unix_connection(sock=self._socket)
        connection = Connection(self._service, reader, writer)
        self._task = asyncio.get_running_loop().create_task(connection.serve())
        self._task.add_done_callback(lambda _: self._service.drain())

    async def close(self) -> None:
        """Let the client go."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task], timeout=1)
