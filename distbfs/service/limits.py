"""Limits of a service, and of each of its clients."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from threading import Lock

from distbfs.errors import ServiceError
from distbfs.options import check_range

MAX_ID_TEXT = 128  # characters of a request's id
KEPT = 1024  # clients beyond which those without requests are forgotten
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
    deadline: float = 60.0
    patience: float = 10.0

    def __post_init__(self) -> None:
        for limit in fields(self):
            low, high = RANGES.get(limit.name, (1, 1 << 31))
            check_range(limit.name, getattr(self, limit.name), low, high)


class Quota:
    """The requests of one client; every method may be called from any thread.

    A client that was quiet may ask for a second's worth at once (a token bucket).
    """

    def __init__(self, limits: Limits, clock: Callable[[], float]) -> None:
        self._most, self._rate, self._clock = limits.in_flight, limits.rate, clock
        self._free = not (self._most or self._rate)  # nothing is counted
        self._burst = max(limits.rate, 1.0)
        self._left, self._since = self._burst, clock()
        self._open = 0
        self._changing = Lock()

    @property
    def idle(self) -> bool:
        """Whether nothing is known of the client that a new quota would not have."""
        return not self._open and self._refilled() >= self._burst

    def _refilled(self) -> float:
        spent = self._clock() - self._since
        return min(self._left + spent * self._rate, self._burst)

    def begin(self) -> None:
        """Count a request to be answered; ServiceError where it is one too many."""
        if self._free:
            return
        with self._changing:
            if self._most and self._open >= self._most:
                text = f"{self._open} requests of this client are in flight; allowed: "
                raise ServiceError("too_many", f"{text}{self._most}")
            if self._rate:
                self._left, self._since = self._refilled(), self._clock()
                if self._left < 1:
                    wait = (1 - self._left) / self._rate
                    text = f"more than {self._rate:g} requests a second of this client"
                    text = f"{text}; try again in {wait:.2g} seconds"
                    raise ServiceError("too_many", text, retry=wait)
                self._left -= 1
            self._open += 1

    def end(self) -> None:
        """Count the answer to a request that began."""
        if not self._free:
            with self._changing:
                self._open -= 1


class Quotas:
    """The quotas of clients by their addresses, for one thread."""

    def __init__(
        self, limits: Limits, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limits, self._clock = limits, clock
        self._known: dict[str, Quota] = {}

    def of(self, address: str) -> Quota:
        """Return the quota of a client."""
        if address not in self._known:
            if len(self._known) >= KEPT:
                known = self._known.items()
                self._known = {name: one for name, one in known if not one.idle}
            self._known[address] = Quota(self._limits, self._clock)
        return self._known[address]
