"""The thread that accepts clients, and serves them while the main thread searches.

It serves HTTP; it reads JSON Lines only while the main thread cannot (``Arrivals``).
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import socket
import stat
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from distbfs.errors import InputError, UsageError
from distbfs.service.service import Service

LONGEST_PATH = 107  # bytes of a Unix socket's path
SETTLE = 0.2  # seconds to send the last answers
TICK = 0.1  # seconds between checks for expired deadlines
SHORT = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
RARELY = 10.0  # seconds between two such warnings
LOG = logging.getLogger("distbfs.service")


class Door(Protocol):
    """A way for clients to connect, on the loop of the front."""

    async def open(self) -> None:
        """Start accepting clients."""

    async def close(self) -> None:
        """Stop accepting clients and disconnect them."""


class Front:
    """Runs doors on an event loop in a thread; a context manager."""

    def __init__(self, service: Service, doors: Sequence[Door]) -> None:
        self._service = service
        self._doors = list(doors)
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing: asyncio.Event | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="front", daemon=True)
        self._said = -RARELY

    def __enter__(self) -> None:
        self._thread.start()
        self._ready.wait()
        if self._error is not None:
            raise self._error

    def __exit__(self, *error: object) -> None:
        if self._loop is not None and self._closing is not None:
            self._loop.call_soon_threadsafe(self._closing.set)
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
        self._closing = asyncio.Event()
        arrivals = self._service.tickets.arrivals
        self._loop.add_reader(arrivals, arrivals.read)
        for door in self._doors:
            await door.open()
        self._ready.set()
        while not self._closing.is_set():
            self._service.expire()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._closing.wait(), TICK)
        await asyncio.sleep(SETTLE)
        for door in self._doors:
            await door.close()

    def _note(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Warn now and then that no client can be accepted; pass on other errors."""
        error = context.get("exception")
        if isinstance(error, ValueError) and "_start_serving" in context["message"]:
            return  # asyncio retries to accept at a socket closed since
        if not isinstance(error, OSError) or error.errno not in SHORT:
            loop.default_exception_handler(context)
        elif loop.time() - self._said >= RARELY:
            self._said = loop.time()
            LOG.warning("%s: no client is accepted until this is over", error.strerror)


def clear_place(path: Path) -> None:
    """Prepare a path for a Unix socket; remove a dead one.

    Raises UsageError where a service answers there or the path is not a socket,
    InputError where there is no folder.
    """
    if not Path(os.path.realpath(path)).parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}")
    if len(os.fsencode(path)) > LONGEST_PATH:
        raise UsageError(f"{path}: a socket's path has up to {LONGEST_PATH} bytes")
    try:
        if stat.S_ISSOCK(path.lstat().st_mode):
            _remove_dead(path)
        else:
            raise UsageError(f"{path} exists and is no socket; give another path")
    except FileNotFoundError:
        pass


def listen(path: Path) -> socket.socket:
    """Return a listening Unix socket at a path, mode 0600; see ``clear_place``."""
    clear_place(path)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        made.bind(str(path))
        made.listen(128)
    except OSError as error:
        made.close()
        raise InputError(f"{path}: {error.strerror}") from error
    finally:
        os.umask(before)
    return made


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
