"""One connection of the HTTP service: idle time and number of connections.

A connection that waits for a request never blocks others: at the limit the one that has
waited longest is closed. uvicorn is imported here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from distbfs.errors import ServiceError
from distbfs.service.limits import Limits, Patience, longest_idle

NO_HTTP = "not a request of HTTP/1.1, or its head is too long"
LOOK = 0.5  # most seconds between checks of a connection


class HttpConnection(H11Protocol):
    """Drops a client that sends no whole head, or reads no answer, within patience.

    refuse: creates the application that answers with an error
    since: when it last became idle, by the clock of the loop
    """

    def __init__(
        self, limits: Limits, refuse: Callable[[ServiceError], Any], **server: Any
    ) -> None:
        super().__init__(**server)
        self.since = self.loop.time()
        self._limits = limits
        self._refuse = refuse
        self._head = True  # whether the head of a request is arriving
        self._patience = Patience(limits.patience)
        self._left = 0  # bytes of answers not sent at the last check
        self._timer: asyncio.TimerHandle | None = None

    @property
    def idle(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a client if there is room, or if room can be made."""
        super().connection_made(transport)
        self._watch()
        all_there: set[Any] = self.connections
        others = [
            x for x in all_there if x is not self and not x.transport.is_closing()
        ]
        same = [x for x in others if x.address == self.address]
        most, limits = len(others), self._limits
        if len(same) >= limits.per_address:
            why = f"{len(same)} connections of {self.address} are at work"
            self._make_room(same, why)
        elif most >= limits.clients:
            self._make_room(others, f"{most} connections are at work")

    def data_received(self, data: bytes) -> None:
        """Record that a head has begun."""
        self._head = self._head or self.idle
        super().data_received(data)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        """Refuse what is no HTTP as what is no request, and end the connection."""
        if self.cycle is not None:  # its answer would be one too many
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            refused = self._refuse(ServiceError("bad_request", NO_HTTP))
            head = h11.Response(
                status_code=refused.status_code,
                headers=refused.raw_headers,
                reason=b"Bad Request",
            )
            for event in (head, h11.Data(data=refused.body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def on_response_complete(self) -> None:
        """Record that a request has been answered."""
        self._head, self.since = False, self.loop.time()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop watching."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    @property
    def address(self) -> str:
        """The client's address, without its port."""
        return self.client[0] if self.client else ""

    def _make_room(self, others: list[Any], why: str) -> None:
        """Drop the client that has been idle longest; if none, refuse this one."""
        if idle := longest_idle(others):
            idle.transport.abort()
        elif len(self.connections) > 2 * self._limits.clients:
            self.transport.abort()
        else:
            self.app = self._refuse(ServiceError("busy", f"{why} already"))

    def _watch(self) -> None:
        look = min(LOOK, self._limits.patience / 4)
        self._timer = self.loop.call_later(look, self._look, look)

    def _look(self, seconds: float) -> None:
        """Drop a client without progress for too long."""
        left = self.transport.get_write_buffer_size()
        waits = (self.idle and self._head) or (left > 0 and left >= self._left)
        self._left = left
        if self._patience.over(seconds, waits=waits):
            self.transport.abort()
        else:
            self._watch()
