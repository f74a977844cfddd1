"""JSON Lines: one request per line, one answer per line, in order of completion."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from distbfs.errors import ServiceError
from distbfs.service.checker import too_long
from distbfs.service.connection import Connection
from distbfs.service.encoding import Buffer, encode
from distbfs.service.operations import Request, refusal
from distbfs.service.service import Service


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
        """Return complete lines without their ends, None for one that was too long.

        b"": the end of the data, which ends the last line
        """
        *ends, rest = (data or b"\n").split(b"\n")
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

    def late(self) -> None:
        """Leave a line without its end unanswered."""


class LineConnection(Connection):
    """A client that sends one request per line, and more before it has the answers."""

    def __init__(
        self,
        service: Service,
        connected: socket.socket,
        left: Callable[[Connection], object],
        refused: ServiceError | None = None,
        *,
        lasting: bool = False,
    ) -> None:
        parts = Splitter(service.limits.line)
        super().__init__(service, connected, parts, left, refused, lasting=lasting)
        self.most = service.limits.pipeline

    def request_of(self, part: bytes | None) -> Request:
        """Return the request in a line."""
        if part is None:
            raise too_long(self._service.limits)
        return self._service.checker.check(part)

    def encode(self, answer: Any) -> list[Buffer]:
        """Return an answer as a line, and the arrays that follow."""
        return encode(refusal(answer) if isinstance(answer, ServiceError) else answer)
