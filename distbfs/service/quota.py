"""Limits of one client: requests in flight, and requests a second."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock

from distbfs.errors import ServiceError
from distbfs.service.limits import Limits

KEPT = 1024  # clients beyond which those without requests are forgotten


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
