"""Limits of a service."""

from __future__ import annotations

from dataclasses import dataclass, fields

from distbfs.options import check_range

MAX_ID_TEXT = 128  # characters of a request's id
RANGES = {
    "line": (256, 1 << 30),
    "deadline": (1e-3, 1e6),
    "patience": (1e-3, 1e6),
}  # of others: 1 to 2^31
SECONDS = 70.0  # that clients wait: more than the longest answer takes by default


@dataclass(frozen=True)
class Limits:
    """Sizes, counts and times of a service.

    queue: waiting requests; clients: connections of the socket, and of HTTP
    pipeline: unanswered requests of one client; more are not read
    line: bytes of a request; ids: sources or targets in one request
    inline: values (levels, parents or ids of a path) in an answer
    binary: values in an answer as arrays of NumPy
    deadline: seconds for a request, from its arrival, unless it sets fewer
    patience: seconds until a client is dropped that does not read its answers, sends
    nothing at first, or does not end the line, or the head or body, of a request
    """

    queue: int = 64
    clients: int = 64
    pipeline: int = 16
    line: int = 1 << 20
    ids: int = 10_000
    inline: int = 1 << 16
    binary: int = 1 << 27
    deadline: float = 60.0
    patience: float = 10.0

    def __post_init__(self) -> None:
        for limit in fields(self):
            low, high = RANGES.get(limit.name, (1, 1 << 31))
            check_range(limit.name, getattr(self, limit.name), low, high)
