"""Rank 0 of a service: takes tickets in turn, runs their searches and answers them."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count, islice
from typing import Any

import numpy as np
from msgspec import UNSET, UnsetType

from distbfs.errors import SearchStopped, ServiceError
from distbfs.exchange.signals import StopFlag
from distbfs.formats.ids import IdMap
from distbfs.multisearch.started import Started
from distbfs.service.checker import Checker
from distbfs.service.limits import Limits
from distbfs.service.metrics import Metrics
from distbfs.service.operations import (
    OPERATIONS,
    AllPaths,
    AllPathsAnswer,
    Answer,
    Bfs,
    BfsAnswer,
    DistancesAnswer,
    HealthAnswer,
    MultiBfs,
    MultiBfsAnswer,
    Name,
    Path,
    PathAnswer,
    ReachableAnswer,
    Request,
    Search,
    Shutdown,
    Stats,
    StatsAnswer,
    ToTargets,
    WithResults,
    refusal,
)
from distbfs.service.rank_calls import Ranks, Step
from distbfs.service.request_queue import Ticket, Tickets
from distbfs.service.results import ResultFolder
from distbfs.service.shared_traversal import FEWEST, MOST, Levels
from distbfs.service.vertex_names import Names
from distbfs.types import Array

LOG = logging.getLogger("distbfs.service")
TICK = 0.1  # seconds until a signal on rank 0 is seen
SHORT = 2e-3  # seconds of a search for which this thread reads instead of the front
LOOK = 0.5  # seconds until a signal on another rank is seen
NO_FOLDER = "start the service with --results, or ask for the result 'summary'"

Done = Callable[[Answer], None]
Source = int | tuple[int, ...]  # a vertex, or those of a set
Ended = Answer | ServiceError
Row = tuple[Array, Array | None]  # level int32 [n] and parent int64 [n] by id


def log_together(tickets: Sequence[Ticket], how: str) -> None:
    """Write the log of requests that end alike, one line for each operation.

    The longest wait and the longest search count.
    """
    for op in dict.fromkeys(ticket.request.op for ticket in tickets):
        alike = [ticket for ticket in tickets if ticket.request.op == op]
        LOG.info(
            "%s %s: %s, waited %.3f ms, searched %.3f ms",
            names := " ".join(ticket.name for ticket in alike),
            op,
            how,
            max(ticket.waited for ticket in alike) * 1e3,
            max(ticket.searched for ticket in alike) * 1e3,
            extra={"request": names},
        )


class Service:
    """Answers requests by searches of all ranks.

    ``submit``, ``now`` and ``expire`` are for any thread, ``run`` for the main one.

    graph: the facts on graph and engine in ``stats`` (JSON values)
    results: folder of bulk results, None for none
    trouble: returns which rank is stuck, "" if none is; from any thread
    """

    def __init__(
        self,
        ranks: Ranks,
        limits: Limits,
        graph: dict[str, Any],
        results: ResultFolder | None = None,
        metrics: Metrics | None = None,
        ids: IdMap | None = None,
        trouble: Callable[[], str] = str,
    ) -> None:
        self.ranks = ranks
        self.limits = limits
        self.graph = graph
        self.metrics = metrics or Metrics()
        self.n = ranks.session.layout.n
        self.names = Names(self.n, ids)
        self.checker = Checker(self.names, limits)
        many = (FEWEST, MOST) if ranks.together is not None else None
        self.tickets = Tickets(limits.queue, many)
        self._results = results
        self._trouble = trouble
        self._unanswered: set[Ticket] = set()
        self._answering = threading.Lock()
        self._parents = ranks.session.options.parents
        self._draining = threading.Event()
        self._failure: BaseException | None = None
        self._numbers = count(1)
        self._running = 0
        self._flight: tuple[list[Ticket], Started[Levels]] | None = None
        self._half = False  # whether searches fly for half of the clients at a time
        self._operations = {
            "bfs": self._bfs,
            "distances": self._distances,
            "path": self._path,
            "all_paths": self._all_paths,
            "reachable": self._reachable,
        }

    # taken out of the queue by other threads

    @property
    def draining(self) -> bool:
        """Whether the service is ending and refuses requests."""
        return self._draining.is_set()

    def drain(self) -> None:
        """Refuse new requests, answer those that wait, then end."""
        self._draining.set()
        self.ranks.flag.request()
        self.tickets.wake()

    def fail(self, error: BaseException) -> None:
        """End the service with an error of another thread."""
        self._failure = error
        self.drain()

    def name(self) -> str:
        """Return a new name of a request for the log."""
        return f"r{next(self._numbers)}"

    def now(self, request: Request, name: str) -> Answer | None:
        """Return the answer to a request that needs no search, else None."""
        if not request.immediate:
            return None
        if isinstance(request, Shutdown):
            self.drain()
        answer: Answer
        if isinstance(request, Stats):
            answer = StatsAnswer(id=request.id, **self.stats())
        else:
            answer = HealthAnswer(id=request.id, **self.health())
        self.metrics.answered(request.op, "ok")
        LOG.info("%s %s: ok", name, request.op, extra={"request": name})
        return answer

    def submit(
        self, request: Request, name: str, done: Done, gone: Callable[[], bool]
    ) -> None:
        """Put a request into the queue.

        name: of the request, for the log; done: receives the answer, once, on any
        thread; gone: see ``Ticket``. Raises ServiceError: ``draining`` while the
        service ends, ``busy`` if the queue is full, ``bad_request`` for a path without
        parents and for paths that the session does not support.
        """
        if self.draining:
            raise ServiceError("draining", "the service ends", request.id)
        if request.op == "path" and not self._parents:
            raise ServiceError(
                "bad_request", "the service runs with --no-parents", request.id
            )
        if request.op == "all_paths" and (why := self.ranks.session.paths.refusal):
            raise ServiceError("bad_request", why, request.id)
        arrived = time.monotonic()
        until = arrived + (request.deadline or self.limits.deadline)
        ticket = Ticket(request, done, gone, name, arrived, until)
        with self._answering:
            self.tickets.put(ticket)
            self._unanswered.add(ticket)

    def expire(self) -> None:
        """Answer requests whose deadline has passed, even while a search is stuck."""
        for ticket in [ticket for ticket in self._unanswered.copy() if ticket.late]:
            self.tickets.drop(ticket)
            self._finish(ticket, _late(ticket))

    def refused(self, error: ServiceError, op: str, name: str) -> Answer:
        """Count and log an error of a request; return its answer."""
        self.metrics.answered(op if op in OPERATIONS else "unknown", error.code)
        LOG.info("%s %s: %s", name, error.code, error, extra={"request": name})
        return refusal(error)

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
            "running": self._running,
            "limits": self.limits,
            **self.metrics.as_dict(),
        }

    # the main thread

    def run(self, flag: StopFlag) -> None:
        """Answer until a request or a signal ends the service (rank 0).

        When no request waits, this thread reads from clients. An error of the searches
        propagates: it ends the service on all ranks.
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
                answer_landed = _nothing
            else:
                self.tickets.read_until(self._flight[1].ended, SHORT)
                group = self.tickets.take(0)
                answer_landed = self._land(*self._flight)
            self._running = len(group)
            self._serve(group, answer_landed)
            self._running = 0 if self._flight is None else len(self._flight[0])
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

    def _serve(self, group: list[Ticket], answer_landed: Callable[[], None]) -> None:
        """Answer requests of one search, or let it fly.

        answer_landed: answers those of the search before; called once, while a search
        flies, or before one that cannot
        """
        wanted = self._still_wanted(group)
        several = bool(wanted) and self._several(wanted)
        flies = several and self.ranks.ahead
        if flies:
            with self._stopped_for(wanted):
                self._flight = wanted, self._start_together(wanted)
        answer_landed()
        if flies or not wanted:
            return
        with self._stopped_for(wanted):
            first = wanted[0].request
            if isinstance(first, MultiBfs):
                self._answer(wanted[0], partial(self._multi_bfs, wanted[0], first))
            elif several:
                self._answer_together(wanted, *self._start_together(wanted).finish())
            elif near := self._near(wanted):
                self._answer_together(wanted, *near)
            else:
                self._one_search(wanted)

    def _still_wanted(self, group: list[Ticket]) -> list[Ticket]:
        """Return tickets whose answers somebody waits for; end the others."""
        now = time.monotonic()
        for ticket in group:
            ticket.waited = now - ticket.arrived
        self.metrics.waited([ticket.waited for ticket in group])
        wanted = []
        for ticket in group:
            if ticket.gone():
                self._finish(ticket, _gone(ticket))
            elif ticket.late:
                self._finish(ticket, _late(ticket))
            else:
                wanted.append(ticket)
        return wanted

    @contextmanager
    def _stopped_for(self, group: list[Ticket]) -> Iterator[None]:
        """End tickets whose search is stopped."""
        try:
            yield
        except SearchStopped:
            for ticket in group:
                self._finish(ticket, _gone(ticket) if ticket.gone() else _late(ticket))

    def _land(
        self, group: list[Ticket], started: Started[Levels]
    ) -> Callable[[], None]:
        """Wait for the search that flies; return a function that answers its requests.

        While the device searches for one half of the clients, this thread answers and
        reads the other.
        """
        self._flight = None
        if not started.ended():
            self.tickets.arrivals.leave()
        with self._stopped_for(group):
            seconds, levels = started.finish()

            def answer() -> None:
                began = time.perf_counter()
                self._answer_together(group, seconds, levels)
                self._half = halves_pay(seconds, time.perf_counter() - began)

            return answer
        return _nothing

    def _several(self, group: list[Ticket]) -> bool:
        """Return whether requests are for more than one source."""
        first = group[0].start
        return any(ticket.start != first for ticket in group[1:])

    def _start_together(self, group: list[Ticket]) -> Started[Levels]:
        """Search from many sources at once for small requests."""
        asked = [(ticket.start, _targets(ticket.request)) for ticket in group]
        return self.ranks.start_together(
            list(dict.fromkeys(source for source, _ in asked)),
            asked,
            lambda: all(ticket.lost for ticket in group),
        )

    def _answer_together(
        self, group: list[Ticket], seconds: float, levels: Levels
    ) -> None:
        """Answer small requests with the levels that they asked for."""
        self._answer_all(group, [[each] for each in levels], seconds)

    def _near(self, group: list[Ticket]) -> tuple[float, Levels] | None:
        """Return (seconds, levels) of small requests for one source by edge lookups.

        None where these do not suffice, and for other requests.
        """
        if not all(ticket.small for ticket in group):
            return None
        targets = [_targets(ticket.request) for ticket in group]
        return self.ranks.near(group[0].start, targets)

    def _one_search(self, group: list[Ticket]) -> None:
        """Search once and answer requests for the same source."""
        needs = [self._steps_of(ticket.request) for ticket in group]
        seconds, values = self.ranks.search(
            group[0].start,
            [step for steps, _ in needs for step in steps],
            parents=self._parents and any(with_parents for _, with_parents in needs),
            stop=lambda: all(ticket.lost for ticket in group),
        )
        left = iter(values)
        own = [list(islice(left, len(steps))) for steps, _ in needs]
        self._answer_all(group, own, seconds)

    def _answer_all(
        self, group: list[Ticket], values: list[list[Any]], seconds: float
    ) -> None:
        """Answer requests of one search, each with the results of its steps."""
        if len(group) > 1:  # two threads that run Python take turns at every answer
            self.tickets.arrivals.stay()
        self.metrics.searched(seconds)
        self.metrics.batched(len(group), len({ticket.start for ticket in group}))
        now = time.monotonic()
        ended: list[tuple[Ticket, Ended]] = []
        for ticket, own in zip(group, values, strict=True):
            if now >= ticket.until:
                ended.append((ticket, _late(ticket)))
                continue
            request, ticket.searched = ticket.request, seconds
            make = partial(self._operations[request.op], request, seconds, own)
            ended.append((ticket, self._made(ticket, make)))
        self._end(ended)

    def _answer(self, ticket: Ticket, make: Callable[[], Answer]) -> None:
        """Answer a ticket with a function's result or error."""
        self._finish(ticket, self._made(ticket, make))

    @staticmethod
    def _made(ticket: Ticket, make: Callable[[], Answer]) -> Ended:
        """Return a function's result or error."""
        try:
            return make()
        except ServiceError as error:
            error.id = ticket.request.id
            return error

    def _finish(self, ticket: Ticket, result: Ended) -> None:
        """Answer a ticket unless it already has an answer."""
        self._end([(ticket, result)])

    def _end(self, results: Sequence[tuple[Ticket, Ended]]) -> None:
        """Answer tickets of one search, but those that already have an answer."""
        with self._answering:
            ended = [pair for pair in results if pair[0] in self._unanswered]
            self._unanswered.difference_update([ticket for ticket, _ in ended])
            lone = not self._unanswered
        alike: dict[str, list[Ticket]] = {}
        answers: list[tuple[Ticket, Answer]] = []
        good: Counter[str] = Counter()
        answer: Answer
        for ticket, result in ended:
            if isinstance(result, ServiceError):
                how, answer = f"{result.code} ({result})", refusal(result)
                self.metrics.answered(ticket.request.op, result.code)
            else:
                how, answer = "ok", result
                answer.id = ticket.request.id
                good[ticket.request.op] += 1
            alike.setdefault(how, []).append(ticket)
            answers.append((ticket, answer))
        for op, requests in good.items():
            self.metrics.answered(op, "ok", requests)
        if lone and good:  # only the searching thread has results; it reads the next
            self.tickets.arrivals.stay()
        for ticket, answer in answers:
            ticket.done(answer)
        for how, tickets in alike.items():
            log_together(tickets, how)

    def _steps_of(self, request: Request) -> tuple[list[Step], bool]:
        """Return a request's steps after its search, and whether it needs parents."""
        if isinstance(request, Path):
            return [["path", request.target, self.limits.inline]], True
        if isinstance(request, AllPaths):
            return [["all_paths", request.target, self.limits.inline // 2]], False
        if isinstance(request, Bfs):
            where = self._where(request, 1)
            steps: list[Step] = [["counts"], ["traversed"]]
            if where == "summary":
                return steps, False
            return [*steps, ["block"]], request.parents
        return [["at", _targets(request)]], False

    def _where(self, request: WithResults, rows: int) -> str:
        """Choose where a result goes: inline, file or summary; raise for others."""
        if request.result != "auto":
            return request.result
        small = not self._too_many(request, rows)
        return "inline" if small and request.name is UNSET else "file"

    def _too_many(self, request: WithResults, rows: int) -> str:
        """Return the limit that an inline result exceeds, in words; "" if none.

        Names of vertices are text in any case.
        """
        parents = rows * (request.parents and self._parents)
        named = self.names.ids is not None
        text = self.n * (named * (parents + 1))
        arrays = self.n * (rows + (not named) * parents)
        if request.arrays == "json":
            text, arrays = text + arrays, 0
        most = self.limits
        if text > most.inline:
            return f"{text} values inline; allowed: {most.inline}"
        if arrays > most.binary:
            return f"{arrays} values in arrays; allowed: {most.binary}"
        return ""

    def check_result(self, request: Request) -> None:
        """Refuse, before any search, a result that has no valid destination."""
        if not isinstance(request, WithResults):
            return
        rows = len(request.sources) if isinstance(request, MultiBfs) else 1
        where = self._where(request, rows)
        if where == "file":
            if self._results is None:
                raise ServiceError("bad_request", f"no folder for results; {NO_FOLDER}")
            parents = request.parents and self._parents
            self._results.check_name(
                request.format, request.name or None, parents=parents
            )
        if where == "inline" and (why := self._too_many(request, rows)):
            raise ServiceError(
                "too_large", f"{why}; use the result 'file' or 'summary'"
            )

    def _search(
        self, source: Source, seconds: float, counts: list[int], nedge: int
    ) -> dict[str, Any]:
        """Return the counts of a search: fields of ``Search``."""
        self.metrics.traversed(nedge, seconds)
        begun: dict[str, Any] = {}
        if isinstance(source, tuple):
            begun["sources"] = self.names.each(np.array(source))
        else:
            begun["source"] = self.names.of(source)
        summary = {
            **begun,
            "reached": sum(counts),
            "depth": len(counts) - 1,
            "nedge": nedge,
            "seconds": seconds,
            "TEPS": nedge / seconds if seconds else 0.0,
            "levels": counts,
        }
        self.metrics.last = Search(**summary)
        return summary

    def _distances(self, request: Any, _: float, values: Sequence[Any]) -> Answer:
        levels = values[0]
        if request.arrays == "npy":
            levels = np.array(levels, dtype=np.int32)
        return DistancesAnswer(distances=levels)

    def _reachable(self, _: Request, __: float, values: Sequence[Any]) -> Answer:
        return ReachableAnswer(reachable=[level >= 0 for level in values[0]])

    def _path(self, _: Request, __: float, values: Sequence[Any]) -> Answer:
        [(distance, path)] = values
        if path is None and distance >= 0:
            raise ServiceError(
                "too_large",
                f"the path has {distance + 1} vertices; allowed: {self.limits.inline}",
            )
        if path is not None:
            path = self.names.each(np.array(path, dtype=np.int64))
        return PathAnswer(distance=distance, path=path)

    def _all_paths(self, _: Request, __: float, values: Sequence[Any]) -> Answer:
        [(distance, number, pairs)] = values
        if pairs is None and distance >= 0:
            raise ServiceError(
                "too_large",
                f"the paths have more than {self.limits.inline // 2} edges, which are "
                f"more than the allowed {self.limits.inline} values",
            )
        edges = None
        if pairs is not None:
            names = self.names.each(np.array(pairs, dtype=np.int64).ravel())
            edges = [names[k : k + 2] for k in range(0, len(names), 2)]
        return AllPathsAnswer(distance=distance, count=number, edges=edges)

    def _bfs(self, request: Any, seconds: float, values: Sequence[Any]) -> Answer:
        counts, nedge, *blocks = values
        answer = BfsAnswer(**self._search(request.start, seconds, counts, nedge))
        if not blocks:
            return answer
        level, parent = blocks[0]
        if not request.parents:
            parent = None
        if self._where(request, 1) == "inline":
            self._inline(request, answer, level, parent)
            answer.ids = self._all_ids()
        else:
            answer.files = self._file(request, [request.start], [(level, parent)])
        return answer

    def _multi_bfs(self, ticket: Ticket, request: MultiBfs) -> Answer:
        where = self._where(request, len(request.sources))
        answer = MultiBfsAnswer(searches=[])

        def searches() -> Iterator[Row]:
            steps: list[Step] = [["counts"], ["traversed"]]
            steps += [] if where == "summary" else [["block"]]
            parents = self._parents and request.parents and where != "summary"
            for source in request.sources:
                seconds, (counts, nedge, *blocks) = self.ranks.search(
                    source, steps, parents=parents, stop=lambda: ticket.lost
                )
                ticket.searched += seconds
                self.metrics.searched(seconds)
                counted = self._search(source, seconds, counts, nedge)
                answer.searches.append(Search(**counted))
                for level, parent in blocks:
                    yield level, parent if parents else None

        if where == "file":
            answer.files = self._file(request, request.sources, searches())
            return answer
        for level, parent in searches():
            self._inline(request, answer.searches[-1], level, parent)
        if where == "inline":
            answer.ids = self._all_ids()
        return answer

    def _inline(
        self, request: WithResults, search: Search, level: Array, parent: Array | None
    ) -> None:
        """Put levels and parents into an answer, as arrays or as lists."""
        as_arrays = request.arrays == "npy"
        search.level = level if as_arrays else level.tolist()
        if parent is not None:
            keep = as_arrays and self.names.ids is None
            search.parent = parent if keep else self.names.each(parent)

    def _all_ids(self) -> list[Name] | UnsetType:
        """Return the names of all vertices, if they have any."""
        return UNSET if self.names.ids is None else self.names.all()

    def _file(
        self, request: WithResults, sources: Sequence[Source], rows: Iterable[Row]
    ) -> list[str]:
        """Write rows of (level, parent); return the paths of the files."""
        if self._results is None:
            raise ServiceError("bad_request", f"no folder for results; {NO_FOLDER}")
        stem = request.op
        first, *others = sources
        if not (others or isinstance(first, tuple) or self.names.kind == "text"):
            stem = f"bfs-{self.names.of(first)}"
        made = self._results.new(
            request.format,
            [x if isinstance(x, int) else np.array(x) for x in sources],
            self.n,
            name=request.name or None,
            stem=stem,
            parents=request.parents and self._parents,
        )
        with made as (file, paths):
            for row, (level, parent) in enumerate(rows):
                file.write(row, level, parent)
        return paths


def halves_pay(searched: float, answered: float) -> bool:
    """Return whether two batches are faster than one, of which the seconds are known.

    Reading takes about as long as answering, and searches for half of the sources more
    than half the time: two hide the shorter of both, if that is long enough.
    """
    return searched < 3 * answered


def _nothing() -> None:
    """Answer nobody."""


def _targets(request: Request) -> list[int]:
    """Return the vertices of a small request."""
    return request.targets if isinstance(request, ToTargets) else []


def _late(ticket: Ticket) -> ServiceError:
    spent = ticket.until - ticket.arrived
    return ServiceError(
        "deadline", f"no answer within {spent:g} seconds", ticket.request.id
    )


def _gone(ticket: Ticket) -> ServiceError:
    return ServiceError("gone", "nobody waits for the answer", ticket.request.id)
