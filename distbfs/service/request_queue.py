"""A bounded queue of requests between the clients' threads and the searches."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import islice
from threading import Lock
from typing import Any, Protocol

from distbfs.errors import ServiceError
from distbfs.service.arrivals import Arrivals
from distbfs.service.operations import Answer, Request

Ended = Answer | ServiceError


class Recipient(Protocol):
    """The client that sent a request; ``gone``: whether it has disconnected."""

    gone: bool

    def answer(self, result: Ended) -> None:
        """Send an answer to the client."""


@dataclass(eq=False, slots=True)
class Ticket:
    """One request in progress.

    client: receives the answer, once, from any thread
    name: name of the request in the log
    until: deadline, as a time of ``time.monotonic``
    waited: seconds until the search began; searched: seconds of its search
    start: the source of its search, a vertex or a set
    small: whether it asks for the levels of some vertices from one source, not a set
    """

    request: Request
    client: Recipient
    name: str
    arrived: float
    until: float
    waited: float = 0.0
    searched: float = 0.0
    start: Any = None
    small: bool = False

    def __post_init__(self) -> None:
        self.start = self.request.start
        self.small = self.request.op == "distances" and type(self.start) is int

    @property
    def late(self) -> bool:
        """Whether its deadline has passed."""
        return time.monotonic() >= self.until

    @property
    def lost(self) -> bool:
        """Whether the ticket need not be answered."""
        return self.late or self.client.gone

    def why_lost(self) -> ServiceError:
        """Return the error for a lost ticket or one whose search was stopped."""
        if self.client.gone:
            return ServiceError("gone", "nobody waits for the answer")
        spent = self.until - self.arrived
        return ServiceError("deadline", f"no answer within {spent:g} seconds")


class Tickets:
    """A queue of at most ``limit`` tickets, for many producers and one consumer.

    batches: (fewest, most) sources of a batch of small requests, None for no batches
    arrivals: data from clients, which the consumer reads while no ticket waits
    """

    def __init__(self, limit: int, batches: tuple[int, int] | None = None) -> None:
        self._limit = limit
        self._batches = batches
        self._waiting: deque[Ticket] = deque()
        self.unanswered: set[Ticket] = set()  # that wait, or are searched for
        self._changing = Lock()
        self.arrivals = Arrivals()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, ticket: Ticket) -> None:
        """Add a ticket; raise ServiceError ``busy`` if the queue is full."""
        with self._changing:
            if len(self._waiting) >= self._limit:
                text = f"{self._limit} requests wait already; try again"
                raise ServiceError("busy", text, ticket.request.id)
            self._waiting.append(ticket)
            self.unanswered.add(ticket)
        self.arrivals.ring()

    def take(self, timeout: float, *, half: bool = False) -> list[Ticket]:
        """Return the oldest ticket and all others that the same search answers.

        Those are requests for the same sources or, if a batch pays, small requests for
        any source. Arrivals are read first, and while no ticket waits. The list may be
        empty, and is after ``timeout`` seconds without a ticket.

        half: take half of the waiting tickets into a batch, if two batches are faster
        """
        self.arrivals.wait(timeout, self._waiting)
        with self._changing:
            if not self._waiting:
                return []
            first = self._waiting[0]
            group = self._small(first, half=half) or [
                ticket for ticket in self._waiting if ticket.start == first.start
            ]
            for ticket in group:
                self._waiting.remove(ticket)
            return group

    def read_until(self, ended: Callable[[], bool], seconds: float) -> None:
        """Read arrivals until a function returns True, or for some seconds."""
        until = time.monotonic() + seconds
        while not ended() and time.monotonic() < until:
            self.arrivals.wait(0, ())

    def _small(self, first: Ticket, *, half: bool) -> list[Ticket]:
        """Return a batch of small requests, empty if they are too few."""
        if self._batches is None or not first.small:
            return []
        fewest, most = self._batches
        if len(self) < fewest:
            return []
        if half and len(self) >= 2 * fewest:
            most = min(most, (len(self) + 1) // 2)
        small = [ticket for ticket in self._waiting if ticket.small]
        sources = {*islice(dict.fromkeys(ticket.start for ticket in small), most)}
        if len(sources) < fewest:
            return []
        return [ticket for ticket in small if ticket.start in sources]

    def end(self, tickets: Collection[Ticket]) -> set[Ticket]:
        """Remove tickets; return those that have not been answered yet."""
        with self._changing:
            ended = self.unanswered.intersection(tickets)
            self.unanswered -= ended
            for ticket in ended.intersection(self._waiting):
                self._waiting.remove(ticket)
        return ended
