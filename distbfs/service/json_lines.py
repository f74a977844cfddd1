"""JSON Lines: one request per line, one answer per line, in order of completion."""

from __future__ import annotations

from typing import Any

from distbfs.errors import ServiceError
from distbfs.service.checker import too_long
from distbfs.service.connection import Encoding
from distbfs.service.encoding import Buffer, encode
from distbfs.service.operations import Request, refusal
from distbfs.service.service import Service


class LineEncoding(Encoding):
    """One request per line; a client may send more before it has its answers."""

    def __init__(self, service: Service) -> None:
        self._service, self._limit = service, service.limits.line
        self.most = service.limits.pipeline
        self._rest = bytearray()  # the begin of a line, cut if it is too long

    def feed(self, data: bytes) -> list[bytes | None]:
        """Return complete lines without their ends, None for one that was too long.

        b"" marks the end of the data, which also ends the last line.
        """
        *lines, rest = (data or b"\n").split(b"\n")
        if lines and self._rest:
            lines[0] = bytes(self._rest) + lines[0]
            self._rest.clear()
        most = self._limit
        self._rest += rest[: most + 1 - len(self._rest)]
        self.within = bool(self._rest)
        short = [line if len(line) <= most else None for line in lines]
        return [line for line in short if line is None or line.strip()]

    def request_of(self, part: bytes | None) -> Request:
        """Return the request in a line."""
        if part is None:
            raise too_long(self._service.limits)
        return self._service.checker.check(part)

    def encode(self, answer: Any) -> list[Buffer]:
        """Return an answer as a line, and the arrays that follow."""
        return encode(refusal(answer) if isinstance(answer, ServiceError) else answer)
