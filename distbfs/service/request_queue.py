"""A bounded queue of requests between the clients' threads and the searches."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from threading import Lock
from typing import Any

from distbfs.errors import ServiceError
from distbfs.service.arrivals import Arrivals
from distbfs.service.operations import Answer, Request

Ended = Answer | ServiceError


@dataclass(eq=False, slots=True)
class Ticket:
    """One request in progress.

    done: receives the answer, once, from any thread
    gone: returns whether its client has disconnected; from any thread
    name: in the log; until: its deadline, by ``time.monotonic``
    waited, searched: seconds until its search began, and of the searches for it
    start: of a request for one search; small: whether it asks for some vertices' levels
    from one source, not from a set
    """

    request: Request
    done: Callable[[Ended], None]
    gone: Callable[[], bool]
    name: str
    arrived: float
    until: float
    waited: float = 0.0
    searched: float = 0.0
    start: Any = None
    small: bool = False

    def __post_init__(self) -> None:
        self.start = self.request.start
        self.small = self.request.operation.small and type(self.start) is int

    @property
    def late(self) -> bool:
        """Whether its deadline has passed."""
        return time.monotonic() >= self.until

    @property
    def lost(self) -> bool:
        """Whether the ticket need not be answered."""
        return self.late or self.gone()

    def why_lost(self) -> ServiceError:
        """Return the error for a ticket that is lost, or whose search was stopped."""
        if self.gone():
            return ServiceError("gone", "nobody waits for the answer")
        spent = self.until - self.arrived
        return ServiceError("deadline", f"no answer within {spent:g} seconds")


class Tickets:
    """A queue of at most ``limit`` tickets, for many producers and one consumer.

    together: (fewest, most) sources of a batch of small requests, None: no batches
    arrivals: read by the consumer while no ticket waits
    """

    def __init__(self, limit: int, together: tuple[int, int] | None = None) -> None:
        self._limit = limit
        self._together = together
        self._waiting: deque[Ticket] = deque()
        self._changing = Lock()
        self.arrivals = Arrivals()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, ticket: Ticket) -> None:
        """Add a ticket; ServiceError ``busy`` where the queue is full."""
        with self._changing:
            if len(self._waiting) >= self._limit:
                text = f"{self._limit} requests wait already; try again"
                raise ServiceError("busy", text, ticket.request.id)
            self._waiting.append(ticket)
        self.arrivals.ring()

    def take(self, timeout: float, *, half: bool = False) -> list[Ticket]:
        """Return the oldest ticket and all others that the same search answers.

        Those are requests for the same source, or small requests for any if a batch
        pays. Reads arrivals before, and while none waits; may return none, and does
        after ``timeout`` seconds.

        half: take half of the waiting tickets into a batch, if two batches are faster
        """
        self.arrivals.wait(timeout, self._waiting)
        with self._changing:
            if not self._waiting:
                return []
            first = self._waiting.popleft()
            if first.start is None:
                return [first]
            if gathered := self._small(first, half=half):
                return gathered
            source = first.start
            same = [ticket for ticket in self._waiting if ticket.start == source]
            for ticket in same:
                self._waiting.remove(ticket)
            return [first, *same]

    def read_until(self, ended: Callable[[], bool], seconds: float) -> None:
        """Read arrivals until a function returns True, or for some seconds."""
        until = time.monotonic() + seconds
        while not ended() and time.monotonic() < until:
            self.arrivals.wait(0, ())

    def _small(self, first: Ticket, *, half: bool) -> list[Ticket]:
        """Return small requests for many sources, none if they are too few."""
        if self._together is None or not first.small:
            return []
        fewest, most = self._together
        all_here = 1 + len(self._waiting)
        if all_here < fewest:
            return []
        if half and all_here >= 2 * fewest:
            most = min(most, (all_here + 1) // 2)
        small = [ticket for ticket in (first, *self._waiting) if ticket.small]
        sources = {*islice(dict.fromkeys(ticket.start for ticket in small), most)}
        if len(sources) < fewest:
            return []
        group = [ticket for ticket in small if ticket.start in sources]
        for ticket in group[1:]:
            self._waiting.remove(ticket)
        return group

    def drop(self, ticket: Ticket) -> None:
        """Remove a ticket that still waits."""
        with self._changing:
            if ticket in self._waiting:
                self._waiting.remove(ticket)

    def wake(self) -> None:
        """Make ``take`` return early."""
        self.arrivals.ring()
