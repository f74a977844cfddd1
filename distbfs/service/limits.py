"""Limits of a service, and of the connections of its clients."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from distbfs.options import check_range

MAX_ID_TEXT = 128  # characters of a request's id
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
        counts = (
            "queue",
            "clients",
            "per_address",
            "pipeline",
            "ids",
            "inline",
            "binary",
        )
        for name in (*counts, "files"):
            check_range(name, getattr(self, name), 1, 1 << 31)
        check_range("in_flight", self.in_flight, 0, 1 << 31)
        check_range("rate", self.rate, 0, 1e9)
        check_range("line", self.line, 256, 1 << 30)
        for name in ("deadline", "patience"):
            check_range(name, getattr(self, name), 1e-3, 1e6)


class Patience:
    """Seconds for which a client keeps the service waiting."""

    def __init__(self, most: float) -> None:
        self._most, self._spent = most, 0.0

    def over(self, seconds: float, *, waits: bool) -> bool:
        """Count seconds, from 0 again unless it ``waits``; return if they are most."""
        self._spent = self._spent + seconds if waits else 0.0
        return self._spent >= self._most


class Connected(Protocol):
    """A connection of a client."""

    @property
    def idle(self) -> bool:
        """Whether no request is being answered."""

    @property
    def since(self) -> float:
        """When it last became idle."""


Client = TypeVar("Client", bound=Connected)


def longest_idle(clients: Iterable[Client]) -> Client | None:
    """Return the client that gives way to a new one, None where all are at work."""
    idle = [client for client in clients if client.idle]
    return min(idle, key=lambda client: client.since, default=None)
