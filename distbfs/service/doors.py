"""Ways for clients to connect, and the thread that serves them."""

from __future__ import annotations

import os
import socket
import stat
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from distbfs.errors import InputError, ServiceError, UsageError
from distbfs.service.connection import Connection, Encoding
from distbfs.service.json_lines import LineEncoding
from distbfs.service.service import Service

SETTLE = 0.2  # seconds to send the last answers
WATCH = 0.1  # seconds until a disconnected client is noticed
NEVER = float("inf")
AGAIN = 1.0  # seconds until clients are accepted again after an error
BACKLOG = 128  # most clients waiting to be accepted
LONGEST_PATH = 107  # bytes of a Unix socket's path


class Door:
    """A listening socket on which clients connect.

    encoding: returns a new ``Encoding`` for each client
    """

    def __init__(
        self,
        service: Service,
        listening: socket.socket,
        encoding: Callable[[], Encoding] | None = None,
    ) -> None:
        self.service, self._listening = service, listening
        self._encoding = encoding or partial(LineEncoding, service)
        self._arrivals = service.tickets.arrivals
        self._again = NEVER  # when clients are accepted again after an error
        self.clients: set[Connection] = set()
        listening.setblocking(False)

    def open(self) -> None:
        """Accept clients from now on."""
        with self._arrivals.turn:
            self._arrivals.add(self._listening.fileno(), self.meet)

    def look(self) -> None:
        """Call ``Connection.look`` for all clients."""
        with self._arrivals.turn:
            for client in [*self.clients]:
                client.look()
        if time.monotonic() >= self._again:
            self._again = NEVER
            self.open()

    def close(self) -> None:
        """Disconnect all clients."""
        with self._arrivals.turn:
            self._arrivals.remove(self._listening.fileno())
            self._listening.close()
            for client in [*self.clients]:
                client.close()

    def meet(self) -> None:
        """Accept a client; after an error, warn and accept none for a while."""
        try:
            connected, _ = self._listening.accept()
            self.let_in(connected)
        except BlockingIOError:
            pass  # it has left
        except OSError as error:
            self._arrivals.remove(self._listening.fileno())
            self._again = time.monotonic() + AGAIN
            self.service.warn(f"{error.strerror}: no clients are accepted for a while")

    def let_in(self, connected: socket.socket) -> None:
        """Serve a connected client; refuse its requests if there is no room for it."""
        encoding = self._encoding()
        encoding.refused = self.no_room()
        if len(self.clients) > 2 * self.service.limits.clients:
            connected.close()
            return
        leave = self.clients.discard
        self.clients.add(Connection(self.service, connected, encoding, leave))

    def no_room(self) -> ServiceError | None:
        """Return the error if there is no room for one more client, else None.

        Clients that left do not count, and the client idle longest is dropped.
        """
        most = self.service.limits.clients
        if len(self.clients) >= most:
            for connection in [*self.clients]:
                connection.drop_if_left()
        idle = [x for x in self.clients if x.idle]
        if len(self.clients) >= most and idle:
            min(idle, key=lambda x: x.since).close()
        if len(self.clients) < most:
            return None
        text = f"{most} connections are open already; try again"
        return ServiceError("busy", text)


class StreamDoor(Door):
    """Serves one client on a connected socket; the service ends when it leaves."""

    def open(self) -> None:
        """Start reading."""
        service, encoding = self.service, LineEncoding(self.service)
        with self._arrivals.turn:
            self.clients.add(
                Connection(service, self._listening, encoding, self._left, lasting=True)
            )

    def _left(self, connection: Connection) -> None:
        self.clients.discard(connection)
        self.service.drain()


class Front:
    """Serves doors in a thread; a context manager.

    The thread drops clients that left, and reads while the main thread cannot (see
    ``Arrivals``).
    """

    def __init__(self, service: Service, doors: Sequence[Door]) -> None:
        self._service, self._doors = service, list(doors)
        self._ends = False
        self._thread = threading.Thread(target=self._run, name="front", daemon=True)

    def __enter__(self) -> None:
        for door in self._doors:
            door.open()
        self._thread.start()

    def __exit__(self, *error: object) -> None:
        self._ends = True
        self._thread.join(timeout=10)

    def _run(self) -> None:
        try:
            self._serve()
        except BaseException as error:  # noqa: BLE001
            self._service.fail(error)

    def _serve(self) -> None:
        arrivals, looked, end = self._service.tickets.arrivals, 0.0, NEVER
        while (now := time.monotonic()) < end:
            if self._ends:
                end = min(end, now + SETTLE)
            if now - looked >= WATCH:
                looked = now
                self._service.expire()
                for door in self._doors:
                    door.look()
            arrivals.read(WATCH)
        for door in self._doors:
            door.close()


def clear_place(path: Path) -> None:
    """Prepare a path for a Unix socket; remove a socket that nobody listens on.

    Raises UsageError if a service answers there or the path is not a socket,
    InputError if its folder does not exist.
    """
    if not Path(os.path.realpath(path)).parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}")
    if len(os.fsencode(path)) > LONGEST_PATH:
        raise UsageError(f"{path}: a socket's path may have up to {LONGEST_PATH} bytes")
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
    if family != socket.AF_UNIX:
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # of clients, too
    try:
        made.bind(place)
        made.listen(BACKLOG)
    except OSError as error:
        made.close()
        raise InputError(f"{shown}: {error.strerror}") from error
    return made


def standard_streams(ready: threading.Event) -> socket.socket:
    """Return a socket whose other end is stdin and stdout, served by two threads.

    ready: event before which nothing is read, and so nothing is answered
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
