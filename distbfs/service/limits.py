"""Limits of a service."""

from __future__ import annotations

from dataclasses import dataclass, fields

from distbfs.options import check_range

MAX_ID_TEXT = 128  # characters of a request's id
RANGES = {
    "in_flight": (0, 1 << 31),
    "rate": (0, 1e9),
    "line": (256, 1 << 30),
    "deadline": (1e-3, 1e6),
    "patience": (1e-3, 1e6),
}  # of others: 1 to 2^31
SECONDS = 70.0  # that clients wait: more than the longest answer takes by default


@dataclass(frozen=True)
class Limits:
    """Sizes, counts and times of a service.

    queue: waiting requests; clients: connections of the socket, and of HTTP
    per_address: connections of HTTP from one address
    in_flight: requests of one client (a connection of the socket, an address of HTTP)
    that wait or are answered; more are refused; 0: any number
    rate: requests a second of one client; more are refused; 0: any number
    pipeline: unanswered requests of one client; more are not read
    line: bytes of a request; ids: sources or targets in one request
    inline: values (levels, parents or ids of a path) in an answer
    binary: values in an answer as arrays of NumPy
    files: results in the folder of results
    deadline: seconds for a request, from its arrival, unless it sets fewer
    patience: seconds until a client is dropped that does not read its answers, sends
    nothing at first, or does not end the line, or the head or body, of a request
    """

    queue: int = 64
    clients: int = 64
    per_address: int = 32
    in_flight: int = 0
    rate: float = 0.0
    pipeline: int = 16
    line: int = 1 << 20
    ids: int = 10_000
    inline: int = 1 << 16
    binary: int = 1 << 27
    files: int = 10_000
    deadline: float = 60.0
    patience: float = 10.0

    def __post_init__(self) -> None:
        for limit in fields(self):
            low, high = RANGES.get(limit.name, (1, 1 << 31))
            check_range(limit.name, getattr(self, limit.name), low, high)
