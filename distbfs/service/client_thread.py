"""The thread that accepts clients, and reads while the main thread cannot."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import threading
from collections.abc import Sequence
from typing import Any

from distbfs.service.doors import Door
from distbfs.service.service import Service

SETTLE = 0.2  # seconds to send the last answers
TICK = 0.1  # seconds between checks for expired deadlines
SHORT = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
RARELY = 10.0  # seconds between two such warnings
LOG = logging.getLogger("distbfs.service")


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
        if not isinstance(error, OSError) or error.errno not in SHORT:
            loop.default_exception_handler(context)
        elif loop.time() - self._said >= RARELY:
            self._said = loop.time()
            LOG.warning("%s: no client is accepted until this is over", error.strerror)
