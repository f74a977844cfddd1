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
        self._rest = bytearray()
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes | None]:
        """Return complete lines without their ends, None for one that was too long.

        b"" marks the end of the data, which also ends the last line.
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
        self.within = self._skipping or bool(self._rest)
        return lines

    def request_of(self, part: bytes | None) -> Request:
        """Return the request in a line."""
        if part is None:
            raise too_long(self._service.limits)
        return self._service.checker.check(part)

    def encode(self, answer: Any) -> list[Buffer]:
        """Return an answer as a line, and the arrays that follow."""
        return encode(refusal(answer) if isinstance(answer, ServiceError) else answer)
