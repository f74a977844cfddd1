"""Ways for clients to connect, and the thread that serves them."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import stat
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from distbfs.errors import InputError, ServiceError, UsageError
from distbfs.service.connection import WATCH, Connection
from distbfs.service.json_lines import LineConnection
from distbfs.service.service import Service

LOG = logging.getLogger("distbfs.service")
SETTLE = 0.2  # seconds to send the last answers
SHORT = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
RARELY = 10.0  # seconds between two such warnings
AGAIN = 1.0  # seconds until clients are accepted again after an error
BACKLOG = 128  # most clients waiting to be accepted
LONGEST_PATH = 107  # bytes of a Unix socket's path
Made: TypeAlias = Callable[
    [socket.socket, Callable[[Connection], object], "ServiceError | None"], Connection
]


class Door:
    """A listening socket on which clients connect, on the loop of the front.

    made: function from (connected socket, function to call at its end, refusal of its
    requests or None) to the client
    """

    def __init__(
        self, service: Service, listening: socket.socket, made: Made | None = None
    ) -> None:
        self.service, self._listening = service, listening
        self._made = made or partial(LineConnection, service)
        self.clients: set[Connection] = set()
        listening.setblocking(False)

    async def meet(self) -> None:
        """Accept clients, until cancelled."""
        with self._listening:
            while True:
                await self._meet_next()

    async def _meet_next(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            connected, _ = await loop.sock_accept(self._listening)
            self.let_in(connected)
        except OSError as error:
            context = {"message": "a connecting client", "exception": error}
            loop.call_exception_handler(context)
            await asyncio.sleep(AGAIN)

    def let_in(self, connected: socket.socket) -> None:
        """Accept a client; without room, refuse its requests."""
        refused = self.no_room()
        if len(self.clients) > 2 * self.service.limits.clients:
            connected.close()
            return
        self.add(self._made(connected, self.clients.discard, refused))

    def add(self, connection: Connection) -> None:
        """Accept a client."""
        self.clients.add(connection)
        connection.start()

    def no_room(self) -> ServiceError | None:
        """Return the reason why one more client has no room, None if it has.

        Clients that left do not count, and the one idle longest is dropped.
        """
        most = self.service.limits.clients
        if len(self.clients) >= most:
            for connection in [*self.clients]:
                connection.drop_if_left()
        idle = [x for x in self.clients if x.idle]
        if len(self.clients) >= most and idle:
            min(idle, key=lambda x: x.since).close(if_idle=True)
        if len(self.clients) < most:
            return None
        text = f"{most} connections are open already; try again"
        return ServiceError("busy", text)


class StreamDoor(Door):
    """Serves one client on a connected socket; the service ends with it."""

    async def meet(self) -> None:
        """Start reading."""
        service, connected = self.service, self._listening
        self.add(LineConnection(service, connected, self._left, lasting=True))

    def _left(self, connection: Connection) -> None:
        self.clients.discard(connection)
        self.service.drain()


class Front:
    """Runs doors on an event loop in a thread; a context manager.

    The thread accepts clients, and reads while the main thread cannot (``Arrivals``).
    """

    def __init__(self, service: Service, doors: Sequence[Door]) -> None:
        self._service, self._doors = service, list(doors)
        self._ready = threading.Event()
        self._ends = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="front", daemon=True)
        self._said = -RARELY

    def __enter__(self) -> None:
        self._thread.start()
        self._ready.wait()
        if self._error is not None:
            raise self._error

    def __exit__(self, *error: object) -> None:
        self._ends = True
        self._thread.join(timeout=10)

    def _run(self) -> None:
        try:
            asyncio.run(self._talk())
        except BaseException as error:  # noqa: BLE001
            self._error = error
            self._service.fail(error)
        finally:
            self._ready.set()

    async def _talk(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(self._note)
        arrivals = self._service.tickets.arrivals
        self._loop.add_reader(arrivals, arrivals.read)
        tasks = [self._loop.create_task(door.meet()) for door in self._doors]
        self._loop.call_soon(self._ready.set)
        while not self._ends:
            await asyncio.sleep(WATCH)
            self._service.expire()
            for client in [client for door in self._doors for client in door.clients]:
                client.look()
        await asyncio.sleep(SETTLE)
        for task in tasks:
            task.cancel()
        for client in [client for door in self._doors for client in door.clients]:
            client.close()

    def _note(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Warn now and then that no client can be accepted; pass on other errors."""
        error = context.get("exception")
        if not isinstance(error, OSError) or error.errno not in SHORT:
            loop.default_exception_handler(context)
        elif loop.time() - self._said >= RARELY:
            self._said = loop.time()
            LOG.warning("%s: no client is accepted meanwhile", error.strerror)


def clear_place(path: Path) -> None:
    """Prepare a path for a Unix socket; remove a dead one.

    Raises UsageError if a service answers there or the path is not a socket,
    InputError if there is no folder.
    """
    if not Path(os.path.realpath(path)).parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}")
    if len(os.fsencode(path)) > LONGEST_PATH:
        raise UsageError(f"{path}: a socket's path has up to {LONGEST_PATH} bytes")
    try:
        if stat.S_ISSOCK(path.lstat().st_mode):
            _remove_dead(path)
        else:
            raise UsageError(f"{path} exists and is not a socket; give another path")
    except FileNotFoundError:
        pass


def _remove_dead(path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
            return
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror}") from error
    raise UsageError(f"{path}: a service answers there already")


def listen(path: Path) -> socket.socket:
    """Return a listening Unix socket at a path, mode 0600; see ``clear_place``."""
    clear_place(path)
    before = os.umask(0o177)
    try:
        return _listening(socket.AF_UNIX, str(path), str(path))
    finally:
        os.umask(before)


def listen_http(host: str, port: int) -> socket.socket:
    """Return a listening TCP socket; InputError if the address is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return _listening(family, (host, port), f"{host}:{port}")


def _listening(
    family: socket.AddressFamily, place: str | tuple[str, int], shown: str
) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind(place)
        made.listen(BACKLOG)
    except OSError as error:
        made.close()
        raise InputError(f"{shown}: {error.strerror}") from error
    return made


def standard_streams(ready: threading.Event) -> socket.socket:
    """Return a socket whose other end is stdin and stdout, served by two threads.

    ready: nothing is read, and so nothing answered, before it is set
    """
    mine, other = socket.socketpair()

    def inwards() -> None:
        ready.wait()
        try:
            while data := os.read(sys.stdin.fileno(), 1 << 16):
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)
        except OSError:
            other.close()

    def outwards() -> None:
        try:
            while data := other.recv(1 << 16):
                sys.stdout.buffer.write(data)
                sys.stdout.buffer.flush()
        except OSError:
            other.close()

    for target in (inwards, outwards):
        threading.Thread(target=target, daemon=True).start()
    return mine
