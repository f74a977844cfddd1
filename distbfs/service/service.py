"""Rank 0 of a service: takes tickets in turn, runs their searches and answers them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any

from distbfs.errors import SearchStopped, ServiceError, ValidationError
from distbfs.formats.ids import IdMap
from distbfs.multisearch.started import Started
from distbfs.ranks.signals import StopFlag
from distbfs.service.answers import Answers
from distbfs.service.checker import Checker
from distbfs.service.limits import Limits
from distbfs.service.metrics import Metrics
from distbfs.service.operations import OPERATIONS, Request
from distbfs.service.rank_calls import ServiceRank
from distbfs.service.request_queue import Ended, Recipient, Ticket, Tickets
from distbfs.service.shared_traversal import MOST
from distbfs.service.vertex_names import Names

LOG = logging.getLogger("distbfs.service")
Landed = tuple[list[Ticket], float, list[Any]]  # seconds, a value for each
TICK = 0.1  # seconds until a signal on rank 0 is seen
SHORT = 2e-3  # seconds of a search for which this thread reads instead of the front
LOOK = 0.5  # seconds until a signal on another rank is seen
RARELY = 10.0  # seconds between two warnings


def log(names: str, text: str) -> None:
    """Write a line about requests, by their names, to the log."""
    LOG.info("%s %s", names, text, extra={"request": names})


def log_together(tickets: Sequence[Ticket], text: str) -> None:
    """Write one line about requests that end alike to the log.

    It shows the longest wait and the longest search.
    """
    waited = max(ticket.waited for ticket in tickets) * 1e3
    searched = max(ticket.searched for ticket in tickets) * 1e3
    times = f"waited {waited:.3f} ms, searched {searched:.3f} ms"
    log(" ".join(ticket.name for ticket in tickets), f"{text}, {times}")


class Service:
    """Answers requests by searches of all ranks.

    Any thread may call ``submit`` and ``expire``; only the main thread calls ``run``.

    graph: facts about the graph and the engine for ``stats``, JSON values
    trouble: function that says which rank is stuck, "" if none is; any thread calls it
    """

    def __init__(
        self,
        ranks: ServiceRank,
        limits: Limits,
        graph: dict[str, Any],
        metrics: Metrics | None = None,
        ids: IdMap | None = None,
        trouble: Callable[[], str] = str,
    ) -> None:
        self.ranks = ranks
        self.limits = limits
        self.graph = graph
        self.metrics = metrics or Metrics()
        self.names = Names(ranks.session.layout.n, ids)
        self.checker = Checker(self.names, limits)
        both = ranks.batches
        many = None if both is None else (both.fewest, MOST)
        self.tickets = Tickets(limits.queue, many)
        self._trouble = trouble
        parents = ranks.session.options.parents
        self.answers = Answers(self.names, limits, self.metrics, parents)
        self.draining = False  # whether the service is ending and refuses requests
        self._failure: BaseException | None = None
        self._numbers = count(1)
        self._warned = -RARELY
        self._flight: tuple[list[Ticket], Started[list[Any]]] | None = None
        self._half = False  # whether searches fly for half of the clients at a time
        self.metrics.gauges = {
            "distbfs_queue_length": ("Requests that wait.", lambda: len(self.tickets)),
            "distbfs_stuck": (
                "1 while a rank is stuck, else 0.",
                lambda: bool(self._trouble()),
            ),
            "distbfs_graph_vertices": ("Vertices of the graph.", lambda: self.names.n),
        }

    # taken out of the queue by other threads

    def drain(self) -> None:
        """Refuse new requests, answer those that wait, then end."""
        self.draining = True
        self.ranks.flag.request()
        self.tickets.arrivals.ring()

    def fail(self, error: BaseException) -> None:
        """End the service with an error of another thread."""
        self._failure = error
        self.drain()

    def name(self) -> str:
        """Return a new name for a request, for the log."""
        return f"r{next(self._numbers)}"

    def submit(self, request: Request, client: Recipient, name: str) -> None:
        """Put a request into the queue, or answer one that needs no search.

        client: receives the answer, once, on any thread
        name: name of the request in the log

        Raises ServiceError: ``draining`` while the service ends, ``busy`` if the queue
        is full, ``too_large`` and ``bad_request`` as ``Answers.check`` does, and
        ``bad_request`` for paths that the session does not support.
        """
        if request.operation.immediate:
            if request.op == "shutdown":
                self.drain()
            facts = self.stats() if request.op == "stats" else self.health()
            answer = request.operation.answer(id=request.id, **facts)
            self.metrics.answered(request.op, "ok")
            log(name, f"{request.op}: ok")
            client.answer(answer)
            return
        self.answers.check(request)
        if self.draining:
            raise ServiceError("draining", "the service ends")
        if request.op == "all_paths" and (why := self.ranks.session.paths.refusal):
            raise ServiceError("bad_request", why)
        arrived = time.monotonic()
        until = arrived + (request.deadline or self.limits.deadline)
        self.tickets.put(Ticket(request, client, name, arrived, until))

    def expire(self) -> None:
        """Answer requests whose deadline has passed, even while a search is stuck."""
        for ticket in self.tickets.unanswered.copy():
            if ticket.late:
                self._end([(ticket, ticket.why_lost())])

    def refused(self, error: ServiceError, op: str, name: str) -> None:
        """Count and log the refusal of a request."""
        self.metrics.answered(op if op in OPERATIONS else "unknown", error.code)
        log(name, f"{error.code}: {error}")

    def warn(self, text: str) -> None:
        """Log a warning unless another one was logged a short time ago."""
        if time.monotonic() - self._warned >= RARELY:
            self._warned = time.monotonic()
            LOG.warning("%s", text)

    def health(self) -> dict[str, Any]:
        """Return the state of the service: ready, draining, or stuck with a reason."""
        if trouble := self._trouble():
            return {"state": "stuck", "why": trouble}
        return {"state": "draining" if self.draining else "ready"}

    def stats(self) -> dict[str, Any]:
        """Return counts, times and the graph."""
        return {
            **self.health(),
            "graph": self.graph,
            "queue": len(self.tickets),
            "running": len(flight[0]) if (flight := self._flight) else 0,
            "limits": self.limits,
            **self.metrics.as_dict(),
        }

    # the main thread

    def run(self, flag: StopFlag) -> None:
        """Answer requests until a request or a signal ends the service (rank 0).

        While no request waits, this thread reads from clients. An error in a search is
        raised to the caller, and ends the service on all ranks.
        """
        try:
            self._run(flag)
        finally:
            self.tickets.arrivals.leave()

    def _run(self, flag: StopFlag) -> None:
        looked = time.monotonic()
        while True:
            if self._flight is None:
                group = self.tickets.take(TICK, half=self._half)
            else:
                self.tickets.read_until(self._flight[1].ended, SHORT)
                group = self.tickets.take(0)
            self._serve(group)
            if flag.requested:
                self.drain()
            elif time.monotonic() - looked > LOOK:
                looked = time.monotonic()
                self.tickets.arrivals.leave()  # another rank may be stuck
                if self.ranks.look():
                    self.drain()
            if self._failure is not None:
                raise self._failure
            if self.draining and not len(self.tickets) and self._flight is None:
                return

    def _serve(self, group: list[Ticket]) -> None:
        """Search for requests; answer them, or leave the search running.

        The requests of the previous search are answered while this one runs, or before.
        """
        landed = self._land()
        wanted = self._still_wanted(group)
        several = len({ticket.start for ticket in wanted}) > 1
        if wanted:
            with self._stopped_for(wanted):
                self._flight = wanted, self._begin(wanted, several=several)
        if landed is not None:
            began = time.perf_counter()
            self._answer_all(*landed)
            self._half = halves_pay(landed[1], time.perf_counter() - began)
        if not (several and self.ranks.ahead) and (landed := self._land()):
            self._answer_all(*landed)

    def _still_wanted(self, group: list[Ticket]) -> list[Ticket]:
        """Return the tickets for which somebody still waits; end the others."""
        now = time.monotonic()
        for ticket in group:
            ticket.waited = now - ticket.arrived
        self.metrics.observe("queue_wait_seconds", *[x.waited for x in group])
        lost = [ticket for ticket in group if ticket.lost]
        self._end([(ticket, ticket.why_lost()) for ticket in lost])
        return [ticket for ticket in group if ticket not in lost] if lost else group

    @contextmanager
    def _stopped_for(self, group: list[Ticket]) -> Iterator[None]:
        """End the tickets if their search is stopped or the store has been altered."""
        try:
            yield
        except SearchStopped:
            self._end([(ticket, ticket.why_lost()) for ticket in group])
        except ValidationError as error:
            text = str(error)
            self._end([(ticket, ServiceError("broken", text)) for ticket in group])

    def _begin(self, group: list[Ticket], *, several: bool) -> Started[list[Any]]:
        """Begin the search for a group; ``several``: from all sources at once."""
        call: dict[str, Any]
        if several:
            asked = [(ticket.start, ticket.request.targets) for ticket in group]
            call = {"do": "batch", "asked": asked}
        else:
            steps = [self.answers.step(ticket.request) for ticket in group]
            call = {"do": "search", "source": group[0].start, "asked": steps}
        return self.ranks.start(call, all_lost(group))

    def _land(self) -> Landed | None:
        """Wait for the running search; return the arguments of ``_answer_all``.

        While the device searches for one half of the clients, this thread answers the
        other half and reads from it.
        """
        if self._flight is None:
            return None
        group, started = self._flight
        if not started.ended():
            self.tickets.arrivals.leave()
        try:
            with self._stopped_for(group):
                return (group, *started.finish())
            return None
        finally:
            self._flight = None

    def _answer_all(
        self, group: list[Ticket], seconds: float, values: list[Any]
    ) -> None:
        """Answer the requests that share a search, with the value of each one's step.

        seconds: time of the search
        """
        if len(group) > 1:  # two threads that run Python take turns at every answer
            self.tickets.arrivals.stay()
        sources = len({ticket.start for ticket in group})
        self.metrics.searched(seconds, len(group), sources)
        now, make = time.monotonic(), self.answers.make
        ended: list[tuple[Ticket, Ended]] = []
        for ticket, value in zip(group, values, strict=True):
            if now >= ticket.until:
                ended.append((ticket, ticket.why_lost()))
                continue
            ticket.searched = seconds
            try:
                ended.append((ticket, make(ticket.request, value)))
            except ServiceError as error:
                ended.append((ticket, error))
        self._end(ended)

    def _end(self, results: Sequence[tuple[Ticket, Ended]]) -> None:
        """Answer the tickets of one search that have no answer yet."""
        left = self.tickets.end([ticket for ticket, _ in results])
        ended = [(ticket, result) for ticket, result in results if ticket in left]
        alike: dict[tuple[str, str, str], list[Ticket]] = {}
        for ticket, result in ended:
            op, code, how = ticket.request.op, "ok", "ok"
            if isinstance(result, ServiceError):
                code, how = result.code, f"{result.code} ({result})"
            result.id = ticket.request.id
            alike.setdefault((op, code, how), []).append(ticket)
        for (op, code, _), tickets in alike.items():
            self.metrics.answered(op, code, len(tickets))
        good = any(code == "ok" for _, code, _ in alike)
        if good and not self.tickets.unanswered:
            self.tickets.arrivals.stay()  # this thread, which searches, reads the next
        for ticket, result in ended:
            ticket.client.answer(result)
        for (op, _, how), tickets in alike.items():
            log_together(tickets, f"{op}: {how}")


def halves_pay(searched: float, answered: float) -> bool:
    """Return whether two batches would be faster than one that took these seconds.

    Reading takes about as long as answering, and a search from half of the sources
    takes more than half the time. Two batches hide the shorter of the two times, so
    they pay if that is long enough.
    """
    return searched < 3 * answered


def all_lost(group: list[Ticket]) -> Callable[[], bool]:
    """Return a function that says whether nobody waits for the answers any more."""
    return lambda: all(ticket.lost for ticket in group)
